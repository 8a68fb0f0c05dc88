"""The meaning of a pattern in plain, slow, obvious Python: the oracle of `coprlake.dpl`.

It walks the syntax tree, over characters instead of bytes, and knows neither programs nor kernels.
"""

import ipaddress
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from coprlake.dpl.compiling.export_layout import named_types
from coprlake.dpl.syntax import time_formats as formats
from coprlake.dpl.syntax.tree import (
    Address,
    Anchor,
    Array,
    Boolean,
    Card,
    Chars,
    Data,
    Enumeration,
    Group,
    Integer,
    Json,
    Literal,
    Moment,
    Node,
    Pairs,
    Quoted,
    Real,
    Sequence,
    Uuid,
    may_be_absent,
)
from coprlake.text.calendar_names import DAYS, MONTHS

Values = dict[str, Any]
ValueMatch = tuple[int, Any]
"""The end of a match, and its value."""
Matched = tuple[int, Values]
"""The end of a match, and its exports."""

_BEHIND_BYTES = 64
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_REAL = r"[+-]?[0-9]+(?:{point}[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_ZONE = r"(?P<zone>Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)"


class Follow(NamedTuple):
    """The nodes that must match next."""

    node: Node
    then: "Follow | None"


def naive_parse(tree: Group, text: str) -> Values | None:
    """The exports of a pattern from a text, or None if it does not match at the start."""
    found = naive_match(tree, text, 0)
    return None if found is None else {name: found[1].get(name) for name in named_types(tree.alternatives)}


def naive_match(tree: Group, text: str, at: int) -> Matched | None:
    """The end and the exports of the match that starts at `at`, or None."""
    return _Text(text, len(text)).group(tree, at, None)


def naive_parse_all(tree: Group, text: str) -> Iterator[tuple[int, int, Values]]:
    """All matches, one after the other: start, end and exports."""
    at = 0
    names = named_types(tree.alternatives)
    while at < len(text):
        found = naive_match(tree, text, at)
        if found and found[0] > at:
            yield at, found[0], {name: found[1].get(name) for name in names}
            at = found[0]
        else:
            at += 1


