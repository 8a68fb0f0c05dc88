"""Posting lists of the mutable sketch against Python's sets, and the pool that they live in."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coprlake.config import SHORT_LIST_POSTINGS
from coprlake.kernel import U16Array
from coprlake.sketch.posting_lists import (
    COUNT,
    HASH,
    LIVE_LISTS,
    NEXT_LIST,
    POOL_UNITS,
    TOKENS,
    UNIT_WORDS,
    Lists,
    class_units,
    decode,
    extend,
    free,
    has_posting,
    is_bitset,
    new_lists,
    same_postings,
    size_class,
    store,
    unite,
    word_count,
)
from coprlake.sketch.postings_hash import posting_hash, postings_hash

pytestmark = pytest.mark.kernels

LARGEST = 65535
EDGES = (0, 1, 14, 15, 16, 17, 31, 32, 255, 256, 4095, 4096, LARGEST - 1, LARGEST)
"""Ends of a bitset's words and of the range: where an off-by-one would show."""

small_sets = st.frozensets(st.integers(0, 40), min_size=1)  # many equal sets, and flips between list and bitset
edge_sets = st.frozensets(st.sampled_from(EDGES), min_size=1)
posting_sets = small_sets | edge_sets
thresholds = st.sampled_from([1, 2, 3, 7, SHORT_LIST_POSTINGS])


def room_for_all() -> Lists:
    return new_lists(8, 1 << 16)


def array_of(postings: Sequence[int] | frozenset[int]) -> U16Array:
    return np.array(sorted(postings), np.uint16)


def put(lists: Lists, postings: frozenset[int], threshold: int = SHORT_LIST_POSTINGS) -> int:
    array = array_of(postings)
    number = store(lists, array, postings_hash(array), threshold)
    assert number >= 0
    return number


def get(lists: Lists, number: int) -> list[int]:
    out = np.zeros(LARGEST + 1, np.uint16)
    return out[: decode(lists, number, out)].tolist()


def scratch_for(count: int = LARGEST + 1) -> U16Array:
    return np.zeros(2 * count, np.uint16)


def union_of(lists: Lists, first: frozenset[int], second: frozenset[int], threshold: int) -> int:
    scratch = scratch_for()
    scratch[len(scratch) // 2 :][: len(first)] = array_of(first)
    return unite(lists, len(first), postings_hash(array_of(first)), array_of(second), threshold, scratch)


def everything(lists: Lists) -> list[bytes]:
    return [array.tobytes() for array in lists]


# Size classes


@pytest.mark.parametrize("words", [*range(1, 300), 1023, 1024, 1025, 4095, 4096, LARGEST, LARGEST + 1])
def test_the_size_class_is_the_smallest_that_holds_the_words(words: int) -> None:
    found = size_class(words)
    assert class_units(found) * UNIT_WORDS >= words
    assert found == 0 or class_units(found - 1) * UNIT_WORDS < words


def test_size_classes_rise_by_halves_and_thirds() -> None:
    assert [class_units(number) for number in range(10)] == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]


def test_every_list_there_can_be_has_a_size_class() -> None:
    assert size_class(LARGEST + 1) < len(new_lists(1, 4).free_blocks)


# What a list says


@given(posting_sets, thresholds)
def test_a_stored_list_decodes_to_its_postings_in_order(postings: frozenset[int], threshold: int) -> None:
    lists = room_for_all()
    number = put(lists, postings, threshold)
    assert get(lists, number) == sorted(postings)
    assert lists.records[number, COUNT] == len(postings)
    assert lists.records[number, TOKENS] == 0


@given(posting_sets, thresholds)
def test_a_list_has_just_its_postings(postings: frozenset[int], threshold: int) -> None:
    lists = room_for_all()
    number = put(lists, postings, threshold)
    for posting in (*range(42), *EDGES):
        assert has_posting(lists, number, posting) == (posting in postings)


@given(posting_sets, posting_sets, thresholds)
def test_lists_are_the_same_exactly_if_their_sets_are(a: frozenset[int], b: frozenset[int], threshold: int) -> None:
    lists = room_for_all()
    first, second, copy = put(lists, a, threshold), put(lists, b, threshold), put(lists, a, threshold)
    assert same_postings(lists, first, second) == (a == b)
    assert same_postings(lists, first, copy)


