"""The store: groups of at most 128,000 lines (paper 5), each searched by itself."""

import mmap
import os
from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.stores.base import Answer, Reader, Setting, Sizes, Store
from benchmarks.stores.batches import contains, term
from benchmarks.stores.dictionary.asking import Question
from benchmarks.stores.dictionary.groups import encode_group
from benchmarks.stores.dictionary.reading import Group, OpenGroup
from coprlake.predicate.deciding.matching import Matcher
from coprlake.predicate.predicates import Predicate

GROUP_LINES: Final = 128_000
GROUP_BYTES: Final = 256 * 1024 * 1024
"""More text than this closes a group, too: places in it are counted with 32 bits."""
_SCHEMA: Final = pa.schema([("content", pa.string())])


class DictionaryReader(Reader):
    """Has the templates and stamps of all groups in memory; dictionaries and data are decompressed by each question."""

    def __init__(self, store: "DictionaryStore") -> None:
        self._file = store.data.open("rb")
        empty = os.fstat(self._file.fileno()).st_size == 0
        self._map = b"" if empty else mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        ends = np.fromfile(store.places, np.int64).tolist()
        data = memoryview(self._map)
        self._groups = [Group(data[start:end]) for start, end in zip([0, *ends], ends, strict=False)]

    def _answer(self, predicate: Predicate, text: str) -> Answer:
        question = Question(text)
        matcher = Matcher(predicate, _SCHEMA)
        found: list[pa.Array] = []
        opened = matching = 0
        for group in self._groups:
            count = len(found)
            open_group = OpenGroup(group)
            for lines in question.lines(open_group):
                mask = matcher.mask(pa.record_batch([lines], schema=_SCHEMA))
                if mask.any():
                    found.append(lines.filter(pa.array(mask)))
            opened += open_group.is_opened
            matching += len(found) > count
        merged = pa.concat_arrays(found) if found else pa.array([], pa.string())
        return Answer(merged, len(self._groups), opened, matching)

    def term(self, text: str) -> Answer:
        """The lines that contain the text, and of them those where it is a term."""
        return self._answer(term(text), text)

    def contains(self, text: str) -> Answer:
        """By alignments of the text with templates."""
        return self._answer(contains(text), text)

    def close(self) -> None:
        """Let go of the file: the mapping goes with the last answer that looks into it."""
        self._groups.clear()
        self._file.close()


class DictionaryStore(Store):
    """Templates, columns of variables, dictionaries."""

    name = "dictionary"
    title = "Dictionary (CLP-like)"
    settings = (
        "our own, in the manner of CLP and LogGrep: groups of 128,000 lines (paper 5), inside of a group by source; "
        "tokens with a digit, and words in less than 1 % of 16,384 sampled lines, are variables; variables in columns "
        "by template, with a dictionary where values repeat; lines whose template fewer than 12 have kept as they are; "
        "blocks of 128 KiB in zstd level 3. A group counts as opened if more than templates and dictionaries was "
        "decompressed"
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.data = self.folder / "groups.zst"
        self.places = self.folder / "groups.places"
        self._file = self.data.open("wb")
        self._ends: list[int] = []
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_lines = 0
        self._waiting_bytes = 0

    def ingest(self, content: pa.Array, source: pa.Array) -> None:
        """Encode full groups."""
        batch = pa.record_batch([content, source], names=["content", "source"])
        while batch.num_rows:
            room = GROUP_LINES - self._waiting_lines
            part, batch = batch.slice(0, room), batch.slice(room)
            self._waiting.append(part)
            self._waiting_lines += part.num_rows
            self._waiting_bytes += part.nbytes
            if self._waiting_lines == GROUP_LINES or self._waiting_bytes > GROUP_BYTES:
                self._write()

    def _write(self) -> None:
        table = pa.Table.from_batches(self._waiting).combine_chunks()
        self._waiting, self._waiting_lines, self._waiting_bytes = [], 0, 0
        codes = np.asarray(table.column("source").chunk(0).dictionary_encode().indices.fill_null(-1))
        lines = table.column("content").chunk(0).take(pa.array(np.argsort(codes, kind="stable")))
        packed = encode_group(lines)
        self._file.write(packed)
        self._ends.append((self._ends[-1] if self._ends else 0) + len(packed))

    def finish_index(self) -> None:
        """There is none besides the data."""
        return

    def finish_data(self) -> None:
        """Encode the rest."""
        if self._waiting:
            self._write()
        self.places.write_bytes(np.array(self._ends, np.int64).tobytes())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def sizes(self) -> Sizes:
        """All of it is data: the dictionaries are how lines are stored."""
        return Sizes(sum(path.stat().st_size for path in self.files()), 0)

    def reader(self) -> Reader:
        """Read the templates of all groups."""
        return DictionaryReader(self)
