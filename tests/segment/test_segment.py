"""Segments: batches by source and size, found at once, sealed whole."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coprlake.errors import CorruptSidecarError, UsageError
from coprlake.files import Folder
from coprlake.predicate.build import contains, equals
from coprlake.predicate.narrowing.required import required_tokens
from coprlake.segment.assigner import BatchAssigner, record_bytes
from coprlake.segment.batch_indexing import attribute_columns
from coprlake.segment.mutable import MutableSegment, SegmentOptions
from coprlake.segment.scratch import ScratchFile
from coprlake.segment.sealed import SealedSegment, SegmentEntry
from coprlake.segment.searchable import ALWAYS, Searchable, time_range
from coprlake.segment.sidecar import (
    UNINDEXED,
    Description,
    Sidecar,
    data_name_of,
    encode_sidecar,
    joined_kinds,
    sidecar_name,
)
from coprlake.sketch.algebra import compile_expression
from coprlake.table import Table, create_table

SMALL = SegmentOptions(batch_bytes=100, slot_count=3)


def batch_of(numbers: range, sources: int = 4) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [
            {"timestamp": 1000 + n, "source": f"s{n % sources}", "content": f"line number{n} {'x' * 10}", "id": n}
            for n in numbers
        ],
        pa.schema(
            [
                ("timestamp", pa.timestamp("us", "UTC")),
                ("source", pa.string()),
                ("content", pa.string()),
                ("id", pa.int64()),
            ]
        ),
    )


def new_segment(folder: Path, **options: Any) -> MutableSegment:
    return MutableSegment(Folder.of(folder), "part/a.parquet", batch_of(range(0)).schema, SegmentOptions(**options))


def ids_in(segment: Searchable, batches: Any) -> list[int]:
    return sorted(n for batch in batches for n in segment.read(int(batch), ["id"]).column("id").to_pylist())


def candidates(segment: Searchable, predicate: Any) -> list[int]:
    return segment.candidates(compile_expression(required_tokens(predicate, segment.profile).expression)).tolist()


# --- the assigner ---


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60)), max_size=8), max_size=6),
    st.integers(1, 120),
    st.integers(1, 4),
)
def test_the_assigner_keeps_all_records_and_the_order_of_each_source(
    parts: list[list[tuple[int, int]]], batch_bytes: int, slots: int
) -> None:
    assigner = BatchAssigner(batch_bytes, slots)
    schema = pa.schema([("source", pa.string()), ("content", pa.string()), ("id", pa.int64())])
    closed: list[pa.Table] = []
    number = 0
    sizes: list[int] = []
    for part in parts:
        rows: list[dict[str, Any]] = []
        for source, size in part:
            rows.append({"source": None if source == 5 else f"s{source}", "content": "x" * size, "id": number})
            sizes.append(size + 1)
            number += 1
        closed += list(assigner.add(pa.RecordBatch.from_pylist(rows, schema)))
        waiting = assigner.open_batches()
        assert sum(piece.num_rows for piece in waiting) + sum(batch.num_rows for batch in closed) == number
        assert assigner.open_bytes == sum(int(record_bytes(piece).sum()) for piece in waiting)
        assert assigner.open_bytes < slots * batch_bytes
    for batch in closed:
        total = sum(sizes[n] for n in batch.column("id").to_pylist())
        assert total >= batch_bytes
        assert total - sizes[batch.column("id").to_pylist()[-1]] < batch_bytes
    closed += list(assigner.flush())
    rows = [row for batch in closed for row in batch.to_pylist()]
    assert sorted(row["id"] for row in rows) == list(range(number))
    for source in {row["source"] for row in rows}:
        own = [row["id"] for row in rows if row["source"] == source]
        assert own == sorted(own)
    assert assigner.open_bytes == 0
    assert not assigner.open_batches()


def test_the_assigner_takes_dictionaries_and_records_without_lines() -> None:
    encoded = pa.array(["a", None, "b", "a"]).dictionary_encode()
    batch = pa.RecordBatch.from_arrays([encoded, pa.array(["x", "yy", None, ""])], ["source", "message"])
    assert record_bytes(batch).tolist() == [2, 3, 1, 1]
    assigner = BatchAssigner(1, 2)
    assert sum(table.num_rows for table in assigner.add(batch)) == 4
    assert record_bytes(pa.RecordBatch.from_pydict({"n": [1, 2]})).tolist() == [1, 1]


# --- the mutable segment ---


def test_records_are_found_at_once(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, batch_bytes=100, slot_count=3)
    for first in range(0, 40, 5):
        segment.append(batch_of(range(first, first + 5)))
        view = segment.view()
        assert ids_in(view, range(view.batch_count)) == list(range(first + 5))
        assert first + 4 in ids_in(view, candidates(view, contains(f"number{first + 4}")))
    view = segment.view()
    assert len(candidates(view, contains("number7 "))) < view.batch_count
    segment.append(batch_of(range(40, 50)))
    assert ids_in(view, range(view.batch_count)) == list(range(40))  # as it was
    segment.seal()
    assert ids_in(view, range(view.batch_count)) == list(range(40))
    assert 7 in ids_in(view, candidates(view, contains("number7 ")))
    with pytest.raises(UsageError, match="sealed"):
        segment.append(batch_of(range(1)))
    with pytest.raises(UsageError, match="sealed"):
        segment.seal()


def test_sealing_writes_two_files(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, batch_bytes=100, slot_count=3)
    segment.append(batch_of(range(30)))
    report = segment.seal()
    assert {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()} == {
        "part/a.parquet",
        "_coprlake/part/a.parquet.copr",
    }
    metadata = pq.read_metadata(tmp_path / "part/a.parquet")
    assert (
        (metadata.num_rows, metadata.num_row_groups)
        == (report.row_count, report.batch_count)
        == (30, report.batch_count)
    )
    assert report.raw_bytes == sum(record_bytes(batch_of(range(30))).tolist())
    assert report.data_bytes == (tmp_path / "part/a.parquet").stat().st_size
    assert report.index_bytes == (tmp_path / "_coprlake/part/a.parquet.copr").stat().st_size
    assert (report.first_time, report.last_time) == (1000, 1029)
    assert metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_segment_without_records(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    report = segment.seal()
    assert (report.row_count, report.batch_count) == (0, 0)
    assert (report.first_time, report.last_time) == ALWAYS
    sealed = SealedSegment(Folder.of(tmp_path), SegmentEntry(report.name, report.data_bytes))
    assert sealed.batch_count == 0
    assert candidates(sealed, contains("anything")) == []
    assert sealed.times()[0].tolist() == []


def test_an_abandoned_segment_leaves_nothing(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, batch_bytes=100, slot_count=3)
    segment.append(batch_of(range(30)))
    segment.abandon()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_other_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="different columns"):
        new_segment(tmp_path).append(pa.RecordBatch.from_pydict({"content": ["x"]}))


def test_a_segment_that_is_not_searchable_has_no_view(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, searchable=False)
    segment.append(batch_of(range(3)))
    with pytest.raises(UsageError, match="searchable"):
        segment.view()
    segment.abandon()


def test_a_batch_that_fails_to_be_written_is_not_lost_silently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = new_segment(tmp_path, batch_bytes=10_000)
    segment.append(batch_of(range(10)))

    def full(self: ScratchFile, batch: pa.Table) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(ScratchFile, "append", full)
        with pytest.raises(OSError, match="space"):
            segment.seal()
    with pytest.raises(UsageError):
        segment.seal()


# --- the sealed segment ---


def seal(folder: Path, rows: pa.RecordBatch, **options: Any) -> SealedSegment:
    place = Folder.of(folder)
    segment = MutableSegment(place, "a.parquet", rows.schema, SegmentOptions(**options))
    segment.append(rows)
    report = segment.seal()
    return SealedSegment(place, SegmentEntry("a.parquet", report.data_bytes, report.row_count))


@pytest.mark.parametrize("bits", [None, 1, 8, 32])
def test_a_sealed_segment_answers_like_the_mutable_one(tmp_path: Path, bits: int | None) -> None:
    sealed = seal(tmp_path, batch_of(range(60)), batch_bytes=100, slot_count=3, signature_bits=bits)
    assert ids_in(sealed, range(sealed.batch_count)) == list(range(60))
    for number in (0, 7, 59):
        assert number in ids_in(sealed, candidates(sealed, contains(f"number{number} ")))
        assert number in ids_in(sealed, candidates(sealed, equals("source", f"s{number % 4}")))
    first, last = sealed.times()
    for batch in range(sealed.batch_count):
        numbers = sealed.read(batch, ["id"]).column("id").to_pylist()
        assert (first[batch], last[batch]) == (1000 + min(numbers), 1000 + max(numbers))
    assert sealed.read(0, ["nothing", "id"]).schema.names == ["id"]
    assert sealed.stored_bytes(0, ["content"]) > 0
    sealed.close()


def test_constants_are_columns(tmp_path: Path) -> None:
    place = Folder.of(tmp_path)
    constants = {"tenant": pa.scalar("blue"), "none": pa.scalar(None, pa.string())}
    segment = MutableSegment(place, "a.parquet", batch_of(range(0)).schema, SMALL, constants)
    segment.append(batch_of(range(10)))
    view = segment.view()
    report = segment.seal()
    sealed = SealedSegment(place, SegmentEntry("a.parquet", report.data_bytes), constants)
    for found in (view, sealed):
        assert found.read(0, ["tenant"]).column("tenant").unique().to_pylist() == ["blue"]
        assert found.read(0, ["none"]).column("none").unique().to_pylist() == [None]
        assert candidates(found, equals("tenant", "blue"))
        assert {"tenant", "none"} <= set(found.schema.names)
    assert candidates(sealed, equals("tenant", "red")) == []
    assert "tenant" not in pq.read_schema(tmp_path / "a.parquet").names


def test_fields_that_are_there_in_some_batches_only(tmp_path: Path) -> None:
    schema = pa.schema([("content", pa.string()), ("attributes", pa.map_(pa.string(), pa.string()))])
    rows = [{"content": f"line {n}", "attributes": [(f"key{n}", f"value{n}")] if n % 2 else []} for n in range(10)]
    sealed = seal(tmp_path, pa.RecordBatch.from_pylist(rows, schema), batch_bytes=10, slot_count=1)
    for number in (1, 3, 9):
        assert len(candidates(sealed, equals(f"key{number}", f"value{number}"))) >= 1
    assert candidates(sealed, equals("key2", "value2")) == []


def test_many_fields(tmp_path: Path) -> None:
    """More than are listed: nothing may be ruled out for a field that is not."""
    schema = pa.schema([("content", pa.string()), ("attributes", pa.map_(pa.string(), pa.string()))])
    rows = [{"content": "x", "attributes": [(f"key{n}", f"value{n}")]} for n in range(1200)]
    sealed = seal(tmp_path, pa.RecordBatch.from_pylist(rows, schema), batch_bytes=200)
    for number in (0, 998, 999, 1000, 1199):
        assert candidates(sealed, equals(f"key{number}", f"value{number}"))


# --- attributes, times, scratch ---


def test_attribute_columns_of_slices_and_nulls() -> None:
    kind = pa.map_(pa.string(), pa.string())
    array = pa.array([[("a", "1")], None, [], [("a", "2"), ("b", None)], [("b", "3")]], kind)

    def columns(values: pa.Array | pa.ChunkedArray) -> dict[str, list[str | None]]:
        return {key: found.to_pylist() for key, found in attribute_columns(values)}

    assert columns(array) == {"a": ["1", "2"], "b": [None, "3"]}
    assert columns(array.slice(1, 3)) == {"a": ["2"], "b": [None]}
    assert columns(array.slice(1, 2)) == {}
    assert columns(array.slice(2, 1)) == {}
    assert columns(pa.array([], kind)) == {}
    assert columns(pa.array([None, None], kind)) == {}
    assert columns(pa.array([[], []], kind)) == {}
    assert columns(pa.chunked_array([array.slice(0, 1), array.slice(4)])) == {"a": ["1"], "b": ["3"]}


def test_the_times_of_records() -> None:
    times = pa.array([5, 3, 9], pa.timestamp("us", "UTC"))
    assert time_range(pa.table({"timestamp": times}), "timestamp") == (3, 9)
    assert time_range(pa.table({"timestamp": times.cast(pa.timestamp("ns", "UTC"))}), "timestamp") == (3, 9)
    for unknown in (pa.array([5, None], pa.timestamp("us")), pa.array([], pa.timestamp("us")), pa.array(["x"])):
        assert time_range(pa.table({"timestamp": unknown}), "timestamp") == ALWAYS
    assert time_range(pa.table({"other": times}), "timestamp") == ALWAYS


def test_scratch_files_have_no_name_and_read_what_was_written(tmp_path: Path) -> None:
    scratch = ScratchFile(tmp_path / "scratch")
    tables = [pa.table({"x": list(range(n)), "y": pa.array(["a"] * n).dictionary_encode()}) for n in (3, 0, 1000)]
    for table in tables:
        scratch.append(table)
    for number in (2, 0, 1):
        assert scratch.read(number).to_pylist() == tables[number].to_pylist()
        assert scratch.stored_bytes(number) > 0
    assert list((tmp_path / "scratch").iterdir()) == []


# --- sidecars ---


def test_names_of_sidecars() -> None:
    for name in ("a.parquet", "day=2024-06-01/a.parquet", "source=a%2Fb/x.parquet"):
        assert sidecar_name(name) == f"_coprlake/{name}.copr"
        assert data_name_of(sidecar_name(name)) == name
    assert data_name_of("_coprlake/a.parquet.copr.unfinished") is None
    assert data_name_of("other/a.copr") is None


def test_a_sidecar_belongs_to_one_data_file(tmp_path: Path) -> None:
    sealed = seal(tmp_path, batch_of(range(10)))
    sidecar = sealed.sidecar
    assert sidecar is not None
    size = sealed.entry.data_bytes
    sidecar.check_belongs_to("a.parquet", size)
    sidecar.check_belongs_to("moved/a.parquet", size)
    for other in (("b.parquet", size, 0), ("a.parquet", size + 1, 0), ("a.parquet", size, 5)):
        with pytest.raises(CorruptSidecarError):
            sidecar.check_belongs_to(*other)
    assert sidecar.description.row_count == 10
    assert sidecar.description.fields == {"source": "values", "content": "winnowed"}
    assert set(sidecar.description.typed) == {"timestamp", "id"}


def test_a_sidecar_of_fields_with_strange_names(tmp_path: Path) -> None:
    sealed = seal(tmp_path, batch_of(range(3)))
    assert sealed.sidecar is not None
    raw = (tmp_path / "_coprlake/a.parquet.copr").read_bytes()
    sketch = [raw[: sealed.sidecar.sketch.header.file_bytes]]
    fields = {"ä\n\0": "values", "漢": UNINDEXED, '"': "grams+values"}
    encoded = b"".join(encode_sidecar(sketch, Description("a.parquet", 1, 2, 9, 4, fields)))
    assert Sidecar(encoded, "x").description.fields == fields


def test_joined_kinds_are_the_worst() -> None:
    kinds = [
        {"a": "grams", "b": "grams+values", "c": "values", "e": "winnowed"},
        {"a": "values", "b": "grams", "e": "grams"},
        {"b": "grams", "c": UNINDEXED, "d": "winnowed+values"},
    ]
    described = [Description("a.parquet", 1, 2, 9, 4, fields) for fields in kinds]
    assert joined_kinds(described) == {
        "a": UNINDEXED,
        "b": "grams",
        "c": UNINDEXED,
        "d": "winnowed+values",
        "e": UNINDEXED,
    }
    assert joined_kinds([]) == {}


def _append_in_batches_of_one(
    table: Table, monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, object]], per_append: int
) -> None:
    """Append rows to a writer whose sketches can number 300 batches."""
    monkeypatch.setattr("coprlake.segment.mutable.POSTING_LIMIT", 300)
    monkeypatch.setattr("coprlake.sketch.mutable.POSTING_LIMIT", 300)
    with table.writer(options=SegmentOptions(batch_bytes=1, slot_count=1), searchable=False) as writer:
        for first in range(0, len(rows), per_append):
            writer.append(rows[first : first + per_append])


def test_more_batches_than_a_sketch_can_number_are_spread_over_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    rows: list[dict[str, object]] = [{"content": f"n{number}", "id": number} for number in range(800)]
    _append_in_batches_of_one(table, monkeypatch, rows, per_append=50)
    assert table.search().count() == len(rows)
    assert [row["id"] for row in table.search(contains("n701")).rows()] == [701]


def test_more_batches_in_one_append_than_a_sketch_can_number_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    with pytest.raises(UsageError, match="start a new segment"):
        _append_in_batches_of_one(table, monkeypatch, [{"content": "x"}] * 400, per_append=400)
    assert table.search().count() == 0
