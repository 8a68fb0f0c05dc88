"""Which format a file has, from its first 64 KiB."""

import csv
import json
import re
from typing import Final

from coprlake.intake.fields.keys import CONTENT_KEYS, TIMESTAMP_KEYS
from coprlake.intake.options import ReadOptions
from coprlake.intake.sources.inputs import InputFile

_SAMPLE_LINES: Final = 50
_SHARE: Final = 0.6
"""Of the sampled lines so many must have the format: the rest may be broken or belong to the line before."""

_MONTH: Final = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_SYSLOG: Final = re.compile(
    rf"(?:<\d{{1,3}}>(?:1 |{_MONTH} |\d{{4}}-)|{_MONTH} [ \d]?\d \d\d:\d\d:\d\d \S+ [^\s:\[]+(?:\[\d+\])?: "
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) \S+ [\w./()-]+(?:\[\d+\])?: )"
)
_ACCESS: Final = re.compile(rf'\S+ \S+ .{{1,64}}? ?\[\d\d/{_MONTH}/\d{{4}}:\d\d:\d\d:\d\d [+-]\d{{4}}\] "')
_NAME: Final = re.compile(r"[A-Za-z_@][\w .@/()-]{0,63}")


def wanted_format(file: InputFile, options: ReadOptions) -> str:
    """The format that is known beforehand; ``auto`` if none is."""
    return options.format if options.format != "auto" else file.format or "auto"


def detect(head: bytes, name: str) -> str:
    """The format of a text file that begins so and has this name.

    Args:
        head: its first bytes, decompressed and in UTF-8.
        name: which only counts where the bytes leave it open (a table without usual names of columns).
    """
    text = head.decode("utf-8", "replace")
    complete = text.split("\n") if len(head) < 64 * 1024 else text.split("\n")[:-1] or [text]
    lines = [line.rstrip("\r") for line in complete if line.strip()][:_SAMPLE_LINES]
    if not lines:
        return "text"
    if _share(lines, _is_json_object) >= _SHARE:
        return "ndjson"
    if _share(lines, lambda line: _ACCESS.match(line) is not None) >= _SHARE:
        return "access"
    if _share(lines, lambda line: _SYSLOG.match(line) is not None) >= _SHARE:
        return "syslog"
    return "csv" if delimiter_of(lines, name) else "text"


def _share(lines: list[str], has_format: object) -> float:
    assert callable(has_format)
    return sum(bool(has_format(line)) for line in lines) / len(lines)


def _is_json_object(line: str) -> bool:
    if not line.lstrip().startswith("{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def delimiter_of(lines: list[str], name: str = "") -> str | None:
    """What separates the columns of a table whose first line names them; None if that is no such table."""
    wanted = {*CONTENT_KEYS, *TIMESTAMP_KEYS}
    named_so = re.search(r"\.[ct]sv(\.\w+)?$", name.lower()) is not None
    for delimiter in ",\t;|":
        try:
            rows = list(csv.reader(lines, delimiter=delimiter))
        except csv.Error:  # a bare carriage return, a cell of more than 128 KiB
            continue
        header = [cell.strip() for cell in rows[0]]
        if len(header) < 2 or len(set(header)) < len(header) or not all(map(_NAME.fullmatch, header)):
            continue
        like = sum(len(row) == len(header) for row in rows[1:])
        if like < _SHARE * (len(rows) - 1) or (len(rows) == 1 and not named_so):
            continue
        if named_so or wanted & {cell.lower() for cell in header}:
            return delimiter
    return None
