"""The lookup map: from a postings hash to the one list with those postings (paper 3.2, Algorithms 1 and 2).

The paper's map has hashes as keys and steps to the next hash when two different lists share one. Here the table itself
is that space of hashes: the upper bits of a postings hash are its home slot, "the next hash" is the next slot, and
the overflow that the paper leaves out is the wrap at the table's end. So one array serves as keys, values and chains: a slot
holds a list number plus one, 0 is free, and the hash stands with the list.
"""

import numpy as np

from coprlake.kernel import U32Array, kernel
from coprlake.sketch.posting_lists import Lists, same_postings


@kernel
def home_slot(slots: U32Array, postings_hash: np.uint32) -> int:
    """Where a list with this hash stands if nothing is in its way; `slots` has a power of two entries."""
    return np.int64(postings_hash) * len(slots) >> 32


@kernel
def find_or_add(slots: U32Array, lists: Lists, number: int) -> int:
    """Algorithm 1: the number of the list that has the postings of list `number`; that itself if it is the first.

    The caller counts the references and keeps at least one slot free.
    """
    mask = len(slots) - 1
    slot = home_slot(slots, lists.hashes[number])
    while slots[slot] != 0:  # skip colliding entries
        other = np.int64(slots[slot]) - 1
        if lists.hashes[other] == lists.hashes[number] and same_postings(lists, other, number):
            return other
        slot = (slot + 1) & mask
    slots[slot] = number + 1
    return number


@kernel
def remove(slots: U32Array, lists: Lists, number: int) -> None:
    """Algorithm 2: take list `number` out, and move what stood behind it closer to home, so that no hole remains.

    Does nothing if the list is not in the map.
    """
    mask = len(slots) - 1
    slot = home_slot(slots, lists.hashes[number])
    while slots[slot] != number + 1:  # equal lists are one list: comparing numbers compares postings
        if slots[slot] == 0:
            return
        slot = (slot + 1) & mask
    freed = slot
    slot = (slot + 1) & mask
    while slots[slot] != 0:
        home = home_slot(slots, lists.hashes[np.int64(slots[slot]) - 1])
        # the paper's h_c <= h_f, on a ring: the way from home to here passes the freed slot
        if (slot - home) & mask >= (slot - freed) & mask:
            slots[freed] = slots[slot]
            freed = slot
        slot = (slot + 1) & mask
    slots[freed] = 0


@kernel
def refill(slots: U32Array, lists: Lists, list_count: int) -> None:
    """Put every list in use into the empty table `slots`."""
    mask = len(slots) - 1
    for number in range(list_count):
        if lists.counts[number] > 0:
            slot = home_slot(slots, lists.hashes[number])
            while slots[slot] != 0:
                slot = (slot + 1) & mask
            slots[slot] = number + 1
