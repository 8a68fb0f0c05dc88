"""The types of the language, and how engines represent them.

Engines differ in their times, intervals and addresses, so these are represented by what both have in common: a time is
the number of microseconds since 1970, a duration the number of nanoseconds, an address its text. Results get their
Arrow type at the end (`arrow_type`).
"""

import re
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import pyarrow as pa

from coprlake.records import TIMESTAMP_TYPE

Kind: TypeAlias = Literal[
    "null", "boolean", "long", "double", "string", "timestamp", "duration", "ip", "array", "record", "map"
]

_PLAIN = re.compile("[a-z][a-z0-9]*")


@dataclass(frozen=True, slots=True)
class Type:
    """The static type of a value.

    Attributes:
        kind: the kind of type.
        element: the element type of an array.
        members: the names and types of a record's members, in order.
        is_loose: a string whose type is left open, such as an attribute: compared with a number it is read as a number,
            and if it is JSON it has members.
    """

    kind: Kind
    element: "Type | None" = None
    members: tuple[tuple[str, "Type"], ...] = ()
    is_loose: bool = False

    def __str__(self) -> str:
        if self.kind == "array":
            return f"array<{self.element}>"
        if self.kind == "record" and self.members:
            return f"record<{', '.join(f'{name}: {type_}' for name, type_ in self.members)}>"
        return self.kind

    @property
    def is_number(self) -> bool:
        """Whether it is numeric."""
        return self.kind in ("long", "double")

    @property
    def is_text(self) -> bool:
        """Whether it is a string."""
        return self.kind == "string"


NULL: Final = Type("null")
BOOLEAN: Final = Type("boolean")
LONG: Final = Type("long")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
LOOSE: Final = Type("string", is_loose=True)
TIMESTAMP: Final = Type("timestamp")
DURATION: Final = Type("duration")
IP: Final = Type("ip")
MAP: Final = Type("map")
TIMEFRAME: Final = Type("record", members=(("start", TIMESTAMP), ("end", TIMESTAMP)))


def array(element: Type) -> Type:
    """An array type."""
    return Type("array", element=element)


def record(members: tuple[tuple[str, Type], ...]) -> Type:
    """A record type."""
    return Type("record", members=members)


def common_type(left: Type, right: Type) -> Type | None:
    """The type that values of both types convert to; None if there is none."""
    if left == right:
        return left
    if left.kind == "null":
        return right
    if right.kind == "null":
        return left
    if left.is_number and right.is_number:
        return DOUBLE
    if left.is_text and right.is_text:
        return STRING
    if left.is_loose or right.is_loose:
        return STRING
    if left.kind == right.kind == "array":
        assert left.element
        assert right.element
        element = common_type(left.element, right.element)
        return None if element is None else array(element)
    if left.kind == right.kind == "record":
        return _common_record(left, right)
    return None


def _common_record(left: Type, right: Type) -> Type | None:
    others = dict(right.members)
    members: dict[str, Type] = {}
    for name, kind in left.members:
        merged = common_type(kind, others[name]) if name in others else kind
        if merged is None:
            return None
        members[name] = merged
    return record(tuple((members | {name: kind for name, kind in others.items() if name not in members}).items()))


def from_arrow(kind: pa.DataType) -> Type | None:
    """The type of an Arrow column; None if the language cannot show it."""
    types = pa.types
    if types.is_dictionary(kind):
        return from_arrow(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return STRING
    if types.is_boolean(kind):
        return BOOLEAN
    if types.is_integer(kind) and not types.is_uint64(kind):
        return LONG
    if types.is_floating(kind) or types.is_decimal(kind) or types.is_uint64(kind):  # may not fit in a long
        return DOUBLE
    if types.is_timestamp(kind) or types.is_date(kind):
        return TIMESTAMP
    if types.is_duration(kind):
        return DURATION
    if types.is_null(kind):
        return NULL
    if types.is_map(kind):
        is_text = from_arrow(kind.key_type) == STRING and from_arrow(kind.item_type) == STRING
        return MAP if is_text else None
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        element = from_arrow(kind.value_type)
        return None if element is None else array(element)
    if types.is_struct(kind):
        members = [(field.name, from_arrow(field.type)) for field in kind]
        return None if any(m is None for _, m in members) else record(tuple((n, m) for n, m in members if m))
    return None


_ARROW: Final[dict[Kind, pa.DataType]] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "timestamp": TIMESTAMP_TYPE,
    "duration": pa.duration("ns"),
    "ip": pa.string(),
    "map": pa.map_(pa.string(), pa.string()),
}

_CARRIED: Final[dict[Kind, pa.DataType]] = {"timestamp": pa.int64(), "duration": pa.int64(), "null": pa.string()}


def arrow_type(kind: Type) -> pa.DataType:
    """The Arrow type that users see."""
    return _arrow(kind, {})


def carried_type(kind: Type) -> pa.DataType:
    """The Arrow type within an engine."""
    return _arrow(kind, _CARRIED)


def _arrow(kind: Type, instead: dict[Kind, pa.DataType]) -> pa.DataType:
    if kind.kind == "array":
        assert kind.element
        return pa.list_(_arrow(kind.element, instead))
    if kind.kind == "record":
        names = member_names(kind) if instead else [name for name, _ in kind.members]
        kinds = (_arrow(member, instead) for _, member in kind.members)
        return pa.struct(list(zip(names, kinds, strict=True)))
    return instead.get(kind.kind, _ARROW[kind.kind])


def member_names(kind: Type) -> list[str]:
    """The names of a record's members within an engine, where case is ignored and some characters are special."""
    seen: set[str] = set()
    names = []
    for i, (name, _) in enumerate(kind.members):
        is_plain = _PLAIN.fullmatch(name) is not None and name not in seen
        names.append(name if is_plain else f"m_{i}")
        seen.add(names[-1])
    return names


def tight(kind: Type) -> Type:
    """The same type, not loose."""
    return replace(kind, is_loose=False) if kind.is_loose else kind
