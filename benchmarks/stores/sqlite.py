"""SQLite's FTS5 with the trigram tokenizer: an inverted index of all sequences of three characters."""

import sqlite3
import time
from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.stores.base import Answer, Reader, Setting, Sizes, Store
from benchmarks.stores.batches import BatchReader, BatchWriter, contains, term
from coprlake.predicate.predicates import Predicate

_MOST_GRAMS: Final = 64
"""So many are asked for together; FTS5 takes some hundred, and post-filtering does the rest."""


class SqliteReader(Reader):
    """Asks FTS5 for the lines with all trigrams of the text, opens their batches."""

    def __init__(self, store: "SqliteStore") -> None:
        self._batches = BatchReader(store.data)
        self._ends = np.load(store.ends)
        self._base = sqlite3.connect(f"file:{store.index}?mode=ro", uri=True)

    def _candidates(self, text: str) -> Iterable[int]:
        grams = dict.fromkeys(text[i : i + 3] for i in range(len(text) - 2))
        if not grams or "\0" in text:  # SQLite's texts of a query end there
            return range(self._batches.batch_count)
        quoted = ['"{}"'.format(gram.replace('"', '""')) for gram in list(grams)[:_MOST_GRAMS]]
        rows = self._base.execute("SELECT rowid FROM lines WHERE lines MATCH ?", [" AND ".join(quoted)]).fetchall()
        if not rows:
            return ()
        found: list[int] = np.unique(np.searchsorted(self._ends, np.array(rows)[:, 0], side="right")).tolist()
        return found

    def _answer(self, predicate: Predicate, candidates: Iterable[int]) -> Answer:
        if not candidates:  # then there is no need of a matcher
            return Answer(pa.array([], pa.string()), self._batches.batch_count)
        return self._batches.filtered(predicate, candidates)

    def term(self, text: str) -> Answer:
        """As `contains`: FTS5 knows no borders of terms here."""
        return self._answer(term(text), self._candidates(text))

    def contains(self, text: str) -> Answer:
        """By the trigrams of the text; all batches if it has none."""
        return self._answer(contains(text), self._candidates(text))

    def close(self) -> None:
        """Let go of the files."""
        self._base.close()
        self._batches.close()


class SqliteStore(Store):
    """Batches in zstd, and a contentless table of FTS5 with a row a line."""

    name = "sqlite-trigram"
    title = "SQLite FTS5, trigrams"
    settings = (
        f"SQLite {sqlite3.sqlite_version}, fts5(tokenize='trigram', content='', columnsize=0, detail=none), a row a "
        "line: a contentless table, as the lines are in the batches, without sizes and positions, which make the index "
        "larger and which are not needed where all trigrams of a text are asked for together; hashsize is the memory "
        "allowed; one transaction, no journal, then 'optimize'; texts of less than three characters open all batches"
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.data = self.folder / "data.zst"
        self.index = self.folder / "index.sqlite"
        self.ends = self.folder / "ends.npy"
        self._writer = BatchWriter(self.data, setting.batch_bytes)
        self._ends: list[int] = []
        self._base = sqlite3.connect(self.index, isolation_level=None)
        self._base.execute("PRAGMA journal_mode = OFF")
        self._base.execute("PRAGMA synchronous = OFF")
        self._base.execute(
            "CREATE VIRTUAL TABLE lines USING fts5("
            "content, tokenize = 'trigram', content = '', columnsize = 0, detail = none)"
        )
        self._base.execute("INSERT INTO lines(lines, rank) VALUES ('hashsize', ?)", [setting.memory_bytes])
        self._base.execute("BEGIN")
        self.index_seconds = 0.0
        """What of `finish_data` was for the index: a batch gets its number when it is closed, and is indexed then."""

    @classmethod
    def missing(cls) -> str | None:
        """Whether Python's SQLite has what is needed."""
        with sqlite3.connect(":memory:") as base:
            try:
                base.execute("CREATE VIRTUAL TABLE t USING fts5(c, tokenize = 'trigram')")
            except sqlite3.OperationalError as error:
                return f"Python's SQLite has no FTS5 with trigrams ({error}); use a Python with SQLite 3.34 or newer"
        base.close()
        return None

    def ingest(self, content: pa.Array, source: pa.Array) -> None:
        """Compress and index full batches."""
        for _, lines in self._writer.add(content, source):
            self._add(lines)

    def _add(self, lines: pa.Array) -> None:
        first = self._ends[-1] if self._ends else 0
        if pc.any(pc.match_substring(lines, "\0")).as_py():  # the tokenizer would stop there
            lines = pc.replace_substring(lines, "\0", "\1")
        rows = enumerate(lines.to_pylist(), start=first)
        self._base.executemany("INSERT INTO lines(rowid, content) VALUES (?, ?)", rows)
        self._ends.append(first + len(lines))

    def finish_index(self) -> None:
        """Done together with the data; see `index_seconds`."""
        return

    def finish_data(self) -> None:
        """Compress and index the rest, and merge the index."""
        for _, lines in self._writer.rest():
            started = time.perf_counter()
            self._add(lines)
            self.index_seconds += time.perf_counter() - started
        self._writer.close()
        started = time.perf_counter()
        self._base.execute("INSERT INTO lines(lines) VALUES ('optimize')")
        self._base.execute("COMMIT")
        self._base.execute("VACUUM")
        self._base.close()
        np.save(self.ends, np.array(self._ends, np.int64))
        self.index_seconds += time.perf_counter() - started

    def sizes(self) -> Sizes:
        """The batches, and the database."""
        index = self.index.stat().st_size + self.ends.stat().st_size
        return Sizes(sum(path.stat().st_size for path in self.files()) - index, index)

    def reader(self) -> Reader:
        """Open both."""
        return SqliteReader(self)
