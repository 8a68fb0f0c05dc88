"""Finds the variable parts of real log lines: what stays, what changes, and how."""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from coprlake.generator.clock import TimeStyle

_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_FINDER = re.compile(
    # The lookaheads only save time: the expression is tried at every character, and most start no match.
    rf"""
    (?=\d)(?:
        (?<!\d)(?:
          (?P<date_time>\d{{4}}(?P<s1>[-/.])\d\d?(?P=s1)\d\d?[ T:_-]
              \d\d(?P<s2>[:.])\d\d(?P=s2)\d\d([.,:]\d{{3}}(\d{{3}})?)?(?!\d))
        | (?P<short>\d\d(?P<s3>[-/.])\d\d((?P=s3)\d\d)?[ ]\d\d:\d\d:\d\d([.,]\d{{3}})?(?!\d))
        | (?P<access>\d\d/({_MONTH})/\d{{4}}:\d\d:\d\d:\d\d)
        | (?P<packed>\d{{8}}-\d\d?:\d\d?:\d\d?:\d{{1,3}}(?!\d))
        | (?P<digits>^\d{{6}}[ ]\d{{6}}(?!\d))
        | (?P<clock>(?<!:)\d\d:\d\d:\d\d([.,]\d{{3}})?(?![\d:]))
        | (?P<date>(?<!\.)\d{{4}}(?P<s4>[-.])\d\d(?P=s4)\d\d(?![\d.]))
        | (?P<address>(?<!\.)\d{{1,3}}(\.\d{{1,3}}){{3}}(?![\d.]))
        )
    )
  | (?=[MTWFSJANOD])(?P<syslog>\b((Mon|Tue|Wed|Thu|Fri|Sat|Sun)[ ])?({_MONTH})[ ]+\d\d?[ ]
        \d\d:\d\d:\d\d([ ]\d{{4}})?(?!\d))
  | (?=[0-9a-f])(?:
        (?P<uuid>\b[0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{12}}\b)
      | (?P<hex>(?<=0x)[0-9a-f]{{3,16}}\b|(?<![0-9A-Za-z])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{{6,16}}(?![0-9A-Za-z]))
      | (?P<number>(?<![0-9A-Za-z.])\d{{1,19}}(?![0-9A-Za-z]))
    )
    """,
    re.VERBOSE,
)


class Slot(IntEnum):
    """How a new value for a variable part is made."""

    TIME = 0
    OCTET = 1
    HEX = 2
    ID = 3
    MEASURE = 4


@dataclass(frozen=True)
class SampleFile:
    """The lines of one file as percent patterns; line i has the slots from ``starts[i]`` up to ``starts[i+1]``.

    ``parameters`` is the index of the style for TIME, the byte (0 to 2) for OCTET, else the number of digits.
    """

    patterns: list[str]
    starts: NDArray[np.int64]
    kinds: NDArray[np.int8]
    parameters: NDArray[np.int64]
    keys: NDArray[np.uint64]
    numbers: NDArray[np.float64]
    styles: list[TimeStyle]
    mean_bytes: float


_Placeholder = tuple[str, Slot, int, int, float]  # percent pattern, kind, parameter, key, number


def compile_file(lines: Sequence[str]) -> SampleFile:
    """Find the variable parts of ``lines``; a part that hardly varies among the lines of a form stays as it is."""
    found = [list(_FINDER.finditer(line)) for line in lines]
    settled = _settled_parts(lines, found)
    uses = Counter(text for matches in found for text in {match[0] for match in matches})
    styles: dict[str, int] = {}
    patterns, starts, pieces = [], [0], list[_Placeholder]()
    for line, matches, fixed in zip(lines, found, settled, strict=True):
        pattern, at = "", 0
        for index, match in enumerate(matches):
            if index in fixed:
                continue
            slots = _pieces(match, styles, shared=uses[match[0]] > 1)
            pieces += slots
            pattern += line[at : match.start()].replace("%", "%%") + "".join(slot[0] for slot in slots)
            at = match.end()
        patterns.append(pattern + line[at:].replace("%", "%%"))
        starts.append(len(pieces))
    return SampleFile(
        patterns,
        np.array(starts, dtype=np.int64),
        np.array([piece[1] for piece in pieces], dtype=np.int8),
        np.array([piece[2] for piece in pieces], dtype=np.int64),
        np.array([piece[3] for piece in pieces], dtype=np.uint64),
        np.array([piece[4] for piece in pieces], dtype=np.float64),
        [TimeStyle(spec) for spec in styles],
        sum(len(line.encode()) + 1 for line in lines) / len(lines),
    )


