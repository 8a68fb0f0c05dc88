"""Values that recur as in real systems: a few often, most rarely, and new ones for as long as the system runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def mix(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finalizer: a fixed, well-scattered 64-bit value for each key."""
    keys = keys + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


class GrowingPool:
    """Members 0, 1, 2, ... drawn with skew; after n draws about ``scale * n**growth`` of them exist (Heaps' law).

    ``skew`` 1 draws all existing members equally; the larger it is, the more the oldest ones dominate. A draw repeats
    the previous one with probability ``stay``: recently active members are likely to be active again.
    """

    def __init__(self, rng: np.random.Generator, scale: float, growth: float, skew: float, stay: float = 0.0) -> None:
        self._rng = rng
        self._scale = scale
        self._growth = growth
        self._skew = skew
        self._stay = stay
        self._drawn = 0

    def draw(self, count: int) -> NDArray[np.int64]:
        """The members of the next ``count`` draws."""
        position = np.arange(self._drawn + 1, self._drawn + count + 1, dtype=np.float64)
        self._drawn += count
        existing = self._scale * position**self._growth
        members = (existing * self._rng.random(count) ** self._skew).astype(np.int64)
        changes = np.where(self._rng.random(count) < self._stay, 0, np.arange(count))
        return np.asarray(members[np.maximum.accumulate(changes)])


class RecentPool:
    """Members that live for a while, such as sessions: each draw adds ``per_draw`` new ones; the newest are in use."""

    def __init__(self, rng: np.random.Generator, per_draw: float, alive: float) -> None:
        self._rng = rng
        self._per_draw = per_draw
        self._alive = alive
        self._drawn = 0

    def draw(self, count: int) -> NDArray[np.int64]:
        """The members of the next ``count`` draws."""
        newest = np.arange(self._drawn + 1, self._drawn + count + 1) * self._per_draw + self._alive
        self._drawn += count
        return np.asarray(np.maximum(newest - self._rng.exponential(self._alive, count), 0)).astype(np.int64)


class NameTable:
    """The names of pool members, each derived once from its number."""

    def __init__(self, name_of: Callable[[int], str]) -> None:
        self._name_of = name_of
        self._names: list[str] = []

    def names(self, members: NDArray[np.int64]) -> list[str]:
        """The name of each member."""
        wanted = int(members.max(initial=-1)) + 1
        self._names.extend(self._name_of(member) for member in range(len(self._names), wanted))
        return [self._names[member] for member in members.tolist()]


class Counter:
    """Numbers that only grow, such as order numbers, by small irregular steps."""

    def __init__(self, rng: np.random.Generator, first: int) -> None:
        self._rng = rng
        self._next = first

    def draw(self, count: int) -> NDArray[np.int64]:
        """The next ``count`` numbers, ascending."""
        numbers = self._next + np.cumsum(self._rng.integers(1, 4, count))
        self._next = int(numbers[-1]) if count else self._next
        return np.asarray(numbers, dtype=np.int64)
