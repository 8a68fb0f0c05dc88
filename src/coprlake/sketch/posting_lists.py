"""Posting lists of the mutable sketch (paper 4.1): how they are allocated and encoded.

A list is kept in the smaller of two forms: sorted 2-byte postings, or a dense bitset that ends at its largest
posting. The form depends only on the set, so two lists are equal exactly if their blocks are. A token
that gains a posting moves to another list, and a list that no token refers to is freed (`TOKENS`); only a list that a
single token has may grow in place.

All lists share one pool of 2-byte words, cut into blocks of a few sizes. Free blocks of a size are chained through
their first two words, free list numbers through `OFFSET`. Everything about a list is in one record of 32 bytes: an
insertion visits thousands of lists in random order, and each cache line costs time. A kernel that runs out of memory
returns -1 and changes nothing.
"""

from typing import Final, NamedTuple

import numpy as np

from coprlake.bits.words import bit_length, count_ones
from coprlake.kernel import I64Array, U16Array, U32Matrix, cold_kernel, i64, kernel
from coprlake.sketch.postings_hash import posting_hash

OFFSET, WORDS, COUNT, TOKENS, HASH, MOVE, EPOCH = 0, 1, 2, 3, 4, 5, 6
"""The columns of `Lists.records`: first unit of the block (of a free list: the next free number plus one); words in use
times two, plus one for a bitset; postings (0 for a free list); tokens that refer to the list; postings hash; and for
the insertion with number EPOCH, the list to which the tokens of this one MOVE."""
RECORD_COLUMNS: Final = 8

UNIT_WORDS: Final = 4
"""Blocks start at multiples of this many 2-byte words, so that a block's number fits in 32 bits."""
_SIZE_CLASSES: Final = 64

POOL_UNITS, NEXT_LIST, FREE_LIST, LIVE_LISTS = 0, 1, 2, 3
"""Indexes into `Lists.state`: units of the pool ever used, list numbers ever used, head of the free numbers (-1: none),
and lists in use."""


class Lists(NamedTuple):
    """All posting lists of one sketch."""

    pool: U16Array
    records: U32Matrix  # one row per list
    free_blocks: I64Array  # by size class: first unit of the first free block, or -1
    state: I64Array


def new_lists(list_count: int, pool_words: int) -> Lists:
    """Empty arrays with room for the given numbers of lists and words."""
    return Lists(
        pool=np.zeros(pool_words, np.uint16),
        records=np.zeros((list_count, RECORD_COLUMNS), np.uint32),
        free_blocks=np.full(_SIZE_CLASSES, -1, np.int64),
        state=np.array([0, 0, -1, 0], np.int64),
    )


@kernel
def size_class(words: int) -> int:
    """The class of the smallest block that holds `words`; see `class_units` for the sizes."""
    units = (words + UNIT_WORDS - 1) // UNIT_WORDS
    if units <= 2:
        return units - 1
    power = bit_length(np.uint64(units - 1)) - 1  # units is in (2 ** power, 2 ** (power + 1)]
    return 2 * power if units <= 3 << (power - 1) else 2 * power + 1


@kernel
def class_units(size_class_number: int) -> int:
    """The number of units in a block of the class: 1, 2, 3, 4, 6, 8, 12, 16, 24 ..."""
    if size_class_number < 2:
        return size_class_number + 1
    power = size_class_number >> 1
    return 3 << (power - 1) if size_class_number % 2 == 0 else 2 << power


@kernel
def _take_block(lists: Lists, words: int) -> int:
    """The first unit of a block for `words`, or -1 if the pool has none."""
    found = size_class(words)
    unit = lists.free_blocks[found]
    if unit >= 0:
        at = unit * UNIT_WORDS
        lists.free_blocks[found] = (i64(lists.pool[at]) | i64(lists.pool[at + 1]) << 16) - 1
        return unit
    unit = lists.state[POOL_UNITS]
    units = class_units(found)
    if (unit + units) * UNIT_WORDS > len(lists.pool):
        return -1
    lists.state[POOL_UNITS] = unit + units
    return unit


@kernel
def _give_block(lists: Lists, unit: int, words: int) -> None:
    """Put a block on the chain of its class; the link is stored plus one, so that 0 ends the chain."""
    found = size_class(words)
    link = lists.free_blocks[found] + 1
    at = unit * UNIT_WORDS
    lists.pool[at] = link & 0xFFFF
    lists.pool[at + 1] = link >> 16
    lists.free_blocks[found] = unit


