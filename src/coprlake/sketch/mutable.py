"""The mutable sketch: cheap to add to, and searchable at any time (paper 3.2, 4.1)."""

from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from coprlake.config import MEMORY_LIMIT_BYTES, POSTING_LIMIT, SHORT_LIST_POSTINGS
from coprlake.errors import UsageError
from coprlake.kernel import I64Array, U16Array, U32Array
from coprlake.sketch import lookup_map, token_map
from coprlake.sketch.asking import Sketch, as_fingerprints
from coprlake.sketch.insertion import (
    TOKEN_COUNT,
    Parts,
    entries_limit,
    insert_lists,
    insert_tokens,
    slots_limit,
)
from coprlake.sketch.posting_lists import COUNT, FREE_LIST, LIVE_LISTS, NEXT_LIST, Lists, decode, new_lists
from coprlake.sketch.token_map import DIRECT, PAYLOAD, find_values

SMALLEST_MEMORY_LIMIT_BYTES = 2 << 20


class MutableSketch(Sketch):
    """A map from fingerprints to sets of postings that only grows.

    Args:
        memory_limit_bytes: the most that all its arrays together may take, even while one grows; None for no limit.
        short_list_postings: the longest list that is kept as sorted numbers rather than as a bitset.
    """

    def __init__(
        self, memory_limit_bytes: int | None = MEMORY_LIMIT_BYTES, *, short_list_postings: int = SHORT_LIST_POSTINGS
    ) -> None:
        if memory_limit_bytes is not None and memory_limit_bytes < SMALLEST_MEMORY_LIMIT_BYTES:
            raise UsageError(
                f"memory limit of {memory_limit_bytes} bytes is too small; give at least {SMALLEST_MEMORY_LIMIT_BYTES}"
            )
        self._limit_bytes = memory_limit_bytes
        self._short_list_postings = short_list_postings
        self._epoch = 0
        self._posting_count = 0
        self._parts = Parts(
            entries=np.zeros(1 << 10, np.uint64),
            slots=np.zeros(1 << 8, np.uint64),
            lists=new_lists(1 << 7, 1 << 10),
            direct_moves=np.zeros(1 << 6, np.uint32),
            direct_epochs=np.zeros(1 << 6, np.uint32),
            scratch=np.zeros(2 << 6, np.uint16),
            sizes=np.zeros(4, np.int64),
        )
        self._peak_bytes = self.memory_bytes

    @property
    def token_count(self) -> int:
        """The number of distinct fingerprints."""
        return int(self._parts.sizes[TOKEN_COUNT])

    @property
    def list_count(self) -> int:
        """The number of distinct posting lists with two or more postings."""
        return int(self._parts.lists.state[LIVE_LISTS])

    @property
    def posting_count(self) -> int:
        """One more than the largest posting, 0 for an empty sketch."""
        return self._posting_count

    @property
    def parts(self) -> Parts:
        """The arrays, for code that seals, queries or checks the sketch; the next insertion changes them."""
        return self._parts

    @property
    def memory_bytes(self) -> int:
        """The exact size of all arrays."""
        lists = sum(array.nbytes for array in self._parts.lists)
        return lists + sum(array.nbytes for array in self._parts if not isinstance(array, Lists))

    @property
    def peak_memory_bytes(self) -> int:
        """The largest `memory_bytes` ever, counting both an array and its larger successor while both exist."""
        return self._peak_bytes

    def insert(self, fingerprints: U32Array, posting: int) -> int:
        """Record that the tokens occur in batch `posting`; returns how many of them were recorded.

        That is all of them unless the memory limit is reached: then the sketch keeps the tokens recorded so far and
        takes no more.
        """
        if not self.admit(posting):
            return 0
        fingerprints = as_fingerprints(fingerprints)
        self._epoch += 1
        own = np.array([posting], np.uint16)
        done = 0
        while True:
            done += insert_tokens(self._parts, fingerprints[done:], own, self._epoch, self._short_list_postings)
            if done == len(fingerprints) or not self._grow():
                return done

    def insert_lists(
        self,
        fingerprints: U32Array,
        token_starts: I64Array,
        postings: U16Array,
        posting_starts: I64Array,
        posting_count: int,
    ) -> bool:
        """Record many sets of postings at once, each with the tokens that have it. Merging sketches uses this.

        Set ``k`` is ``postings[posting_starts[k]:posting_starts[k + 1]]``, sorted and not empty, for the tokens
        ``fingerprints[token_starts[k]:token_starts[k + 1]]``. `posting_count` is one more than the largest batch, even
        if that has no tokens; all postings are below it. Returns False if the memory limit was reached on the way.
        """
        if len(postings) and int(postings.max()) >= posting_count:
            raise UsageError(f"posting {postings.max()} is not below the posting count of {posting_count}")
        if (np.diff(posting_starts) <= 0).any():
            raise UsageError("a set of postings is empty")
        if posting_count and not self.admit(posting_count - 1):
            return False
        done = np.zeros(2, np.int64)
        epoch = self._epoch + 1
        self._epoch += len(token_starts)
        while not insert_lists(
            self._parts, fingerprints, token_starts, postings, posting_starts, epoch, self._short_list_postings, done
        ):
            if not self._grow():
                return False
        return True

    def set_memory_limit(self, memory_limit_bytes: int | None) -> None:
        """Change the memory limit; the final merge lifts it (paper 4.3)."""
        self._limit_bytes = memory_limit_bytes

    def list_ids(self, fingerprints: U32Array) -> I64Array:
        """The number that identifies each token's posting list in this sketch, -1 where it is absent.

        A token with a single posting has no list; its number is that posting with a mark.
        """
        values = np.zeros(len(fingerprints), np.uint32)
        find_values(self._parts.entries, as_fingerprints(fingerprints), values)
        ids = values.astype(np.int64)
        ids[ids == 0] = -1
        return ids

    def decode(self, list_id: int) -> U16Array:
        """The postings of a list from `list_ids`, ascending."""
        if list_id & DIRECT:
            return np.array([list_id & PAYLOAD], np.uint16)
        postings = np.zeros(int(self._parts.lists.records[list_id & PAYLOAD, COUNT]), np.uint16)
        decode(self._parts.lists, list_id & PAYLOAD, postings)
        return postings

    def admit(self, posting: int) -> bool:
        """Make room for postings up to this one, and count it as a batch; False if there is no memory for it."""
        posting = index(posting)
        if not 0 <= posting < POSTING_LIMIT:
            raise UsageError(f"posting {posting} is outside 0 to {POSTING_LIMIT - 1}; start a new segment")
        if posting >= len(self._parts.direct_moves):
            capacity = 1 << posting.bit_length()
            if not self._reserve(capacity * (4 + 4 + 2 * 2)):
                return False
            parts = self._parts
            self._parts = parts._replace(
                direct_moves=_resized(parts.direct_moves, capacity),
                direct_epochs=_resized(parts.direct_epochs, capacity),
                scratch=np.zeros(2 * capacity, np.uint16),
            )
        self._posting_count = max(self._posting_count, posting + 1)
        return True

    def _reserve(self, extra_bytes: int) -> bool:
        """Whether `extra_bytes` more may be allocated now; if so, count them in the peak."""
        needed = self.memory_bytes + extra_bytes
        if self._limit_bytes is not None and needed > self._limit_bytes:
            return False
        self._peak_bytes = max(self._peak_bytes, needed)
        return True

    def _grow(self) -> bool:
        """Enlarge the one part that an insertion found full; False if the memory limit forbids it."""
        parts = self._parts
        state = parts.lists.state
        if self.token_count >= entries_limit(parts.entries):
            return self._grow_token_map()
        if state[LIVE_LISTS] >= slots_limit(parts.slots):
            return self._grow_lookup_map()
        if state[FREE_LIST] < 0 and state[NEXT_LIST] == len(parts.lists.records):
            return self._grow_list_numbers()
        return self._grow_pool()

    def _grow_token_map(self) -> bool:
        entries = self._parts.entries
        if not self._reserve(2 * entries.nbytes):
            return False
        larger = np.zeros(2 * len(entries), np.uint64)
        token_map.refill(entries, larger)
        self._parts = self._parts._replace(entries=larger)
        return True

    def _grow_lookup_map(self) -> bool:
        slots, lists = self._parts.slots, self._parts.lists
        if not self._reserve(2 * slots.nbytes):
            return False
        larger = np.zeros(2 * len(slots), np.uint64)
        lookup_map.refill(larger, lists, int(lists.state[NEXT_LIST]))
        self._parts = self._parts._replace(slots=larger)
        return True

    def _grow_list_numbers(self) -> bool:
        lists = self._parts.lists
        list_count = len(lists.records) * 3 // 2
        if not self._reserve(list_count * lists.records[0].nbytes):
            return False
        self._parts = self._parts._replace(lists=lists._replace(records=_resized(lists.records, list_count)))
        return True

    def _grow_pool(self) -> bool:
        lists = self._parts.lists
        words = max(len(lists.pool) * 3 // 2, len(lists.pool) + POSTING_LIMIT // 16 * 3 // 2)
        if not self._reserve(words * lists.pool.itemsize):
            return False
        self._parts = self._parts._replace(lists=lists._replace(pool=_resized(lists.pool, words)))
        return True


def _resized(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """A copy of `array` padded with zeros to `size`."""
    larger = np.zeros((size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
