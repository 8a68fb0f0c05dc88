"""Posting lists of the mutable sketch (paper 4.1): who owns which block of memory, and what it says.

A list is kept in the smaller of two forms: sorted 2-byte postings, or a dense bitset that ends at its largest posting. The form
follows from the set alone, so two lists are equal exactly if their blocks are. Lists are never changed: a token that gains a
posting moves to another list, and a list that no token refers to is freed (`token_counts`).

All lists share one pool of 2-byte words, cut into blocks of a few sizes. Free blocks of a size are chained through their first
two words, free list numbers through `offsets`. Kernels that need memory say so by returning -1 and change nothing.
"""

from typing import Final, NamedTuple

import numpy as np

from coprlake.bits.words import count_ones
from coprlake.kernel import I32Array, I64Array, U16Array, U32Array, kernel
from coprlake.sketch.postings_hash import posting_hash

UNIT_WORDS: Final = 4
"""Blocks begin at multiples of this many 2-byte words, so that a block's number fits in 32 bits."""
_SIZE_CLASSES: Final = 64

POOL_UNITS, NEXT_LIST, FREE_LIST, LIVE_LISTS, LIVE_WORDS = 0, 1, 2, 3, 4
"""Where `Lists.state` holds: units of the pool ever used, list numbers ever used, head of the free numbers (-1: none), lists
in use, and words of their blocks."""
STATE_SIZE: Final = 5


class Lists(NamedTuple):
    """All posting lists of one sketch; every array but the pool, the chains and the state has an entry a list."""

    pool: U16Array
    offsets: U32Array  # first unit of the block
    words: I32Array  # words in use; negative for a bitset
    counts: I32Array  # postings; 0 for a free list
    token_counts: U32Array  # tokens that refer to the list
    hashes: U32Array  # postings hash
    moves: U32Array  # where the tokens of this list go in the insertion `epochs`
    epochs: U32Array
    free_blocks: I64Array  # by size class: first unit of the first free block, or -1
    state: I64Array


@kernel
def size_class(words: int) -> int:
    """The class of the smallest block that holds `words`: 4, 8, 12, 16, 24, 32, 48, 64, 96 ... words."""
    if words <= 4 * UNIT_WORDS:
        return (words + UNIT_WORDS - 1) // UNIT_WORDS - 1
    size, found = 4 * UNIT_WORDS, 3
    while size < words:
        found += 1
        size = size * 3 // 2 if found % 2 == 0 else size // 3 * 4
    return found


@kernel
def class_units(size_class_number: int) -> int:
    """How many units a block of the class has."""
    if size_class_number < 4:
        return size_class_number + 1
    half = (size_class_number - 3) >> 1
    return 4 << half if size_class_number % 2 == 1 else 6 << ((size_class_number - 4) >> 1)


@kernel
def _take_block(lists: Lists, words: int) -> int:
    """The first unit of a block for `words`, or -1 if the pool has none."""
    found = size_class(words)
    unit = lists.free_blocks[found]
    if unit >= 0:
        at = unit * UNIT_WORDS
        lists.free_blocks[found] = (np.int64(lists.pool[at]) | np.int64(lists.pool[at + 1]) << 16) - 1
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
def allocate(lists: Lists, words: int) -> int:
    """A fresh list number with a block of `words`, or -1 if there is no room for either."""
    has_number = lists.state[FREE_LIST] >= 0 or lists.state[NEXT_LIST] < len(lists.offsets)
    if not has_number:
        return -1
    unit = _take_block(lists, words)
    if unit < 0:
        return -1
    number = lists.state[FREE_LIST]
    if number >= 0:
        lists.state[FREE_LIST] = np.int64(lists.offsets[number]) - 1
    else:
        number = lists.state[NEXT_LIST]
        lists.state[NEXT_LIST] = number + 1
    lists.offsets[number] = unit
    lists.token_counts[number] = 0
    lists.epochs[number] = 0
    lists.state[LIVE_LISTS] += 1
    lists.state[LIVE_WORDS] += words
    return number


@kernel
def free(lists: Lists, number: int) -> None:
    """Give the list's block and number back."""
    words = abs(np.int64(lists.words[number]))
    _give_block(lists, np.int64(lists.offsets[number]), words)
    lists.counts[number] = 0
    lists.offsets[number] = lists.state[FREE_LIST] + 1
    lists.state[FREE_LIST] = number
    lists.state[LIVE_LISTS] -= 1
    lists.state[LIVE_WORDS] -= words


@kernel
def _bitset_words(count: int, largest: int, short_list_postings: int) -> int:
    """Words of the bitset if that is the form of such a list, else 0."""
    words = (largest >> 4) + 1
    return words if count > short_list_postings or count > words else 0


@kernel
def has_posting(lists: Lists, number: int, posting: int) -> bool:
    """``posting in decode(number)``: a bit test or a binary search."""
    start = np.int64(lists.offsets[number]) * UNIT_WORDS
    words = np.int64(lists.words[number])
    if words < 0:
        return posting >> 4 < -words and (np.int64(lists.pool[start + (posting >> 4)]) >> (posting & 15)) & 1 == 1
    low, high = 0, words
    while low < high:
        middle = (low + high) >> 1
        if np.int64(lists.pool[start + middle]) < posting:
            low = middle + 1
        else:
            high = middle
    return low < words and np.int64(lists.pool[start + low]) == posting


