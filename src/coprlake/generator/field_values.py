"""The kinds of variable in templates, written ``<kind>`` or ``<kind:argument>``, and how their values are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from coprlake.generator import names
from coprlake.generator.clock import Columns
from coprlake.generator.pools import Counter, GrowingPool, NameTable, RecentPool, mix


class Lifetime(Enum):
    """How long a drawn value holds."""

    SOURCE = "all lines of a source"
    EPISODE = "the lines of one activity, such as a request"
    LINE = "one line"
    ROW = "one line, computed from its place: the clock and the counters of the source"


class Values:
    """Draws the values of all kinds for one generated set; its pools are shared by all applications."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.people = GrowingPool(rng, 6.0, 0.72, 2.5, stay=0.65)
        self.clients = GrowingPool(rng, 6.0, 0.8, 2.4, stay=0.7)
        self.machines = GrowingPool(rng, 8.0, 0.55, 2.2, stay=0.65)
        self.pages = GrowingPool(rng, 6.0, 0.65, 2.6, stay=0.2)
        self.files = GrowingPool(rng, 6.0, 0.72, 2.0, stay=0.3)
        self.phrases = GrowingPool(rng, 10.0, 0.5, 2.0, stay=0.3)
        self.devices = GrowingPool(rng, 10.0, 0.78, 1.8, stay=0.5)
        self.ports = GrowingPool(rng, 60.0, 0.4, 1.5, stay=0.65)
        self.sessions = RecentPool(rng, 0.28, 40.0)
        self.normals = rng.standard_normal(1200)
        self.tables: dict[str, NameTable] = {}
        self._counters: dict[str, Counter] = {}

    def named(self, pool: GrowingPool, name_of: Callable[[int], str], count: int) -> Columns:
        """Draw members of a pool and return their names as one column."""
        table = self.tables.setdefault(name_of.__name__, NameTable(name_of))
        return [table.names(pool.draw(count))]

    def counter(self, name: str) -> Counter:
        """The counter called ``name``; each starts at its own number of six to eight digits."""
        if name not in self._counters:
            seed = int.from_bytes(name.encode()[:6].ljust(6, b"-"), "big")
            first = int(mix(np.array([seed], dtype=np.uint64))[0] % np.uint64(40_000_000))
            self._counters[name] = Counter(self.rng, 300_000 + first)
        return self._counters[name]


@dataclass(frozen=True)
class Kind:
    """A kind of variable: how long a value holds, its percent pattern, and how to draw columns for the pattern."""

    scope: Lifetime
    pattern: Callable[[str], str]
    draw: Callable[[Values, str, int], Columns]


def _around(values: Values, median: float, spread: float, count: int) -> NDArray[np.float64]:
    """Log-normal values around the median, like sizes and durations; they come from a fixed set, so they recur."""
    picks = (len(values.normals) * values.rng.random(count) ** 4).astype(np.int64)
    return np.asarray(median * np.exp(spread * values.normals[picks]))


def _numbers(spread: float) -> Callable[[Values, str, int], Columns]:
    """Integers around the argument."""

    def draw(values: Values, argument: str, count: int) -> Columns:
        return [_around(values, float(argument or 20), spread, count).astype(np.int64).tolist()]

    return draw


def _decimals(values: Values, argument: str, count: int) -> Columns:
    return [_around(values, float(argument or 1), 0.9, count).tolist()]


def _address(keys: NDArray[np.uint64], inside: bool) -> Columns:
    """Four octets for each key: in a private network with few subnets if ``inside``, otherwise public."""
    scattered = mix(keys)
    octets = [(scattered >> np.uint64(shift)) % np.uint64(254) + np.uint64(1) for shift in (8, 24, 40)]
    if inside:
        first, second = np.full(len(keys), 10, dtype=np.uint64), octets[0] % np.uint64(6) * np.uint64(16)
        return [part.tolist() for part in (first, second, octets[1] % np.uint64(24), octets[2])]
    # Clients come from few provider networks: the first two octets recur far more than the last two.
    network = mix(keys % np.uint64(300))
    return [
        (network % np.uint64(200) + np.uint64(20)).tolist(),
        ((network >> np.uint64(16)) % np.uint64(256)).tolist(),
        octets[0].tolist(),
        octets[1].tolist(),
    ]


def _client(values: Values, _: str, count: int) -> Columns:
    return _address(values.clients.draw(count).astype(np.uint64), inside=False)


def _machine(values: Values, _: str, count: int) -> Columns:
    return _address(values.machines.draw(count).astype(np.uint64), inside=True)


def _hex(values: Values, argument: str, count: int) -> Columns:
    """Fresh ids; the argument is the number of hex digits, split into columns of up to 16."""
    return [
        (values.rng.integers(0, 2**64, count, dtype=np.uint64) >> np.uint64(64 - 4 * width)).tolist()
        for width in _hex_widths(argument)
    ]


def _hex_pattern(argument: str) -> str:
    return "".join(f"%0{width}x" for width in _hex_widths(argument))


