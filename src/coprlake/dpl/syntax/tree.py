"""The syntax tree of a pattern, with macros expanded, comments removed and defaults filled in."""

from dataclasses import dataclass
from typing import Final, TypeAlias

MOST: Final = 4096
"""The largest bound of a quantifier, in characters or repetitions."""
MOST_PAIRS: Final = 128
"""The most pairs that KVP matches without a quantifier."""
MOST_DEPTH: Final = 32
"""The greatest nesting depth of groups."""
MOST_NODES: Final = 20_000
"""The most matchers in a pattern, after macro expansion."""
MOST_PATTERN_BYTES: Final = 64 * 1024
MOST_JSON_BYTES: Final = 128_000
"""The maximum length of a JSON value or quoted string; ``maxlen`` can raise it up to 128 times for JSON."""
LAST_CHARACTER: Final = 0x10FFFF

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points: the first and last of each range, ascending, with gaps between ranges."""


@dataclass(frozen=True)
class Literal:
    """Exactly this text."""

    text: str


@dataclass(frozen=True)
class Chars:
    """Characters of a set, as many as there are and the quantifier allows."""

    ranges: Ranges


@dataclass(frozen=True)
class Data:
    """LD and DATA: everything up to where the next non-optional matcher matches."""

    over_lines: bool


@dataclass(frozen=True)
class Integer:
    """A whole number between two bounds, signed decimal, or hexadecimal with at most `hex_digits` digits."""

    low: int
    high: int
    hex_digits: int = 0


@dataclass(frozen=True)
class Real:
    """A number with an optional fraction and exponent."""

    low: float
    high: float
    comma: bool = False


@dataclass(frozen=True)
class Boolean:
    """``true`` or ``false`` in any case."""


@dataclass(frozen=True)
class Address:
    """An IPv4 or IPv6 address, or either."""

    v4: bool
    v6: bool


@dataclass(frozen=True)
class Field:
    """One part of a timestamp: its kind (see `time_formats`), the number of digits, or the literal text."""

    kind: int
    least: int = 0
    most: int = 0
    text: str = ""


@dataclass(frozen=True)
class Moment:
    """A timestamp; `zone` applies if the text does not name one."""

    fields: tuple[Field, ...]
    zone: str | None


@dataclass(frozen=True)
class Quoted:
    """A quoted string; quotes in it are doubled if `doubled`, otherwise escaped with a backslash."""

    quotes: str
    doubled: bool


@dataclass(frozen=True)
class Anchor:
    """A position in the text: ``BOS``, ``MOS`` or ``EOS``."""

    place: str


@dataclass(frozen=True)
class Enumeration:
    """One of several strings, the longest that matches; each means a number."""

    entries: tuple[tuple[str, int], ...]
    fold: bool


@dataclass(frozen=True)
class Uuid:
    """32 hexadecimal digits in groups of 8, 4, 4, 4 and 12."""


@dataclass(frozen=True)
class Card:
    """13 to 19 digits, optionally separated by single blanks or dashes, with a valid check digit."""


@dataclass(frozen=True, eq=False)
class Json:
    """A JSON value: ``object``, ``array`` or any ``value``, optionally with members to match."""

    form: str
    most_bytes: int = MOST_JSON_BYTES
    members: "Sequence | None" = None
    flat: bool = False


@dataclass(frozen=True, eq=False)
class Group:
    """Alternatives, of which the leftmost match wins; a plain sequence is a group of one."""

    alternatives: tuple["Sequence", ...]
    is_record: bool = False  # STRUCTURE, or a macro with a name


@dataclass(frozen=True, eq=False)
class Array:
    """ARRAY: a repeated body, with one element for each repetition."""

    body: "Sequence"


@dataclass(frozen=True, eq=False)
class Pairs:
    """KVP: repeated pairs of a key and a value."""

    body: "Sequence"


Matcher: TypeAlias = (
    Literal | Chars | Data | Integer | Real | Boolean | Address | Moment | Quoted | Anchor | Enumeration | Uuid | Card
    | Json | Group | Array | Pairs
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Node:
    """A matcher with its quantifier, export and lookaround."""

    matcher: Matcher
    offset: int
    least: int = 1
    most: int = 1
    optional: bool = False
    export: str | None = None
    look: str = ""  # one of >> !>> << !<<


Sequence: TypeAlias = tuple[Node, ...]


def may_be_absent(node: Node) -> bool:
    """Whether the node is optional, so that LD looks past it for its end."""
    return not node.look and (node.optional or node.least == 0)


def repeats(node: Node) -> bool:
    """Whether the body may run more than once, so that what follows one run is unknown."""
    return node.most > 1
