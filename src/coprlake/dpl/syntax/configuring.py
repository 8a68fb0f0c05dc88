"""The options in parentheses after a matcher: bounds, formats, time zones."""

import re
import zoneinfo
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from coprlake.dpl.syntax.pattern_scanner import Scanner
from coprlake.dpl.syntax.time_formats import read_format
from coprlake.dpl.syntax.tree import MOST_JSON_BYTES, Integer, Json, Matcher, Moment, Node, Real
from coprlake.errors import PatternError

Value = str | float | bool | Node

_LANGUAGE: Final = {"locale", "charset"}
_MOST_MAXLEN: Final = 128 * MOST_JSON_BYTES
_OFFSET: Final = re.compile(r"[+-](?:0\d|1[0-4]):?[0-5]\d")


def read_options(
    scanner: Scanner, known: set[str], separator: Callable[[], Node] | None = None, *, first: str = ""
) -> dict[str, Value]:
    """Read ``(name=value, ...)`` if it follows; otherwise return no options.

    `first` is the option that an unnamed quoted value sets. A value is a quoted string, a number, ``true`` or
    ``false``; if `separator` is given, it reads the value instead.
    """
    named = scanner.looking_at(r"\s*\(\s*[A-Za-z]+\s*=")
    if not named and not (first and scanner.looking_at(r"\(\s*['\"]")):
        return {}
    scanner.take("(", "'('")
    options: dict[str, Value] = {}
    while True:
        scanner.skip_gap(commas=True)
        if scanner.takes(")"):
            return options
        at = scanner.at
        if first and not options and scanner.peek() in ("'", '"'):
            name = first
        else:
            name = scanner.word("an option or ')'")
            scanner.take("=", "'='")
            scanner.skip_gap()
        if name not in known:
            raise PatternError(f"unknown option {name}; expected {', '.join(sorted(known))}", at)
        value = separator() if separator else _value(scanner)
        _check_language(name, value, at)
        options[name] = value


def _value(scanner: Scanner) -> Value:
    if scanner.peek() in ("'", '"'):
        return scanner.quoted()
    if scanner.looking_at(r"(?i)(true|false)\b"):
        return scanner.word("true or false").lower() == "true"
    return scanner.number()


def _check_language(name: str, value: Value, at: int) -> None:
    text = str(value).lower()
    if name == "locale" and not re.fullmatch(r"en(?:glish)?(?:[-_][a-z]{2})?", text):
        raise PatternError(f"only English names are supported, not those of locale {value!r}", at)
    if name == "charset" and text not in ("utf-8", "utf8", "us-ascii", "ascii"):
        raise PatternError(f"text must be UTF-8, not in charset {value!r}", at)


def configured(scanner: Scanner, word: str, matcher: Matcher) -> Matcher:
    """The matcher with the options that follow it."""
    at = scanner.at
    if isinstance(matcher, Integer | Real):
        return _bounded(matcher, read_options(scanner, {"min", "max", *_LANGUAGE}), at)
    if isinstance(matcher, Moment) and word in ("TIMESTAMP", "TIME"):
        return _moment(matcher, read_options(scanner, {"format", "tz", "timezone", *_LANGUAGE}, first="format"), at)
    if isinstance(matcher, Json):
        return _json(matcher, read_options(scanner, {"flat", "maxlen", "strict", "greedy", *_LANGUAGE}), at)
    read_options(scanner, _LANGUAGE)
    return matcher


def _bounded(matcher: Integer | Real, options: dict[str, Value], at: int) -> Matcher:
    low, high = options.get("min", matcher.low), options.get("max", matcher.high)
    if isinstance(low, str | bool | Node) or isinstance(high, str | bool | Node):
        raise PatternError("min and max must be numbers", at)
    if low > high:
        raise PatternError(f"min is greater than max: no number is between {low} and {high}", at)
    if isinstance(matcher, Real):
        return replace(matcher, low=float(low), high=float(high))
    if low != int(low) or high != int(high):
        raise PatternError("min and max of a whole number must be whole numbers", at)
    # Bounds beyond what the matcher can read change nothing, but must fit in 64 bits.
    return replace(
        matcher, low=min(max(int(low), matcher.low), 1 << 62), high=max(min(int(high), matcher.high), -1 << 62)
    )


def _moment(matcher: Moment, options: dict[str, Value], at: int) -> Matcher:
    written, zone = options.get("format"), options.get("tz", options.get("timezone"))
    if "format" in options:
        if not isinstance(written, str):
            raise PatternError("a timestamp format must be a quoted string", at)
        matcher = replace(matcher, fields=read_format(written, at))
    return matcher if zone is None else replace(matcher, zone=_zone(zone, at))


def _zone(zone: Value, at: int) -> str:
    """The zone as a name that Arrow knows; offsets are written as ``+02:00``."""
    if isinstance(zone, str):
        if zone.upper() in ("UTC", "GMT", "Z"):
            return "UTC"
        if _OFFSET.fullmatch(zone):
            return f"{zone[:3]}:{zone[-2:]}"
        try:
            zoneinfo.ZoneInfo(zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            pass
        else:
            return zone
    raise PatternError(f"unknown time zone {zone!r}; expected, for example, Europe/Vienna or +02:00", at)


def _json(matcher: Json, options: dict[str, Value], at: int) -> Matcher:
    if options.get("strict") is False:
        raise PatternError("strict=false is not supported; JSON must follow RFC 8259", at)
    if "greedy" in options:
        raise PatternError("greedy is not supported; export the whole object and read members from it", at)
    if options.get("flat") is True and matcher.members is None:
        raise PatternError("flat=true needs members, as in JSON{STRING:name}(flat=true)", at)
    most = options.get("maxlen", matcher.most_bytes)
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= _MOST_MAXLEN:
        raise PatternError(f"maxlen must be a number of bytes from 1 to {_MOST_MAXLEN}", at)
    return replace(matcher, flat=options.get("flat") is True, most_bytes=most)