@kernel
def _allocate(lists: Lists, words: int) -> int:
    """A new list number with a block of `words`, or -1 if there is no room for either."""
    number = lists.state[FREE_LIST]
    if number < 0 and lists.state[NEXT_LIST] == len(lists.records):
        return -1
    unit = _take_block(lists, words)
    if unit < 0:
        return -1
    if number >= 0:
        lists.state[FREE_LIST] = i64(lists.records[number, OFFSET]) - 1
    else:
        number = lists.state[NEXT_LIST]
        lists.state[NEXT_LIST] = number + 1
    lists.records[number, OFFSET] = unit
    lists.records[number, TOKENS] = 0
    lists.records[number, EPOCH] = 0
    lists.state[LIVE_LISTS] += 1
    return number


@kernel
def free(lists: Lists, number: int) -> None:
    """Free the list's block and number."""
    _give_block(lists, i64(lists.records[number, OFFSET]), word_count(lists, number))
    lists.records[number, COUNT] = 0
    lists.records[number, OFFSET] = lists.state[FREE_LIST] + 1
    lists.state[FREE_LIST] = number
    lists.state[LIVE_LISTS] -= 1


@kernel
def word_count(lists: Lists, number: int) -> int:
    """The number of words of the pool that the list uses."""
    return i64(lists.records[number, WORDS]) >> 1


@kernel
def is_bitset(lists: Lists, number: int) -> bool:
    """Whether the list is in its dense form."""
    return i64(lists.records[number, WORDS]) & 1 == 1


@kernel
def _start(lists: Lists, number: int) -> int:
    """The first word of the list."""
    return i64(lists.records[number, OFFSET]) * UNIT_WORDS


@kernel
def _prefers_bitset(count: int, words: int, short_list_postings: int) -> bool:
    """Whether a list of `count` postings is kept as a bitset of `words`."""
    return count > short_list_postings or count > words


@kernel
def has_posting(lists: Lists, number: int, posting: int) -> bool:
    """``posting in decode(number)``: a bit test or a binary search."""
    start = _start(lists, number)
    words = word_count(lists, number)
    if is_bitset(lists, number):
        return posting >> 4 < words and (i64(lists.pool[start + (posting >> 4)]) >> (posting & 15)) & 1 == 1
    if posting > i64(lists.pool[start + words - 1]):  # the usual case: postings are assigned in order
        return False
    low, high = 0, words - 1
    while low < high:
        middle = (low + high) >> 1
        if i64(lists.pool[start + middle]) < posting:
            low = middle + 1
        else:
            high = middle
    return i64(lists.pool[start + low]) == posting


@kernel
def same_postings(lists: Lists, a: int, b: int) -> bool:
    """``decode(a) == decode(b)``; the form depends only on the set, so comparing blocks is enough."""
    if lists.records[a, WORDS] != lists.records[b, WORDS]:
        return False
    start_a, start_b = _start(lists, a), _start(lists, b)
    for i in range(word_count(lists, a)):
        if lists.pool[start_a + i] != lists.pool[start_b + i]:
            return False
    return True


@cold_kernel
def decode(lists: Lists, number: int, out: U16Array) -> int:
    """Write the list's postings to `out` in ascending order; returns how many. `out` has room for all of them."""
    start = _start(lists, number)
    words = word_count(lists, number)
    if not is_bitset(lists, number):
        for i in range(words):
            out[i] = lists.pool[start + i]
        return words
    count = 0
    for i in range(words):
        word = np.uint64(lists.pool[start + i])
        while word != np.uint64(0):
            lowest = word & (~word + np.uint64(1))
            out[count] = (i << 4) + count_ones(lowest - np.uint64(1))
            count += 1
            word ^= lowest
    return count


@kernel
def _describe(lists: Lists, number: int, words: int, bitset: bool, count: int, postings_hash: np.uint32) -> None:
    """Fill the record of a list that was just allocated."""
    lists.records[number, WORDS] = 2 * words + 1 if bitset else 2 * words
    lists.records[number, COUNT] = count
    lists.records[number, HASH] = postings_hash