@given(posting_sets, thresholds)
def test_the_smaller_form_is_taken_and_long_lists_are_bitsets(postings: frozenset[int], threshold: int) -> None:
    lists = room_for_all()
    number = put(lists, postings, threshold)
    bitset_words = max(postings) // 16 + 1
    dense = len(postings) > threshold or len(postings) > bitset_words
    assert is_bitset(lists, number) == dense
    assert word_count(lists, number) == (bitset_words if dense else len(postings))


@pytest.mark.parametrize("count", [SHORT_LIST_POSTINGS - 1, SHORT_LIST_POSTINGS, SHORT_LIST_POSTINGS + 1])
def test_a_list_becomes_a_bitset_behind_the_threshold(count: int) -> None:
    lists = room_for_all()
    sparse = frozenset(range(0, 32 * count, 32))
    number = put(lists, sparse)
    assert is_bitset(lists, number) == (count > SHORT_LIST_POSTINGS)
    longer = extend(lists, number, LARGEST, SHORT_LIST_POSTINGS, scratch_for())
    assert is_bitset(lists, longer) == (count + 1 > SHORT_LIST_POSTINGS)
    assert get(lists, longer) == [*sorted(sparse), LARGEST]


# How lists come from lists


@given(posting_sets, st.sampled_from(EDGES) | st.integers(0, 40), thresholds)
def test_an_extended_list_is_the_one_that_would_be_stored(postings: frozenset[int], more: int, threshold: int) -> None:
    """Canonical form: the way a list came about does not show, neither in its block nor in its hash."""
    before = postings - {more}
    if not before:
        return
    lists = room_for_all()
    number = put(lists, before, threshold)
    longer = extend(lists, number, more, threshold, scratch_for())
    expected = put(lists, before | {more}, threshold)
    assert get(lists, longer) == sorted(before | {more})
    assert same_postings(lists, longer, expected)
    assert lists.records[longer, HASH] == lists.records[expected, HASH]
    assert lists.records[longer, COUNT] == lists.records[expected, COUNT]
    assert get(lists, number) == sorted(before)


def test_a_dense_bitset_becomes_a_sorted_list_when_a_far_posting_comes() -> None:
    lists = room_for_all()
    dense = put(lists, frozenset(range(8)))
    sparse = extend(lists, dense, LARGEST, SHORT_LIST_POSTINGS, scratch_for())
    assert is_bitset(lists, dense)
    assert not is_bitset(lists, sparse)
    assert get(lists, sparse) == [*range(8), LARGEST]


@given(posting_sets, posting_sets, thresholds)
def test_a_union_is_the_list_that_would_be_stored(a: frozenset[int], b: frozenset[int], threshold: int) -> None:
    lists = room_for_all()
    united = union_of(lists, a, b, threshold)
    expected = put(lists, a | b, threshold)
    assert get(lists, united) == sorted(a | b)
    assert same_postings(lists, united, expected)
    assert lists.records[united, HASH] == lists.records[expected, HASH]
    assert lists.records[united, COUNT] == lists.records[expected, COUNT]


def test_a_list_of_all_postings_takes_one_bit_each() -> None:
    lists = room_for_all()
    number = put(lists, frozenset(range(LARGEST + 1)))
    assert word_count(lists, number) * 16 == LARGEST + 1
    assert get(lists, number) == list(range(LARGEST + 1))


@given(posting_sets)
def test_the_postings_hash_is_the_xor_over_the_postings(postings: frozenset[int]) -> None:
    expected = 0
    for posting in postings:
        expected ^= int(posting_hash(posting))
    assert int(postings_hash(array_of(postings))) == expected


def test_hashes_of_single_postings_differ() -> None:
    assert len({int(posting_hash(posting)) for posting in range(LARGEST + 1)}) == LARGEST + 1


# Who owns which block


