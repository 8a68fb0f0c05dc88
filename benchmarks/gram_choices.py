"""Sets of token rules that might have become rule set 2: what each indexes of a text, and what it asks for.

Kernels of their own, so that the curves of docs/decisions/0016-winnowed-grams.md can be drawn again whatever the
scanner does by then. They are written to be read, not to be fast: each gram is hashed anew. Today's scanner is their
test: the first choice has the tokens of the paper's rules there, `SHIPPED` those of rule set 2 but for the hashes of
grams, and so for which grams are chosen.
"""

import re
from typing import Final, NamedTuple

import numpy as np

from coprlake.kernel import U8Array, U32Array, U64Array, i64, kernel
from coprlake.tokens.fingerprint import fingerprint, mix, polynomial_of, upper_half
from coprlake.tokens.required_tokens import symbol_class
from coprlake.tokens.rules import DOT, IS_SEPARATOR, LAST_DIGIT, LAST_WORD, PAPER, SYMBOLS, WINNOWED
from coprlake.tokens.run_tokens import scan_chunk
from coprlake.tokens.scanner import chunk_end, new_seen
from coprlake.tokens.seen import COUNT, Seen, add_fingerprint, add_token

RANDOM, MARKS_FIRST, OPEN_CLOSED = 0, 1, 2
"""Orders of grams; see `_gram_class`."""
NO_WORDS, SHORT_WORDS, ALL_WORDS = 0, 1, 2
"""Words that are kept: of up to three bytes; all but those of 16 and more bytes with a digit; all."""
_ANY_LENGTH: Final = 1 << 40

_WORD, _BLANK = 0, 2
_SEED: Final = np.uint64(0)
_SALT: Final = np.uint64(0xB5026F5AA96619E9)
_PAIR_ORDER: Final = np.uint64(0x9E3779B97F4A7C15)
_NO_GRAM: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW_32: Final = np.uint64((1 << 32) - 1)
_LOW_30: Final = np.uint64((1 << 30) - 1)


class Grams(NamedTuple):
    """Winnowed grams: of `in_window` grams that begin one after the other, the least is a token."""

    gram_bytes: int
    in_window: int
    order: int = RANDOM
    least_digits: int = 0  # grams with fewer are no tokens
    longer_numeric: int = 0  # 1: a gram of digits and dots has a byte more


class Kept(NamedTuple):
    """The tokens of rules 1, 4 and 5 that stay; those of the other rules always do."""

    words: int = ALL_WORDS
    pair_bytes: int = _ANY_LENGTH  # pairs of so many bytes and more are dropped
    plain_pairs: int = 0  # 1: pairs of two words with digits are dropped, too
    address_pairs: int = 0  # 1: but for those of two numbers in a longer chain of dots, however long
    triple_bytes: int = 0  # triples of fewer bytes are dropped


class Choice(NamedTuple):
    """A set of rules by name."""

    name: str
    grams: tuple[Grams, ...] = ()
    kept: Kept = Kept()


_JOINED: Final = ((5, 7), (6, 6), (7, 5), (8, 4))
_NO_LINKS: Final = Kept(pair_bytes=0, triple_bytes=_ANY_LENGTH)
_SHORT_LINKS: Final = Kept(pair_bytes=11, plain_pairs=1)
_NUMERIC: Final = Grams(6, 6, OPEN_CLOSED, longer_numeric=1)

_SHORT_TOKENS: Final = _SHORT_LINKS._replace(words=SHORT_WORDS)

SHIPPED: Final = Choice(
    "and pairs in addresses for short triples", (_NUMERIC,), _SHORT_TOKENS._replace(address_pairs=1, triple_bytes=11)
)
CHOICES: Final = (
    Choice("paper"),
    *(Choice(f"join {k},{w}, three digits", (Grams(k, w, least_digits=3),)) for k, w in _JOINED),
    *(Choice(f"join {k},{w}", (Grams(k, w),)) for k, w in _JOINED),
    Choice("replace by 4,4 and 7,5", (Grams(4, 4), Grams(7, 5)), _NO_LINKS),
    Choice("replace by 6,6", (Grams(6, 6),), _NO_LINKS),
    Choice("marks first", (Grams(6, 6, MARKS_FIRST),), _NO_LINKS),
    Choice("open-closed", (Grams(6, 6, OPEN_CLOSED),), _NO_LINKS),
    Choice("and longer numeric grams", (_NUMERIC,), _NO_LINKS),
    Choice("and all short pairs, triples", (_NUMERIC,), _SHORT_LINKS._replace(plain_pairs=0)),
    Choice("without pairs of two numbers", (_NUMERIC,), _SHORT_LINKS),
    Choice("and no long words with digits", (_NUMERIC,), _SHORT_TOKENS),
    SHIPPED,
)
"""What is measured. Short means shorter than a window; from "open-closed" on, each changes the one before."""