@kernel
def same_postings(lists: Lists, a: int, b: int) -> bool:
    """``decode(a) == decode(b)``; the form follows from the set, so comparing blocks is enough."""
    if lists.words[a] != lists.words[b] or lists.counts[a] != lists.counts[b]:
        return False
    start_a = np.int64(lists.offsets[a]) * UNIT_WORDS
    start_b = np.int64(lists.offsets[b]) * UNIT_WORDS
    for i in range(abs(np.int64(lists.words[a]))):
        if lists.pool[start_a + i] != lists.pool[start_b + i]:
            return False
    return True


@kernel
def decode(lists: Lists, number: int, out: U16Array) -> int:
    """Write the list's postings to `out` in ascending order; returns how many. `out` has room for all."""
    start = np.int64(lists.offsets[number]) * UNIT_WORDS
    words = np.int64(lists.words[number])
    if words >= 0:
        out[:words] = lists.pool[start : start + words]
        return words
    count = 0
    for i in range(-words):
        word = np.uint64(lists.pool[start + i])
        while word != np.uint64(0):
            lowest = word & (~word + np.uint64(1))
            out[count] = (i << 4) + count_ones(lowest - np.uint64(1))
            count += 1
            word ^= lowest
    return count


@kernel
def store(lists: Lists, postings: U16Array, postings_hash: np.uint32, short_list_postings: int) -> int:
    """A new list of the given sorted, distinct postings, or -1 if there is no room."""
    count = len(postings)
    bitset_words = _bitset_words(count, np.int64(postings[count - 1]), short_list_postings)
    number = allocate(lists, bitset_words if bitset_words > 0 else count)
    if number < 0:
        return -1
    start = np.int64(lists.offsets[number]) * UNIT_WORDS
    if bitset_words > 0:
        lists.pool[start : start + bitset_words] = 0
        for i in range(count):
            posting = np.int64(postings[i])
            lists.pool[start + (posting >> 4)] |= np.uint16(1 << (posting & 15))
    else:
        lists.pool[start : start + count] = postings
    lists.words[number] = -bitset_words if bitset_words > 0 else count
    lists.counts[number] = count
    lists.hashes[number] = postings_hash
    return number


@kernel
def _store_longer_bitset(lists: Lists, number: int, posting: int, short_list_postings: int) -> int:
    """As `extend` for a list that is and stays a bitset; -2 if it does not stay one."""
    old_words = -np.int64(lists.words[number])
    largest = max((old_words << 4) - 1, posting)  # an upper bound is enough: see the caller
    words = (largest >> 4) + 1
    count = np.int64(lists.counts[number]) + 1
    if count <= short_list_postings and count <= words:
        return -2
    longer = allocate(lists, words)
    if longer < 0:
        return -1
    source = np.int64(lists.offsets[number]) * UNIT_WORDS
    target = np.int64(lists.offsets[longer]) * UNIT_WORDS
    lists.pool[target : target + old_words] = lists.pool[source : source + old_words]
    lists.pool[target + old_words : target + words] = 0
    lists.pool[target + (posting >> 4)] |= np.uint16(1 << (posting & 15))
    lists.words[longer] = -words
    lists.counts[longer] = count
    lists.hashes[longer] = lists.hashes[number] ^ posting_hash(posting)
    return longer


@kernel
def extend(lists: Lists, number: int, posting: int, short_list_postings: int, scratch: U16Array) -> int:
    """A new list ``sorted({*decode(number), posting})``, or -1 if there is no room; `posting` is not in the list yet."""
    if lists.words[number] < 0:
        longer = _store_longer_bitset(lists, number, posting, short_list_postings)
        if longer != -2:
            return longer
    count = decode(lists, number, scratch)
    at = count
    while at > 0 and np.int64(scratch[at - 1]) > posting:
        scratch[at] = scratch[at - 1]
        at -= 1
    scratch[at] = posting
    return store(lists, scratch[: count + 1], lists.hashes[number] ^ posting_hash(posting), short_list_postings)


@kernel
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
                united_hash ^= posting_hash(np.int64(postings[j]))
            scratch[total] = postings[j]
            j += 1
        total += 1
    return store(lists, scratch[:total], united_hash, short_list_postings)


def new_lists(list_count: int, pool_words: int) -> Lists:
    """Empty arrays for so many lists and words."""
    return Lists(
        pool=np.zeros(pool_words, np.uint16),
        offsets=np.zeros(list_count, np.uint32),
        words=np.zeros(list_count, np.int32),
        counts=np.zeros(list_count, np.int32),
        token_counts=np.zeros(list_count, np.uint32),
        hashes=np.zeros(list_count, np.uint32),
        moves=np.zeros(list_count, np.uint32),
        epochs=np.zeros(list_count, np.uint32),
        free_blocks=np.full(_SIZE_CLASSES, -1, np.int64),
        state=np.array([0, 0, -1, 0, 0], np.int64),
    )
