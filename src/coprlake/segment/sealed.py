"""The sealed segment: a data file that is read by row group, and the sidecar that says which ones to read."""

import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from coprlake.errors import CorruptSidecarError, FormatError, NotFoundError, StorageError, UnreadableDataError
from coprlake.files import READ_ERRORS, Folder, storage_error
from coprlake.kernel import I64Array, U8Array
from coprlake.records import INT96_UNIT, TIMESTAMP
from coprlake.segment.footer import Footer
from coprlake.segment.open_files import OPEN_FILES
from coprlake.segment.page import page_bytes
from coprlake.segment.searchable import ALWAYS, NO_PROFILE, has_times, microseconds_of
from coprlake.segment.sidecar import Sidecar, sidecar_name
from coprlake.sketch.algebra import TokenProgram
from coprlake.tokens.profile import Profile
from coprlake.unchanging import is_cut_short, is_mapped

TRUSTS_SKETCHES: Final = os.environ.get("COPRLAKE_TRUST_SKETCHES", "") not in ("", "0")
"""Whether to use sketches without first reading and checking them: for tables so large that this takes too long, on
storage that detects damage itself."""


@dataclass(frozen=True)
class SegmentEntry:
    """What the table's log says about a segment."""

    name: str
    data_bytes: int
    row_count: int | None = None
    first_time: int = ALWAYS[0]
    last_time: int = ALWAYS[1]
    partition: Mapping[str, str | None] = field(default_factory=dict)
    has_all_times: bool = False  # whether every record is known to have a timestamp
    modified_ns: int = 0  # 0: a data file of this name never changes

    @property
    def latest_time(self) -> int:
        """The latest time that `last_time` may mean: other writers state milliseconds, rounded down."""
        return min(self.last_time + 999, ALWAYS[1]) if self.last_time % 1000 == 0 else self.last_time


