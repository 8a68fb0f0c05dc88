"""Convert the events of the machine to Arrow columns, all rows at once.

Each event belongs to a column and to a row of that column's table. The rows of table 0 are the texts (or matches); a
row of another table starts with the event that opens it, so counting these up to an event gives its row.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.dpl.compiling.export_layout import KEY, VALUE, Column
from coprlake.dpl.compiling.program import PatternProgram
from coprlake.dpl.running.machine import INEXACT, MATCH, Events
from coprlake.dpl.span_strings import strings_of
from coprlake.kernel import I64Array, U8Array

_NO_COLUMN: Final = -2
_TEXTS: Final = frozenset({"string", "ip", "json"})


def empty_structs(row_count: int) -> pa.StructArray:
    """`row_count` structs without fields."""
    return pa.Array.from_buffers(pa.struct([]), row_count, [None])


class Whole(NamedTuple):
    """A record or an array: all its events, and the one chosen for each row."""

    events: I64Array
    chosen: I64Array


class Columns:
    """The events of some texts, followed by a placeholder for rows without an event.

    With `all_matches`, table 0 has a row for each match.
    """

    def __init__(
        self, program: PatternProgram, data: U8Array, events: Events, row_count: int, *, all_matches: bool
    ) -> None:
        self._data = data
        self._events = events
        sites = program.sites
        columns = np.array([site.column for site in sites] + [_NO_COLUMN, MATCH], np.int32)
        self._columns = columns[events.sites]  # the site of a match is -1, and so is its column
        self._decodings = np.array([site.decoding for site in sites] + [0, 0], np.uint8)[events.sites]
        self._rows: dict[int, I64Array] = {}
        self._row_counts: dict[int, int] = {}
        self._openers: dict[int, I64Array] = {}
        if all_matches:
            self._open(0, MATCH)
        else:
            self._rows[0], self._row_counts[0] = events.rows, row_count
        for number, site in enumerate(sites):
            if site.zone is not None:
                self._place_in_zone(events.sites == number, site.zone)

    def _open(self, table: int, column: int) -> None:
        """Let each event of `column` open a row of `table`."""
        opens = self._columns == column
        self._rows[table] = np.cumsum(opens) - 1
        self._openers[table] = np.flatnonzero(opens)
        self._row_counts[table] = len(self._openers[table])

    def _place_in_zone(self, chosen: npt.NDArray[np.bool_], zone: str) -> None:
        """Convert local times to UTC: a repeated time means its first pass, a skipped one the first time after."""
        if zone == "UTC" or not chosen.any():
            return
        local = pa.array(self._events.values[chosen], pa.timestamp("us"))
        moved = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="latest")
        self._events.values[chosen] = moved.cast(pa.int64()).to_numpy()

    def _belong(self, events: I64Array, rows: I64Array, whole: Whole) -> npt.NDArray[np.bool_]:
        """Whether each event is part of the record or array chosen for its row.

        The event of a whole follows those of its parts; in a repeated group it may have matched several times.
        """
        return whole.events[np.searchsorted(whole.events, events)] == whole.chosen[rows]

    def _chosen(self, column: Column, whole: Whole | None) -> tuple[I64Array, npt.NDArray[np.bool_]]:
        """The last event of each row, or -1 (the placeholder) for rows without one; and which rows have none."""
        events = np.flatnonzero(self._columns == column.number)
        if whole is not None:
            events = events[self._belong(events, self._rows[column.table][events], whole)]
        chosen = np.full(self._row_counts[column.table], -1, np.int64)
        chosen[self._rows[column.table][events]] = events
        return chosen, chosen < 0

    def struct(self, columns: tuple[Column, ...]) -> pa.StructArray:
        """Structs with a child for each column of table 0; the structs themselves are never null."""
        arrays = [self.array(column) for column in columns]
        fields = [pa.field(column.name, column.type.arrow()) for column in columns]
        if not arrays:
            return empty_structs(self._row_counts[0])
        return pa.StructArray.from_arrays(arrays, fields=fields)

    def array(self, column: Column, whole: Whole | None = None) -> pa.Array:
        """The values of a column; `whole` is the record that it is a field of, if any."""
        chosen, absent = self._chosen(column, whole)
        kind = column.type.kind
        if kind in _TEXTS:
            starts, stops = self._events.starts[chosen], self._events.stops[chosen]
            return strings_of(self._data, starts, stops, self._decodings[chosen], absent)
        if kind == "record":
            is_element = column.name == ""  # it has its own row, and exists if the row does
            record = None if is_element else Whole(np.flatnonzero(self._columns == column.number), chosen)
            children = [self.array(child, record) for child in column.children.values()]
            fields = [pa.field(child.name, child.type.arrow()) for child in column.children.values()]
            return pa.StructArray.from_arrays(children, fields=fields, mask=None if is_element else pa.array(absent))
        if kind == "array":
            return self._list(column, chosen, absent)
        if kind == "map":
            return self._map(column, chosen, absent)
        values = self._events.values[chosen]
        if kind == "double":
            return self._doubles(values, chosen, absent)
        return pa.array(values != 0 if kind == "boolean" else values, mask=absent)

    def _doubles(self, values: I64Array, chosen: I64Array, absent: npt.NDArray[np.bool_]) -> pa.Array:
        """Doubles; those that the kernel could not read exactly are parsed again from their text."""
        reals = values.view(np.float64)
        rest = np.flatnonzero((values == INEXACT) & ~absent)
        if len(rest):
            events = chosen[rest]
            starts, stops = self._events.starts[events], self._events.stops[events]
            written = strings_of(self._data, starts, stops, np.zeros(len(rest), np.uint8))
            written = pc.replace_substring(written, ",", ".")
            reals[rest] = written.to_numpy(zero_copy_only=False).astype(np.float64)
        return pa.array(reals, mask=absent)

    def _parents(self, column: Column, chosen: I64Array) -> tuple[I64Array, I64Array]:
        """The rows of the elements that belong to a chosen array, and the row of the array for each."""
        assert column.opened
        self._open(*column.opened)
        openers = self._openers[column.opened[0]]
        parents = self._rows[column.table][openers]
        whole = Whole(np.flatnonzero(self._columns == column.number), chosen)
        kept = np.flatnonzero(self._belong(openers, parents, whole))
        return kept, parents[kept]

    def _offsets(self, parents: I64Array, column: Column) -> pa.Array:
        """The offsets of a list column: where the elements of each row start."""
        counts = np.bincount(parents, minlength=self._row_counts[column.table])
        return pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))

    def _list(self, column: Column, chosen: I64Array, absent: npt.NDArray[np.bool_]) -> pa.ListArray:
        kept, parents = self._parents(column, chosen)
        elements = self.array(column.children[""])
        if len(kept) < len(elements):
            elements = elements.take(pa.array(kept))
        mask = pa.array(absent) if absent.any() else None
        return pa.ListArray.from_arrays(self._offsets(parents, column), elements, column.type.arrow(), mask=mask)

    def _map(self, column: Column, chosen: I64Array, absent: npt.NDArray[np.bool_]) -> pa.MapArray:
        """Maps; of pairs with the same key the last wins, and pairs without a key are dropped."""
        pairs, parents = self._parents(column, chosen)
        keys = self.array(column.children[KEY]).take(pa.array(pairs))
        values = self.array(column.children[VALUE]).take(pa.array(pairs))
        numbers = keys.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        distinct = parents * (len(keys) + 1) + numbers
        _, last = np.unique(distinct[::-1], return_index=True)
        kept = np.sort(len(keys) - 1 - last)
        kept = kept[numbers[kept] >= 0]
        entries = pa.array(kept)
        mask = pa.array(absent) if absent.any() else None
        made = pa.ListArray.from_arrays(
            self._offsets(parents[kept], column),
            pa.StructArray.from_arrays([keys.take(entries), values.take(entries)], ["key", "value"]),
            mask=mask,
        )
        inner, kind = made.values, column.type.arrow()
        assert isinstance(inner, pa.StructArray)
        assert pa.types.is_map(kind), kind
        entry = pa.StructArray.from_arrays(
            [inner.field(0), inner.field(1)],
            fields=[pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string())],
        )
        return pa.Array.from_buffers(kind, len(made), made.buffers()[:2], children=[entry])

    def lists(self, columns: tuple[Column, ...], row_count: int, null_rows: npt.NDArray[np.bool_]) -> pa.ListArray:
        """With `all_matches`: a list of structs for each text."""
        parents = self._events.rows[self._openers[0]]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(parents, minlength=row_count))]).astype(np.int32)
        mask = pa.array(null_rows) if null_rows.any() else None
        return pa.ListArray.from_arrays(pa.array(offsets), self.struct(columns), mask=mask)
