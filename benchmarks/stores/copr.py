"""COPR: a segment of coprlake, as in the paper, and as it is by default."""

import time

import pyarrow as pa

from benchmarks.stores.base import Answer, Reader, Setting, Sizes, Store
from benchmarks.stores.batches import contains, term
from coprlake.config import RuleSet
from coprlake.files import Folder
from coprlake.predicate.narrowing.claims import Exact
from coprlake.predicate.predicates import Predicate
from coprlake.query.options import SearchOptions
from coprlake.query.planning import View
from coprlake.query.searching import Search
from coprlake.segment.mutable import MutableSegment, SegmentOptions, SegmentReport
from coprlake.segment.sealed import SealedSegment, SegmentEntry
from coprlake.segment.sidecar import sidecar_name
from coprlake.storage.snapshot import Snapshot

_SCHEMA = pa.schema([("source", pa.string()), ("content", pa.string())])
_NAME = "segment.parquet"


class CoprReader(Reader):
    """Asks the sketch, opens what it leaves."""

    def __init__(self, store: "CoprStore") -> None:
        folder = Folder.of(store.folder)
        entry = SegmentEntry(_NAME, (store.folder / _NAME).stat().st_size)
        self._segment = SealedSegment(folder, entry)
        self._view = View(Snapshot([self._segment], _SCHEMA, [], 0))

    def _search(self, predicate: Predicate) -> Answer:
        search = Search(
            lambda: self._view, Exact(predicate), SearchOptions(columns=("content",), threads=1, strict=True)
        )
        found = [batch.column(0) for batch in search]
        lines = pa.concat_arrays(found) if found else pa.array([], pa.string())
        report = search.report
        opened = report.batches_opened
        return Answer(lines, self._segment.batch_count, opened, opened - report.batches_for_nothing)

    def term(self, text: str) -> Answer:
        """By the tokens of the term."""
        return self._search(term(text))

    def contains(self, text: str) -> Answer:
        """By the n-grams of the text."""
        return self._search(contains(text))

    def close(self) -> None:
        """Let go of the files."""
        self._segment.close()


class CoprStore(Store):
    """One segment with the rules and the sketch of the paper."""

    name = "copr"
    title = "COPR"
    settings = "a segment of coprlake with the paper's rules 1-8 and 8 signature bits, Parquet with zstd level 3"
    rules = RuleSet.PAPER

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        options = SegmentOptions(
            batch_bytes=setting.batch_bytes,
            memory_limit_bytes=setting.memory_bytes,
            rules=self.rules,
            searchable=False,
            scratch_folder=str(self.folder),
        )
        self._segment = MutableSegment(Folder.of(self.folder), _NAME, _SCHEMA, options)
        self.report: SegmentReport | None = None
        self.index_seconds = 0.0
        """What of sealing was for the sketch; the data's share is `finish_data`'s, though both happen in one call."""

    def ingest(self, content: pa.Array, source: pa.Array) -> None:
        """Assign, index and compress."""
        self._segment.append(pa.record_batch([source.cast(pa.string()), content.cast(pa.string())], schema=_SCHEMA))

    def finish_index(self) -> None:
        """Done together with the data, which comes first; see `index_seconds`."""
        return

    def finish_data(self) -> None:
        """Seal."""
        started = time.perf_counter()
        self.report = self._segment.seal()
        self.index_seconds = min(self.report.seconds_by_phase["seal sketch"], time.perf_counter() - started)

    def token_count(self) -> int:
        """How many tokens the sketch knows."""
        segment = SealedSegment(Folder.of(self.folder), SegmentEntry(_NAME, (self.folder / _NAME).stat().st_size))
        assert segment.sidecar is not None
        return int(segment.sidecar.sketch.token_count)

    def sizes(self) -> Sizes:
        """The data file, and the sidecar."""
        sidecar = self.folder / sidecar_name(_NAME)
        return Sizes((self.folder / _NAME).stat().st_size, sidecar.stat().st_size)

    def reader(self) -> Reader:
        """Map the sidecar; the data file is opened when a batch is."""
        return CoprReader(self)


class CoprlakeStore(CoprStore):
    """One segment as coprlake writes it by default."""

    name = "coprlake"
    title = "coprlake"
    settings = "a segment of coprlake as it is by default: rule set 2 with winnowed grams, 6 signature bits, format 1.2"
    rules = RuleSet.WINNOWED
