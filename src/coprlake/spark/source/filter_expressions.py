"""Predicates as expressions of Spark SQL, which decide exactly as `matching.py` does.

So Spark can filter by itself where that is faster than sending rows to Python. SQL has a third truth value, unknown;
here every leaf is true or false, so and, or, not mean the same. Patterns are Java's: its ``(?i)`` folds ASCII letters
only, as we do. A non-ASCII character of Java's may be half of one of ours, but both halves are of the same class.
"""

import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from operator import and_, or_
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, functions

from coprlake.predicate.deciding.record_values import is_searched
from coprlake.predicate.narrowing.required import phrase_parts
from coprlake.predicate.paths import is_nested, path_of
from coprlake.predicate.patterns.regex_tree import BLANK, FOREIGN, MARK, WORD, class_bit
from coprlake.predicate.patterns.wildcards import Element, as_one_piece, elements_of
from coprlake.predicate.predicates import (
    ALL_FIELDS,
    ANY_VALUE,
    And,
    Compare,
    Contains,
    Equals,
    Exists,
    Leaf,
    Not,
    OneOf,
    Operator,
    Or,
    Phrase,
    Predicate,
    Prefix,
    Regex,
    Suffix,
    Term,
    TextPredicate,
    Value,
    Wildcard,
)
from coprlake.predicate.values import NUMBER, float_of, microseconds_of, number_of, text_of, truth_of
from coprlake.records import ATTRIBUTES, SCHEMA
from coprlake.text.text_types import is_text_map, is_text_or_bytes
from coprlake.tokens.profile import NOT_SEARCHED

_MICROSECONDS_A_DAY: Final = 86_400 * 10**6
_LEAST, _MOST = -(2**63), 2**63 - 1
_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_TO_LOWER: Final = str.maketrans(_UPPER, _LOWER)
_MEMBERS: Final = {
    WORD: "[0-9A-Za-z]",
    MARK: r"[!-/:-@\[-`{-~]",
    BLANK: r"[\x00-\x20\x7f]",
    FOREIGN: r"[^\x00-\x7f]",
}
_IN_ONE_LINE: Final = {**_MEMBERS, BLANK: r"[\x00-\x09\x0b\x0c\x0e-\x20\x7f]"}
_PHRASE_WORD: Final = "[0-9A-Za-z_]"
_HAS_LETTER = re.compile("[A-Za-z]")
_PLAIN_REGEX = re.compile("[A-Za-z0-9 _,:;/@=<>-]*")
_STAR: Final = Element("*", True)


class _DiffersError(Exception):
    """Spark would not decide as we do."""


def column_of(predicate: Predicate, schema: pa.Schema, *, is_filter: bool = False) -> Column | None:
    """The predicate as a condition on the columns of a table with this schema: true or false, never null.

    None if Spark might decide otherwise: for regular expressions that are not plain text, for columns of bytes,
    decimals, nanoseconds and times without a zone, for values inside structs, lists and maps other than the attributes,
    and for text that is not valid UTF-8.

    Args:
        predicate: what to look for.
        schema: the schema of the table.
        is_filter: whether null may mean false, as in a filter; Spark can then use the files' statistics.
    """
    try:
        return _condition(predicate, schema, nulls=is_filter)
    except _DiffersError:
        return None


def _condition(predicate: Predicate, schema: pa.Schema, nulls: bool) -> Column:
    if isinstance(predicate, And):
        return _joined(and_, [_condition(part, schema, nulls) for part in predicate.parts], functions.lit(True))
    if isinstance(predicate, Or):
        return _joined(or_, [_condition(part, schema, nulls) for part in predicate.parts], functions.lit(False))
    if isinstance(predicate, Not):
        return ~_condition(predicate.part, schema, nulls=False)
    condition = _leaf(predicate, schema)
    return condition if nulls else _or_false(condition)


def _joined(operator: Callable[[Column, Column], Column], parts: list[Column], none: Column) -> Column:
    """Join all parts in a balanced tree: Spark would run out of stack on a deep one."""
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [reduce(operator, pair) for pair in pairs]
    return parts[0] if parts else none


