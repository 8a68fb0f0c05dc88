"""Timestamp formats: the letters of Java's date formatters, parsed once into fields.

A single letter (``d``, ``H``) matches one or two digits; one digit may have an extra blank before it, as syslog pads
days. Names of months and days are English, in any case. Every zone letter matches ``Z``, UTC, GMT or an offset such as
+0200 or +02:00. A single ``S`` is a fraction of any length; several are exactly that many digits.
"""

from typing import Final

from coprlake.dpl.syntax.tree import Field
from coprlake.errors import PatternError

(
    TEXT,
    YEAR,
    SHORT_YEAR,
    MONTH,
    MONTH_NAME,
    MONTH_FULL_NAME,
    DAY,
    DAY_NAME,
    DAY_FULL_NAME,
    HOUR,
    HALF_DAY_HOUR,
    HALF_DAY,
    MINUTE,
    SECOND,
    FRACTION,
    ZONE,
    OPTIONAL_FRACTION,
) = range(17)
"""The kinds of fields."""

_NUMBERS: Final = {"d": DAY, "H": HOUR, "h": HALF_DAY_HOUR, "m": MINUTE, "s": SECOND}
_LETTERS: Final = "yyyy yy MM MMM MMMM d dd EEE EEEE H HH h hh a m mm s ss S...SSSSSSSSS Z z X XXX"
_ISO_START: Final = "yyyy-MM-dd'T'HH:mm:ss"


def _field(letter: str, count: int, offset: int) -> Field:
    if letter == "y" or letter == "u":
        return Field(SHORT_YEAR, 2, 2) if count == 2 else Field(YEAR, 4, 4)
    if letter == "M" or letter == "L":
        if count >= 3:
            return Field(MONTH_NAME if count == 3 else MONTH_FULL_NAME)
        return Field(MONTH, count, 2)
    if letter in _NUMBERS and count <= 2:
        return Field(_NUMBERS[letter], count, 2)
    if letter == "E":
        return Field(DAY_NAME if count <= 3 else DAY_FULL_NAME)
    if letter == "S" and count <= 9:
        return Field(FRACTION, count, 9 if count == 1 else count)
    if letter == "a":
        return Field(HALF_DAY)
    if letter in "ZzXx":
        return Field(ZONE)
    raise PatternError(f"unknown letters {letter * count!r} in a timestamp format; expected {_LETTERS}", offset)


def read_format(text: str, offset: int) -> tuple[Field, ...]:
    """The fields of a format; errors point to `offset` in the pattern."""
    fields: list[Field] = []
    i = 0
    while i < len(text):
        letter = text[i]
        if letter == "'":
            close = text.find("'", i + 1)
            if close < 0:
                raise PatternError("a quote in the timestamp format is not closed", offset)
            fields.append(Field(TEXT, text=text[i + 1 : close] or "'"))
            i = close + 1
        elif letter.isascii() and letter.isalpha() and letter != "T":
            count = len(text) - i - len(text[i:].lstrip(letter))
            fields.append(_field(letter, count, offset))
            i += count
        else:
            fields.append(Field(TEXT, text=letter))
            i += 1
    if not fields:
        raise PatternError("the timestamp format is empty", offset)
    return tuple(fields)


def has_zone(fields: tuple[Field, ...]) -> bool:
    """Whether the format contains a time zone."""
    return any(field.kind == ZONE for field in fields)


DEFAULT: Final = read_format("yyyy-MM-dd HH:mm:ss", 0)
HTTP: Final = read_format("dd/MMM/yyyy:HH:mm:ss Z", 0)
ISO: Final = (*read_format(_ISO_START, 0), Field(OPTIONAL_FRACTION, 1, 9), Field(ZONE))
JSON: Final = (*read_format(_ISO_START + ".S", 0), Field(ZONE))