def _settled_parts(lines: Sequence[str], found: list[list[re.Match[str]]]) -> list[set[int]]:
    """The indices of the matches in each line that hardly vary among the lines of its form, except times."""
    forms: dict[str, list[list[re.Match[str]]]] = defaultdict(list)
    form_of_line = [_form(line, matches) for line, matches in zip(lines, found, strict=True)]
    for form, matches in zip(form_of_line, found, strict=True):
        forms[form].append(matches)
    settled = {
        form: {index for index, column in enumerate(zip(*rows, strict=True)) if _is_settled(column)}
        for form, rows in forms.items()
    }
    return [settled[form] for form in form_of_line]


def _form(line: str, matches: list[re.Match[str]]) -> str:
    """The line without its matches, followed by the kind of each: lines of the same form are equal in it."""
    ends = [0, *(match.end() for match in matches)]
    texts = [line[end : match.start()] for end, match in zip(ends, matches, strict=False)]
    return "\0".join([*texts, line[ends[-1] :], *(match.lastgroup or "" for match in matches)])


def _is_settled(column: Sequence[re.Match[str]]) -> bool:
    """Whether a part stays as it is in all lines of a form."""
    first = column[0]
    if _is_time(first):
        return False
    values = {match[0] for match in column}
    if len(column) < 3:  # too few to tell: short numbers are mostly codes and versions
        return first.lastgroup == "number" and len(first[0]) < 4
    return len(values) <= max(1, len(column) // 50) or max(map(len, values)) < 2


def _is_time(match: re.Match[str]) -> bool:
    return match.lastgroup in _TIME_SPECS or _epoch_spec(match) is not None


def _epoch_spec(match: re.Match[str]) -> str | None:
    """The format of seconds or milliseconds since 1970 (2001 to 2033), None for others and for ids such as job_1_2."""
    if match.lastgroup != "number" or match[0][0] != "1" or len(match[0]) not in (10, 13):
        return None
    if "_" in match.string[max(match.start() - 1, 0) : match.end() + 1]:
        return None
    return "{epoch}" if len(match[0]) == 10 else "{epoch}{ms}"


def _pieces(match: re.Match[str], styles: dict[str, int], shared: bool) -> list[_Placeholder]:
    text, group = match[0], match.lastgroup or ""
    key = zlib.crc32(text.encode())
    spec = _TIME_SPECS[group](match) if group in _TIME_SPECS else _epoch_spec(match)
    if spec is not None:
        return [("%s", Slot.TIME, styles.setdefault(spec, len(styles)), key, 0.0)]
    if group == "address":
        first = text.partition(".")[0]
        return [
            (f"{first}.%d", Slot.OCTET, 0, key, 0.0),
            (".%d", Slot.OCTET, 1, key, 0.0),
            (".%d", Slot.OCTET, 2, key, 0.0),
        ]
    if group in ("uuid", "hex"):
        parts = [(part, "-" * (index > 0)) for index, part in enumerate(text.split("-"))]
        return [
            (f"{dash}%0{len(part)}x", Slot.HEX, len(part), key + 7919 * index, 0.0)
            for index, (part, dash) in enumerate(parts)
        ]
    pattern = f"%0{len(text)}d" if text[0] == "0" else "%d"
    kind = Slot.ID if shared or len(text) > 8 else Slot.MEASURE
    return [(pattern, kind, len(text), key, float(text))]


def _fraction(match: re.Match[str]) -> str:
    """The format of the fraction after the seconds, if there is one."""
    part = re.search(r"\d\d[:.]\d\d[:.]\d\d([.,:])(\d{3}(?:\d{3})?)$", match[0])
    return "" if part is None else part[1] + ("{ms}" if len(part[2]) == 3 else "{us}")


def _date_time(match: re.Match[str]) -> str:
    dash, colon = match["s1"], match["s2"]
    between = re.match(r"\d{4}.\d\d?.\d\d?(.)", match[0])
    return f"%Y{dash}%m{dash}%d{between[1] if between else ' '}%H{colon}%M{colon}%S{_fraction(match)}"


def _short(match: re.Match[str]) -> str:
    dash = match["s3"]
    year = f"%y{dash}" if match[0].partition(" ")[0].count(dash) == 2 else ""
    return f"{year}%m{dash}%d %H:%M:%S{_fraction(match)}"


def _syslog(match: re.Match[str]) -> str:
    weekday = "%a " if match[0][:3] in "Mon Tue Wed Thu Fri Sat Sun" else ""
    return f"{weekday}%b %e %H:%M:%S" + (" 2024" if re.search(r" \d{4}$", match[0]) else "")


_TIME_SPECS: dict[str, Callable[[re.Match[str]], str]] = {
    "date_time": _date_time,
    "short": _short,
    "syslog": _syslog,
    "access": lambda match: "%d/%b/%Y:%H:%M:%S",
    "packed": lambda match: "%Y%m%d-%H:%M:%S:{ms}",
    "digits": lambda match: "%y%m%d %H%M%S",
    "clock": lambda match: "%H:%M:%S" + _fraction(match),
    "date": lambda match: f"%Y{match['s4']}%m{match['s4']}%d",
}