class SealedSegment:
    """An open segment. Reads nothing before it is needed; several threads may use it.

    Args:
        folder: the table's folder.
        entry: what the log says.
        constants: the values of the partition columns, which are not in the file.
    """

    def __init__(self, folder: Folder, entry: SegmentEntry, constants: Mapping[str, pa.Scalar] | None = None) -> None:
        self.entry = entry
        self.sidecar_problem: FormatError | NotFoundError | StorageError | None = None
        self._sidecar: Sidecar | None = None
        self._is_sidecar_opened = False
        self._folder = folder
        self.constants: Mapping[str, pa.Scalar] = constants if constants is not None else {}
        self._lock = threading.Lock()
        self._footer: Footer | None = None
        self._schema: pa.Schema | None = None
        self._places: dict[str, int] | None = None
        self._places_of: dict[tuple[str, ...], list[int]] = {}

    @property
    def name(self) -> str:
        """The name of the data file, relative to the table."""
        return self.entry.name

    @property
    def sidecar(self) -> Sidecar | None:
        """The sidecar; None if the data file has to be scanned, for the reason in `sidecar_problem`."""
        if not self._is_sidecar_opened:
            self._open_sidecar()
        return self._sidecar

    @property
    def profile(self) -> Profile:
        """The fields in the sketch; `NO_PROFILE` without one."""
        sidecar = self.sidecar  # another thread may distrust it in the meantime
        return NO_PROFILE if sidecar is None else sidecar.profile

    @property
    def footer(self) -> Footer:
        """The footer of the data file."""
        if self._footer is None:
            with self._lock:
                if self._footer is None:
                    self._read_footer()
        assert self._footer is not None
        return self._footer

    @property
    def schema(self) -> pa.Schema:
        """The columns of the records: those in the file and those of the partition."""
        _ = self.footer
        assert self._schema is not None
        return self._schema

    @property
    def batch_count(self) -> int:
        """The number of row groups in the data file."""
        sidecar = self.sidecar
        return self.footer.batch_count if sidecar is None else sidecar.description.batch_count

    def candidates(self, program: TokenProgram) -> I64Array:
        """The batches that the sketch does not rule out; all if there is no sketch or it turns out to be damaged."""
        sidecar = self.sidecar
        if sidecar is not None:
            try:
                return sidecar.sketch.run(program).astype(np.int64)
            except FormatError as error:
                self.distrust(error)
        return np.arange(self.batch_count)

    @property
    def is_sidecar_mapped(self) -> bool:
        """Whether reading the sketch reads its file."""
        sidecar = self._sidecar
        return sidecar is not None and is_mapped(sidecar.data)

    def check_mapped(self) -> bool:
        """Stop using a mapped sidecar whose file has been truncated; returns whether it was."""
        sidecar, name = self._sidecar, sidecar_name(self.name)
        if sidecar is None or not is_mapped(sidecar.data) or not is_cut_short(sidecar.data, self._folder.path(name)):
            return False
        self.distrust(
            CorruptSidecarError(
                name,
                section="file",
                expected=f"{sidecar.file_bytes} bytes, as when it was opened",
                found="fewer",
                advice="the data file is scanned; replace sidecars, never write to them, and run `coprlake index`",
            )
        )
        return True

    def distrust(self, problem: FormatError | NotFoundError) -> None:
        """Stop using the sidecar, and keep the reason."""
        self._sidecar, self.sidecar_problem, self._is_sidecar_opened = None, problem, True

    def times(self, column: str = TIMESTAMP) -> tuple[I64Array, I64Array]:
        """The first and last time of each batch, from the statistics in the footer."""
        footer = self.footer
        both = np.tile(np.array(ALWAYS, np.int64), (footer.batch_count, 1))
        place = self._column_places().get(column)
        if place is None or not has_times(self.schema, column) or column in self.constants:
            return both[:, 0], both[:, 1]
        kind = _stored_type(footer.columns.column(place))
        if kind is None:
            return both[:, 0], both[:, 1]
        chunks = footer.chunks(place)
        known = (chunks["has_range"] == 1) & (chunks["null_count"] == 0)
        if kind[0] == pa.int32():  # the chunks of a damaged file may be of another width than its schema says
            known &= (np.abs(chunks["minimum"]) < 1 << 31) & (np.abs(chunks["maximum"]) < 1 << 31)
        for side, name in enumerate(("minimum", "maximum")):
            stored = pa.array(chunks[name][known]).cast(kind[0]).cast(kind[1])
            both[known, side] = microseconds_of(stored).to_numpy()
        return both[:, 0], both[:, 1]

    def read(self, batch: int, columns: Sequence[str]) -> pa.Table:
        """The given columns of a row group, including those of the partition."""
        names = [name for name in columns if name in self.schema.names]
        stored = [name for name in names if name not in self.constants]
        row_count = self.footer.rows_of(batch)
        try:
            records = without_views(self._file().read_row_group(batch, columns=stored, use_threads=False))
            self._check_unchanged(self._source())
        except READ_ERRORS as error:
            raise self._unreadable(error) from error
        for name in names:
            if name in self.constants:
                records = records.append_column(name, pa.repeat(self.constants[name], row_count))
        return records.select(names)

    def _file(self) -> pq.ParquetFile:
        """The open data file of this thread: Arrow's readers are not thread-safe."""
        return OPEN_FILES.get((self, "file"), self._open_file)

    def _open_file(self) -> pq.ParquetFile:
        is_remote = not self._folder.is_local  # then it pays to request all columns at once
        return pq.ParquetFile(
            self._source(),
            metadata=self.footer.for_arrow,
            pre_buffer=is_remote,
            coerce_int96_timestamp_unit=INT96_UNIT,
        )

    def _source(self) -> pa.NativeFile:
        return OPEN_FILES.get((self, "source"), lambda: self._folder.open(self.name))

    def _check_unchanged(self, source: pa.NativeFile) -> None:
        """Reject data from a file that was written to since it was listed: it may be a mixture of old and new.

        Files of a table never change. Files of a folder may; one that is replaced by another of the same name stays
        intact for those who have it open.
        """
        if not self.entry.modified_ns or not isinstance(source, pa.OSFile):
            return
        status = os.fstat(source.fileno())
        if (status.st_size, status.st_mtime_ns) != (self.entry.data_bytes, self.entry.modified_ns):
            raise UnreadableDataError(
                self._folder.path(self.name),
                section="data file",
                expected="the file that was there when the search began",
                found="one that has changed since",
                advice="search again, and replace files with new ones of the same name instead of writing to them",
            )

    def page(self, batch: int, column: str) -> U8Array | None:
        """The undecoded bytes of a text column, with all its values; None if they are not available."""
        place = self._column_places().get(column)
        if place is None or column in self.constants:
            return None
        try:
            page = page_bytes(self._source(), self.footer.chunks(place)[batch])
            self._check_unchanged(self._source())
            return page
        except OSError as error:
            raise self._unreadable(error) from error

    def _column_places(self) -> dict[str, int]:
        """The index of each stored column by its path."""
        if self._places is None:
            columns = self.footer.columns
            self._places = {columns.column(number).path: number for number in range(len(columns))}
        return self._places

    def stored_column(self, column: str) -> pq.ColumnSchema | None:
        """How a column that is not nested is stored; None if the file does not have it."""
        place = self._column_places().get(column)
        return None if place is None else self.footer.columns.column(place)

    def chunks(self, column: str) -> npt.NDArray[np.void] | None:
        """What the footer says about a column that is not nested, by row group; None if the file does not have it."""
        place = self._column_places().get(column)
        return None if place is None else self.footer.chunks(place)

    def stored_bytes(self, batch: int, columns: Sequence[str]) -> int:
        """The compressed size of these columns."""
        key = tuple(columns)
        places = self._places_of.get(key)
        if places is None:
            stored = self._column_places().items()
            places = self._places_of[key] = [place for path, place in stored if path.partition(".")[0] in columns]
        return self.footer.compressed_bytes(batch, places)

    def close(self) -> None:
        """Release the sidecar."""
        if self._sidecar is not None:
            self._sidecar.close()

    def _open_sidecar(self) -> None:
        """Open the sidecar; if it is missing, damaged or of other data, keep the problem and scan the data file."""
        name = sidecar_name(self.name)
        try:
            data = self._folder.data(name, may_copy=not TRUSTS_SKETCHES)  # a trusted sketch is not read completely
            sidecar = Sidecar(data, name, is_trusted=TRUSTS_SKETCHES)
            sidecar.check_belongs_to(self.name, self.entry.data_bytes, self.entry.modified_ns)
            self._sidecar = sidecar
        except NotFoundError:
            advice = "`coprlake index` writes it; until then the data file is scanned"
            self.sidecar_problem = NotFoundError(f"{name}: there is no sidecar; {advice}")
        except (FormatError, StorageError) as error:
            self.sidecar_problem = error
        self._is_sidecar_opened = True

    def _read_footer(self) -> None:
        try:
            with self._folder.open(self.name) as source:
                if source.size() != self.entry.data_bytes:
                    raise self._unreadable(f"{source.size()} bytes")
                footer = Footer(source, self.entry.data_bytes)
                self._check_unchanged(source)
                schema = without_views(footer.schema.empty_table()).schema.remove_metadata()
        except READ_ERRORS as error:
            raise self._unreadable(error) from error
        if self.sidecar is not None:
            try:
                self.sidecar.check_batch_count(footer.batch_count)
            except CorruptSidecarError as error:
                self.distrust(error)
        for name, value in self.constants.items():
            if name not in schema.names:
                schema = schema.append(pa.field(name, value.type))
        self._schema = schema
        self._footer = footer

    def exists(self) -> bool:
        """Whether the data file exists; assumed for remote files, where checking takes a request."""
        return not self._folder.is_local or self._folder.exists(self.name)

    def _unreadable(self, found: object) -> UnreadableDataError:
        """The error for a file with the wrong content; errors of the system are raised as `StorageError` instead."""
        if isinstance(found, NotFoundError):
            found = "no such file"
        elif isinstance(found, StorageError):
            raise found
        elif isinstance(found, OSError) and found.errno is not None:  # Arrow's own errors have no number
            raise storage_error(self._folder.path(self.name), found) from found
        return UnreadableDataError(
            self._folder.path(self.name),
            section="data file",
            expected=f"a Parquet file of {self.entry.data_bytes} bytes",
            found=str(found).partition("\n")[0],
            advice="restore the file from a copy, or drop its records by their time with `coprlake delete`",
        )


