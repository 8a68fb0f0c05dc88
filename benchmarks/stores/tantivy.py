"""tantivy: an inverted index of the words of each line, whose dictionary a regular expression can go through."""

import time
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.stores.base import Answer, Reader, Setting, Sizes, Store
from benchmarks.stores.batches import BatchReader, BatchWriter, contains, term
from benchmarks.stores.lucene_pieces import Piece, words_of
from coprlake.predicate.predicates import Predicate

LONGEST_TOKEN: Final = 65_530
"""In bytes. tantivy leaves out what is longer; batches with longer lines are opened by every query."""
_CONTENT, _BATCH, _TOKENIZER = "content", "batch", "words"
_LONGEST_PATTERN: Final = 100
"""In characters. tantivy takes patterns of up to 1,000 states; post-filtering does the rest."""
_FEW: Final = 64
"""Up to so many found documents their batches are looked up one by one, beyond it they are aggregated."""


@cache
def _schema() -> Any:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field(_CONTENT, tokenizer_name=_TOKENIZER, index_option="basic")
    builder.add_integer_field(_BATCH, fast=True)
    return builder.build()


def _register(index: Any) -> None:
    import tantivy

    index.register_tokenizer(_TOKENIZER, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).build())


def _plain(lines: pa.Array) -> list[str]:
    """The lines in lower case and of ASCII only, so that tantivy's words are those of rule 1."""
    lines = pc.ascii_lower(lines)
    if not pc.all(pc.string_is_ascii(lines)).as_py():
        lines = pc.replace_substring_regex(lines, r"[^\x00-\x7f]+", " ")
    plain: list[str] = lines.to_pylist()
    return plain


class TantivyReader(Reader):
    """Asks tantivy, opens what it found."""

    def __init__(self, store: "TantivyStore") -> None:
        import tantivy

        self._tantivy = tantivy
        self._batches = BatchReader(store.data)
        self._always = frozenset(np.load(store.always).tolist())
        index = tantivy.Index.open(str(store.index))
        _register(index)
        self._searcher = index.searcher()

    def _query(self, piece: Piece) -> Any:
        word = piece.text.decode()
        if not piece.open_start and not piece.open_end:
            return self._tantivy.Query.term_query(_schema(), _CONTENT, word, "basic")
        is_cut = len(word) > _LONGEST_PATTERN
        before, behind = ".*" if piece.open_start else "", ".*" if piece.open_end or is_cut else ""
        pattern = f"{before}{word[:_LONGEST_PATTERN]}{behind}"
        return self._tantivy.Query.regex_query(_schema(), _CONTENT, pattern)

    def _candidates(self, pieces: Sequence[Piece]) -> Iterable[int]:
        if not pieces:
            return range(self._batches.batch_count)
        if any(len(piece.text) > LONGEST_TOKEN for piece in pieces):
            return sorted(self._always)
        queries = [self._query(piece) for piece in pieces]
        must = self._tantivy.Occur.Must
        query = queries[0] if len(queries) == 1 else self._tantivy.Query.boolean_query([(must, one) for one in queries])
        found = self._searcher.search(query, _FEW, count=False).hits
        if len(found) < _FEW:
            batches = self._searcher.fast_field_values(_BATCH, [address for _, address in found]) if found else []
        else:
            terms = {"field": _BATCH, "size": self._batches.batch_count}
            buckets = self._searcher.aggregate(query, {_BATCH: {"terms": terms}})[_BATCH]["buckets"]
            batches = [int(bucket["key"]) for bucket in buckets]
        return sorted(self._always.union(batches))

    def _answer(self, predicate: Predicate, pieces: Sequence[Piece]) -> Answer:
        candidates = self._candidates(pieces)
        if not candidates:  # then there is no need of a matcher
            return Answer(pa.array([], pa.string()), self._batches.batch_count)
        return self._batches.filtered(predicate, candidates)

    def term(self, text: str) -> Answer:
        """By the words of the term."""
        return self._answer(term(text), words_of(text, whole=True))

    def contains(self, text: str) -> Answer:
        """By all words that have the text, or each its part of it."""
        return self._answer(contains(text), words_of(text, whole=False))

    def close(self) -> None:
        """Let go of the files."""
        self._batches.close()


class TantivyStore(Store):
    """Batches in zstd, and an index of tantivy that tells their numbers."""

    name = "tantivy"
    title = "tantivy, words"
    settings = (
        "a document a line, which is what a query is to find; its simple tokenizer without the filter that drops long "
        "words, over lines in lower case; index option basic: its documentation wants frequencies for scores and "
        "positions for phrases, and there are neither; the number of the batch as a fast field; a writer of one thread "
        "(besides ours) with the memory allowed, its default merge policy (the package cannot merge into one segment); "
        "contains by a regular expression over the dictionary; words only, so texts without a letter or digit open all"
    )

    def __init__(self, setting: Setting) -> None:
        import tantivy

        super().__init__(setting)
        self.data = self.folder / "data.zst"
        self.index = self.folder / "tantivy"
        self.always = self.folder / "always.npy"
        self.index.mkdir()
        self._batches = BatchWriter(self.data, setting.batch_bytes)
        index = tantivy.Index(_schema(), path=str(self.index))
        _register(index)
        self._writer = index.writer(max(setting.memory_bytes, 15_000_000), 1)
        self._document = tantivy.Document
        self._long: list[int] = []
        self.index_seconds = 0.0
        """What of `finish_data` was for the index: a batch gets its number when it is closed, and is indexed then."""

    @classmethod
    def missing(cls) -> str | None:
        """Whether there is the package."""
        if find_spec("tantivy") is None:
            return "tantivy is not installed; install it with: pip install -c constraints.txt tantivy"
        return None

    def ingest(self, content: pa.Array, source: pa.Array) -> None:
        """Compress and index full batches."""
        for number, lines in self._batches.add(content, source):
            self._add(number, lines)

    def _add(self, number: int, lines: pa.Array) -> None:
        add, document = self._writer.add_document, self._document
        for line in _plain(lines):
            add(document(content=line, batch=number))
        if (pc.max(pc.binary_length(lines)).as_py() or 0) > LONGEST_TOKEN:
            self._long.append(number)

    def finish_index(self) -> None:
        """Done together with the data; see `index_seconds`."""
        return

    def finish_data(self) -> None:
        """Compress and index the rest, and commit."""
        for number, lines in self._batches.rest():
            started = time.perf_counter()
            self._add(number, lines)
            self.index_seconds += time.perf_counter() - started
        self._batches.close()
        started = time.perf_counter()
        self._writer.commit()
        self._writer.garbage_collect_files()
        self._writer.wait_merging_threads()
        np.save(self.always, np.array(self._long, np.int64))
        self.index_seconds += time.perf_counter() - started

    def sizes(self) -> Sizes:
        """The batches, and tantivy's folder."""
        index = sum(path.stat().st_size for path in [*self.index.iterdir(), self.always])
        return Sizes(sum(path.stat().st_size for path in self.files()) - index, index)

    def reader(self) -> Reader:
        """Open both."""
        return TantivyReader(self)