class _Text:
    def __init__(self, text: str, end: int) -> None:
        self.text = text
        self.end = end

    def regex(self, pattern: str, at: int) -> "re.Match[str] | None":
        return re.compile(pattern, re.DOTALL).match(self.text, at, self.end)

    def group(self, group: Group, at: int, follow: Follow | None) -> Matched | None:
        for sequence in group.alternatives:
            found = self.sequence(sequence, at, follow)
            if found:
                return found
        return None

    def sequence(self, sequence: Sequence, at: int, follow: Follow | None) -> Matched | None:
        values: Values = {}
        for index, node in enumerate(sequence):
            behind = follow
            for later in reversed(sequence[index + 1 :]):
                if not may_be_absent(later):
                    behind = Follow(later, behind)
            found = self.node(node, at, behind)
            if found is None:
                return None
            at = found[0]
            values |= found[1]
        return at, values

    def node(self, node: Node, at: int, follow: Follow | None) -> Matched | None:
        if node.look:
            return (at, {}) if self.look(node, at) else None
        matcher = node.matcher
        found: Matched | None
        if isinstance(matcher, Group | Array | Pairs | Json):
            found = self.composite(node, at, follow)
        else:
            leaf = self.data(node, matcher, at, follow) if isinstance(matcher, Data) else self.leaf(node, at)
            found = None if leaf is None else (leaf[0], {node.export: leaf[1]} if node.export else {})
        counted = isinstance(matcher, Literal | Chars | Data | Array | Pairs)
        counted = counted or (isinstance(matcher, Group) and not matcher.is_record)
        if found is None and (node.optional or (node.least == 0 and not counted)):
            return at, {}
        return found

    def look(self, node: Node, at: int) -> bool:
        bare = replace(node, look="")
        negative = node.look.startswith("!")
        if ">" in node.look:
            return (self.node(bare, at, None) is not None) != negative
        before = _Text(self.text, at)
        for start in range(at, -1, -1):
            if len(self.text[start:at].encode()) > _BEHIND_BYTES:
                break
            found = before.node(bare, start, None)
            if found and found[0] == at:
                return not negative
        return negative

    def data(self, node: Node, matcher: Data, at: int, follow: Follow | None) -> ValueMatch | None:
        line_end = self.text.find("\n", at, self.end)
        last = self.end if matcher.over_lines or line_end < 0 else line_end
        last = min(last, at + node.most)
        if follow is None:
            return (last, self.text[at:last]) if last - at >= node.least else None
        for stop in range(at + node.least, last + 1):
            alone = isinstance(follow.node.matcher, Data) and not follow.node.look
            if self.node(follow.node, stop, None if alone else follow.then):
                return stop, self.text[at:stop]
        return None

    def composite(self, node: Node, at: int, follow: Follow | None) -> Matched | None:
        matcher = node.matcher
        if isinstance(matcher, Json):
            return self.json(node, matcher, at)
        if isinstance(matcher, Group) and matcher.is_record:
            found = self.group(matcher, at, follow)
            if found is None:
                return None
            record = {name: found[1].get(name) for name in named_types(matcher.alternatives)}
            return found[0], {node.export: record} if node.export else {}
        start = at
        values: Values = {}
        runs: list[Values] = []
        behind = follow if node.most == 1 else None
        while len(runs) < node.most:
            if isinstance(matcher, Group):
                found = self.group(matcher, at, behind)
            else:
                assert isinstance(matcher, Array | Pairs)
                found = self.sequence(matcher.body, at, behind)
            if found is None and len(runs) < node.least:
                return None
            if found is not None and found[0] == at and isinstance(matcher, Group) and node.least == node.most == 1:
                values |= found[1]  # not a repetition
            if found is None or found[0] == at:
                break
            at = found[0]
            runs.append(found[1])
        if isinstance(matcher, Group):
            for run in runs:
                values |= run
            return at, {**values, node.export: self.text[start:at]} if node.export else values
        assert isinstance(matcher, Array | Pairs)
        return at, {node.export: _gathered(matcher, runs)} if node.export else {}

    def json(self, node: Node, matcher: Json, at: int) -> Matched | None:
        stop = self.json_stop(at, matcher.form)
        if stop is None:
            return None
        if matcher.members is None:
            return stop, {node.export: self.text[at:stop]} if node.export else {}
        values = {member.export: self.member(member, at, stop) for member in matcher.members}
        if matcher.flat:
            return stop, {str(name): value for name, value in values.items()}
        return stop, {node.export: values} if node.export else {}

    def json_stop(self, at: int, form: str = "value") -> int | None:
        if self.text[at : at + 1] not in {"object": "{", "array": "["}.get(form, '{["-0123456789tfn') or at >= self.end:
            return None
        try:
            _, stop = json.JSONDecoder(parse_constant=_refuse).raw_decode(self.text[: self.end], at)
        except (ValueError, RecursionError):
            return None
        return stop

    def member(self, member: Node, at: int, stop: int) -> Any:
        blanks = re.compile(r"[ \t\r\n]*")

        def skip(place: int) -> int:
            match = blanks.match(self.text, place)
            assert match
            return match.end()

        at = skip(at + 1)
        while at < stop and self.text[at] == '"':
            key_stop = self.json_stop(at)
            assert key_stop is not None
            start = skip(skip(key_stop) + 1)
            value_stop = self.json_stop(start)
            assert value_stop is not None
            if self.text[at + 1 : key_stop - 1] == member.export:
                whole = isinstance(member.matcher, Json | Quoted)
                inset = 0 if whole or self.text[start] != '"' else 1
                found = _Text(self.text, value_stop - inset).node(member, start + inset, None)
                return found[1].get(member.export) if found and found[0] == value_stop - inset else None
            at = skip(skip(value_stop) + 1)
        return None

    def leaf(self, node: Node, at: int) -> ValueMatch | None:
        matcher = node.matcher
        if isinstance(matcher, Literal):
            found = self.regex(f"(?:{re.escape(matcher.text)}){{{node.least},{node.most}}}", at)
            return found and (found.end(), found[0])
        if isinstance(matcher, Chars):
            stop = at
            while stop < min(self.end, at + node.most) and _in(matcher, self.text[stop]):
                stop += 1
            return (stop, self.text[at:stop]) if stop - at >= node.least else None
        if isinstance(matcher, Integer):
            return self.integer(matcher, at)
        if isinstance(matcher, Real):
            found = self.regex(_REAL.format(point="," if matcher.comma else r"\."), at)
            value = float(found[0].replace(",", ".")) if found else 0.0
            return (found.end(), value) if found and matcher.low <= value <= matcher.high else None
        if isinstance(matcher, Boolean):
            found = self.regex("(?i:true|false)", at)
            return found and (found.end(), found[0].lower() == "true")
        if isinstance(matcher, Address):
            return (self.ipv4(at) if matcher.v4 else None) or (self.ipv6(at) if matcher.v6 else None)
        if isinstance(matcher, Moment):
            return self.moment(matcher, at)
        if isinstance(matcher, Quoted):
            return self.quoted(matcher, at)
        if isinstance(matcher, Anchor):
            holds = {"BOS": at == 0, "EOS": at == self.end, "MOS": 0 < at < self.end}[matcher.place]
            return (at, "") if holds else None
        if isinstance(matcher, Enumeration):
            for text, number in matcher.entries:
                if self.regex(("(?ai)" if matcher.fold else "") + re.escape(text), at):
                    return at + len(text), number
            return None
        assert isinstance(matcher, Uuid | Card)
        found = self.regex(_UUID if isinstance(matcher, Uuid) else r"[0-9](?:[ -]?[0-9])*", at)
        return found and (found.end(), found[0]) if isinstance(matcher, Uuid) or _is_card(found) else None

    def integer(self, matcher: Integer, at: int) -> ValueMatch | None:
        if matcher.hex_digits:
            found = self.regex(r"(?:0[xX](?=[0-9a-fA-F]))?([0-9a-fA-F]+)", at)
            if not found or len(found[1]) > matcher.hex_digits:
                return None
            value = int(found[1], 16)
            value -= 1 << 64 if value >= 1 << 63 else 0
        else:
            found = self.regex(r"[+-]?[0-9]+", at)
            if not found:
                return None
            value = int(found[0])
        return (found.end(), value) if matcher.low <= value <= matcher.high else None

    def ipv4(self, at: int) -> ValueMatch | None:
        found = self.regex(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})(?![0-9])", at)
        return (found.end(), found[0]) if found and all(int(part) < 256 for part in found.groups()) else None

    def ipv6(self, at: int) -> ValueMatch | None:
        run = self.regex("[0-9a-fA-F:.]+", at)
        for stop in range(run.end() if run else at, at, -1):
            try:
                ipaddress.IPv6Address(self.text[at:stop])
            except ValueError:
                continue
            behind = self.text[stop : min(stop + 2, self.end)]
            joined = re.match(r"[A-Za-z0-9]|:[:0-9a-fA-F]", behind)
            return None if joined else (stop, self.text[at:stop].lower())
        return None

    def quoted(self, matcher: Quoted, at: int) -> ValueMatch | None:
        quote = self.text[at : at + 1]
        if quote not in list(matcher.quotes) or at >= self.end:
            return None
        if matcher.doubled:
            found = self.regex(f"{quote}((?:[^{quote}]|{quote}{quote})*){quote}(?!{quote})", at)
            return found and (found.end(), found[1].replace(2 * quote, quote))
        found = self.regex(rf"{quote}((?:[^{quote}\\]|\\.)*){quote}", at)
        return found and (found.end(), _unescaped(found[1]))

    def moment(self, matcher: Moment, at: int) -> ValueMatch | None:
        """Only for formats with a year; the zone is optional. A regular expression recognizes names."""
        found = self.regex("".join(_field_regex(field) for field in matcher.fields), at)
        if not found:
            return None
        parts = found.groupdict()
        month = parts.get("month") or "1"
        if not month.strip().isdigit():
            month = str([name[:3].lower() for name in MONTHS].index(month[:3].lower()) + 1)
        hour = int(parts.get("hour") or 0)
        if parts.get("half"):
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + (12 if parts["half"].lower() == "pm" else 0)
        numbers = [int(parts.get(name) or 0) for name in ("minute", "second")]
        try:
            day = datetime(int(parts["year"]), int(month), int(parts.get("day") or 1))
        except ValueError:
            return None
        if hour > 23 or numbers[0] > 59 or numbers[1] > 60:
            return None
        seconds = (day - datetime(1970, 1, 1)).days * 86400 + hour * 3600 + numbers[0] * 60 + numbers[1]
        zone = re.fullmatch(r"([+-])(\d\d):?(\d\d)?", parts.get("zone") or "")
        if zone:
            east = int(zone[2]) * 60 + int(zone[3] or 0)
            if int(zone[2]) > 15 or int(zone[3] or 0) > 59:
                return None
            seconds -= (east if zone[1] == "+" else -east) * 60
        return found.end(), seconds * 1_000_000 + int((parts.get("fraction") or "").ljust(6, "0")[:6])


