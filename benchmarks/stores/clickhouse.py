"""ClickHouse, inside of this process (chdb): a MergeTree table with its text index, of words or of 3-grams."""

from abc import abstractmethod
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.stores.base import Answer, Reader, Setting, Sizes, Store
from benchmarks.stores.batches import LEVEL, contains, term
from benchmarks.stores.duckdb_parquet import exactly
from benchmarks.stores.lucene_pieces import words_of
from coprlake.predicate.predicates import Predicate

INSERT_LINES: Final = 100_000
"""ClickHouse's documentation advises inserts of 10,000 to 100,000 rows."""
_MOST_TOKENS: Final = 32
_SHORTEST_LIKE: Final = 4
"""From so many letters and digits on a LIKE goes through the dictionary (text_index_like_min_pattern_length)."""
_ONE_THREAD: Final = "SETTINGS max_threads = 1, max_insert_threads = 1"
_NO_MEMORY_OF_QUERIES: Final = "use_query_condition_cache = 0, use_text_index_negative_tokens_cache = 0"
_CACHES: Final = ("MARK", "UNCOMPRESSED", "INDEX MARK", "INDEX UNCOMPRESSED", "MMAP", "QUERY CONDITION", "PAGE")
_TABLE: Final = "default.lines"
_FINDS: Final = "positionCaseInsensitive(content, {text:String}) > 0"
_SETTINGS: Final = (
    "a MergeTree sorted by source, {index} with preprocessor = lower(content), as its documentation advises for a "
    f"search that ignores case; ZSTD({LEVEL}) for the lines, as other stores; inserts of {INSERT_LINES:,} lines, as it "
    "advises, then OPTIMIZE FINAL; the text index takes no more than the memory allowed before it writes to disk "
    "(text_index_max_memory_usage_before_flush); max_threads = 1; what it remembers of earlier queries (query "
    "condition cache, negative tokens cache) is off"
)


class _Server:
    """The one server that a process can have: of one folder at a time."""

    _folder: ClassVar[Path | None] = None
    _session: ClassVar[Any] = None

    @classmethod
    def of(cls, folder: Path) -> Any:
        """The server of a folder; one of another folder is stopped."""
        if cls._folder != folder:
            from chdb import session

            cls.stop()
            cls._session, cls._folder = session.Session(str(folder)), folder
        return cls._session

    @classmethod
    def stop(cls, folder: Path | None = None) -> None:
        """Stop what runs; or only if it is of this folder."""
        if cls._session is not None and folder in (None, cls._folder):
            cls._session.close()
            cls._session = cls._folder = None


class ClickHouseReader(Reader):
    """Asks with conditions that the index can answer, and the exact one."""

    def __init__(self, store: "ClickHouseStore") -> None:
        self._store = store
        for cache in _CACHES:
            store.run(f"SYSTEM DROP {cache} CACHE")
        store.run("SYSTEM DROP TEXT INDEX CACHES")
        store.prepare()

    def _answer(self, predicate: Predicate, text: str, *, whole: bool) -> Answer:
        wheres, parameters = self._store.conditions(text, whole=whole)
        selects = [f"SELECT content FROM {_TABLE} WHERE {' AND '.join([*where, _FINDS])}" for where in wheres]
        query = f"{' UNION ALL '.join(selects)} {_ONE_THREAD}, {_NO_MEMORY_OF_QUERIES}"
        table = self._store.run(query, {"text": text} | parameters, "ArrowTable")
        return Answer(exactly(predicate, table["content"]) if table.num_rows else pa.array([], pa.string()))

    def term(self, text: str) -> Answer:
        """By the tokens of the term."""
        return self._answer(term(text), text, whole=True)

    def contains(self, text: str) -> Answer:
        """By what of the text are whole tokens, or by the dictionary."""
        return self._answer(contains(text), text, whole=False)