CENSUS: Final = (
    Choice("grams, short words, marks", kept=_NO_LINKS._replace(words=NO_WORDS)),
    Choice("words of four bytes and more (rule 1)", kept=_NO_LINKS),
    Choice("pairs (rule 4)", kept=Kept(triple_bytes=_ANY_LENGTH)),
    Choice("triples (rule 5)"),
)
"""The paper's rules, added one after the other."""


@kernel
def _run_end(data: U8Array, start: int, end: int) -> int:
    """Where the run of bytes of one class at `start` ends."""
    kind = symbol_class(i64(SYMBOLS[data[start]]))
    while start < end and symbol_class(i64(SYMBOLS[data[start]])) == kind:
        start += 1
    return start


@kernel
def _add_runs(data: U8Array, words: int, seen: Seen) -> bool:
    """Rules 1-3 and 6-8 without long words if `words` says so; False if `seen` had no room.

    A run by itself is in no pair, and a word in pieces of three bytes has grams only.
    """
    i, end = 0, len(data)
    while i < end:
        stop = _run_end(data, i, end)
        kind = symbol_class(i64(SYMBOLS[data[i]]))
        size = 3 if words == NO_WORDS and kind == _WORD and stop - i > 3 else stop - i
        while kind != _BLANK and i + size <= stop:
            rules = PAPER if words == ALL_WORDS else WINNOWED
            if not scan_chunk(data, i, i + size, i, i + size, _SEED, rules, seen):
                return False
            i += 1
        i = stop
    return True


@kernel
def _digit_count(data: U8Array, start: int, end: int) -> int:
    count = 0
    for i in range(start, end):
        count += 1 if SYMBOLS[data[i]] <= LAST_DIGIT else 0
    return count


@kernel
def _is_in_address(data: U8Array, first: int, second: int, end: int) -> bool:
    """Whether the words that begin at `first` and `second` are numbers with a dot between, and one before or after."""
    if data[second - 1] != DOT or _digit_count(data, first, end) != end - first - 1:
        return False
    return (end < len(data) and data[end] == DOT) or (first > 0 and data[first - 1] == DOT)


@kernel
def _is_kept_pair(data: U8Array, first: int, second: int, end: int, kept: Kept) -> bool:
    """Whether the pair of the words that begin at `first` and `second` is a token."""
    is_plain = _digit_count(data, first, second) == 0 or _digit_count(data, second, end) == 0
    if is_plain or kept.plain_pairs == 0:
        return end - first < kept.pair_bytes
    return kept.address_pairs == 1 and _is_in_address(data, first, second, end)


@kernel
def _add_links(data: U8Array, kept: Kept, seen: Seen) -> None:
    """Rules 4 and 5 as far as they are kept."""
    i, end = 0, len(data)
    first, second = -1, -1  # where the words before this one begin if they hang together with it; the first by dots
    while i < end:
        stop = _run_end(data, i, end)
        if SYMBOLS[data[i]] > LAST_WORD:
            i, first, second = stop, -1, -1
            continue
        if second >= 0 and _is_kept_pair(data, second, i, stop, kept):
            add_token(polynomial_of(data, second, stop), _SEED, seen)
        if first >= 0 and stop - first >= kept.triple_bytes:
            add_token(polynomial_of(data, first, stop), _SEED, seen)
        if stop + 1 < end and IS_SEPARATOR[data[stop]] and SYMBOLS[data[stop + 1]] <= LAST_WORD:
            first = second if second >= 0 and data[i - 1] == DOT and data[stop] == DOT else -1
            second = i
            i = stop + 1
        else:
            i, first, second = stop, -1, -1


@kernel
def _pair_key(data: U8Array, i: int) -> np.uint64:
    pair = np.uint64(SYMBOLS[data[i]]) << np.uint64(8) | np.uint64(SYMBOLS[data[i + 1]])
    return pair * _PAIR_ORDER


