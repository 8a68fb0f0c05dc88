"""Names of values inside a column: ``request.headers.host``, ``tags[key]`` or ``tags.key``.

A column whose name is the whole text comes first, so a path never hides a column with dots in its name. Of several
columns, or members, that a path can begin with, the longest wins. List elements need no step of their own:
``users.name`` is the name of any user. After a map of plain values, the rest of the text is one key, dots and all; a
key in square brackets, quoted or not, can be followed by further steps.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_SEPARATORS: Final = ".["


class Member(NamedTuple):
    """A member of a struct, by position and name."""

    number: int
    name: str


class Key(NamedTuple):
    """The value that a map has for a key."""

    name: str


Step: TypeAlias = Member | Key


class Path(NamedTuple):
    """A column and the steps that lead to a value inside it; no steps mean the column itself."""

    column: str
    steps: tuple[Step, ...] = ()

    @property
    def text(self) -> str:
        """The path as a user writes it."""
        return self.column + "".join(
            f".{step.name}" if isinstance(step, Member) else f"[{step.name}]" for step in self.steps
        )


Same: TypeAlias = Callable[[str, str], bool]


def is_path(field: str) -> bool:
    """Whether a field's name may be a path."""
    return "." in field or "[" in field


def path_of(field: str, schema: pa.Schema) -> Path | None:
    """The column of this name, or the value that a path leads to; None if there is neither."""
    if field in schema.names:
        return Path(field)
    return next(_paths(field, schema, str.__eq__), None) if is_path(field) else None


def similar_paths(field: str, schema: pa.Schema) -> list[Path]:
    """The columns and paths whose names differ from this one only in case; map keys must match exactly."""
    columns = [Path(name) for name in dict.fromkeys(schema.names) if _same_but_case(name, field)]
    inside = list(_paths(field, schema, _same_but_case)) if is_path(field) else []
    return columns + [path for path in dict.fromkeys(inside) if path not in columns]


def prefixes(field: str) -> Iterator[tuple[str, str]]:
    """Each name that a path may begin with, and what follows it."""
    for place, sign in enumerate(field):
        if sign in _SEPARATORS and place:
            yield field[:place], field[place:]


def key_in(rest: str) -> str:
    """The key that the rest of a path names after a map of plain values."""
    inside = rest[1:-1] if rest.startswith("[") and rest.endswith("]") else rest[1:]
    is_quoted = rest.startswith("[") and len(inside) > 1 and inside[0] == inside[-1] and inside[0] in "\"'"
    return inside[1:-1] if is_quoted else inside


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values, ignoring dictionary and other encodings."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_run_end_encoded(kind) or pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    return kind


def is_list(kind: pa.DataType) -> "TypeIs[pa.ListType | pa.LargeListType | pa.FixedSizeListType]":
    """Whether values of this type are lists of any kind."""
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in tests)


def is_nested(kind: pa.DataType) -> bool:
    """Whether values of this type contain other values that a path can reach."""
    kind = plain_type(kind)
    return pa.types.is_struct(kind) or pa.types.is_map(kind) or is_list(kind)


def leaf_types(kind: pa.DataType) -> Iterator[pa.DataType]:
    """The types of all values inside, without map keys."""
    kind = plain_type(kind)
    if pa.types.is_struct(kind):
        for place in range(kind.num_fields):
            yield from leaf_types(kind.field(place).type)
    elif pa.types.is_map(kind):
        yield from leaf_types(kind.item_type)
    elif is_list(kind):
        yield from leaf_types(kind.value_type)
    else:
        yield kind


def _same_but_case(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def _paths(field: str, schema: pa.Schema, same: Same) -> Iterator[Path]:
    for name in sorted(dict.fromkeys(schema.names), key=len, reverse=True):
        rest = _behind(field, name, same)
        if rest and schema.names.count(name) == 1:
            for steps in _steps(schema.field(name).type, rest, same):
                yield Path(name, steps)


def _behind(text: str, name: str, same: Same) -> str | None:
    """What follows a name at the start of the text; None if the text does not start with it as a whole step."""
    rest = text[len(name) :]
    return rest if same(text[: len(name)], name) and (not rest or rest[0] in _SEPARATORS) else None


def _steps(kind: pa.DataType, rest: str, same: Same) -> Iterator[tuple[Step, ...]]:
    """All readings of the rest of a path, best first."""
    kind = plain_type(kind)
    if not rest:
        yield ()
    elif is_list(kind):
        yield from _steps(kind.value_type, rest, same)
    elif pa.types.is_struct(kind):
        yield from _members(kind, rest, same)
    elif pa.types.is_map(kind):
        for key, behind in _keys(rest, is_nested(kind.item_type)):
            for steps in _steps(kind.item_type, behind, same):
                yield (Key(key), *steps)


def _members(kind: pa.DataType, rest: str, same: Same) -> Iterator[tuple[Step, ...]]:
    members = [Member(place, kind.field(place).name) for place in range(kind.num_fields)]
    for member in sorted(members, key=lambda member: len(member.name), reverse=True):
        behind = _behind(rest[1:], member.name, same) if rest.startswith(".") else None
        if behind is not None:
            for steps in _steps(kind.field(member.number).type, behind, same):
                yield (member, *steps)


def _keys(rest: str, has_more: bool) -> Iterable[tuple[str, str]]:
    """The keys that the rest of a path may start with, each with what follows it."""
    if rest.startswith("["):
        ends = [place + 1 for place, sign in enumerate(rest) if sign == "]"]
        splits = [(rest[:end], rest[end:]) for end in reversed(ends)]
        return [(key_in(own), behind) for own, behind in splits if not behind or behind[0] in _SEPARATORS]
    if not has_more:
        return [(rest[1:], "")]
    borders = [place for place in range(1, len(rest)) if rest[place] in _SEPARATORS]
    return [*((rest[1:place], rest[place:]) for place in borders), (rest[1:], "")]
