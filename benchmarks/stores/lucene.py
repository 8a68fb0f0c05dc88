"""Lucene, through its own Java library: an inverted index whose dictionary can be gone through (paper 5).

The documents are the lines, or whole batches; either way the index says which batches to open, and the data are the
same batches in zstd that others have. All of it runs on the thread that calls.
"""

import time
from collections.abc import Sequence
from struct import Struct
from typing import ClassVar

import numpy as np
import pyarrow as pa

from benchmarks.stores import lucene_java
from benchmarks.stores.base import Answer, Reader, Setting, Sizes, Store
from benchmarks.stores.batches import BatchReader, BatchWriter, contains, term
from benchmarks.stores.lucene_pieces import pieces_of
from coprlake.predicate.predicates import Predicate
from coprlake.text.arrow_strings import occurring_strings, string_buffers

_PIECE = Struct(">iii")
_SETTINGS = (
    f"Lucene {lucene_java.VERSION} (lucene-core) inside of this process; {{document}}; tokens of rules 1-5 by a token "
    "stream in Java over the bytes of a batch; IndexOptions.DOCS without norms, as the paper has it (no positions, no "
    "frequencies); flushed by RAM usage, as IndexWriter's documentation advises, here the 32 MB of the paper; fields "
    "and documents used again, no compound files, one thread (SerialMergeScheduler, UseSerialGC), merged into one "
    "segment at the end; MMapDirectory; no cache of queries; the number of the batch as a doc value; contains goes "
    "through the dictionary (MultiTermQuery). Java compiles while it runs: needs warm-up as in the paper"
)


class LuceneReader(Reader):
    """Asks Lucene, opens what it found."""

    def __init__(self, store: "LuceneStore") -> None:
        self._batches = BatchReader(store.data)
        self._index = lucene_java.lucene().Reader(str(store.index))

    def _candidates(self, text: str, *, whole: bool) -> Sequence[int]:
        pieces = pieces_of(text, whole=whole)
        if not pieces:
            return range(self._batches.batch_count)
        packed = [
            _PIECE.pack(piece.open_start + 2 * piece.open_end, piece.runs, len(piece.text)) + piece.text
            for piece in pieces
        ]
        found = self._index.find(b"".join(packed))
        return () if found is None else list(found)

    def _answer(self, predicate: Predicate, candidates: Sequence[int]) -> Answer:
        if not candidates:  # then there is no need of a matcher
            return Answer(pa.array([], pa.string()), self._batches.batch_count)
        return self._batches.filtered(predicate, candidates)

    def term(self, text: str) -> Answer:
        """By the tokens of the term."""
        return self._answer(term(text), self._candidates(text, whole=True))

    def contains(self, text: str) -> Answer:
        """By all tokens that have the text, or each its part of it."""
        return self._answer(contains(text), self._candidates(text, whole=False))

    def close(self) -> None:
        """Let go of the files."""
        self._index.close()
        self._batches.close()


class LuceneStore(Store):
    """Batches in zstd, and an index of Lucene that tells their numbers."""

    document_a_line: ClassVar[bool]

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.data = self.folder / "data.zst"
        self.index = self.folder / "lucene"
        self._writer = BatchWriter(self.data, setting.batch_bytes)
        megabytes = setting.memory_bytes / (1 << 20)
        self._index = lucene_java.lucene().Writer(str(self.index), megabytes, self.document_a_line)
        self.index_seconds = 0.0
        """What of `finish_data` was for the index: a batch gets its number when it is closed, and is indexed then."""

    @classmethod
    def missing(cls) -> str | None:
        """Whether there are JPype, a JDK and Lucene."""
        return lucene_java.missing()

    def ingest(self, content: pa.Array, source: pa.Array) -> None:
        """Compress and index full batches."""
        for number, lines in self._writer.add(content, source):
            self._add(number, lines)

    def _add(self, number: int, lines: pa.Array) -> None:
        import jpype

        data, starts = string_buffers(occurring_strings(lines))
        first = int(starts[0])
        text = jpype.JArray.of(data[first : int(starts[-1])].view(np.int8), jpype.JByte)
        self._index.add(number, text, jpype.JArray.of((starts - first).astype(np.int32), jpype.JInt))

    def finish_index(self) -> None:
        """Done together with the data; see `index_seconds`."""
        return

    def finish_data(self) -> None:
        """Compress and index the rest, and merge the index."""
        for number, lines in self._writer.rest():
            started = time.perf_counter()
            self._add(number, lines)
            self.index_seconds += time.perf_counter() - started
        self._writer.close()
        started = time.perf_counter()
        self._index.finish()
        self.index_seconds += time.perf_counter() - started

    def sizes(self) -> Sizes:
        """The batches, and Lucene's folder."""
        index = sum(path.stat().st_size for path in self.index.iterdir())
        return Sizes(sum(path.stat().st_size for path in self.files()) - index, index)

    def reader(self) -> Reader:
        """Open both."""
        return LuceneReader(self)


class LuceneLineStore(LuceneStore):
    """As in the paper."""

    name = "lucene-line"
    title = "Lucene, a document a line"
    settings = _SETTINGS.format(document="a document a line, as the paper has it")
    document_a_line = True


class LuceneBatchStore(LuceneStore):
    """The same tokens, and the batch as the smallest thing that can be found."""

    name = "lucene-batch"
    title = "Lucene, a document a batch"
    settings = _SETTINGS.format(
        document="a document a batch, which is all that an index of batches needs and saves postings"
    )
    document_a_line = False
