"""A single condition, prepared: which strings and which typed values it accepts."""

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute

from coprlake.predicate.deciding.batch_texts import Texts
from coprlake.predicate.deciding.finding import (
    OPEN,
    PREFIX,
    SUFFIX,
    WHOLE,
    Mask,
    find_at_edges,
    find_rows,
    new_needle,
    of_same_class,
    of_same_word,
)
from coprlake.predicate.deciding.typed import relates, valid_rows
from coprlake.predicate.narrowing.required import phrase_parts
from coprlake.predicate.patterns.literals import LiteralPiece, literals_to_look_for, required_literals
from coprlake.predicate.patterns.regex import parse_pattern
from coprlake.predicate.patterns.wildcards import as_one_piece, as_regex, pieces_of_wildcard
from coprlake.predicate.predicates import (
    Compare,
    Contains,
    Equals,
    Exists,
    Leaf,
    OneOf,
    Operator,
    Phrase,
    Prefix,
    Suffix,
    Term,
    TextPredicate,
    Value,
    Wildcard,
)
from coprlake.predicate.values import NUMBER, float_of, number_of, text_of
from coprlake.tokens.fingerprint import as_bytes

_MOST_LITERALS: Final = 8
_SPELLS_WHOLE: Final = "^-?[0-9]{1,38}$"
_WHOLE: Final = pa.decimal128(38)
_NOT_ALL_EXACT: Final = 2**53
_SPELLS_NUMBER: Final = f"^(?:{NUMBER})$"


class Condition(Protocol):
    """A condition on a value. Answers for nulls are undefined."""

    cost: int
    """Cheaper conditions go first."""

    def on_texts(self, texts: Texts, wanted: Mask | None) -> Mask:
        """Whether each string is accepted; values where not `wanted` are undefined."""

    def on_typed(self, column: pa.Array) -> Mask:
        """Whether the value of each row is accepted."""


class _OnlyText:
    """A condition on text; other values never fulfil it."""

    def on_typed(self, column: pa.Array) -> Mask:
        return np.zeros(len(column), np.bool_)


class _AnyText(_OnlyText):
    """Accepts every text."""

    cost = 1

    def on_texts(self, texts: Texts, wanted: Mask | None) -> Mask:
        return np.ones(len(texts.strings), np.bool_)


class _HasNeedle(_OnlyText):
    """The text contains the needle, between characters that the condition allows."""

    cost = 3

    def __init__(self, text: str, *, case_sensitive: bool, left_bars: bool, right_bars: bool, words: bool) -> None:
        data = as_bytes(text)
        bars = of_same_word if words else of_same_class
        self._needle = new_needle(
            data,
            case_sensitive=case_sensitive,
            barred_before=bars(data[0]) if left_bars else OPEN,
            barred_after=bars(data[-1]) if right_bars else OPEN,
        )

    def on_texts(self, texts: Texts, wanted: Mask | None) -> Mask:
        found = np.zeros(len(texts.strings), np.bool_)
        find_rows(*texts.buffers, self._needle, found)
        return found


class _AtEdge(_OnlyText):
    """The text starts with, ends with, or equals the needle."""

    cost = 1

    def __init__(self, text: str, edge: int, *, case_sensitive: bool) -> None:
        self._needle = new_needle(text, case_sensitive=case_sensitive)
        self._edge = edge

    def on_texts(self, texts: Texts, wanted: Mask | None) -> Mask:
        found = np.zeros(len(texts.strings), np.bool_)
        find_at_edges(*texts.buffers, self._needle, self._edge, found)
        return found


class _Matching(_OnlyText):
    """RE2 finds the pattern in the text; if literals are known, it runs only on texts that contain one."""

    cost = 20

    def __init__(self, source: str, literals: Sequence[str]) -> None:
        self._source = source
        self._needles = [new_needle(text, case_sensitive=False) for text in literals if len(literals) <= _MOST_LITERALS]

    def on_texts(self, texts: Texts, wanted: Mask | None) -> Mask:
        if self._needles:
            found = np.zeros(len(texts.strings), np.bool_)
            for needle in self._needles:
                one = np.zeros(len(texts.strings), np.bool_)
                find_rows(*texts.buffers, needle, one)
                found |= one
            wanted = found if wanted is None else wanted & found
        if wanted is None:
            return self._run(texts.strings)
        matching = np.zeros(len(texts.strings), np.bool_)
        chosen = np.flatnonzero(wanted)
        if len(chosen):
            matching[chosen] = self._run(texts.strings.take(pa.array(chosen)))
        return matching

    def _run(self, strings: pa.Array) -> Mask:
        found = pa.compute.match_substring_regex(strings, self._source)
        return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)


