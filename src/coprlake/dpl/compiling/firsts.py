"""The bytes that a match may start with, so that LD tries a matcher only where it can match."""

from coprlake.dpl.compiling.opcodes import MAY_MATCH, TABLE_WIDTH
from coprlake.dpl.syntax import time_formats as formats
from coprlake.dpl.syntax.tree import (
    Address,
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

_END = TABLE_WIDTH - 1
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_LETTERS = bytes(range(65, 91)) + bytes(range(97, 123))
_JSON_STARTS = {"object": b"{", "array": b"[", "value": b'{["-0123456789tfn'}
_FIRST_LEAD, _LAST_LEAD = 0xC2, 0xF4


def _table(starts: bytes) -> bytearray:
    table = bytearray(TABLE_WIDTH)
    for byte in starts:
        table[byte] = MAY_MATCH
    return table


def anything() -> bytearray:
    """A table for a match that may start with any character or at the end of the text."""
    table = _table(bytes(byte for byte in range(256) if not 0x80 <= byte < 0xC0))
    table[_END] = MAY_MATCH
    return table


def _union(tables: list[bytearray]) -> bytearray:
    return bytearray(max(column) for column in zip(*tables, strict=True))


def of_chars(matcher: Chars) -> bytearray:
    """The first bytes of the characters in the set; if it goes beyond ASCII, all lead bytes."""
    table = bytearray(TABLE_WIDTH)
    for low, high in matcher.ranges:
        for byte in range(low, min(high, 127) + 1):
            table[byte] = MAY_MATCH
        if high > 127:
            table[_FIRST_LEAD : _LAST_LEAD + 1] = bytes([MAY_MATCH]) * (_LAST_LEAD + 1 - _FIRST_LEAD)
    return table


def _of_moment(matcher: Moment) -> bytearray:
    field = matcher.fields[0]
    if field.kind == formats.TEXT:
        return _table(field.text.encode()[:1])
    if field.kind in (formats.MONTH_NAME, formats.MONTH_FULL_NAME, formats.DAY_NAME, formats.DAY_FULL_NAME):
        return _table(_LETTERS)
    if field.kind in (formats.ZONE, formats.HALF_DAY, formats.OPTIONAL_FRACTION):
        return anything()
    return _table(_DIGITS + b" ")


def _of_matcher(node: Node) -> bytearray:
    matcher = node.matcher
    if isinstance(matcher, Literal):
        return _table(matcher.text.encode()[:1])
    if isinstance(matcher, Chars):
        return of_chars(matcher)
    if isinstance(matcher, Data):
        table = anything()
        table[_END] = 0
        return table
    if isinstance(matcher, Integer | Real):
        return _table(_HEX if isinstance(matcher, Integer) and matcher.hex_digits else _DIGITS + b"+-")
    if isinstance(matcher, Boolean):
        return _table(b"tTfF")
    if isinstance(matcher, Address):
        return _table(_HEX + b":" if matcher.v6 else _DIGITS)
    if isinstance(matcher, Moment):
        return _of_moment(matcher)
    if isinstance(matcher, Quoted):
        return _table(matcher.quotes.encode())
    if isinstance(matcher, Enumeration):
        if any(not text for text, _ in matcher.entries):
            return anything()
        starts = {text.encode()[:1] for text, _ in matcher.entries}
        return _table(b"".join(start.lower() + start.upper() for start in starts))
    if isinstance(matcher, Uuid | Card):
        return _table(_HEX if isinstance(matcher, Uuid) else _DIGITS)
    if isinstance(matcher, Json):
        return _table(_JSON_STARTS[matcher.form])
    if isinstance(matcher, Group):
        return _union([of_sequence(sequence) for sequence in matcher.alternatives])
    if isinstance(matcher, Array | Pairs):
        return of_sequence(matcher.body)
    return anything()  # an anchor


def of_node(node: Node) -> bytearray:
    """A table with `MAY_MATCH` for each byte that a match may start with, and for the end if a match may be empty."""
    return anything() if node.look or may_be_absent(node) else _of_matcher(node)


def of_sequence(sequence: Sequence) -> bytearray:
    """The table of a sequence: the union up to the first node that is never empty, or anything if there is none."""
    tables: list[bytearray] = []
    for node in sequence:
        tables.append(_of_matcher(node) if not node.look else anything())
        if not may_be_absent(node) and not tables[-1][_END]:
            return _union(tables)
    return anything()