class ClickHouseStore(Store):
    """A table in a server of its own."""

    index: ClassVar[str]
    """How the index is declared."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_lines = 0
        self.run(
            f"CREATE TABLE {_TABLE} (source LowCardinality(String), content String CODEC(ZSTD({LEVEL})), "
            f"foreign UInt8, INDEX tokens content TYPE text(tokenizer = {self.index}, preprocessor = lower(content))) "
            f"ENGINE = MergeTree PARTITION BY {self.partition} ORDER BY source "
            f"SETTINGS text_index_max_memory_usage_before_flush = {setting.memory_bytes}"
        )
        self.run(f"SYSTEM STOP MERGES {_TABLE}")  # all at the end, and not on a second thread meanwhile

    partition: ClassVar[str] = "tuple()"

    @classmethod
    def missing(cls) -> str | None:
        """Whether there is the package."""
        if find_spec("chdb") is None:
            return "chdb is not installed; install it with: pip install -c constraints.txt chdb"
        return None

    def run(self, query: str, parameters: dict[str, str] | None = None, form: str = "CSV") -> Any:
        """Have the server do something."""
        escaped = {name: _escaped(value) for name, value in (parameters or {}).items()}
        return _Server.of(self.folder).query(query, form, params=escaped)

    def prepare(self) -> None:
        """What a reader must know."""
        return

    @abstractmethod
    def conditions(self, text: str, *, whole: bool) -> tuple[list[list[str]], dict[str, str]]:
        """Conditions on candidates, for each part of the table that has its own; and their parameters."""

    def ingest(self, content: pa.Array, source: pa.Array) -> None:
        """Insert, many lines at a time."""
        foreign = pc.invert(pc.string_is_ascii(content)).cast(pa.uint8())
        self._waiting.append(pa.record_batch([source, content, foreign], names=["source", "content", "foreign"]))
        self._waiting_lines += len(content)
        if self._waiting_lines >= INSERT_LINES:
            self._insert()

    def _insert(self) -> None:
        if self._waiting_lines:
            lines = pa.Table.from_batches(self._waiting)  # chdb finds it by its name
            assert len(lines) == self._waiting_lines
            self.run(f"INSERT INTO {_TABLE} SELECT source, content, foreign FROM Python(lines) {_ONE_THREAD}")
        self._waiting, self._waiting_lines = [], 0

    def finish_index(self) -> None:
        """Done together with the data: a part has both."""
        return

    def finish_data(self) -> None:
        """Insert the rest, and merge all parts."""
        self._insert()
        self.run(f"SYSTEM START MERGES {_TABLE}")
        self.run(f"OPTIMIZE TABLE {_TABLE} FINAL")

    def files(self) -> list[Path]:
        """Those of the parts that are in use; the server has others around them."""
        told = str(self.run("SELECT path FROM system.parts WHERE active AND table = 'lines'", form="TSVRaw"))
        return [path for part in told.split("\n") if part for path in Path(part).rglob("*") if path.is_file()]

    def sizes(self) -> Sizes:
        """The index as the server says it, and the rest of the files."""
        told = self.run(
            "SELECT sum(secondary_indices_compressed_bytes + secondary_indices_marks_bytes) FROM system.parts "
            "WHERE active AND table = 'lines'"
        )
        index = int(str(told))
        return Sizes(sum(path.stat().st_size for path in self.files()) - index, index)

    def reader(self) -> Reader:
        """Ask the server, which has forgotten what it had in memory."""
        return ClickHouseReader(self)

    def close(self) -> None:
        """Stop the server."""
        _Server.stop(self.folder)


class ClickHouseWordsStore(ClickHouseStore):
    """Whole words; parts of words by the dictionary.

    To ClickHouse, all that is not ASCII belongs to words, to us it ends them. So lines that have any are a partition of
    their own, in which a whole word is looked for as a part of the words there.
    """

    name = "clickhouse-words"
    title = "ClickHouse, text index of words"
    index = "'splitByNonAlpha'"
    partition = "foreign"
    settings = (
        _SETTINGS.format(index="text(tokenizer = 'splitByNonAlpha')")
        + "; term by hasAllTokens, contains by ILIKE over the dictionary and hasAllTokens for words inside of the "
        "text; lines that are not ASCII are a partition of their own, as words in them are not cut as ours: ILIKE there"
    )
    _has_foreign = True

    def prepare(self) -> None:
        """Whether the second partition has any lines."""
        self._has_foreign = int(str(self.run(f"SELECT count() FROM {_TABLE} WHERE foreign = 1"))) > 0

    def conditions(self, text: str, *, whole: bool) -> tuple[list[list[str]], dict[str, str]]:
        """By whole words where all lines are ASCII, and by parts of words everywhere."""
        pieces = words_of(text, whole=whole)
        tokens = [piece.text.decode() for piece in pieces if not piece.open_start and not piece.open_end]
        parts = [piece.text.decode() for piece in pieces if piece.open_start or piece.open_end]
        parameters = {"tokens": " ".join(sorted(tokens, key=len)[-_MOST_TOKENS:])} if tokens else {}
        has_tokens = ["hasAllTokens(content, {tokens:String})"] if tokens else []
        part, word = (f"%{max(texts, key=len, default='')}%" for texts in (parts, [*parts, *tokens]))
        has_part, has_word = _like("part", part, parameters), _like("word", word, parameters)
        if not text.isascii():
            return [["foreign = 1", *has_word]], parameters
        if not tokens or not self._has_foreign:
            return [[*has_tokens, *has_part]], parameters
        return [["foreign = 0", *has_tokens, *has_part], ["foreign = 1", *has_word]], parameters


def _like(name: str, pattern: str, parameters: dict[str, str]) -> list[str]:
    """The condition that the dictionary has a word of this pattern, unless that is too short for it."""
    if len(pattern) < _SHORTEST_LIKE + 2:
        return []
    parameters[name] = pattern
    return [f"content ILIKE {{{name}:String}}"]


class ClickHouseGramsStore(ClickHouseStore):
    """All sequences of three characters."""

    name = "clickhouse-grams"
    title = "ClickHouse, text index of 3-grams"
    index = "ngrams(3)"
    settings = (
        _SETTINGS.format(index="text(tokenizer = ngrams(3))")
        + "; both kinds of query by hasAllTokens, which cuts the text into its 3-grams; a scan if it has less than "
        "three characters"
    )

    def conditions(self, text: str, *, whole: bool) -> tuple[list[list[str]], dict[str, str]]:
        """By the grams of the text, whole term or not."""
        if len(text) < 3:
            return [[]], {}
        return [["hasAllTokens(content, {grams:String})"]], {"grams": text[: _MOST_TOKENS + 2]}


def _escaped(value: str) -> str:
    """A parameter as ClickHouse reads it: as a field of a file with tabs."""
    return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\0", "\\0")
