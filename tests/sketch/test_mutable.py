"""The mutable sketch against a dict of sets: answers, what its parts promise each other, growth and memory."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from numba import config

from coprlake import MutableSketch, UsageError
from coprlake.kernel import U32Array
from coprlake.sketch.lookup_map import home_slot, slot_of
from coprlake.sketch.posting_lists import COUNT, HASH, LIVE_LISTS, NEXT_LIST, TOKENS
from coprlake.sketch.postings_hash import postings_hash
from coprlake.sketch.token_map import DIRECT, LIST, PAYLOAD

pytestmark = pytest.mark.kernels

LIMIT = 2 << 20
LAST_POSTING = 65535
TOKENS_OF_STATE_MACHINE = (1, 2, 3, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF)
"""Neighbours in the token map, also at its end, where chains wrap around."""
POSTINGS_OF_STATE_MACHINE = (0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 300, LAST_POSTING)

Model = dict[int, set[int]]


def array_of(fingerprints: list[int] | range) -> U32Array:
    return np.array(fingerprints, np.uint32)


def answers(sketch: MutableSketch, fingerprints: list[int]) -> Model:
    list_ids = sketch.list_ids(array_of(fingerprints)).tolist()
    return {f: set(sketch.decode(i).tolist()) for f, i in zip(fingerprints, list_ids, strict=True) if i >= 0}


def live_lists(sketch: MutableSketch) -> list[int]:
    records = sketch.parts.lists.records[: int(sketch.parts.lists.state[NEXT_LIST])]
    return np.flatnonzero(records[:, COUNT]).tolist()


def token_values(sketch: MutableSketch) -> list[int]:
    entries = sketch.parts.entries
    return (entries[entries != 0] & np.uint64(0xFFFFFFFF)).tolist()


def array_bytes(sketch: MutableSketch) -> int:
    """Counted by looking at every array there is."""
    waiting: list[object] = [sketch.parts]
    total = 0
    while waiting:
        part = waiting.pop()
        if isinstance(part, np.ndarray):
            total += part.nbytes
        else:
            assert isinstance(part, tuple)
            waiting.extend(part)
    return total


def assert_sound(sketch: MutableSketch, model: Model) -> None:
    """All that the parts of a sketch promise each other."""
    lists, slots = sketch.parts.lists, sketch.parts.slots
    live = live_lists(sketch)
    values = token_values(sketch)
    assert sketch.token_count == len(values) == len(model)

    references = Counter(value & PAYLOAD for value in values if value & LIST)
    assert references == {number: int(lists.records[number, TOKENS]) for number in live}
    assert Counter(value & PAYLOAD for value in values if value & DIRECT) == Counter(
        next(iter(postings)) for postings in model.values() if len(postings) == 1
    )

    sets = [tuple(sketch.decode(LIST | number).tolist()) for number in live]
    assert set(sets) == {tuple(sorted(postings)) for postings in model.values() if len(postings) > 1}
    assert len(set(sets)) == len(sets), "two lists are equal"
    assert all(len(postings) > 1 for postings in sets)
    assert sketch.list_count == lists.state[LIVE_LISTS] == len(live)

    assert np.count_nonzero(slots) == len(live)
    for number, postings in zip(live, sets, strict=True):
        own_hash = lists.records[number, HASH]
        assert own_hash == postings_hash(np.array(postings, np.uint16))
        assert lists.records[number, COUNT] == len(postings)
        slot = int(home_slot(slots, own_hash))
        while slots[slot] != slot_of(own_hash, number):
            assert slots[slot] != 0, f"list {number} is not in the lookup map, or behind a hole"
            slot = (slot + 1) % len(slots)

    assert sketch.memory_bytes == array_bytes(sketch)
    assert sketch.peak_memory_bytes >= sketch.memory_bytes


class MutableSketchMachine(RuleBasedStateMachine):
    """Inserts in any order and with repetitions; `model` is what the sketch should know."""

    @initialize(short_list_postings=st.sampled_from([1, 2, 128]))
    def begin(self, short_list_postings: int) -> None:
        self.sketch = MutableSketch(None, short_list_postings=short_list_postings)
        self.model: Model = {}
        self.posting_count = 0

    def note(self, tokens: list[int], postings: set[int]) -> None:
        self.posting_count = max([self.posting_count, *(posting + 1 for posting in postings)])
        for token in tokens:
            self.model.setdefault(token, set()).update(postings)

    @rule(
        tokens=st.lists(st.sampled_from(TOKENS_OF_STATE_MACHINE), max_size=12),
        posting=st.sampled_from(POSTINGS_OF_STATE_MACHINE),
    )
    def insert(self, tokens: list[int], posting: int) -> None:
        assert self.sketch.insert(array_of(tokens), posting) == len(tokens)
        self.note(tokens, {posting})

    @rule(
        sets=st.lists(
            st.tuples(
                st.lists(st.sampled_from(TOKENS_OF_STATE_MACHINE), max_size=6),
                st.sets(st.sampled_from(POSTINGS_OF_STATE_MACHINE), min_size=1, max_size=5),
            ),
            max_size=4,
        )
    )
    def insert_lists(self, sets: list[tuple[list[int], set[int]]]) -> None:
        token_starts = np.cumsum([0, *(len(tokens) for tokens, _ in sets)], dtype=np.int64)
        posting_starts = np.cumsum([0, *(len(postings) for _, postings in sets)], dtype=np.int64)
        tokens = array_of([token for own, _ in sets for token in own])
        postings = np.array([posting for _, own in sets for posting in sorted(own)], np.uint16)
        assert self.sketch.insert_lists(
            tokens, token_starts, postings, posting_starts, 1 + max((max(own) for _, own in sets), default=-1)
        )
        for own_tokens, own_postings in sets:
            self.note(own_tokens, own_postings)

    @invariant()
    def it_answers_as_the_model_does(self) -> None:
        assert answers(self.sketch, list(TOKENS_OF_STATE_MACHINE)) == self.model
        assert self.sketch.posting_count == self.posting_count

    @invariant()
    def its_parts_keep_their_promises(self) -> None:
        assert_sound(self.sketch, self.model)


TestMutableSketch = MutableSketchMachine.TestCase


def filled(sketch: MutableSketch, seed: int, insertions: int, tokens_each: int, postings: int) -> tuple[Model, bool]:
    """Insert seeded random tokens; what was noted, and whether there was room for all."""
    random = np.random.default_rng(seed)
    model: Model = {}
    for _ in range(insertions):
        posting = int(random.integers(postings))
        tokens = random.integers(1, 4 * tokens_each, tokens_each, np.uint32) * np.uint32(2654435761)
        done = sketch.insert(tokens, posting)
        for token in tokens[:done].tolist():
            model.setdefault(token, set()).add(posting)
        if done < len(tokens):
            return model, False
    return model, True


# Growth


def test_every_part_grows_and_nothing_is_lost() -> None:
    sketch = MutableSketch()
    before = sketch.parts
    model, complete = filled(sketch, seed=1, insertions=12, tokens_each=700, postings=100)
    after = sketch.parts
    assert complete
    for name in ("entries", "slots", "direct_moves", "direct_epochs", "scratch"):
        assert len(getattr(after, name)) > len(getattr(before, name)), name
    assert len(after.lists.records) > len(before.lists.records)
    assert len(after.lists.pool) > len(before.lists.pool)
    assert answers(sketch, list(model)) == model
    assert_sound(sketch, model)


def test_growth_counts_old_and_new_array_towards_the_peak() -> None:
    sketch = MutableSketch()
    size = sketch.memory_bytes
    assert sketch.peak_memory_bytes == size
    entries = sketch.parts.entries
    sketch.insert(array_of(range(1, len(entries) + 1)), 0)
    assert len(sketch.parts.entries) == 2 * len(entries)
    assert sketch.memory_bytes == size + entries.nbytes
    assert sketch.peak_memory_bytes == size + 2 * entries.nbytes


def test_a_list_longer_than_the_pool_finds_room() -> None:
    sketch = MutableSketch(short_list_postings=1)
    for posting in (3, LAST_POSTING, 40000):
        assert sketch.insert(array_of([7]), posting) == 1
    assert answers(sketch, [7]) == {7: {3, 40000, LAST_POSTING}}


# Memory


@pytest.mark.parametrize("short_list_postings", [1] if config.DISABLE_JIT else [1, 128])
def test_at_the_memory_limit_insertion_stops_short_and_keeps_what_was_noted(short_list_postings: int) -> None:
    sketch = MutableSketch(LIMIT, short_list_postings=short_list_postings)
    assert sketch.insert(array_of([]), LAST_POSTING) == 0
    random = np.random.default_rng(short_list_postings)
    model: Model = {}
    done, token_count = 0, 0
    while done == token_count:
        posting = int(random.integers(LAST_POSTING + 1))
        token_count = 100 if short_list_postings == 1 else 3000  # long bitsets, or many short lists
        tokens = random.integers(1, 6 * token_count, token_count, np.uint32)
        done = sketch.insert(tokens, posting)
        for token in tokens[:done].tolist():
            model.setdefault(token, set()).add(posting)
        assert sketch.memory_bytes <= LIMIT
        assert sketch.peak_memory_bytes <= LIMIT
    assert answers(sketch, list(model)) == model
    assert_sound(sketch, model)


def test_a_full_sketch_takes_no_more_and_stays_as_it_is() -> None:
    sketch = MutableSketch(LIMIT)
    tokens = np.arange(1, 1 << 18, dtype=np.uint32) * np.uint32(2654435761)
    if config.DISABLE_JIT:  # make it full with fewer tokens
        sketch.insert(array_of([]), LAST_POSTING)
    done = sketch.insert(tokens, 0)
    assert 0 < done < len(tokens)
    size = sketch.memory_bytes
    assert sketch.insert(tokens[done:], 0) == 0
    assert sketch.insert(tokens[done : done + 1], 1) == 0
    assert sketch.token_count == done
    assert sketch.memory_bytes == size
    assert (sketch.list_ids(tokens[done:]) == -1).all()
    assert (sketch.list_ids(tokens[:done]) == DIRECT).all()


def test_without_a_limit_the_same_goes_on() -> None:
    sketch = MutableSketch(LIMIT)
    sketch.insert(array_of([]), LAST_POSTING)
    tokens = np.arange(1, 1 << 16, dtype=np.uint32) * np.uint32(2654435761)
    done = sketch.insert(tokens, 0)
    assert done < len(tokens)
    sketch.set_memory_limit(None)
    assert sketch.insert(tokens[done:], 0) == len(tokens) - done
    assert sketch.token_count == len(tokens)
    assert sketch.peak_memory_bytes > LIMIT


def test_lists_beyond_the_limit_are_refused() -> None:
    sketch = MutableSketch(LIMIT, short_list_postings=1)
    tokens = array_of(range(1, 301))
    starts = np.arange(301)
    postings = np.array([posting for i in range(300) for posting in (i, LAST_POSTING)], np.uint16)
    assert not sketch.insert_lists(tokens, starts, postings, 2 * starts, LAST_POSTING + 1)
    assert sketch.peak_memory_bytes <= LIMIT


@pytest.mark.parametrize("limit_bytes", [-1, 0, 1, LIMIT - 1])
def test_a_limit_that_is_too_small_is_refused(limit_bytes: int) -> None:
    with pytest.raises(UsageError, match=f"memory limit of {limit_bytes} bytes is too small"):
        MutableSketch(limit_bytes)


# The edges of what may be inserted


def test_65536_postings_are_taken() -> None:
    sketch = MutableSketch()
    step = 1 if not config.DISABLE_JIT else 4369
    postings = [*range(0, LAST_POSTING, step), LAST_POSTING]
    for posting in postings:
        assert sketch.insert(array_of([7]), posting) == 1
    assert sketch.posting_count == 65536
    assert answers(sketch, [7]) == {7: set(postings)}


@pytest.mark.parametrize("posting", [-1, LAST_POSTING + 1, 1 << 40])
def test_a_posting_outside_the_range_is_refused_and_changes_nothing(posting: int) -> None:
    sketch = MutableSketch()
    with pytest.raises(UsageError, match=f"posting {posting} is outside 0 to 65535"):
        sketch.insert(array_of([7]), posting)
    assert sketch.posting_count == 0
    assert_sound(sketch, {})


def test_fingerprint_0_is_no_token() -> None:
    sketch = MutableSketch()
    assert sketch.insert(array_of([0, 5, 0]), 1) == 3
    assert sketch.insert(array_of([0, 5]), 2) == 2
    assert sketch.list_ids(array_of([0])).tolist() == [-1]
    assert answers(sketch, [5]) == {5: {1, 2}}
    assert_sound(sketch, {5: {1, 2}})


def test_an_empty_batch_counts_as_a_posting() -> None:
    sketch = MutableSketch()
    assert sketch.insert(array_of([]), 4) == 0
    assert sketch.posting_count == 5
    assert sketch.token_count == 0


def test_list_ids_name_equal_lists_alike_and_absent_tokens_not_at_all() -> None:
    sketch = MutableSketch()
    for posting in (1, 2):
        sketch.insert(array_of([10, 20]), posting)
    sketch.insert(array_of([30]), 1)
    ten, twenty, thirty, absent = sketch.list_ids(array_of([10, 20, 30, 40])).tolist()
    assert ten == twenty
    assert len({ten, thirty, -1}) == 3
    assert absent == -1