def _leaf(predicate: Leaf, schema: pa.Schema) -> Column:
    """The condition on a field: on its column, or, where that is null, on the attribute of the same name."""
    field = predicate.field
    has_map = ATTRIBUTES in schema.names and is_text_map(schema.field(ATTRIBUTES).type)
    if field == ALL_FIELDS:
        return _any_text(predicate, schema, has_map)
    if field == ANY_VALUE:
        return _any_value(predicate, schema, has_map)
    by_attribute = functions.lit(False)
    if has_map and field not in SCHEMA.names:
        by_attribute = _on_text(predicate, _attributes(schema)[functions.lit(_valid(field))])
    if field not in schema.names:
        if path_of(field, schema) is not None:
            raise _DiffersError  # inside a column; our own tasks evaluate this
        return by_attribute
    by_column = _on_column(predicate, named(field), _plain_type(schema, field))
    if not has_map or field in SCHEMA.names:
        return by_column
    return functions.when(named(field).isNotNull(), by_column).otherwise(by_attribute)


def _any_text(predicate: Leaf, schema: pa.Schema, has_map: bool) -> Column:
    kinds = {name: _plain_type(schema, name) for name in schema.names}
    if any(is_nested(kind) and not (name == ATTRIBUTES and has_map) for name, kind in kinds.items()):
        raise _DiffersError
    parts = [_on_column(predicate, named(name), kind) for name, kind in kinds.items() if is_text_or_bytes(kind)]
    if has_map:
        values = functions.map_values(_attributes(schema))
        parts.append(functions.exists(values, lambda value: _or_false(_on_text(predicate, value))))
    return _joined(or_, [_or_false(part) for part in parts], functions.lit(False))


def _any_value(predicate: Leaf, schema: pa.Schema, has_map: bool) -> Column:
    """Any value that a plain search looks at; numbers, which Spark writes differently, are left to our tasks."""
    kinds = {name: _plain_type(schema, name) for name in schema.names}
    searched = {name: kind for name, kind in kinds.items() if is_searched(name, kind)}
    if any(not is_text_or_bytes(kind) and not (name == ATTRIBUTES and has_map) for name, kind in searched.items()):
        raise _DiffersError
    parts = [_on_column(predicate, named(name), kind) for name, kind in searched.items() if is_text_or_bytes(kind)]
    if has_map:
        own = functions.map_filter(_attributes(schema), lambda key, _: ~key.isin(*sorted(NOT_SEARCHED)))
        values = functions.map_values(own)
        parts.append(functions.exists(values, lambda value: _or_false(_on_text(predicate, value))))
    return _joined(or_, [_or_false(part) for part in parts], functions.lit(False))


def _attributes(schema: pa.Schema) -> Column:
    """The attribute map; for a key that occurs twice, Spark takes the first value, as we do."""
    kind = schema.field(ATTRIBUTES).type
    assert pa.types.is_map(kind), kind
    if not (_is_string(kind.key_type) and _is_string(kind.item_type)):
        raise _DiffersError
    return named(ATTRIBUTES)


def _or_false(condition: Column) -> Column:
    return functions.coalesce(condition, functions.lit(False))


def named(name: str) -> Column:
    """The column of this name, whatever characters are in it."""
    quoted = name.replace("`", "``")
    return functions.col(f"`{quoted}`")


