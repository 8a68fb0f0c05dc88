"""A pattern as plain data: what the syntax means once macros, comments and defaults are gone."""

from dataclasses import dataclass
from typing import Final, TypeAlias

MOST: Final = 4096
"""No quantifier goes further: of characters, of repetitions."""
MOST_PAIRS: Final = 128
"""How many pairs KVP takes if no quantifier says otherwise."""
MOST_DEPTH: Final = 32
"""How deep groups may be nested."""
MOST_NODES: Final = 20_000
"""How many matchers a pattern may have, once its macros are written out."""
MOST_PATTERN_BYTES: Final = 64 * 1024
MOST_JSON_BYTES: Final = 128_000
"""How long the text of a JSON value or a quoted string may be; ``maxlen`` of JSON allows up to 128 times that."""
LAST_CHARACTER: Final = 0x10FFFF

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Characters by their numbers: first and last of each run, ascending and apart."""


@dataclass(frozen=True)
class Literal:
    """Exactly this text."""

    text: str


@dataclass(frozen=True)
class Chars:
    """As many characters of a set as the quantifier allows, never fewer than there are."""

    ranges: Ranges


@dataclass(frozen=True)
class Data:
    """LD and DATA: anything up to where the next non-optional matcher matches."""

    over_lines: bool


@dataclass(frozen=True)
class Integer:
    """A whole number between two bounds, decimal with a sign or hexadecimal with so many digits at most."""

    low: int
    high: int
    hex_digits: int = 0


@dataclass(frozen=True)
class Real:
    """A number with a fraction or an exponent, perhaps."""

    low: float
    high: float
    comma: bool = False


@dataclass(frozen=True)
class Boolean:
    """``true`` or ``false`` in any case."""


@dataclass(frozen=True)
class Address:
    """An address of one version of IP, or of any."""

    v4: bool
    v6: bool


@dataclass(frozen=True)
class Field:
    """One part of a timestamp: a kind of `formats`, how many digits it has, or the text it is."""

    kind: int
    least: int = 0
    most: int = 0
    text: str = ""


@dataclass(frozen=True)
class Moment:
    """A timestamp; `zone` is where it was written if the text does not say."""

    fields: tuple[Field, ...]
    zone: str | None


@dataclass(frozen=True)
class Quoted:
    """A quoted string; a quote inside is doubled, or else has a backslash."""

    quotes: str
    doubled: bool


@dataclass(frozen=True)
class Anchor:
    """A place in the text: ``BOS``, ``MOS`` or ``EOS``."""

    place: str


@dataclass(frozen=True)
class Enumeration:
    """One of some texts, the longest that fits; each stands for a number."""

    entries: tuple[tuple[str, int], ...]
    fold: bool


@dataclass(frozen=True)
class Uuid:
    """32 hexadecimal digits in groups of 8, 4, 4, 4 and 12."""


@dataclass(frozen=True)
class Card:
    """13 to 19 digits, single blanks or dashes between them allowed, with a right check digit."""


@dataclass(frozen=True, eq=False)
class Json:
    """A JSON value: ``object``, ``array`` or any ``value``, perhaps with members that are looked for."""

    form: str
    most_bytes: int = MOST_JSON_BYTES
    members: "Sequence | None" = None
    flat: bool = False


@dataclass(frozen=True, eq=False)
class Group:
    """Alternatives, the leftmost that matches wins; a plain sequence is a group of one."""

    alternatives: tuple["Sequence", ...]
    is_record: bool = False  # STRUCTURE, or a macro with a name


@dataclass(frozen=True, eq=False)
class Array:
    """What a pattern exports, again and again."""

    body: "Sequence"


@dataclass(frozen=True, eq=False)
class Pairs:
    """KVP: keys and values."""

    body: "Sequence"


Matcher: TypeAlias = (
    Literal | Chars | Data | Integer | Real | Boolean | Address | Moment | Quoted | Anchor | Enumeration | Uuid | Card
    | Json | Group | Array | Pairs
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Node:
    """A matcher with all that may stand around it."""

    matcher: Matcher
    offset: int
    least: int = 1
    most: int = 1
    optional: bool = False
    export: str | None = None
    look: str = ""  # one of >> !>> << !<<


Sequence: TypeAlias = tuple[Node, ...]


def may_be_absent(node: Node) -> bool:
    """Whether LD looks past it for what ends it."""
    return not node.look and (node.optional or node.least == 0)


def repeats(node: Node) -> bool:
    """Whether its body may run more than once, so that what follows one run is not known."""
    return node.most > 1
