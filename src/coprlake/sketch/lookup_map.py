"""The lookup map: from a postings hash to the one list with those postings (paper 3.2, Algorithms 1 and 2).

The paper's map has hashes as keys and steps to the next hash when two different lists share one. Here the table
itself is that space of hashes: the upper bits of a postings hash are its home slot, "the next hash" is the next slot,
and the overflow that the paper leaves out wraps at the table's end. A slot is one 64-bit word: the postings
hash in the upper half, the list number plus one in the lower; 0 is free.
"""

from typing import Final

import numpy as np

from coprlake.kernel import U64Array, i64, kernel, long_kernel
from coprlake.sketch.posting_lists import COUNT, HASH, Lists, same_postings

_HALF: Final = np.uint64(32)
_LOWER: Final = np.uint64(0xFFFFFFFF)
_FREE: Final = np.uint64(0)


@kernel
def home_slot(slots: U64Array, postings_hash: np.uint32) -> int:
    """The slot of a list with this hash if it is not taken; `len(slots)` is a power of two."""
    return i64(postings_hash) * len(slots) >> 32


@kernel
def slot_of(postings_hash: np.uint32, number: int) -> np.uint64:
    """The slot's content for a list."""
    return np.uint64(postings_hash) << _HALF | np.uint64(number + 1)


@kernel
def find_or_add(slots: U64Array, lists: Lists, number: int) -> int:
    """Algorithm 1: the number of the list with the postings of list `number`; `number` itself if it is the first.

    The caller counts the references and keeps at least one slot free.
    """
    mask = len(slots) - 1
    own_hash = lists.records[number, HASH]
    slot = home_slot(slots, own_hash)
    while slots[slot] != _FREE:  # skip colliding entries
        if np.uint32(slots[slot] >> _HALF) == own_hash:
            other = i64(slots[slot] & _LOWER) - 1
            if same_postings(lists, other, number):
                return other
        slot = (slot + 1) & mask
    slots[slot] = slot_of(own_hash, number)
    return number


@kernel
def has_hash(slots: U64Array, postings_hash: np.uint32) -> bool:
    """Whether some list has this hash: if not, no list has the postings."""
    mask = len(slots) - 1
    slot = home_slot(slots, postings_hash)
    while slots[slot] != _FREE:
        if np.uint32(slots[slot] >> _HALF) == postings_hash:
            return True
        slot = (slot + 1) & mask
    return False


@kernel
def remove(slots: U64Array, lists: Lists, number: int) -> None:
    """Algorithm 2: remove list `number`, and move the entries after it closer to home so that no hole remains.

    Does nothing if the list is not in the map.
    """
    mask = len(slots) - 1
    own_hash = lists.records[number, HASH]
    slot = home_slot(slots, own_hash)
    while slots[slot] != slot_of(own_hash, number):  # equal lists are one list: comparing numbers compares postings
        if slots[slot] == _FREE:
            return
        slot = (slot + 1) & mask
    freed = slot
    slot = (slot + 1) & mask
    while slots[slot] != _FREE:
        home = home_slot(slots, np.uint32(slots[slot] >> _HALF))
        # the paper's h_c <= h_f, on a ring: the path from home to here passes the freed slot
        if (slot - home) & mask >= (slot - freed) & mask:
            slots[freed] = slots[slot]
            freed = slot
        slot = (slot + 1) & mask
    slots[freed] = _FREE


@long_kernel
def refill(slots: U64Array, lists: Lists, list_count: int) -> None:
    """Put every list in use into the empty table `slots`."""
    mask = len(slots) - 1
    for number in range(list_count):
        if lists.records[number, COUNT] > 0:
            slot = home_slot(slots, lists.records[number, HASH])
            while slots[slot] != _FREE:
                slot = (slot + 1) & mask
            slots[slot] = slot_of(lists.records[number, HASH], number)
