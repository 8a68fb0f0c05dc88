"""The shape of a JSON object: its text with a mark in place of each value, from which it can be written again.

``{"ts":"2024-05-06T07:08:09Z","msg":"ok","http":{"status":200}}`` has the shape ``{"ts":taZ00,"msg":c,"http":
{"status":i}}``. Keys are as written; blanks between tokens have no meaning. ``null``, ``{}`` and ``[]`` stay as they
are. Every other value is one of these marks, which say what it is and where to find it:

======  ================================================================================================
mark    value
======  ================================================================================================
``s``   a string, in the field whose name is the path of the value
``i``   an integer, likewise
``f``   a number with a point or an exponent, likewise
``b``   true or false, likewise
``j``   an array, or an object so deep that it is kept as JSON, likewise
``c``   a string that is the content
``t``   the timestamp, as text; followed by four characters for its layout, see `layout_of`
``u``   likewise, but for the digits behind the sixth, which are the next line of the rest
``0``   the timestamp in seconds, an integer; ``3`` and ``6`` are milli- and microseconds
``9``   the timestamp in nanoseconds, of which the next line of the rest has the last three digits
``F``   the timestamp in seconds, not an integer; ``G`` in milliseconds
``r``   the next line of the rest: JSON as it was written
======  ================================================================================================

A shape that is ``=`` says that the content is the line itself, and one that is ``r`` that the rest is.
"""

import json
import re
from functools import lru_cache
from typing import Final, NamedTuple

from coprlake.records import ATTRIBUTES, CONTENT, DAY, HIDDEN, LOGLEVEL, SOURCE, TIMESTAMP

IS_CONTENT: Final = "="
IS_REST: Final = "r"
RESERVED: Final = frozenset({TIMESTAMP, SOURCE, LOGLEVEL, CONTENT, ATTRIBUTES, DAY}) | HIDDEN
"""Names that a table gives a meaning of its own."""

_TOKEN: Final = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*")|(?P<literal>null|\{\}|\[\])|(?P<open>\{)|(?P<close>\})|(?P<punctuation>[:,])"""
    r"""|(?P<time>[tu][a-tA-T][-Z:+][0-J][0-3])|(?P<mark>[sifbjc0369FGr])|(?P<blank>[ ]+)|(?P<wrong>.)""",
    re.DOTALL,
)


class Place(NamedTuple):
    """Where a value goes.

    Attributes:
        mark: what it is; see the module.
        path: the keys that lead to it, joined by dots.
        layout: of a timestamp, four characters.
    """

    mark: str
    path: str
    layout: str = ""

    @property
    def field(self) -> str:
        """The name under which a table has the value."""
        return field_name(self.path)


class Shape(NamedTuple):
    """A shape, taken apart: ``texts[0] + value of places[0] + texts[1] + ...`` is the object.

    Attributes:
        texts: what is between the values.
        places: the values.
        empties: the paths of objects without keys, which are no places.
    """

    texts: tuple[str, ...]
    places: tuple[Place, ...]
    empties: tuple[str, ...] = ()


def field_name(path: str) -> str:
    """The name under which a table has the values of a key; keys of nested objects are joined by dots."""
    return f"{path}_value" if path.lower() in RESERVED else path


@lru_cache(4096)
def parsed_shape(text: str) -> Shape | None:
    """Take a shape apart, other than ``=``; None if it is not one, as when another program wrote it."""
    if text == IS_REST:
        return Shape(("", ""), (Place(text, ""),))
    path: list[str] = []
    key: str | None = None
    texts: list[str] = []
    places: list[Place] = []
    empties: list[str] = []
    piece = ""
    for token in _TOKEN.finditer(text):
        kind, found = str(token.lastgroup), token.group()
        if kind in ("time", "mark"):
            if key is None:
                return None
            places.append(Place(found[0], ".".join([*path, key]), found[1:]))
            texts.append(piece)
            piece, key = "", None
            continue
        if kind == "string":
            if key is not None:
                return None
            key = _key(found)
            if key is None:
                return None
        elif kind == "open" and [*texts, piece] != [""]:
            if key is None:
                return None
            path.append(key)
            key = None
        elif kind == "close" and path:
            path.pop()
        elif kind == "literal":
            if found == "{}" and key is not None:
                empties.append(".".join([*path, key]))
            key = None
        elif kind == "wrong":
            return None
        if kind != "blank":
            piece += found
    return Shape((*texts, piece), tuple(places), tuple(empties))


def _key(text: str) -> str | None:
    try:
        return str(json.loads(text))
    except ValueError:
        return None


def layout_of(layout: str) -> tuple[str, int, str, int | None, str]:
    """What the four characters of a time's layout mean.

    Returns:
        what separates date and time, the number of digits of the fraction, what is before them, the minutes east of
        UTC or None, and the text of the zone.
    """
    code = layout[0]
    point = "," if code.isupper() else "."
    number = ord(code.lower()) - ord("a")
    separator, digits = ("T", number) if number < 10 else (" ", number - 10)
    style = layout[1]
    if style in "-Z":
        return separator, digits, point, None, style.strip("-")
    hours, quarters = ord(layout[2]) - ord("0") - 12, int(layout[3])
    east = hours * 60 + quarters * 15
    sign, size = ("-", -east) if east < 0 else ("+", east)
    colon = ":" if style == ":" else ""
    return separator, digits, point, east, f"{sign}{size // 60:02}{colon}{size % 60:02}"
