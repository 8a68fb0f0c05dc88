"""The segments of a table at one version, and one call that queries all their sketches."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from coprlake.errors import CorruptSketchError, UnreadableTableError
from coprlake.files import Folder
from coprlake.kernel import I64Array, U8Array, U64Array
from coprlake.segment.sealed import SealedSegment, SegmentEntry
from coprlake.sketch.algebra import TokenProgram
from coprlake.sketch.immutable import DAMAGED, MIGHT, find_in_sketches
from coprlake.storage.partitioning import constants
from coprlake.tokens.profile import Profile

CHECK_SECONDS: Final = 1.0
"""How long to assume that a mapped sketch has not been truncated (`coprlake.unchanging`)."""
_DAMAGED_BYTE: Final = bytes([DAMAGED])


class SketchPool:
    """The sketches of many segments as arrays, so that a search creates no Python object per sketch."""

    def __init__(self, segments: Sequence[SealedSegment]) -> None:
        count = len(segments)
        self._addresses = np.zeros(count, np.uint64)
        self._word_counts = np.zeros(count, np.int64)
        self._groups = np.full(count, -1, np.int64)  # the index of the segment's profile, -1 without a sketch
        self._views: list[U64Array] = []  # keep the memory alive
        self.profiles: list[Profile] = []
        numbers: dict[Profile, int] = {}
        for number, segment in enumerate(segments):
            if segment.sidecar is None:
                continue
            words = segment.sidecar.sketch.words
            self._views.append(words)
            self._addresses[number] = words.ctypes.data
            self._word_counts[number] = len(words)
            profile = segment.sidecar.profile
            group = numbers.setdefault(profile, len(numbers))
            if group == len(self.profiles):
                self.profiles.append(profile)
            self._groups[number] = group
        self._is_uniform = count > 0 and bool((self._groups == 0).all())
        self.is_complete = bool((self._groups >= 0).all())  # whether every segment has a sketch

    def verdicts(self, chosen: I64Array | None, program_of: Callable[[Profile], TokenProgram]) -> U8Array:
        """CANNOT, MIGHT or DAMAGED for each chosen segment (None: all); MIGHT for a segment without a sketch."""
        if self._is_uniform:
            program = program_of(self.profiles[0])
            if chosen is None:
                return _run(program, self._addresses, self._word_counts)
            return _run(program, self._addresses[chosen], self._word_counts[chosen])
        if chosen is None:
            chosen = np.arange(len(self._groups))
        found = np.full(len(chosen), MIGHT, np.uint8)
        groups = self._groups[chosen]
        for group, profile in enumerate(self.profiles):
            own = np.flatnonzero(groups == group)
            if len(own):
                places = chosen[own]
                found[own] = _run(program_of(profile), self._addresses[places], self._word_counts[places])
        return found


def _run(program: TokenProgram, addresses: U64Array, word_counts: I64Array) -> U8Array:
    list_ids = np.empty(len(program.fingerprints), np.int64)
    out = np.empty(len(addresses) + len(program.steps), np.uint8)
    find_in_sketches(addresses, word_counts, program.fingerprints, program.steps, list_ids, out)
    return out[: len(addresses)]


class Snapshot:
    """The segments of one version; it never changes."""

    def __init__(
        self,
        segments: Sequence[SealedSegment],
        schema: pa.Schema,
        partition_by: Sequence[str] = (),
        version: int = 0,
        missing: Sequence[UnreadableTableError] = (),
    ) -> None:
        self.segments = list(segments)
        self.missing = list(missing)  # commits that cannot be read, which may have more segments
        self.partition_by = frozenset(partition_by)
        self.schema = schema
        self.column_names = frozenset(schema.names)  # Arrow makes a new list at each access
        self.version = version
        self.first_times = np.array([segment.entry.first_time for segment in segments], np.int64)
        self.last_times = np.array([segment.entry.latest_time for segment in segments], np.int64)
        self._pool: SketchPool | None = None
        self._mapped: list[SealedSegment] = []
        self._mapped_checked = 0.0

    @property
    def pool(self) -> SketchPool:
        """The sketches of all segments; opened when they are first needed."""
        if self._pool is not None and time.monotonic() - self._mapped_checked > CHECK_SECONDS:
            cut_short = [segment for segment in self._mapped if segment.check_mapped()]
            self._mapped_checked = time.monotonic()
            if cut_short:
                self._pool = None
        pool = self._pool
        if pool is None:
            self._pool = pool = SketchPool(self.segments)
            self._mapped = [segment for segment in self.segments if segment.is_sidecar_mapped]
            self._mapped_checked = time.monotonic()
        return pool

    def verdicts(self, chosen: I64Array | None, program_of: Callable[[Profile], TokenProgram]) -> U8Array:
        """Like `SketchPool.verdicts`; also stops using sketches that turn out to be damaged."""
        found = self.pool.verdicts(chosen, program_of)
        damaged = np.flatnonzero(found == DAMAGED).tolist() if _DAMAGED_BYTE in found.tobytes() else ()
        for place in damaged:
            segment = self.segments[place if chosen is None else int(chosen[place])]
            segment.distrust(
                CorruptSketchError(
                    segment.name,
                    section="ranks",
                    expected="numbers of tokens and lists that exist",
                    found="others",
                    advice="`coprlake verify` says more, `coprlake index` rewrites it",
                )
            )
        return found


def open_segments(
    folder: Folder, entries: Sequence[SegmentEntry], schema: pa.Schema, known: Mapping[str, SealedSegment]
) -> list[SealedSegment]:
    """The segments of a version; reuses those that are already open."""
    by_partition: dict[tuple[Any, ...], dict[str, pa.Scalar]] = {}
    segments = []
    for entry in entries:
        segment = known.get(entry.name)
        if segment is None or segment.entry != entry:
            key = tuple(entry.partition.items())
            if key not in by_partition:
                by_partition[key] = constants(entry.partition, schema)
            segment = SealedSegment(folder, entry, by_partition[key])
        segments.append(segment)
    return segments
