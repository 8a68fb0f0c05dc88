r"""The syntax of plain searches: ``refused -debug level:error "connection reset" user:bob* 10.0.*``.

A search is a sequence of items between blanks, all of which must hold:

| item | meaning |
|---|---|
| ``word`` | a value of the record contains it |
| ``"two words"`` | a value contains it, blanks and all |
| ``field:value`` | the field has this value |
| ``-item`` | not the item |

``*`` in a word stands for any characters. A backslash before ``*``, ``"``, ``\``, or a ``-`` that begins an item makes
it an ordinary character; any other backslash is one already. What looks like a part of the syntax but cannot be one is
text: quotes inside a word, which keep blanks together, a quote that nobody closes, a number such as ``-1``,
``--option``, ``12:34:56``.

Parsing knows no table. Whether ``name:value`` is a condition depends on the fields of the table, so an item keeps
both readings, and whoever knows the fields chooses (`coprlake.query.plain_search`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

STAR: Final = None
"""A wildcard among the parts of a text."""

Parts = tuple[str | None, ...]
"""Text, with `STAR` where any characters may be; no two texts follow one another."""

_BLANK: Final = re.compile(r"\s")
_NUMBER: Final = re.compile(r"-[0-9]+([.,][0-9]+)?(e[+-]?[0-9]+)?%?", re.IGNORECASE)
_NAME: Final = re.compile(r'(?:"((?:[^"\\]|\\.)+)"|([^\s:"*\\-][^\s:"*\\]*)):(?!//|$)')
_COMPARISON: Final = re.compile(r"(<=|>=|<|>)(?=\S)")
_NEGATION: Final = re.compile(r'-[\w@"*\\]')
_OPENING: Final = re.compile(r'-?(?:[^\s:"*\\-][^\s:"*\\]*:)?"')
_ESCAPED: Final = '*"\\'


@dataclass(frozen=True)
class Value:
    """The text of an item, or the value that a field is compared with.

    Attributes:
        parts: the text, with wildcards.
        comparison: ``<``, ``<=``, ``>`` or ``>=`` before the value; empty for equality.
    """

    parts: Parts
    comparison: str = ""

    @property
    def text(self) -> str | None:
        """The text, if it has no wildcard."""
        return None if STAR in self.parts else "".join(part for part in self.parts if part is not None)


@dataclass(frozen=True)
class Item:
    """One item of a search.

    Attributes:
        value: what is looked for.
        name: the field before the colon; None for a word or a phrase.
        is_negated: whether records that match the item are left out.
        as_text: what is looked for if there is no such field.
    """

    value: Value
    name: str | None = None
    is_negated: bool = False
    as_text: Value | None = field(default=None, compare=False)


def parse(text: str) -> tuple[Item, ...]:
    """The items of a search, in order; every text is a search."""
    return tuple(_item(run) for run in _runs(text))


def has_open_quote(text: str) -> bool:
    """Whether an item begins with a quote that nobody closes, so that the quote is text."""
    return any(found and _phrase(run, found.end() - 1) is None for run in _runs(text) if (found := _OPENING.match(run)))


def render(items: Sequence[Item]) -> str:
    """The search as text: ``parse(render(items)) == items`` for items that `parse` can return."""
    return " ".join(_rendered(item) for item in items)


def _runs(text: str) -> Iterator[str]:
    """What is between the blanks; a blank within quotes or after a backslash does not count."""
    start, place = 0, 0
    while place < len(text):
        sign = text[place]
        if _BLANK.match(sign):
            if place > start:
                yield text[start:place]
            start = place = place + 1
        elif sign == "\\":
            place += 2
        elif sign == '"':
            end = _phrase(text, place)
            place = place + 1 if end is None else end
        else:
            place += 1
    if start < len(text):
        yield text[start:]


def _phrase(text: str, start: int) -> int | None:
    """Where the quoted text ends that begins at `start`, behind its quote; None if nobody closes it."""
    place = start + 1
    while place < len(text):
        if text[place] == '"':
            return place + 1
        place += 2 if text[place] == "\\" else 1
    return None


def _item(run: str) -> Item:
    is_negated = _NEGATION.match(run) is not None and not _NUMBER.fullmatch(run)
    own = run[1:] if is_negated else run
    named = _NAME.match(own)
    if named is None:
        return Item(Value(_parts(own)), None, is_negated)
    name = named[2] if named[1] is None else _unescaped(named[1])
    rest = own[named.end() :]
    compared = _COMPARISON.match(rest)
    sign = compared[1] if compared else ""
    return Item(Value(_parts(rest[len(sign) :]), sign), name, is_negated, Value(_parts(own)))


def _parts(run: str) -> Parts:
    if len(run) > 1 and run[0] == '"' and _phrase(run, 0) == len(run):
        return (_unescaped(run[1:-1]),)
    if _BLANK.search(run):  # quotes inside a word, which is text as it is
        return (run,)
    parts: list[str | None] = []
    literal = ""
    place = 0
    while place < len(run):
        sign = run[place]
        if sign == "\\" and place + 1 < len(run) and (run[place + 1] in _ESCAPED or (place == 0 and run[1] == "-")):
            literal += run[place + 1]
            place += 2
            continue
        if sign == "*":
            parts += [literal] if literal else []
            parts += [STAR] if not parts or parts[-1] is not STAR else []
            literal = ""
        else:
            literal += sign
        place += 1
    return (*parts, literal) if literal or not parts else tuple(parts)


def _unescaped(text: str) -> str:
    return re.sub(r'\\(["\\])', r"\1", text)


def _rendered(item: Item) -> str:
    sign = "-" if item.is_negated else ""
    if item.name is not None:
        plain = _NAME.match(f"{item.name}:x")
        is_plain = plain is not None and plain[2] == item.name
        name = item.name if is_plain else _quoted(item.name)
        return f"{sign}{name}:{item.value.comparison}{_written(item.value)}"
    text = item.value.text
    written = _written(item.value)
    if _item(sign + written) == item:
        return sign + written
    return sign + (f"\\{written}" if text is None else _quoted(text))


def _written(value: Value) -> str:
    text = value.text
    if text is not None and (not text or _BLANK.search(text) or text[0] in "<>="):
        return _quoted(text)
    return "".join("*" if part is STAR else re.sub(r'([*"\\])', r"\\\1", part) for part in value.parts)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