_PLAIN_TYPES: Final[dict[pa.DataType, pa.DataType]] = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def without_views(records: pa.Table) -> pa.Table:
    """The records with plain types instead of string and binary views, which few of Arrow's functions accept."""
    for place, (name, kind) in enumerate(zip(records.schema.names, records.schema.types, strict=True)):
        plain = _without_views(kind)
        if plain != kind:
            records = records.set_column(place, name, records.column(place).cast(plain))
    return records


def _without_views(kind: pa.DataType) -> pa.DataType:
    """The type without views at any depth."""
    if not pa.types.is_nested(kind):
        return _PLAIN_TYPES.get(kind, kind)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_without_views(kind.key_type), _without_views(kind.item_type), kind.keys_sorted)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_views(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_without_views(kind.value_type)))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_without_views(kind.value_type)), kind.list_size)
    return kind


_STORED_UNITS: Final = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


def _stored_type(column: pq.ColumnSchema) -> tuple[pa.DataType, pa.DataType] | None:
    """The type of a time column's numbers in the file, and of the times they mean; None if they are not usable."""
    logical = json.loads(column.logical_type.to_json())
    if column.physical_type == "INT32" and logical["Type"] == "Date":
        return pa.int32(), pa.date32()
    if column.physical_type == "INT64" and logical["Type"] == "Timestamp" and logical["timeUnit"] in _STORED_UNITS:
        return pa.int64(), pa.timestamp(_STORED_UNITS[logical["timeUnit"]])
    return None
