"""Writes only the parts of records that match, for ``search --only-matching``."""

import itertools
from collections.abc import Iterator, Sequence
from typing import IO, TypeAlias

import pyarrow as pa

from coprlake.cli.printing.harmless import one_line
from coprlake.cli.printing.row_values import is_printed_as_text, values
from coprlake.predicate.deciding.highlighting import matched_spans, text_leaves
from coprlake.predicate.deciding.record_values import is_written, record_values
from coprlake.predicate.predicates import ALL_FIELDS, ANY_VALUE, Leaf, Predicate
from coprlake.records import ATTRIBUTES, CONTENT, LOGLEVEL, SOURCE

_FILTERED_BY = frozenset({SOURCE, LOGLEVEL})
"""Fields that --source and --level name: no text was searched for there."""

_Searched: TypeAlias = tuple[list[str | None], Sequence[int], list[Leaf]]


def _ways(kind: pa.DataType) -> int | None:
    """How many of the ways to write a value count: a number matches once."""
    return 1 if is_written(kind) else None


class PartsWriter:
    """Writes each matching part on a line of its own, in the order of the text.

    Args:
        out: the stream to write to.
        predicate: what was searched for.
        fields: the fields that the user named; without any, the content.
        is_terminal: whether control characters must be made harmless.
        colors: whether to colour the parts.
    """

    def __init__(
        self, out: IO[bytes], predicate: Predicate, fields: Sequence[str], *, is_terminal: bool, colors: bool
    ) -> None:
        self._out = out
        skipped = _FILTERED_BY.difference(fields)
        self._leaves = [leaf for leaf in text_leaves(predicate) if leaf.field not in skipped]
        self._is_terminal = is_terminal
        self._colors = colors

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the parts of a batch of records."""
        found: list[list[str]] = [[] for _ in range(batch.num_rows)]
        for texts, rows, leaves in self._searched(batch):
            for text, row, spans in zip(texts, rows, matched_spans(leaves, texts), strict=True):
                found[row] += [text[start:end] for start, end in spans if text is not None]
        lines = [self._line(part) for parts in found for part in parts]
        self._out.write("".join(lines).encode(errors="replace"))
        self._out.flush()

    def _searched(self, batch: pa.RecordBatch) -> Iterator[_Searched]:
        """The texts of each field with their rows, and what was searched for in it; the content first."""
        anywhere = [leaf for leaf in self._leaves if leaf.field == ANY_VALUE]
        for name in sorted(batch.schema.names, key=lambda name: name != CONTENT):
            column = batch.column(name)
            leaves = [leaf for leaf in self._leaves if leaf.field in (name, ALL_FIELDS)]
            if leaves and is_printed_as_text(column.type):
                yield values(column), range(batch.num_rows), leaves
            if anywhere:
                for texts, rows in itertools.islice(record_values(name, column), _ways(column.type)):
                    yield values(texts), rows.tolist(), anywhere
        if ATTRIBUTES in batch.schema.names and pa.types.is_map(batch.column(ATTRIBUTES).type):
            yield from self._attributes(batch)

    def _attributes(self, batch: pa.RecordBatch) -> Iterator[_Searched]:
        others = [leaf for leaf in self._leaves if leaf.field not in (*batch.schema.names, ANY_VALUE)]
        if not others:
            return
        rows = [pairs or {} for pairs in values(batch.column(ATTRIBUTES))]
        for key in dict.fromkeys(key for pairs in rows for key in pairs):
            leaves = [leaf for leaf in others if leaf.field in (key, ALL_FIELDS)]
            if leaves:
                found = [pairs.get(key) for pairs in rows]
                yield [value if isinstance(value, str) else None for value in found], range(batch.num_rows), leaves

    def _line(self, part: str) -> str:
        shown = one_line(part) if self._is_terminal else part
        return f"\x1b[1;31m{shown}\x1b[0m\n" if self._colors else f"{shown}\n"

    def close(self) -> None:
        """Do nothing: every batch has been written."""