@cold_kernel
def store(lists: Lists, postings: U16Array, postings_hash: np.uint32, short_list_postings: int) -> int:
    """A new list of the given sorted, distinct postings, or -1 if there is no room."""
    count = len(postings)
    words = (i64(postings[count - 1]) >> 4) + 1
    bitset = _prefers_bitset(count, words, short_list_postings)
    if not bitset:
        words = count
    number = _allocate(lists, words)
    if number < 0:
        return -1
    start = _start(lists, number)
    if bitset:
        for i in range(words):
            lists.pool[start + i] = 0
        for i in range(count):
            posting = i64(postings[i])
            lists.pool[start + (posting >> 4)] |= np.uint16(1 << (posting & 15))
    else:
        for i in range(count):
            lists.pool[start + i] = postings[i]
    _describe(lists, number, words, bitset, count, postings_hash)
    return number


@cold_kernel
def _extend_bitset(lists: Lists, number: int, posting: int, words: int) -> int:
    """Like `extend`, for a bitset that becomes a bitset of `words`."""
    longer = _allocate(lists, words)
    if longer < 0:
        return -1
    source, target = _start(lists, number), _start(lists, longer)
    old_words = word_count(lists, number)
    for i in range(old_words):
        lists.pool[target + i] = lists.pool[source + i]
    for i in range(old_words, words):
        lists.pool[target + i] = 0
    lists.pool[target + (posting >> 4)] |= np.uint16(1 << (posting & 15))
    record = lists.records[number]
    _describe(lists, longer, words, True, i64(record[COUNT]) + 1, record[HASH] ^ posting_hash(posting))
    return longer


@kernel
def append_in_place(lists: Lists, number: int, posting: int, short_list_postings: int) -> bool:
    """Append a `posting` beyond the last one in place, if the form stays the same; False if nothing was done.

    Only for a list that a single token has and that is currently not in the lookup map.
    """
    words = word_count(lists, number)
    bitset = is_bitset(lists, number)
    count = i64(lists.records[number, COUNT])
    bitset_words = max((posting >> 4) + 1, words if bitset else 0)
    if _prefers_bitset(count + 1, bitset_words, short_list_postings) != bitset:
        return False
    start = _start(lists, number)
    if not bitset and i64(lists.pool[start + words - 1]) > posting:
        return False
    longer = bitset_words if bitset else words + 1
    if size_class(longer) != size_class(words):
        unit = _take_block(lists, longer)
        if unit < 0:
            return False
        target = unit * UNIT_WORDS
        for i in range(words):
            lists.pool[target + i] = lists.pool[start + i]
        _give_block(lists, start // UNIT_WORDS, words)
        lists.records[number, OFFSET] = unit
        start = target
    for i in range(words, longer):
        lists.pool[start + i] = 0
    if bitset:
        lists.pool[start + (posting >> 4)] |= np.uint16(1 << (posting & 15))
    else:
        lists.pool[start + words] = posting
    _describe(lists, number, longer, bitset, count + 1, lists.records[number, HASH] ^ posting_hash(posting))
    return True


@cold_kernel
def extend(lists: Lists, number: int, posting: int, short_list_postings: int, scratch: U16Array) -> int:
    """A new list ``sorted({*decode(number), posting})``, or -1 if there is no room; `posting` is not in it yet."""
    if is_bitset(lists, number):
        words = max(word_count(lists, number), (posting >> 4) + 1)
        if _prefers_bitset(i64(lists.records[number, COUNT]) + 1, words, short_list_postings):
            return _extend_bitset(lists, number, posting, words)
    count = decode(lists, number, scratch)
    at = count
    while at > 0 and i64(scratch[at - 1]) > posting:
        scratch[at] = scratch[at - 1]
        at -= 1
    scratch[at] = posting
    return store(lists, scratch[: count + 1], lists.records[number, HASH] ^ posting_hash(posting), short_list_postings)


@cold_kernel
def unite(
    lists: Lists, count: int, first_hash: np.uint32, postings: U16Array, short_list_postings: int, scratch: U16Array
) -> int:
    """A new list ``sorted({*first, *postings})``, or -1 if there is no room; both are sorted and distinct.

    `first` is the `count` postings, of hash `first_hash`, that the caller put into the second half of `scratch`.
    """
    half = len(scratch) >> 1
    united_hash = first_hash
    i, j, total = 0, 0, 0
    while i < count or j < len(postings):
        if j == len(postings) or (i < count and scratch[half + i] < postings[j]):
            scratch[total] = scratch[half + i]
            i += 1
        else:
            if i < count and scratch[half + i] == postings[j]:
                i += 1
            else:
                united_hash ^= posting_hash(i64(postings[j]))
            scratch[total] = postings[j]
            j += 1
        total += 1
    return store(lists, scratch[:total], united_hash, short_list_postings)