def _plain_type(schema: pa.Schema, name: str) -> pa.DataType:
    if len(schema.get_all_field_indices(name)) != 1:
        raise _DiffersError
    kind = schema.field(name).type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _valid(text: str) -> str:
    """The text, if Spark can represent it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _DiffersError from error
    return text


def _on_column(predicate: Leaf, column: Column, kind: pa.DataType) -> Column:
    if isinstance(predicate, Exists):
        return column.isNotNull()
    if _is_string(kind):
        return _on_text(predicate, column)
    if is_text_or_bytes(kind) or is_nested(kind):
        raise _DiffersError
    if isinstance(predicate, Compare):
        return _related(column, kind, predicate.operator, predicate.value)
    if isinstance(predicate, Equals | OneOf):
        values = (predicate.value,) if isinstance(predicate, Equals) else predicate.values
        return _joined(or_, [_related(column, kind, "==", value) for value in values], functions.lit(False))
    return functions.lit(False)


def _related(column: Column, kind: pa.DataType, relation: str, value: Value) -> Column:
    """Whether the value of a typed column has this relation to `value`; see `typed.relates`."""
    if pa.types.is_boolean(kind):
        truth = truth_of(value)
        return functions.lit(False) if truth is None else _compared(column, relation, functions.lit(truth))
    if pa.types.is_floating(kind) and not pa.types.is_float16(kind):
        return _related_float(column, relation, number_of(value))
    if pa.types.is_timestamp(kind) and kind.tz is not None and kind.unit != "ns":
        moment = microseconds_of(value)
        bound = functions.timestamp_micros(functions.lit(moment))
        return functions.lit(False) if moment is None else _compared(column, relation, bound)
    if pa.types.is_date32(kind):
        moment = microseconds_of(value)
        day = None if moment is None else Fraction(moment, _MICROSECONDS_A_DAY)
        return _related_whole(column, relation, day, functions.date_from_unix_date)
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return _related_whole(column, relation, number_of(value))
    raise _DiffersError


def _related_float(column: Column, relation: str, number: int | float | None) -> Column:
    """Compare floats; in Spark NaN equals itself and is greater than any number, for us neither holds."""
    if number is None or _is_nan(number):
        return functions.lit(False)
    related = _compared(column, relation, functions.lit(float_of(number)))
    return related & ~functions.isnan(column) if relation.startswith(">") else related


def _is_nan(number: int | float | Fraction) -> bool:
    return isinstance(number, float) and math.isnan(number)


def _related_whole(
    column: Column,
    relation: str,
    number: int | float | Fraction | None,
    as_value: Callable[..., Column] = functions.lit,
) -> Column:
    """Compare integers, or days, with any number: less than 2.5 is less than 3."""
    if number is None or _is_nan(number):
        return functions.lit(False)
    if not _LEAST <= number <= _MOST:
        holds = relation.startswith("<") if number > 0 else relation.startswith(">")
        return functions.lit(holds) & column.isNotNull()
    if relation == "==" and number != math.floor(number):
        return functions.lit(False)
    bound = math.ceil(number) if relation in ("<", ">=") else math.floor(number)
    return _compared(column, relation, as_value(functions.lit(bound)))


def _compared(column: Column, relation: str, bound: Column) -> Column:
    if relation == "==":
        return column == bound
    if relation == "<":
        return column < bound
    if relation == "<=":
        return column <= bound
    return column > bound if relation == ">" else column >= bound


def _on_text(predicate: Leaf, column: Column) -> Column:
    if isinstance(predicate, Exists):
        return column.isNotNull()
    if isinstance(predicate, Compare):
        return _ordered(column, predicate.operator, predicate.value)
    if isinstance(predicate, Equals):
        return _matching(column, _valid(text_of(predicate.value)), predicate.case_sensitive, r"\A", r"\z")
    if isinstance(predicate, OneOf):
        texts = [_valid(text_of(value)) for value in predicate.values]
        if predicate.case_sensitive or not any(map(_HAS_LETTER.search, texts)):
            return column.isin(texts)
        return functions.translate(column, _UPPER, _LOWER).isin([text.translate(_TO_LOWER) for text in texts])
    return _on_text_by_pattern(predicate, column)


def _ordered(column: Column, operator: Operator, value: Value) -> Column:
    if isinstance(value, str):
        return _compared(column, operator, functions.lit(_valid(value)))
    number = number_of(value)
    if number is None:
        return functions.lit(False)
    spelled = functions.when(column.rlike(rf"\A(?:{NUMBER})\z"), column.try_cast("double"))
    return _related_float(spelled, operator, number)


def _on_text_by_pattern(predicate: TextPredicate, column: Column) -> Column:
    text, exact = _valid(predicate.text), predicate.case_sensitive
    if isinstance(predicate, Contains) or (isinstance(predicate, Regex) and _PLAIN_REGEX.fullmatch(text)):
        return _matching(column, text, exact)
    if isinstance(predicate, Prefix):
        return _matching(column, text, exact, before=r"\A")
    if isinstance(predicate, Suffix):
        return _matching(column, text, exact, after=r"\z")
    if isinstance(predicate, Term):
        return _matching(column, text, exact, *_borders(text, True, True))
    if isinstance(predicate, Phrase):
        core, checks_left, checks_right = phrase_parts(text)
        words = [re.fullmatch(_PHRASE_WORD, end) is not None for end in (core[:1], core[-1:])]
        before = f"(?<!{_PHRASE_WORD})" if checks_left and words[0] else ""
        return _matching(column, core, exact, before, f"(?!{_PHRASE_WORD})" if checks_right and words[1] else "")
    if isinstance(predicate, Wildcard):
        return _wildcard(column, text, exact)
    raise _DiffersError


def _matching(column: Column, text: str, case_sensitive: bool, before: str = "", after: str = "") -> Column:
    """Whether the column contains the text between these borders, in the fastest form."""
    if not case_sensitive and _HAS_LETTER.search(text):
        return column.rlike(f"{before}(?i:{_quoted(text)}){after}")
    plain = {("", ""): "contains", (r"\A", ""): "startswith", ("", r"\z"): "endswith", (r"\A", r"\z"): "__eq__"}
    method = plain.get((before, after))
    if method is None:
        return column.contains(text) & column.rlike(f"{before}{_quoted(text)}{after}")
    return getattr(column, method)(functions.lit(text))


def _quoted(text: str) -> str:
    """A pattern that matches exactly this text."""
    return "".join(
        character if character > "\x7f" or character.isalnum() else f"\\x{ord(character):02x}" for character in text
    )


def _borders(text: str, closed_left: bool, closed_right: bool) -> tuple[str, str]:
    """Patterns for the borders before and after a whole term, on the sides that are closed."""
    before = f"(?<!{_MEMBERS[class_bit(text[0])]})" if closed_left and text else ""
    return before, f"(?!{_MEMBERS[class_bit(text[-1])]})" if closed_right and text else ""


def _wildcard(column: Column, pattern: str, case_sensitive: bool) -> Column:
    """Match a wildcard pattern; each run between two ``*`` takes its first match, as no later one does better."""
    piece = as_one_piece(pattern)
    if piece is not None:
        borders = _borders(piece.text, not piece.left_open, not piece.right_open)
        return _matching(column, piece.text, case_sensitive, *borders)
    elements = elements_of(pattern)
    last = len(elements) - 1
    runs = [""]
    for i, element in enumerate(elements):
        if element != _STAR:
            runs[-1] += _element(element, i == 0, i == last, case_sensitive)
        elif 0 < i < last:
            runs.append("")
    source = runs[0] + "".join(rf"(?>[^\n\r]*?{run})" for run in runs[1:])
    longest = max((element.text for element in reversed(elements) if not element.is_sign), key=len, default="")
    return _matching(column, longest, case_sensitive) & column.rlike(source)  # the text rules out most lines


def _element(element: Element, is_first: bool, is_last: bool, case_sensitive: bool) -> str:
    if not element.is_sign:
        before, after = _borders(element.text, is_first, is_last)
        return f"{before}(?{'' if case_sensitive else 'i'}:{_quoted(element.text)}){after}"
    if not (is_first or is_last):
        return r"[^\n\r]"
    choices = [
        (f"(?<!{_MEMBERS[bit]})" if is_first else "") + members + (f"(?!{_MEMBERS[bit]})" if is_last else "")
        for bit, members in _IN_ONE_LINE.items()
    ]
    return f"(?:{'|'.join(choices)})"