def test_freed_blocks_and_numbers_are_used_again() -> None:
    lists = new_lists(16, 1 << 10)
    sets = [frozenset(range(i, 16 * count, 16)) for i, count in enumerate([2, 3, 5, 9, 17, 30])]
    numbers = [put(lists, postings) for postings in sets]
    used = lists.state[POOL_UNITS], lists.state[NEXT_LIST]
    for turn in range(20):
        for number in numbers[:: 1 if turn % 2 else -1]:
            free(lists, number)
        assert lists.state[LIVE_LISTS] == 0
        numbers = [put(lists, postings) for postings in sets]
        assert (lists.state[POOL_UNITS], lists.state[NEXT_LIST]) == used
        assert sorted(numbers) == list(range(len(sets)))
        assert [get(lists, number) for number in numbers] == [sorted(postings) for postings in sets]


def test_a_reused_block_shows_nothing_of_the_list_before() -> None:
    lists = new_lists(1, 64)
    free(lists, put(lists, frozenset(range(60)), 1))
    number = put(lists, frozenset({0, 63}), 1)
    assert get(lists, number) == [0, 63]
    free(lists, number)
    longer = extend(lists, put(lists, frozenset({1, 63}), 1), 5, 1, scratch_for(64))
    assert longer == -1  # there is only one number


@given(st.lists(st.tuples(st.booleans(), posting_sets), max_size=30), thresholds)
def test_lists_never_overlap_however_they_come_and_go(steps: list[tuple[bool, frozenset[int]]], threshold: int) -> None:
    lists = new_lists(32, 1 << 18)
    expected: dict[int, frozenset[int]] = {}
    for frees, postings in steps:
        if frees and expected:
            number = sorted(expected)[len(postings) % len(expected)]
            free(lists, number)
            del expected[number]
        else:
            number = put(lists, postings, threshold)
            assert number not in expected
            expected[number] = postings
        assert lists.state[LIVE_LISTS] == len(expected)
        assert {number: get(lists, number) for number in expected} == {n: sorted(p) for n, p in expected.items()}
        assert set(np.flatnonzero(lists.records[:, COUNT]).tolist()) == set(expected)


# When there is no room


def full_of_numbers() -> tuple[Lists, int]:
    lists = new_lists(2, 1 << 10)
    put(lists, frozenset({1}))
    return lists, put(lists, frozenset({1, 2}))


def full_of_words() -> tuple[Lists, int]:
    lists = new_lists(10, UNIT_WORDS)
    return lists, put(lists, frozenset({1, 2}))


def full_of_words_with_a_free_number() -> tuple[Lists, int]:
    lists = new_lists(10, 17 * UNIT_WORDS)
    free(lists, put(lists, frozenset(range(0, 64 * 16, 16))))  # its block is too large for what comes
    return lists, put(lists, frozenset({1, 2}))


@pytest.mark.parametrize("full", [full_of_numbers, full_of_words, full_of_words_with_a_free_number])
def test_a_full_store_says_so_and_changes_nothing(full: object) -> None:
    lists, number = full()  # type: ignore[operator]
    before = everything(lists)
    array = array_of([3, 4])
    assert store(lists, array, postings_hash(array), SHORT_LIST_POSTINGS) == -1
    assert extend(lists, number, 7, SHORT_LIST_POSTINGS, scratch_for(64)) == -1
    assert union_of(lists, frozenset({5}), frozenset({6}), SHORT_LIST_POSTINGS) == -1
    assert everything(lists) == before


def test_a_full_store_says_so_for_bitsets_too() -> None:
    lists = new_lists(10, UNIT_WORDS)
    number = put(lists, frozenset(range(20)))
    assert is_bitset(lists, number)
    before = everything(lists)
    assert extend(lists, number, 30, SHORT_LIST_POSTINGS, scratch_for(64)) == -1
    assert everything(lists) == before


def test_a_block_that_was_freed_makes_room_again() -> None:
    lists = new_lists(10, 2 * UNIT_WORDS)
    first = put(lists, frozenset({1, 2}))
    second = put(lists, frozenset({3, 4}))
    array = array_of([5, 6])
    assert store(lists, array, postings_hash(array), SHORT_LIST_POSTINGS) == -1
    free(lists, first)
    assert get(lists, put(lists, frozenset({5, 6}))) == [5, 6]
    assert get(lists, second) == [3, 4]