def _hex_widths(argument: str) -> list[int]:
    digits = int(argument or 16)
    return [16] * (digits // 16) + [digits % 16] * (digits % 16 > 0)


def _uuid(values: Values, _: str, count: int) -> Columns:
    high, low = values.rng.integers(0, 2**64, (2, count), dtype=np.uint64)
    parts = (
        high >> np.uint64(32),
        (high >> np.uint64(16)) & np.uint64(0xFFFF),
        high & np.uint64(0xFFF),
        (low >> np.uint64(48)) & np.uint64(0x3FFF) | np.uint64(0x8000),
        low & np.uint64(0xFFFFFFFFFFFF),
    )
    return [part.tolist() for part in parts]


def _session(values: Values, _: str, count: int) -> Columns:
    return [(mix(values.sessions.draw(count).astype(np.uint64)) >> np.uint64(16)).tolist()]


def _pod(values: Values, argument: str, count: int) -> Columns:
    letters = np.array(list("bcdfghjklmnpqrstvwxz2456789"))
    replica = mix(values.machines.draw(count).astype(np.uint64) // np.uint64(6)) % np.uint64(2**36)
    suffixes = ["".join(row) for row in letters[values.rng.integers(0, len(letters), (count, 5))].tolist()]
    return [[f"{argument}-{part:09x}-{suffix}" for part, suffix in zip(replica.tolist(), suffixes, strict=True)]]


def _between(low: int, high: int) -> Callable[[Values, str, int], Columns]:
    """Integers from ``low`` up to the argument or ``high``, low ones more often."""

    def draw(values: Values, argument: str, count: int) -> Columns:
        span = (int(argument) if argument else high) - low
        return [(low + span * values.rng.random(count) ** 2.2).astype(np.int64).tolist()]

    return draw


def _percent(values: Values, _: str, count: int) -> Columns:
    """Percentages like those of gauges: most within a few points of each other."""
    return [np.clip(72 - np.abs(_around(values, 6, 1.0, count)), 0, 100).astype(np.int64).tolist()]


def _port(values: Values, _: str, count: int) -> Columns:
    return [(mix(values.ports.draw(count).astype(np.uint64)) % np.uint64(28232) + np.uint64(32768)).tolist()]


def _device(values: Values, _: str, count: int) -> Columns:
    return [(mix(values.devices.draw(count).astype(np.uint64)) % np.uint64(90_000_000)).tolist()]


def _pointer(values: Values, _: str, count: int) -> Columns:
    """Heap addresses: the high digits recur, the low ones rarely do."""
    pages = values.rng.zipf(1.4, count) % 4096
    return [(0x7F3A00000000 + pages * 65536 + values.rng.integers(0, 4096, count) * 16).tolist()]


def _name(pool: str, name_of: Callable[[int], str]) -> Kind:
    return Kind(Lifetime.EPISODE, lambda _: "%s", lambda values, _, n: values.named(getattr(values, pool), name_of, n))


KINDS: dict[str, Kind] = {
    "host": Kind(
        Lifetime.SOURCE, lambda _: "%s", lambda values, _, count: values.named(values.machines, names.host_name, count)
    ),
    "node": Kind(
        Lifetime.SOURCE, lambda argument: f"{argument}-%03d", lambda values, _, n: _between(1, 240)(values, "", n)
    ),
    "pod": Kind(Lifetime.SOURCE, lambda _: "%s", _pod),
    "self": Kind(Lifetime.SOURCE, lambda _: "%d.%d.%d.%d", _machine),
    "pid": Kind(Lifetime.SOURCE, lambda _: "%d", _between(300, 32768)),
    "zone": Kind(
        Lifetime.SOURCE, lambda _: "eu-%s-%d", lambda v, _, n: [["west"] * n, v.rng.integers(1, 4, n).tolist()]
    ),
    "user": _name("people", names.user_name),
    "mail": _name("people", names.mail_address),
    "path": _name("pages", names.page_path),
    "file": _name("files", names.file_path),
    "text": _name("phrases", names.phrase),
    "ip": Kind(Lifetime.EPISODE, lambda _: "%d.%d.%d.%d", _client),
    "lan": Kind(Lifetime.EPISODE, lambda _: "%d.%d.%d.%d", _machine),
    "port": Kind(Lifetime.EPISODE, lambda _: "%d", _port),
    "device": Kind(Lifetime.EPISODE, lambda _: "%d", _device),
    "uuid": Kind(Lifetime.EPISODE, lambda _: "%08x-%04x-4%03x-%04x-%012x", _uuid),
    "hex": Kind(Lifetime.EPISODE, _hex_pattern, _hex),
    "session": Kind(Lifetime.EPISODE, lambda _: "%012x", _session),
    "id": Kind(
        Lifetime.EPISODE, lambda _: "%d", lambda values, name, count: [values.counter(name).draw(count).tolist()]
    ),
    "thread": Kind(Lifetime.EPISODE, lambda _: "%d", lambda v, argument, n: _between(1, 33)(v, argument, n)),
    "task": Kind(
        Lifetime.EPISODE, lambda _: "%d", lambda v, _, n: [(v.counter("task").draw(n) % 31000 + 900).tolist()]
    ),
    "ms": Kind(Lifetime.LINE, lambda _: "%d", _numbers(0.9)),
    "num": Kind(Lifetime.LINE, lambda _: "%d", _numbers(0.7)),
    "size": Kind(Lifetime.LINE, lambda _: "%d", _numbers(1.1)),
    "dec": Kind(Lifetime.LINE, lambda _: "%.3f", _decimals),
    "dec2": Kind(Lifetime.LINE, lambda _: "%.2f", _decimals),
    "pct": Kind(Lifetime.LINE, lambda _: "%d", _percent),
    "to": Kind(Lifetime.LINE, lambda _: "%d", _between(0, 10)),
    "ptr": Kind(Lifetime.LINE, lambda _: "0x%x", _pointer),
}
