"""The scanner: from a batch of log lines to the distinct fingerprints of its tokens.

It reads Arrow's own buffers (offsets and bytes) and never makes a Python string. Each token is looked up among those
the batch has had already, before anything else is done with it: a gram of up to three symbols by one bit in a table
of 6 KiB, a longer token by a hash set that fits the second-level cache. So the same token many times in a batch costs
a few cycles each time, and the token map sees it once.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from coprlake.bits.sequence import low_mask
from coprlake.bits.words import count_ones
from coprlake.config import RULES, RuleSet
from coprlake.kernel import I32Array, I64Array, U8Array, U32Array, U64Array, i64, kernel, long_kernel, word_of
from coprlake.records import CONTENT
from coprlake.text.arrow_strings import occurring_strings, string_buffers
from coprlake.tokens.fingerprint import field_seed, polynomial_of
from coprlake.tokens.rules import (
    GRAM_NUMBERS,
    LAST_BLANK,
    LAST_MARK,
    LAST_WORD,
    LONG_WORD_BYTES,
    SYMBOLS,
    WINDOW_BYTES,
    WINNOWED,
    field_rules,
    kernel_rules,
)
from coprlake.tokens.run_tokens import ROOM, scan_chunk
from coprlake.tokens.seen import COUNT, LONG_COUNT, Seen, add_token, is_new_token, new_winnow
from coprlake.tokens.winnowing import add_winnowed

_ONE: Final = np.uint64(1)
_GRAM_WORDS: Final = GRAM_NUMBERS // 64 + 1
_BYTES_0X21: Final = np.uint64(0x2121212121212121)
_BYTES_0X80: Final = np.uint64(0x8080808080808080)
_CHUNK_MIX1: Final = np.uint64(0x9E3779B97F4A7C15)
_CHUNK_MIX2: Final = np.uint64(0xA24BAED4963EE407)
CHUNK_CACHE_BITS: Final = 14
LONG_CHUNK_CACHE_BITS: Final = 13


@kernel
def scan_run(data: U8Array, start: int, end: int, seed: np.uint64, rules: int, seen: Seen) -> bool:
    """Add the tokens of a run without a blank: `scan_chunk`, and rule 9 if that is one of the rules."""
    if not scan_chunk(data, start, end, start, end, seed, rules, seen):
        return False
    if rules == WINNOWED and end - start >= WINDOW_BYTES:
        if seen.sizes[LONG_COUNT] + (end - start) > len(seen.long_tokens) // 2:
            return False
        if len(seen.out) - seen.sizes[COUNT] < end - start:
            return False
        add_winnowed(data, start, end, seed, seen)
    return True


@kernel
def _bytes_before_blank(word: np.uint64) -> int:
    """How many bytes of the word come before the first that is 0x20 or less; 8 if there is none.

    Subtracting 0x21 from each byte borrows into its top bit when the byte is smaller; the lowest such bit is exact.
    """
    small = (word - _BYTES_0X21) & ~word & _BYTES_0X80
    return count_ones((small - _ONE) & ~small) >> 3


@kernel
def _is_new_short_chunk(chunks: U64Array, first: np.uint64, second: np.uint64) -> bool:
    """Whether the cache has no chunk of these 16 bytes (zeros behind its end); then it takes the place of another."""
    mixed = (first ^ (second * _CHUNK_MIX2)) * _CHUNK_MIX1
    slot = (mixed ^ (mixed >> np.uint64(32))) * _CHUNK_MIX2 >> np.uint64(64 - CHUNK_CACHE_BITS) << _ONE
    if chunks[slot] == first and chunks[slot | _ONE] == second:
        return False
    chunks[slot] = first
    chunks[slot | _ONE] = second
    return True


@kernel
def _is_new_long_chunk(long_chunks: I64Array, data: U8Array, start: int, end: int) -> bool:
    """As `_is_new_short_chunk` for a chunk of 16 bytes and more, of which the cache notes where it stood."""
    size = end - start
    mixed = word_of(data, start) ^ (word_of(data, start + 8) * _CHUNK_MIX2) ^ np.uint64(size)
    mixed = (mixed ^ (mixed >> np.uint64(32)) ^ (word_of(data, end - 8) * _CHUNK_MIX1)) * _CHUNK_MIX1
    slot = i64((mixed ^ (mixed >> np.uint64(29))) * _CHUNK_MIX2 >> np.uint64(64 - LONG_CHUNK_CACHE_BITS)) << 1
    other = long_chunks[slot]
    if long_chunks[slot + 1] == size and word_of(data, other) == word_of(data, start):
        done = size & 7
        while done < size and word_of(data, other + done) == word_of(data, start + done):
            done += 8
        if done == size:
            return False
    long_chunks[slot] = start
    long_chunks[slot + 1] = size
    return True


@kernel
def chunk_end(data: U8Array, start: int, end: int) -> int:
    """``next((i for i in range(start, end) if data[i] <= 0x20), end)``, eight bytes at a time."""
    while start + 8 <= end:
        size = _bytes_before_blank(word_of(data, start))
        start += size
        if size < 8:
            return start
    while start < end and data[start] > 0x20:
        start += 1
    return start


@long_kernel
def scan_lines(data: U8Array, starts: I32Array | I64Array, line: int, seed: np.uint64, rules: int, seen: Seen) -> int:
    """Add the tokens of ``data[starts[i]:starts[i + 1]]`` for each line ``i`` from `line` on to `seen`.

    ``out = {fingerprint(t) for i in lines for t in naive_tokens(line_i)}``, each once. Returns the number of the
    first line that was not finished because `seen` had no room (scan it again: what it had added is not added
    twice), or the number of lines. `rules` is WORDS, PAPER or WINNOWED.

    No token crosses a blank, so a chunk between blanks that the batch has had already adds nothing. The cache of
    chunks forgets when two share a slot, and compares bytes, not hashes: it may cost time, never a token. Cost:
    some 3 cycles a byte for a repeated chunk, 20 for a new one.
    """
    line_count = len(starts) - 1
    safe_end = len(data) - 16  # up to here two words can be loaded
    while line < line_count:
        i = i64(starts[line])
        end = i64(starts[line + 1])
        while i < end:
            if data[i] <= 0x20:
                i += 1
                continue
            if i > safe_end:
                stop = chunk_end(data, i, end)
                fresh = True
            else:
                first, second = word_of(data, i), word_of(data, i + 8)
                size = min(_bytes_before_blank(first), end - i)
                more = min(_bytes_before_blank(second), end - i - 8) if size == 8 else 0
                stop = i + size + more
                if size + more < 16:
                    first &= low_mask(8 * size)
                    second &= low_mask(8 * more)
                    fresh = _is_new_short_chunk(seen.chunks, first, second)
                else:
                    stop = chunk_end(data, stop, end)
                    fresh = _is_new_long_chunk(seen.long_chunks, data, i, stop)
            if fresh and not scan_run(data, i, stop, seed, rules, seen):
                return line
            i = stop
        line += 1
    return line


@kernel
def _is_one_run(data: U8Array, start: int, end: int) -> bool:
    """Whether the bytes are of one class that is indexed: then rule 1, 2 or 3 makes them one token already."""
    if start == end or (LAST_MARK < SYMBOLS[data[start]] <= LAST_BLANK):
        return False
    first = i64(SYMBOLS[data[start]])
    for i in range(start + 1, end):
        symbol = i64(SYMBOLS[data[i]])
        if (symbol <= LAST_WORD) != (first <= LAST_WORD) or (symbol <= LAST_MARK) != (first <= LAST_MARK):
            return False
        if LAST_MARK < symbol <= LAST_BLANK:
            return False
    return True


@long_kernel
def scan_values(data: U8Array, starts: I32Array | I64Array, line: int, seed: np.uint64, rules: int, seen: Seen) -> int:
    """Add each line as one token, whatever it consists of, to what `scan_lines` added; contract as there.

    A line that is one run is a token already, unless rule set 2 has left it out.
    """
    line_count = len(starts) - 1
    while line < line_count:
        if len(seen.out) == seen.sizes[COUNT] or seen.sizes[LONG_COUNT] >= len(seen.long_tokens) // 2:
            return line
        start, end = i64(starts[line]), i64(starts[line + 1])
        if not _is_one_run(data, start, end) or (rules == WINNOWED and end - start >= LONG_WORD_BYTES):
            add_token(polynomial_of(data, start, end), seed, seen)
        line += 1
    return line


@kernel
def _refill(fingerprints: U32Array, table: U32Array) -> None:
    """Put all `fingerprints` into an empty, larger table."""
    for i in range(len(fingerprints)):
        is_new_token(table, fingerprints[i])


def new_seen(longest_batch_bytes: int | None = None) -> Seen:
    """Nothing seen yet; with room for any batch of the given size, or for most batches and the means to grow."""
    long_count = 1 << 14 if longest_batch_bytes is None else 2 * longest_batch_bytes + 8
    return Seen(
        word_grams=np.zeros(_GRAM_WORDS, np.uint64),
        mark_grams=np.zeros(_GRAM_WORDS, np.uint64),
        long_tokens=np.zeros(1 << (2 * long_count - 1).bit_length(), np.uint32),
        chunks=np.zeros(2 << CHUNK_CACHE_BITS if longest_batch_bytes is None else 2, np.uint64),
        long_chunks=np.zeros(2 << LONG_CHUNK_CACHE_BITS if longest_batch_bytes is None else 2, np.int64),
        sizes=np.zeros(2, np.int64),
        out=np.empty(2 * ROOM + long_count, np.uint32),
        winnow=new_winnow(),
    )


class BatchScanner:
    """Turns batches of strings into distinct fingerprints; one scanner serves batch after batch.

    Its working memory is about 1.1 MiB and grows with the number of distinct tokens of the largest batch, not with
    the number of batches.
    """

    def __init__(self) -> None:
        self._seen = new_seen()

    def scan(
        self,
        strings: pa.Array | pa.ChunkedArray | Sequence[pa.Array],
        field: str = CONTENT,
        *,
        grams: bool | None = None,
        whole_values: bool | None = None,
        rules: RuleSet | str = RULES,
    ) -> U32Array:
        """The fingerprints of the distinct tokens of `strings`, in the order of their first occurrence.

        Two tokens may share a fingerprint, which then may come twice.

        Args:
            strings: a column of strings or bytes of any Arrow string type, also with nulls, slices or dictionaries; or
                several arrays of them.
            field: the field that the column is; tokens are scoped to it.
            grams: what `contains` needs; without, rules 1-5. By default the log line has them.
            whole_values: each value is also one token, which equality needs. By default all other fields have them.
            rules: which grams: those of the paper, rules 6-8, or winnowed ones as well.

        Returns:
            A view that is valid until the next call.
        """
        number = kernel_rules(field_rules(rules, grams=field == CONTENT if grams is None else grams))
        whole_values = field != CONTENT if whole_values is None else whole_values
        seed = field_seed(field)
        self._clear()
        if isinstance(strings, pa.ChunkedArray):
            chunks: Sequence[pa.Array] = strings.chunks or [pa.array([], strings.type)]  # no chunks, but a type
        else:
            chunks = [strings] if isinstance(strings, pa.Array) else strings
        for chunk in chunks:
            data, starts = string_buffers(occurring_strings(chunk))
            self._forget_chunks()
            line = 0
            while (line := scan_lines(data, starts, line, seed, number, self._seen)) < len(starts) - 1:
                self._grow(int(starts[line + 1] - starts[line]))
                self._forget_chunks()
            line = 0
            while (
                whole_values and (line := scan_values(data, starts, line, seed, number, self._seen)) < len(starts) - 1
            ):
                self._grow(0)
        return self._seen.out[: self._seen.sizes[COUNT]]

    def _clear(self) -> None:
        seen = self._seen
        for part in (
            seen.word_grams,
            seen.mark_grams,
            seen.long_tokens,
            seen.chunks,
            seen.long_chunks,
            seen.sizes,
        ):
            part.fill(0)

    def _forget_chunks(self) -> None:
        """Chunks may not have been finished, and places in one buffer mean nothing in another."""
        self._seen.chunks.fill(0)
        self._seen.long_chunks.fill(0)

    def _grow(self, longest_run_bytes: int) -> None:
        """Make room for at least as many long tokens again, and for a foreign run of the given length."""
        count = int(self._seen.sizes[COUNT])
        room = max(2 * count, count + longest_run_bytes) + ROOM
        out = np.zeros(room, np.uint32)
        out[:count] = self._seen.out[:count]
        table = np.zeros(1 << (4 * max(count, longest_run_bytes, 1 << 13)).bit_length(), np.uint32)
        _refill(out[:count], table)
        self._seen.sizes[LONG_COUNT] = count
        self._seen = self._seen._replace(out=out, long_tokens=table)
