"""A sketch of any size in bounded memory: full mutable sketches are spilled to temporary files (paper 4.3)."""

import os
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from coprlake.config import (
    FULL_SIGNATURE_BITS,
    MEMORY_LIMIT_BYTES,
    RULES,
    SHORT_LIST_POSTINGS,
    SIGNATURE_BITS,
    RuleSet,
)
from coprlake.errors import UsageError
from coprlake.files import storage_error
from coprlake.kernel import I64Array, U16Array, U32Array
from coprlake.sketch.asking import Sketch
from coprlake.sketch.format import RULES_VERSIONS, rules_of_version
from coprlake.sketch.immutable import SealedSketch
from coprlake.sketch.merge import add_sealed
from coprlake.sketch.mutable import MutableSketch
from coprlake.sketch.sealing import SealReport, seal


class SketchWriter(Sketch):
    """Takes the tokens of batches, answers queries at any time, and is sealed at the end.

    Args:
        memory_limit_bytes: the most that the mutable sketch may take, growth included. Sealing it, when it spills and
            at the end, briefly takes up to twice as much again; the merge at the end takes as much as if nothing had
            been spilled, as in the paper.
        spill_folder: where temporary sketches go; None for the system's temporary folder.
        short_list_postings: the longest posting list that is kept as sorted numbers rather than as a bitset.

    It is a context manager; leaving it removes its temporary files.
    """

    def __init__(
        self,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
        *,
        spill_folder: str | os.PathLike[str] | None = None,
        short_list_postings: int = SHORT_LIST_POSTINGS,
    ) -> None:
        self._limit_bytes = memory_limit_bytes
        self._short_list_postings = short_list_postings
        self._spill_parent = spill_folder
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._spilled: list[SealedSketch] = []
        self._mutable = MutableSketch(memory_limit_bytes, short_list_postings=short_list_postings)
        self._peak_bytes = 0
        self._spill_count = 0
        self._merged = False
        self._closed = False
        self._combinations: dict[tuple[int, ...], int] = {}
        self._combination_list: list[tuple[int, ...]] = []

    @property
    def spill_count(self) -> int:
        """The number of temporary sketches written so far."""
        return self._spill_count

    @property
    def memory_bytes(self) -> int:
        """The exact size of the mutable sketch; temporary sketches are mapped files."""
        return self._mutable.memory_bytes

    @property
    def peak_memory_bytes(self) -> int:
        """The largest size that the mutable sketch ever had before the final merge, growth included."""
        return self._peak_bytes if self._merged else max(self._peak_bytes, self._mutable.peak_memory_bytes)

    @property
    def token_count(self) -> int:
        """The number of distinct fingerprints; an upper bound between the first spill and sealing, otherwise exact."""
        return sum(part.token_count for part in self._parts)

    @property
    def posting_count(self) -> int:
        """One more than the largest posting; 0 if there is none."""
        return max(part.posting_count for part in self._parts)

    @property
    def _parts(self) -> list[Sketch]:
        self._check_open()
        return [*self._spilled, self._mutable]

    def insert(self, fingerprints: U32Array, posting: int) -> None:
        """Record that the tokens occur in batch `posting`."""
        self._check_open()
        self._combinations.clear()  # lists move with every insertion
        if not self._mutable.admit(posting):
            self._spill()
        done = self._mutable.insert(fingerprints, posting)
        while done < len(fingerprints):
            self._spill()
            done += self._mutable.insert(fingerprints[done:], posting)

    def list_ids(self, fingerprints: U32Array) -> I64Array:
        """A number that identifies each token's lists in all parts, -1 where no part has the token."""
        rows = np.stack([part.list_ids(fingerprints) for part in self._parts])
        ids = [self._combinations.setdefault(tuple(column), len(self._combinations)) for column in rows.T.tolist()]
        self._combination_list = list(self._combinations)
        return np.where(rows.max(axis=0) < 0, -1, np.array(ids, np.int64))

    def decode(self, list_id: int) -> U16Array:
        """The postings of a token in any of the parts, ascending."""
        lists = [part.decode(own) for part, own in self._own_lists(list_id)]
        return np.unique(np.concatenate(lists))

    def merged(self) -> MutableSketch:
        """Merge all parts into one mutable sketch, ignoring the memory limit, as if nothing had been spilled.

        The parts are gone afterwards; the writer continues with the merged sketch, and spills it when more comes.
        """
        self._check_open()
        if self._spilled:
            self._peak_bytes = self.peak_memory_bytes
            self._merged = True
            self._mutable.set_memory_limit(None)
            for part in self._spilled:
                add_sealed(self._mutable, part)
            self._mutable.set_memory_limit(self._limit_bytes)
            self._drop_spilled()
        return self._mutable

    def seal(
        self,
        path: str | os.PathLike[str],
        *,
        signature_bits: int = SIGNATURE_BITS,
        object_id: bytes = bytes(16),
        rules: RuleSet | str | int = RULES,
    ) -> SealReport:
        """Write the final sketch; arguments as of `coprlake.sketch.sealing.seal`.

        Token rules given as a number, which is what the file says, are accepted until the next release.
        """
        if isinstance(rules, int):
            rules = _named_rules(rules)
        started = time.perf_counter()
        merged = self.merged()
        merge_seconds = time.perf_counter() - started
        report = seal(merged, path, signature_bits=signature_bits, object_id=object_id, rules=rules)
        report.seconds_by_phase = {"merge": merge_seconds} | report.seconds_by_phase
        return report

    def close(self) -> None:
        """Remove the temporary files; the writer cannot be used afterwards."""
        self._drop_spilled()
        self._closed = True

    def _drop_spilled(self) -> None:
        self._combinations.clear()
        for part in self._spilled:
            part.close()
        self._spilled.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the sketch writer is closed; create a new one")

    def _own_lists(self, list_id: int) -> list[tuple[Sketch, int]]:
        combination = self._combination_list[list_id]
        return [(part, own) for part, own in zip(self._parts, combination, strict=False) if own >= 0]

    def _spill(self) -> None:
        """Seal the mutable sketch with whole fingerprints, and start a new one."""
        if self._folder is None:
            try:
                self._folder = tempfile.TemporaryDirectory(prefix="coprlake-spill-", dir=self._spill_parent)
            except OSError as error:
                raise storage_error(f"{self._spill_parent or tempfile.gettempdir()}: a folder", error) from error
        path = Path(self._folder.name) / f"{len(self._spilled):06d}.copr"
        seal(self._mutable, path, signature_bits=FULL_SIGNATURE_BITS)
        self._spilled.append(SealedSketch.open(path, may_copy=False))  # spilling is meant to save memory
        self._spill_count += 1
        self._peak_bytes = self.peak_memory_bytes
        self._merged = False
        self._mutable = MutableSketch(self._limit_bytes, short_list_postings=self._short_list_postings)
        self._combinations.clear()


def _named_rules(number: int) -> RuleSet:
    if number not in RULES_VERSIONS.values():
        raise UsageError(f"there are no token rules {number}; expected {' or '.join(RuleSet)}")
    rules = rules_of_version(number)
    warnings.warn(f"rules={number} is deprecated, use rules={rules.value!r}", DeprecationWarning, stacklevel=3)
    return rules
