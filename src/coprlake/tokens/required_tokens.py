"""The tokens that a line must contain to match: queries use them to prune.

A search text is a piece of a line. Runs inside it are whole runs of the line, and all their tokens are required. A run
at an *open* end may continue in the line, so only its grams are known. Ends are closed for a whole term, where the
characters around the match are of another class, and at the end of a line. The result may be empty: then nothing can
be ruled out.
"""

import threading
from typing import Final

import numpy as np

from coprlake.config import RULES, RuleSet
from coprlake.kernel import U8Array, U32Array, U64Array, i64, kernel
from coprlake.records import CONTENT
from coprlake.tokens.fingerprint import as_bytes, field_seed, fingerprint, polynomial_of
from coprlake.tokens.rules import LAST_BLANK, LAST_MARK, LAST_WORD, SYMBOLS, WINNOWED, WORDS, field_rules, kernel_rules
from coprlake.tokens.run_tokens import add_character_pairs, scan_chunk
from coprlake.tokens.scanner import chunk_end, new_seen
from coprlake.tokens.seen import COUNT, Seen, add_token
from coprlake.tokens.winnowing import add_winnowed


def term_tokens(
    text: str | bytes, field: str = CONTENT, *, grams: bool | None = None, rules: RuleSet | str = RULES
) -> U32Array:
    """The fingerprints that every line with `text` as a whole term has.

    Args:
        text: one token, or several with anything between them.
        field: the field to search.
        grams: whether that field was indexed with grams; by default the log line is and other fields are not, as in
            `BatchScanner.scan`. Pass True only if it was: otherwise matches are missed. The tokens already imply
            their grams, but looking for those too makes false positives much rarer.
        rules: the rules that the field was indexed with.
    """
    own = field_rules(rules, grams=field == CONTENT if grams is None else grams)
    return piece_tokens(text, field, left_open=False, right_open=False, rules=own)


def contains_tokens(
    text: str | bytes, field: str = CONTENT, *, grams: bool | None = None, rules: RuleSet | str = RULES
) -> U32Array:
    """The fingerprints that every line with `text` anywhere in it has; arguments as of `term_tokens`."""
    own = field_rules(rules, grams=field == CONTENT if grams is None else grams)
    return piece_tokens(text, field, left_open=True, right_open=True, rules=own)


def value_tokens(value: str | bytes, field: str) -> U32Array:
    """The fingerprint that every record whose `field` is exactly `value` has, if whole values are indexed."""
    return np.array([fingerprint(value, field)], np.uint32)


def piece_tokens(
    text: str | bytes, field: str = CONTENT, *, left_open: bool, right_open: bool, rules: RuleSet | None
) -> U32Array:
    """The fingerprints that every line with this piece has, whose ends may be open: a prefix, for instance.

    `rules` is the rule set that the field was indexed by, None if by whole words only.
    """
    number = kernel_rules(rules)
    data = np.frombuffer(as_bytes(text), np.uint8)
    seed = field_seed(field)
    if len(data) > _SHORT_TEXT_BYTES:
        seen = new_seen(longest_batch_bytes=len(data))
        _scan_piece(data, left_open, right_open, seed, number, seen)
        return seen.out[: seen.sizes[COUNT]].copy()
    seen, memory = _seen_of_this_thread()
    _scan_piece(data, left_open, right_open, seed, number, seen)
    tokens = seen.out[: seen.sizes[COUNT]].copy()
    memory.fill(0)
    return tokens


_SHORT_TEXT_BYTES: Final = 256
_own: Final = threading.local()


def _seen_of_this_thread() -> tuple[Seen, U64Array]:
    """An empty `Seen` with room for a short text, and the memory to clear before the next text.

    Allocating the arrays again takes longer than a search, and clearing one array is faster than clearing four.
    """
    kept: tuple[Seen, U64Array] | None = getattr(_own, "seen", None)
    if kept is None:
        seen = new_seen(longest_batch_bytes=_SHORT_TEXT_BYTES)
        cleared = ("word_grams", "mark_grams", "long_tokens", "sizes")
        ends = np.cumsum([getattr(seen, name).nbytes // 8 for name in cleared]).tolist()
        memory = np.zeros(ends[-1], np.uint64)
        parts = {
            name: memory[start:end].view(getattr(seen, name).dtype)
            for name, start, end in zip(cleared, [0, *ends], ends, strict=False)
        }
        kept = _own.seen = (seen._replace(**parts), memory)
    return kept


@kernel
def symbol_class(symbol: int) -> int:
    """0 for words, 1 for marks, 2 for blanks, 3 for foreign bytes."""
    if symbol <= LAST_WORD:
        return 0
    if symbol <= LAST_MARK:
        return 1
    return 2 if symbol <= LAST_BLANK else 3


@kernel
def _scan_piece(data: U8Array, left_open: bool, right_open: bool, seed: np.uint64, rules: int, seen: Seen) -> None:
    """Add the tokens that a line with this piece must have; `seen` has room for them."""
    end = len(data)
    if end == 0:
        return
    first, last = 0, end  # all runs in between are whole
    kind = symbol_class(i64(SYMBOLS[data[0]]))
    if left_open and kind != 2:
        while first < end and symbol_class(i64(SYMBOLS[data[first]])) == kind:
            first += 1
    kind = symbol_class(i64(SYMBOLS[data[end - 1]]))
    if right_open and kind != 2:
        while last > 0 and symbol_class(i64(SYMBOLS[data[last - 1]])) == kind:
            last -= 1
    if first > last:  # a single run with two open ends
        first, last = end, end
    if rules > WORDS:
        _scan_cut_run(data, 0, first, left_open, right_open and first == end, seed, seen)
        _scan_cut_run(data, last, end, False, True, seed, seen)
    scan_chunk(data, first, last, 0, end, seed, rules, seen)
    if rules == WINNOWED:
        _winnow_piece(data, seed, seen)


@kernel
def _winnow_piece(data: U8Array, seed: np.uint64, seen: Seen) -> None:
    """Rule 9 for each run of the piece: a window inside it is also in the line, whatever surrounds it there."""
    start, end = 0, len(data)
    while start < end:
        stop = chunk_end(data, start, end)
        add_winnowed(data, start, stop, seed, seen)
        start = stop + 1


@kernel
def _scan_cut_run(
    data: U8Array, start: int, end: int, cut_left: bool, cut_right: bool, seed: np.uint64, seen: Seen
) -> None:
    """Add the grams of a run that may continue in the line: rules 6, 7 and 8."""
    if start == end:
        return
    if data[start] >= 0x80:
        _scan_cut_foreign(data, start, end, cut_left, cut_right, seed, seen)
        return
    is_word = SYMBOLS[data[start]] <= LAST_WORD
    size = 3 if is_word else min(3, end - start)  # the longest grams imply the shorter ones
    for i in range(start, end - size + 1):
        add_token(polynomial_of(data, i, i + size), seed, seen)


@kernel
def _scan_cut_foreign(
    data: U8Array, start: int, end: int, cut_left: bool, cut_right: bool, seed: np.uint64, seen: Seen
) -> None:
    """Rule 8 for the characters that are certainly whole: bytes, unlike text, can be cut inside a character."""
    while cut_left and start < end and data[start] < 0xC0:
        start += 1
    if cut_right:
        last = end - 1
        while last > start and data[last] < 0xC0:
            last -= 1
        if last >= start and data[last] >= 0xC0:
            announced = 2 if data[last] < 0xE0 else (3 if data[last] < 0xF0 else 4)
            if end - last < announced:
                end = last
    if start < end:
        add_character_pairs(data, start, end, seed, seen)
