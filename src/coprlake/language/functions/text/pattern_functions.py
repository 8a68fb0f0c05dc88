"""Functions that take a DPL pattern; see `coprlake.dpl`."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from coprlake.dpl import matching_texts as dpl
from coprlake.dpl.pattern import compile_pattern
from coprlake.errors import UsageError
from coprlake.language.functions.array_functions import array_function
from coprlake.language.functions.registry import function
from coprlake.language.functions.text import pattern_arrays as parsing
from coprlake.language.functions.text.text_matching import constant_at
from coprlake.language.plan import Apply, Constant, Expr
from coprlake.language.relabeling import relabeled
from coprlake.language.sql.dialect import Dialect
from coprlake.language.types import STRING, Type, array, carried_type

GROUP: Final = "patterns"

Sql = Sequence[exp.Expression]


def _check_exports(pattern: str) -> None:
    if not compile_pattern(pattern).exports:
        raise UsageError("the pattern names no value; write INT:n, for example, to get a number n")


def _check_split(pattern: str) -> None:
    dpl.split(compile_pattern(pattern), pa.array([], pa.string()))


def exported_type(pattern: str) -> Type:
    """The type of a pattern's result: its only export, or a record of its exports."""
    kind = parsing.type_of(compile_pattern(pattern))
    return kind.members[0][1] if len(kind.members) == 1 else kind


def _pattern_of(arguments: Sequence[Expr | None]) -> str:
    pattern = arguments[1]
    assert isinstance(pattern, Constant)
    return str(pattern.value)


@function(
    "matchesPattern(text: string, pattern: const string) -> boolean",
    "Whether the text starts with a match of a DPL pattern.",
    group=GROUP,
    example='data record(a = "10.0.0.1 GET"), record(a = "GET") | fields x = matchesPattern(a, "IPADDR \' \'")',
    gives=[{"x": True}, {"x": False}],
    checks={"pattern": compile_pattern},
)
def _matches_pattern(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    pattern = _pattern_of(node.arguments)
    return d.apply(array_function(matches_pattern, (pa.string(),), pa.bool_(), pattern=pattern), args[0])


def matches_pattern(texts: pa.Array, pattern: str = "") -> pa.Array:
    """Whether the pattern matches at the start of each text."""
    return dpl.matches(compile_pattern(pattern), texts)


@function(
    "parse(text: string, pattern: const string) -> any",
    "What a DPL pattern matches at the start of the text: the value of its one named matcher, "
    "or a record if there are several. Null if the text does not match.",
    group=GROUP,
    example="""data record(a = "eve 42") | fields x = parse(a, "LD ' ' INT:n"), y = parse(a, "LD:who ' ' INT:n")""",
    gives=[{"x": 42, "y": {"who": "eve", "n": 42}}],
    result_of=lambda arguments: exported_type(_pattern_of(arguments)),
    checks={"pattern": _check_exports},
)
def _parse(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    pattern = _pattern_of(node.arguments)
    return d.apply(array_function(parse_first, (pa.string(),), carried_type(node.type), pattern=pattern), args[0])


def parse_first(texts: pa.Array, pattern: str = "") -> pa.Array:
    """The exports of a pattern for each text; null where it does not match."""
    compiled = compile_pattern(pattern)
    found = dpl.parse(compiled, texts)
    kind = carried_type(exported_type(pattern))
    if len(compiled.exports) == 1:
        return relabeled(found.field(0), kind)
    assert pa.types.is_struct(kind), kind
    is_match = dpl.matches(compiled, texts).fill_null(False)
    children = [relabeled(child, member.type) for child, member in zip(found.flatten(), kind, strict=True)]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=pc.invert(is_match))


@function(
    "parseAll(text: string, pattern: const string) -> array<any>",
    "All matches of a DPL pattern anywhere in the text, as an array of the values of its one "
    "named matcher, or of records if there are several.",
    group=GROUP,
    example="""data record(a = "x=1, y=22") | fields x = parseAll(a, "'=' INT:n")""",
    gives=[{"x": [1, 22]}],
    result_of=lambda arguments: array(exported_type(_pattern_of(arguments))),
    checks={"pattern": _check_exports},
)
def _parse_all(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    pattern = _pattern_of(node.arguments)
    return d.apply(array_function(parse_each, (pa.string(),), carried_type(node.type), pattern=pattern), args[0])


def parse_each(texts: pa.Array, pattern: str = "") -> pa.Array:
    """The exports of each match in each text."""
    compiled = compile_pattern(pattern)
    found = dpl.parse_all(compiled, texts)
    kind = carried_type(array(exported_type(pattern)))
    if len(compiled.exports) > 1:
        return relabeled(found, kind)
    lengths = pc.list_value_length(found).fill_null(0)
    ends = pc.cumulative_sum(lengths).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    records = found.flatten()
    assert isinstance(records, pa.StructArray), records.type
    assert pa.types.is_list(kind), kind
    elements = relabeled(records.field(0), kind.value_type)
    mask = found.is_null() if found.null_count else None
    return pa.ListArray.from_arrays(offsets, elements, type=kind, mask=mask)


@function(
    "replacePattern(text: string, pattern: const string, replacement: const string) -> string",
    "The text with each match of a DPL pattern replaced.",
    group=GROUP,
    example='data record(a = "from 10.0.0.1 to 10.0.0.2") | fields x = replacePattern(a, "IPADDR", "<ip>")',
    gives=[{"x": "from <ip> to <ip>"}],
    checks={"pattern": compile_pattern},
)
def _replace_pattern(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    pattern, new = _pattern_of(node.arguments), str(constant_at(node, 2))
    return d.apply(
        array_function(replace_pattern, (pa.string(),), pa.string(), pattern=pattern, replacement=new), args[0]
    )


def replace_pattern(texts: pa.Array, pattern: str = "", replacement: str = "") -> pa.Array:
    """Each text with all matches replaced."""
    return dpl.replace(compile_pattern(pattern), texts, replacement)


@function(
    "splitByPattern(text: string, pattern: const string) -> array<string>",
    "The parts of the text between the matches of a DPL pattern, including empty ones.",
    group=GROUP,
    example="""data record(a = "a, b;c") | fields x = splitByPattern(a, "[,;] ' '?")""",
    gives=[{"x": ["a", "b", "c"]}],
    checks={"pattern": _check_split},
)
def _split_by_pattern(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    pattern = _pattern_of(node.arguments)
    kind = carried_type(array(STRING))
    return d.apply(array_function(split_by_pattern, (pa.string(),), kind, pattern=pattern), args[0])


def split_by_pattern(texts: pa.Array, pattern: str = "") -> pa.Array:
    """Each text split at the matches."""
    return dpl.split(compile_pattern(pattern), texts)
