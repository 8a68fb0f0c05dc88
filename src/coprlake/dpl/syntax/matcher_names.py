"""The matchers that a pattern can name, with their default settings."""

from typing import Final

from coprlake.dpl.syntax import time_formats as formats
from coprlake.dpl.syntax.tree import (
    LAST_CHARACTER,
    Address,
    Anchor,
    Boolean,
    Card,
    Chars,
    Data,
    Integer,
    Json,
    Literal,
    Matcher,
    Moment,
    Quoted,
    Ranges,
    Real,
    Uuid,
)
from coprlake.text.nearest_words import hint

_INFINITY: Final = float("inf")


def merged(ranges: list[tuple[int, int]]) -> Ranges:
    """The same characters in ascending ranges with gaps between them."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return tuple(out)


def negated(ranges: Ranges) -> Ranges:
    """All characters outside the ranges."""
    edges = [-1, *(edge for low, high in ranges for edge in (low - 1, high + 1)), LAST_CHARACTER + 1]
    bounds = [edges[0] + 1, *edges[1:-1], edges[-1] - 1]
    return tuple((low, high) for low, high in zip(bounds[::2], bounds[1::2], strict=True) if low <= high)


def _set(*runs: str) -> Ranges:
    return merged([(ord(run[0]), ord(run[-1])) for run in runs])


_SPACE: Final = _set("\t\r", " ")
CLASSES: Final[dict[str, Ranges]] = {
    "SPACE": _SPACE,
    "NSPACE": negated(_SPACE),
    "BLANK": _set(" ", "\t"),
    "WORD": _set("AZ", "az", "09", "_"),
    "ALPHA": _set("AZ", "az"),
    "ALNUM": _set("AZ", "az", "09"),
    "DIGIT": _set("09"),
    "XDIGIT": _set("09", "AF", "af"),
    "UPPER": _set("AZ"),
    "LOWER": _set("az"),
    "PUNCT": _set("!/", ":@", "[`", "{~"),
    "PRINT": _set(" ~"),
    "GRAPH": _set("!~"),
    "CNTRL": _set("\0\x1f", "\x7f"),
    "ASCII": _set("\0\x7f"),
}
"""Named character classes, as in C: ASCII only, except for NSPACE."""

_INT: Final = Integer(-(1 << 31), (1 << 31) - 1)
_LONG: Final = Integer(-(1 << 63), (1 << 63) - 1)
_DOUBLE: Final = Real(-_INFINITY, _INFINITY)
_COMMA_DOUBLE: Final = Real(-_INFINITY, _INFINITY, comma=True)

MATCHERS: Final[dict[str, Matcher]] = {
    "LD": Data(False),
    "LDATA": Data(False),
    "DATA": Data(True),
    "INT": _INT,
    "INTEGER": _INT,
    "LONG": _LONG,
    "HEXINT": Integer(0, (1 << 32) - 1, 8),
    "HEXLONG": Integer(-(1 << 63), (1 << 63) - 1, 16),
    "FLOAT": _DOUBLE,
    "DOUBLE": _DOUBLE,
    "CFLOAT": _COMMA_DOUBLE,
    "CDOUBLE": _COMMA_DOUBLE,
    "BOOLEAN": Boolean(),
    "IPADDR": Address(True, True),
    "IPV4": Address(True, False),
    "IPV4ADDR": Address(True, False),
    "IPV6": Address(False, True),
    "IPV6ADDR": Address(False, True),
    "TIMESTAMP": Moment(formats.DEFAULT, None),
    "TIME": Moment(formats.DEFAULT, None),
    "ISO8601": Moment(formats.ISO, None),
    "JSONTIMESTAMP": Moment(formats.JSON, None),
    "HTTPDATE": Moment(formats.HTTP, None),
    **{name: Chars(ranges) for name, ranges in CLASSES.items()},
    "SQS": Quoted("'", False),
    "DQS": Quoted('"', False),
    "CSVSQS": Quoted("'", True),
    "CSVDQS": Quoted('"', True),
    "STRING": Quoted("\"'", False),
    "EOL": Literal("\n"),
    "LF": Literal("\n"),
    "CR": Literal("\r"),
    "EOLWIN": Literal("\r\n"),
    "WINEOL": Literal("\r\n"),
    "BOS": Anchor("BOS"),
    "BOF": Anchor("BOS"),
    "MOS": Anchor("MOS"),
    "EOS": Anchor("EOS"),
    "EOF": Anchor("EOS"),
    "JSON": Json("object"),
    "JSON_OBJECT": Json("object"),
    "JSON_ARRAY": Json("array"),
    "JSON_VALUE": Json("value"),
    "UUIDSTRING": Uuid(),
    "CREDITCARD": Card(),
}
"""Matchers without a body. A hexadecimal INT is unsigned; a hexadecimal LONG is in two's complement."""

WITH_BODY: Final = frozenset({"KVP", "ARRAY", "STRUCTURE", "ENUM"})
"""Matchers with a body in braces."""
SILENT: Final = frozenset({"EOL", "LF", "CR", "EOLWIN", "WINEOL", "BOS", "BOF", "MOS", "EOS", "EOF"})
"""Matchers that export nothing."""


def nearest(word: str) -> str:
    """``; did you mean IPADDR?``, or an empty string if no matcher resembles the word."""
    return hint(word, [*MATCHERS, *WITH_BODY])