def _refuse(word: str) -> Any:
    raise ValueError(word)


def _in(matcher: Chars, character: str) -> bool:
    return any(low <= ord(character) <= high for low, high in matcher.ranges)


def _is_card(found: "re.Match[str] | None") -> bool:
    digits = [int(digit) for digit in found[0] if digit.isdigit()] if found else []
    doubled = [sum(divmod(2 * digit, 10)) if index % 2 else digit for index, digit in enumerate(reversed(digits))]
    return 13 <= len(digits) <= 19 and sum(doubled) % 10 == 0


def _unescaped(text: str) -> str:
    def one(match: "re.Match[str]") -> str:
        if match[1]:
            units = bytes.fromhex(match[0].replace("\\u", ""))
            return (
                units.decode("utf-16-be", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            )
        return _ESCAPES.get(match[2], match[2])

    pair = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    return re.sub(rf"({pair}|\\u[0-9a-fA-F]{{4}})|\\([bfnrt\"'/\\])", one, text)


def _gathered(matcher: Array | Pairs, runs: list[Values]) -> Any:
    if isinstance(matcher, Pairs):
        pairs: Values = {}
        for run in runs:
            if run.get("key") is not None:
                pairs.pop(run["key"], None)
                pairs[run["key"]] = next((value for name, value in run.items() if name.startswith("value")), None)
        return list(pairs.items())
    names = list(named_types([matcher.body]))
    if len(names) == 1:
        return [run.get(names[0]) for run in runs]
    return [{name: run.get(name) for name in names} for run in runs]


def _field_regex(field: Any) -> str:
    names = {formats.MONTH_NAME: MONTHS, formats.MONTH_FULL_NAME: MONTHS}
    names |= {formats.DAY_NAME: DAYS, formats.DAY_FULL_NAME: DAYS}
    if field.kind == formats.TEXT:
        return re.escape(field.text)
    if field.kind in names:
        whole = field.kind in (formats.MONTH_FULL_NAME, formats.DAY_FULL_NAME)
        choice = "|".join(name if whole else name[:3] for name in names[field.kind])
        return f"(?P<month>(?i:{choice}))" if names[field.kind] is MONTHS else f"(?i:{choice})"
    if field.kind == formats.ZONE:
        return _ZONE
    if field.kind == formats.OPTIONAL_FRACTION:
        return r"(?:[.,](?P<fraction>[0-9]{1,9}))?"
    if field.kind == formats.HALF_DAY:
        return "(?P<half>(?i:am|pm))"
    name = {
        formats.YEAR: "year",
        formats.MONTH: "month",
        formats.DAY: "day",
        formats.HOUR: "hour",
        formats.HALF_DAY_HOUR: "hour",
        formats.MINUTE: "minute",
        formats.SECOND: "second",
        formats.FRACTION: "fraction",
    }[field.kind]
    padded = " [0-9]|" if field.least == 1 and field.kind != formats.FRACTION else ""
    return f"(?P<{name}>{padded}[0-9]{{{field.least},{field.most}}})"