@kernel
def _gram_class(data: U8Array, i: int, grams: Grams) -> int:
    """What the order looks at first, 0 to 2; grams of one class are ordered at random.

    Marks first: 0 if the gram begins with no word symbol. Open-closed: 0 if the least of its pairs of symbols is in
    the middle, 1 if it is at an end.
    """
    if grams.order == RANDOM:
        return 0
    if grams.order == MARKS_FIRST:
        return 0 if SYMBOLS[data[i]] > LAST_WORD else 1
    last = i + grams.gram_bytes - 2
    least = _pair_key(data, i)
    for j in range(i + 1, last + 1):
        least = min(least, _pair_key(data, j))
    if least == _pair_key(data, i + (grams.gram_bytes - 1) // 2):
        return 0
    return 1 if least == _pair_key(data, i) or least == _pair_key(data, last) else 2


@kernel
def _gram_size(data: U8Array, i: int, grams: Grams) -> int:
    """How many bytes the gram at `i` has."""
    if grams.longer_numeric == 0:
        return grams.gram_bytes
    for j in range(i, i + grams.gram_bytes):
        if SYMBOLS[data[j]] > LAST_DIGIT and data[j] != DOT:
            return grams.gram_bytes
    return grams.gram_bytes + 1


@kernel
def _gram_key(data: U8Array, i: int, end: int, grams: Grams) -> np.uint64:
    """Class, 30 random bits and fingerprint of the gram at `i`; `_NO_GRAM` if that is none or goes beyond `end`."""
    size = _gram_size(data, i, grams)
    if i + size > end or _digit_count(data, i, i + size) < grams.least_digits:
        return _NO_GRAM
    mixed = mix(polynomial_of(data, i, i + size), _SEED ^ _SALT)
    gram_class = np.uint64(_gram_class(data, i, grams))
    return gram_class << np.uint64(62) | (mixed & _LOW_30) << np.uint64(32) | np.uint64(upper_half(mixed))


@kernel
def _add_winnowed(data: U8Array, start: int, end: int, grams: Grams, keys: U64Array, seen: Seen) -> None:
    """Add the least gram of each window of ``data[start:end]``, which has no blank; `keys` is as long or longer.

    A window has ``gram_bytes + in_window - 1`` bytes, so its last gram is not in it if that has a byte more.
    """
    gram_count = end - start - grams.gram_bytes + 1
    for j in range(gram_count):
        keys[j] = _gram_key(data, start + j, end, grams)
    for last in range(grams.in_window - 1, gram_count):
        least = keys[last] if _gram_size(data, start + last, grams) == grams.gram_bytes else _NO_GRAM
        for j in range(last - grams.in_window + 1, last):
            least = min(least, keys[j])
        if least != _NO_GRAM:
            add_fingerprint(np.uint32(least & _LOW_32), seen)


@kernel
def _winnow(data: U8Array, grams: Grams, keys: U64Array, seen: Seen) -> None:
    """Winnowed grams of each run between blanks."""
    start, end = 0, len(data)
    while start < end:
        stop = chunk_end(data, start, end)
        _add_winnowed(data, start, stop, grams, keys, seen)
        start = stop + 1


class ChoiceScanner:
    """What a choice indexes and asks for; texts have up to `longest_bytes`."""

    def __init__(self, choice: Choice, longest_bytes: int) -> None:
        self._choice = choice
        self._seen = new_seen(longest_batch_bytes=longest_bytes)
        self._keys = np.zeros(longest_bytes, np.uint64)

    def tokens(self, text: bytes) -> U32Array:
        """The distinct fingerprints of a text, ascending."""
        self._clear()
        self._add_whole(text)
        self._add_grams(text)
        return self._found()

    def required_tokens(self, text: bytes, *, is_term: bool) -> U32Array:
        """The fingerprints that every text has that `text` is in, as a whole term or anywhere.

        `text` is lower-case ASCII without blanks. Runs at an open end may go on: of these only grams are known.
        """
        if is_term:
            return self.tokens(text)
        runs = re.findall(rb"[0-9a-z]+|[^0-9a-z]+", text)
        self._clear()
        self._add_whole(b"".join(runs[1:-1]))
        self._add_grams(text)
        cut = [gram for run in {*runs[:1], *runs[-1:]} for gram in _grams_of_cut_run(run)]
        return np.union1d(self._found(), np.array(cut, np.uint32))

    def _clear(self) -> None:
        seen = self._seen
        for part in (seen.word_grams, seen.mark_grams, seen.long_tokens, seen.sizes):
            part.fill(0)

    def _add_whole(self, text: bytes) -> None:
        data = np.frombuffer(text, np.uint8)
        assert _add_runs(data, self._choice.kept.words, self._seen), "the scanner has room for texts of this length"
        _add_links(data, self._choice.kept, self._seen)

    def _add_grams(self, text: bytes) -> None:
        for grams in self._choice.grams:
            _winnow(np.frombuffer(text, np.uint8), grams, self._keys, self._seen)

    def _found(self) -> U32Array:
        return np.unique(self._seen.out[: self._seen.sizes[COUNT]])


def _grams_of_cut_run(run: bytes) -> list[int]:
    """Rules 6 and 7 for a run that may go on."""
    size = 3 if run.isalnum() else min(3, len(run))
    return [fingerprint(run[i : i + size]) for i in range(len(run) - size + 1)]
