"""The lookup map (Algorithms 1 and 2) on a table so small that every chain collides and wraps around its end."""

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coprlake.kernel import U64Array
from coprlake.sketch.lookup_map import find_or_add, home_slot, refill, remove, slot_of
from coprlake.sketch.posting_lists import HASH, NEXT_LIST, Lists, free, new_lists, store

pytestmark = pytest.mark.kernels

LAST = 0xFFFFFFFF
EIGHTH = 1 << 29
HASHES = (0, 1, EIGHTH - 1, EIGHTH, 6 * EIGHTH, 7 * EIGHTH - 1, 7 * EIGHTH, LAST - 1, LAST)
"""Equal and neighbouring homes at both ends of the table, so that chains run over its end into its beginning."""


def put(lists: Lists, postings: frozenset[int], forced_hash: int) -> int:
    """A list with a hash that we choose, so that different lists collide."""
    number = store(lists, np.array(sorted(postings), np.uint16), np.uint32(forced_hash), 128)
    assert number >= 0
    assert int(lists.records[number, HASH]) == forced_hash
    return number


def number_in(slots: U64Array, slot: int) -> int:
    """The list that stands in a slot, or -1."""
    return (int(slots[slot]) & LAST) - 1


def assert_sound(slots: U64Array, lists: Lists, live: set[int]) -> None:
    """Each live list stands in the table once, with its hash, and no free slot lies between it and its home."""
    numbers = [number_in(slots, slot) for slot in range(len(slots))]
    assert sorted(number for number in numbers if number >= 0) == sorted(live)
    for slot, number in enumerate(numbers):
        if number < 0:
            continue
        own_hash = lists.records[number, HASH]
        assert slots[slot] == slot_of(own_hash, number)
        step = int(home_slot(slots, own_hash))
        while step != slot:
            assert numbers[step] >= 0, f"hole at {step} on the way of list {number} to {slot}: {numbers}"
            step = (step + 1) % len(slots)


class LookupMapMachine(RuleBasedStateMachine):
    """Adds, finds and removes lists; `numbers` is what the map should be."""

    @initialize(slot_count=st.sampled_from([8, 16]), hashes=st.lists(st.sampled_from(HASHES), min_size=1, max_size=5))
    def begin(self, slot_count: int, hashes: list[int]) -> None:
        self.hashes = hashes
        self.lists = new_lists(64, 1 << 12)
        self.slots: U64Array = np.zeros(slot_count, np.uint64)
        self.numbers: dict[frozenset[int], int] = {}

    def hash_of(self, postings: frozenset[int]) -> int:
        """Equal sets have equal hashes, and many different sets do too."""
        return self.hashes[sum(postings) % len(self.hashes)]

    @rule(postings=st.frozensets(st.integers(0, 6), min_size=1, max_size=3))
    def add(self, postings: frozenset[int]) -> None:
        if postings not in self.numbers and len(self.numbers) == len(self.slots) - 1:
            return  # the owner keeps a slot free
        number = put(self.lists, postings, self.hash_of(postings))
        found = find_or_add(self.slots, self.lists, number)
        if postings in self.numbers:
            assert found == self.numbers[postings]
            free(self.lists, number)
        else:
            assert found == number
            self.numbers[postings] = number

    @precondition(lambda self: self.numbers)
    @rule(data=st.data())
    def take_out(self, data: Any) -> None:
        postings = data.draw(st.sampled_from(sorted(self.numbers, key=sorted)))
        number = self.numbers.pop(postings)
        remove(self.slots, self.lists, number)
        free(self.lists, number)

    @rule(forced_hash=st.sampled_from(HASHES))
    def take_out_what_is_not_there(self, forced_hash: int) -> None:
        number = put(self.lists, frozenset({99}), forced_hash)
        before = self.slots.copy()
        remove(self.slots, self.lists, number)
        assert self.slots.tolist() == before.tolist()
        free(self.lists, number)

    @precondition(lambda self: len(self.slots) < 32)
    @rule()
    def grow(self) -> None:
        larger = np.zeros(2 * len(self.slots), np.uint64)
        refill(larger, self.lists, int(self.lists.state[NEXT_LIST]))
        self.slots = larger

    @invariant()
    def every_list_is_there_once_and_reachable(self) -> None:
        assert_sound(self.slots, self.lists, set(self.numbers.values()))


TestLookupMap = LookupMapMachine.TestCase


def test_the_home_of_a_hash_is_its_upper_bits() -> None:
    slots = np.zeros(8, np.uint64)
    assert [int(home_slot(slots, np.uint32(hash_))) for hash_ in (0, EIGHTH - 1, EIGHTH, LAST)] == [0, 0, 1, 7]


def test_equal_hashes_of_different_lists_stand_side_by_side() -> None:
    lists, slots = new_lists(4, 64), np.zeros(8, np.uint64)
    first, second = put(lists, frozenset({1}), LAST), put(lists, frozenset({2}), LAST)
    assert find_or_add(slots, lists, first) == first
    assert find_or_add(slots, lists, second) == second
    assert (number_in(slots, 7), number_in(slots, 0)) == (first, second)


def test_removal_moves_a_list_back_over_the_end_of_the_table() -> None:
    lists, slots = new_lists(4, 64), np.zeros(8, np.uint64)
    numbers = [put(lists, frozenset({posting}), LAST) for posting in (1, 2, 3)]
    for number in numbers:
        find_or_add(slots, lists, number)
    remove(slots, lists, numbers[0])
    assert [number_in(slots, slot) for slot in (7, 0, 1)] == [numbers[1], numbers[2], -1]


def test_removal_leaves_a_list_that_is_at_home_where_it_is() -> None:
    lists, slots = new_lists(4, 64), np.zeros(8, np.uint64)
    at_end, at_home = put(lists, frozenset({1}), LAST), put(lists, frozenset({2}), 0)
    displaced = put(lists, frozenset({3}), LAST)
    for number in (at_end, at_home, displaced):
        find_or_add(slots, lists, number)
    assert [number_in(slots, slot) for slot in (7, 0, 1)] == [at_end, at_home, displaced]
    remove(slots, lists, at_end)
    assert [number_in(slots, slot) for slot in (7, 0, 1)] == [displaced, at_home, -1]