class _Equal:
    """The whole value equals one of these."""

    cost = 2

    def __init__(self, values: tuple[Value, ...], *, case_sensitive: bool) -> None:
        self._values = values
        self._folds = not case_sensitive
        texts = [as_bytes(text_of(value)) for value in values]
        self._texts = [text.lower() for text in texts] if self._folds else texts
        self._needle = new_needle(texts[0], case_sensitive=case_sensitive) if len(texts) == 1 and texts[0] else None

    def on_texts(self, texts: Texts, wanted: Mask | None) -> Mask:
        if self._needle is not None:
            found = np.zeros(len(texts.strings), np.bool_)
            find_at_edges(*texts.buffers, self._needle, WHOLE, found)
            return found
        strings = pa.compute.ascii_lower(texts.strings) if self._folds else texts.strings
        large = pa.types.is_large_string(strings.type)
        sought = pa.array(self._texts, pa.large_binary() if large else pa.binary())
        is_found = pa.compute.is_in(strings.view(sought.type), value_set=sought)
        return np.asarray(is_found.to_numpy(zero_copy_only=False), np.bool_)

    def on_typed(self, column: pa.Array) -> Mask:
        return relates(column, "==", self._values)


class _Ordered:
    """The value is less or more than this one."""

    cost = 2

    def __init__(self, operator: Operator, value: Value) -> None:
        self._operator = operator
        self._value = value

    def on_texts(self, texts: Texts, wanted: Mask | None) -> Mask:
        if not isinstance(self._value, str):
            return self._by_number(texts)
        large = pa.types.is_large_string(texts.strings.type)
        strings = texts.strings.view(pa.large_binary() if large else pa.binary())
        found = _RELATIONS[self._operator](strings, pa.scalar(as_bytes(self._value), strings.type))
        return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)

    def _by_number(self, texts: Texts) -> Mask:
        """Compare by the numbers that the strings spell; other strings are not accepted."""
        found = np.zeros(len(texts.strings), np.bool_)
        number = number_of(self._value)
        if number is None:
            return found
        spells = pa.compute.match_substring_regex(texts.strings, _SPELLS_NUMBER).fill_null(False)
        chosen = np.flatnonzero(spells.to_numpy(zero_copy_only=False))
        spelled = pa.compute.utf8_ltrim(texts.strings.take(pa.array(chosen)), "+")  # Arrow does not read a plus sign
        found[chosen] = relates(spelled.cast(pa.float64()), self._operator, [float_of(number)])
        if abs(number) >= _NOT_ALL_EXACT:  # a float does not tell whole numbers of this size from their neighbours
            is_whole = pa.compute.match_substring_regex(spelled, _SPELLS_WHOLE).to_numpy(zero_copy_only=False)
            whole = spelled.take(pa.array(np.flatnonzero(is_whole)))
            found[chosen[is_whole]] = relates(whole.cast(_WHOLE), self._operator, [number])
        return found

    def on_typed(self, column: pa.Array) -> Mask:
        return relates(column, self._operator, [self._value])


class _Present:
    """The value is not null."""

    cost = 0

    def on_texts(self, texts: Texts, wanted: Mask | None) -> Mask:
        return np.ones(len(texts.strings), np.bool_)

    def on_typed(self, column: pa.Array) -> Mask:
        return valid_rows(column)


_RELATIONS: Final = {
    "<": pa.compute.less,
    "<=": pa.compute.less_equal,
    ">": pa.compute.greater,
    ">=": pa.compute.greater_equal,
}


def new_condition(predicate: Leaf) -> Condition:
    """The predicate, prepared.

    Raises:
        UsageError: a regular expression is not valid.
    """
    if isinstance(predicate, Exists):
        return _Present()
    if isinstance(predicate, Compare):
        return _Ordered(predicate.operator, predicate.value)
    if isinstance(predicate, Equals):
        return _Equal((predicate.value,), case_sensitive=predicate.case_sensitive)
    if isinstance(predicate, OneOf):
        return _Equal(predicate.values, case_sensitive=predicate.case_sensitive)
    return _text_condition(predicate)


def _text_condition(predicate: TextPredicate) -> Condition:
    text, exact = predicate.text, predicate.case_sensitive
    if isinstance(predicate, Contains):
        return _found(LiteralPiece(text, True, True), case_sensitive=exact)
    if isinstance(predicate, Term):
        return _found(LiteralPiece(text, False, False), case_sensitive=exact)
    if isinstance(predicate, Phrase):
        core, checks_left, checks_right = phrase_parts(text)
        return _found(LiteralPiece(core, not checks_left, not checks_right), case_sensitive=exact, words=True)
    if isinstance(predicate, Prefix | Suffix):
        edge = PREFIX if isinstance(predicate, Prefix) else SUFFIX
        return _AtEdge(text, edge, case_sensitive=exact) if text else _AnyText()
    if isinstance(predicate, Wildcard):
        piece = as_one_piece(text)
        if piece is not None:
            return _found(piece, case_sensitive=exact)
        return _Matching(as_regex(text, case_sensitive=exact), literals_to_look_for(pieces_of_wildcard(text)))
    pattern = parse_pattern(text, case_sensitive=exact)
    return _Matching(pattern.source, literals_to_look_for(required_literals(pattern.tree)))


def _found(piece: LiteralPiece, *, case_sensitive: bool, words: bool = False) -> Condition:
    if not piece.text:
        return _AnyText()
    left, right = not piece.left_open, not piece.right_open
    return _HasNeedle(piece.text, case_sensitive=case_sensitive, left_bars=left, right_bars=right, words=words)
