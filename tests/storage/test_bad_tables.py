"""Bad tables: what can be found is found, what is wrong is named, and only errors of ours are raised."""

import json
import os
import re
import shutil
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coprlake.errors import CoprlakeError, FormatError, NotFoundError, UnreadableDataError, UnreadableTableError
from coprlake.predicate.build import contains, equals, term
from coprlake.segment.mutable import SegmentOptions
from coprlake.segment.sidecar import MAJOR, TRAILER, sidecar_name
from coprlake.table import Table, create_table, open_table, table_exists

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]


def lines(first: int, count: int = 12) -> list[dict[str, object]]:
    return [
        {
            "timestamp": 1_717_200_000 + n,
            "source": f"s{n % 2}",
            "content": f"{WORDS[n % 6]} line{n} word{n * 7}",
            "id": n,
        }
        for n in range(first, first + count)
    ]


def new_table(path: Path) -> Table:
    """Two segments with several batches each."""
    table = create_table(path, partition_by=None)
    for first in (0, 12):
        with table.writer(options=SegmentOptions(batch_bytes=60, slot_count=2)) as writer:
            writer.append(lines(first))
    return table


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bad") / "whole"
    new_table(path)
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "table")


def found(table: Table, text: str | None = None, **options: object) -> list[int]:
    search = table.search(contains(text or ""), columns=["id"], **options)  # type: ignore[arg-type]
    return sorted(row["id"] for row in search.rows())


def data_files(path: Path) -> list[Path]:
    return sorted(path.glob("*.parquet"))


def sidecars(path: Path) -> list[Path]:
    return sorted((path / "_coprlake").glob("*.copr"))


def ids_in(file: Path) -> list[int]:
    return sorted(pq.read_table(file, columns=["id"]).column("id").to_pylist())


# --- there is no table ---


def test_a_path_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such folder"):
        open_table(tmp_path / "nowhere")
    assert not table_exists(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_an_empty_folder_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no table"):
        open_table(tmp_path)
    assert not table_exists(tmp_path)


def test_a_folder_of_other_files_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "_hidden.parquet").write_text("hello")
    with pytest.raises(NotFoundError, match="no table"):
        open_table(tmp_path)


def test_a_file_is_no_table(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("hello")
    with pytest.raises(CoprlakeError, match="folder"):
        open_table(file)
    with pytest.raises(CoprlakeError, match="file"):
        create_table(file)
    assert not table_exists(file)


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(CoprlakeError, match="empty"):
        open_table("")


@pytest.mark.parametrize("uri", ["nonsense://x/y", "://", "file:///nowhere/at/all"])
def test_a_strange_uri_is_refused(uri: str) -> None:
    with pytest.raises(CoprlakeError):
        open_table(uri)


def test_an_empty_log_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(NotFoundError, match="no table"):
        open_table(tmp_path)


# --- the log ---


def log_files(path: Path) -> list[Path]:
    return sorted((path / "_delta_log").glob("*.json"))


def edit_log(path: Path, change: Callable[[dict[str, object]], dict[str, object]], number: int = 0) -> None:
    file = log_files(path)[number]
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("\n".join(json.dumps(change(action)) for action in actions) + "\n")


@pytest.mark.parametrize(
    "protocol",
    [
        {"minReaderVersion": 4, "minWriterVersion": 8},
        {"minReaderVersion": 99, "minWriterVersion": 99},
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["aFeatureOfTomorrow"],
            "writerFeatures": ["aFeatureOfTomorrow"],
        },
    ],
)
def test_a_newer_protocol_is_named(path: Path, protocol: dict[str, object]) -> None:
    edit_log(path, lambda action: {"protocol": protocol} if "protocol" in action else action)
    with pytest.raises(UnreadableTableError, match="protocol"):
        open_table(path)
    with pytest.raises(UnreadableTableError):
        table_exists(path)


def test_a_newer_writer_protocol_is_read_but_not_written(path: Path) -> None:
    newer = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["aFeatureOfTomorrow"]}
    edit_log(path, lambda action: {"protocol": newer} if "protocol" in action else action)
    table = open_table(path)
    assert found(table) == list(range(24))
    before = set(path.rglob("*.parquet"))
    with pytest.raises(UnreadableTableError):
        table.append(lines(100))
    assert found(open_table(path)) == list(range(24))
    assert set(path.rglob("*.parquet")) == before


@pytest.mark.parametrize("text", ["", "{", "no json\n", "[1]\n", '{"add": 5}\n', "\0\0\0\n"])
@pytest.mark.parametrize("number", [0, -1])
def test_a_broken_log_is_an_error_of_ours(path: Path, text: str, number: int) -> None:
    log_files(path)[number].write_text(text)
    if not text and number:  # other programs read an empty commit as one without changes
        search = open_table(path).search("alpha", columns=["id"])
        assert [row["id"] for row in search.rows()] == [0, 6], "the records of the commits before it"
        assert "found an empty file" in search.report.problems[0]
        return
    with pytest.raises(UnreadableTableError, match=re.escape(str(path))):
        list(open_table(path).search("alpha").rows())


def test_a_log_that_breaks_while_the_table_is_open_is_an_error_of_ours(path: Path) -> None:
    table = open_table(path)
    (path / "_delta_log" / f"{len(log_files(path)):020d}.json").write_text("{ broken")
    with pytest.raises(UnreadableTableError, match="cut short or damaged"):
        found(table)
    with pytest.raises(CoprlakeError):
        table.append(lines(100))


def test_a_missing_version_of_the_log_is_an_error_of_ours(path: Path) -> None:
    log_files(path)[1].unlink()
    with pytest.raises(CoprlakeError, match="_delta_log"):
        found(open_table(path))


def test_a_table_that_vanishes_while_it_is_open_is_a_problem(path: Path) -> None:
    table = open_table(path)
    shutil.rmtree(path)
    search = table.search("alpha")
    assert list(search.rows()) == []
    assert search.report.problems
    with pytest.raises(CoprlakeError):
        list(table.search("", strict=True).rows())


# --- sidecars ---


def truncated(data: bytes) -> list[bytes]:
    return [data[:size] for size in (0, 1, 39, 40, 100, len(data) // 2, len(data) - 1)] + [data + b"\0"]


def section_of(data: bytes, place: int) -> str:
    trailer = np.frombuffer(data[-TRAILER.itemsize :], TRAILER)[0]
    if place >= len(data) - TRAILER.itemsize:
        return "trailer"
    return "sketch" if place < trailer["sketch_bytes"] else "description"


def check_search_is_right(path: Path) -> list[str]:
    """No record is missed, with a table that is opened anew; returns the problems."""
    table = open_table(path)
    problems = []
    for text in ("alpha", "line3", "word14", "ta", "nothing of this"):
        search = table.search(contains(text), columns=["id"])
        expected = [row["id"] for row in lines(0, 24) if text in str(row["content"])]
        assert sorted(row["id"] for row in search.rows()) == expected, text
        assert table.search(contains(text)).count() == len(expected)
        problems += search.report.problems
    assert sorted(row["id"] for row in table.search(term("line13"), columns=["id"]).rows()) == [13]
    assert found(table) == list(range(24))
    if any("there is no sidecar" not in problem for problem in problems):
        with pytest.raises(CoprlakeError, match="_coprlake"):
            found(table, "alpha", strict=True)
    else:
        assert found(table, "alpha", strict=True) == [0, 6, 12, 18]  # a sidecar may be missing
    return problems


def test_a_truncated_sidecar_is_named_and_mended(path: Path) -> None:
    victim = sidecars(path)[0]
    data = victim.read_bytes()
    for part in truncated(data):
        victim.write_bytes(part)
        assert any(victim.name in problem for problem in check_search_is_right(path))
        report = open_table(path).verify()
        assert not report.data_problems
        assert len(report.sidecar_problems) == 1
        assert open_table(path).index().indexed == 1
        assert open_table(path).verify(deep=True).is_sound


@pytest.mark.slow
def test_a_flipped_bit_in_a_sidecar_never_costs_a_record(path: Path) -> None:
    """Checksums of sections are not looked at in a search: a flip may make it slower, or be found by `verify`."""
    victim = sidecars(path)[0]
    data = victim.read_bytes()
    rng = np.random.default_rng(5)
    places = [
        *range(0, 64, 3),
        *rng.integers(64, len(data), 60).tolist(),
        *range(len(data) - TRAILER.itemsize, len(data), 3),
    ]
    missed = []
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << (place % 8)
        victim.write_bytes(damaged)
        report = open_table(path).verify()
        assert not report.data_problems
        assert len(report.sidecar_problems) == 1, f"{section_of(data, place)} at {place}: not found by verify"
        try:
            check_search_is_right(path)
        except AssertionError:
            missed.append(f"{section_of(data, place)} at {place}")
    assert not missed, "records were missed"


def test_a_sidecar_that_verify_finds_damaged_is_mended_by_index(path: Path) -> None:
    victim = sidecars(path)[0]
    data = victim.read_bytes()
    sketch_bytes = int(np.frombuffer(data[-TRAILER.itemsize :], TRAILER)[0]["sketch_bytes"])
    for place in (9, 5000, sketch_bytes - 20, sketch_bytes + 5, len(data) - 10):
        damaged = bytearray(data)
        damaged[min(place, len(data) - 1)] ^= 0x10
        victim.write_bytes(damaged)
        table = open_table(path)
        assert not table.verify().is_sound
        table.index()
        assert open_table(path).verify(deep=True).is_sound, place


def test_a_missing_sidecar_is_named_and_mended(path: Path) -> None:
    sidecars(path)[0].unlink()
    assert any("no sidecar" in problem for problem in check_search_is_right(path))
    table = open_table(path)
    assert len(table.verify().sidecar_problems) == 1
    assert len(table.info().problems) == 1
    assert table.index().indexed == 1
    assert table.verify(deep=True).is_sound


def test_a_folder_in_place_of_a_sidecar_does_not_end_a_search(path: Path) -> None:
    sidecars(path)[0].unlink()
    sidecars(path)[0].with_name(data_files(path)[0].name + ".copr").mkdir()
    assert check_search_is_right(path)
    assert len(open_table(path).verify().sidecar_problems) == 1
    open_table(path).info()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_sidecar_without_permission_does_not_end_a_search(path: Path) -> None:
    sidecars(path)[0].chmod(0)
    assert check_search_is_right(path)


def test_the_sidecar_of_another_data_file_is_not_used(path: Path) -> None:
    one, other = sidecars(path)
    one.write_bytes(other.read_bytes())
    assert data_files(path)[0].stat().st_size != data_files(path)[1].stat().st_size, "what this test is about"
    assert check_search_is_right(path)
    assert len(open_table(path).verify().sidecar_problems) == 1


def test_the_sidecar_of_another_data_file_of_the_same_size_is_not_used(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    for word in ("aaaaaaaa", "bbbbbbbb"):
        table.append([{"timestamp": 1_717_200_000, "content": word, "id": 1}])
    first, second = data_files(tmp_path / "table")
    assert first.stat().st_size == second.stat().st_size
    one, other = sidecars(tmp_path / "table")
    swapped = one.read_bytes(), other.read_bytes()
    other.write_bytes(swapped[0])
    one.write_bytes(swapped[1])
    again = open_table(tmp_path / "table")
    assert again.search("aaaaaaaa").count() == 1
    assert again.search("bbbbbbbb").count() == 1
    assert not again.verify().is_sound


def crafted(data: bytes, description: bytes, major: int = MAJOR) -> bytes:
    """A sidecar whose checksums are right and whose description is not."""
    trailer = np.frombuffer(data[-TRAILER.itemsize :], TRAILER).copy()
    sketch = data[: int(trailer[0]["sketch_bytes"])]
    trailer["description_bytes"], trailer["description_crc"] = len(description), zlib.crc32(description)
    trailer["major"], trailer["trailer_crc"] = major, 0
    trailer["trailer_crc"] = zlib.crc32(trailer.tobytes())
    return sketch + description + trailer.tobytes()


@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"",
        lambda text: b"[]",
        lambda text: b"5",
        lambda text: b"\xff\xfe",
        lambda text: b"{}",
        lambda text: json.dumps(json.loads(text) | {"fields": 5}).encode(),
        lambda text: json.dumps(json.loads(text) | {"fields": {"content": 5}}).encode(),
        lambda text: json.dumps(json.loads(text) | {"fields": {"content": "of tomorrow"}}).encode(),
        lambda text: json.dumps(json.loads(text) | {"typed": 7}).encode(),
        lambda text: json.dumps(json.loads(text) | {"batch_count": "many"}).encode(),
        lambda text: json.dumps(json.loads(text) | {"batch_count": 10**9}).encode(),
        lambda text: json.dumps(json.loads(text) | {"batch_count": -1}).encode(),
        lambda text: json.dumps(json.loads(text) | {"data_bytes": None}).encode(),
    ],
)
def test_a_description_that_is_whole_but_wrong_is_refused(path: Path, change: Callable[[bytes], bytes]) -> None:
    victim = sidecars(path)[0]
    data = victim.read_bytes()
    trailer = np.frombuffer(data[-TRAILER.itemsize :], TRAILER)[0]
    text = data[int(trailer["sketch_bytes"]) : len(data) - TRAILER.itemsize]
    victim.write_bytes(crafted(data, change(text)))
    check_search_is_right(path)
    open_table(path).verify(deep=True)
    open_table(path).info()


def test_a_sidecar_of_a_later_version_is_not_used(path: Path) -> None:
    victim = sidecars(path)[0]
    data = victim.read_bytes()
    trailer = np.frombuffer(data[-TRAILER.itemsize :], TRAILER)[0]
    text = data[int(trailer["sketch_bytes"]) : len(data) - TRAILER.itemsize]
    victim.write_bytes(crafted(data, text, major=MAJOR + 1))
    assert any("upgrade" in problem for problem in check_search_is_right(path))


# --- data files ---


def check_data_problem(path: Path, lost: Path, expected: list[int]) -> None:
    """The rest is found, the file is named, and who wants to know raises."""
    table = open_table(path)
    for order in ("any", "newest"):
        search = table.search(contains(""), columns=["id", "timestamp"], order=order)
        assert sorted(row["id"] for row in search.rows()) == expected
        assert any(lost.name in problem for problem in search.report.problems), search.report.problems
    counting = table.search(contains("line"))
    assert counting.count() == len(expected)
    assert any(lost.name in problem for problem in counting.report.problems)
    with pytest.raises(UnreadableDataError, match=lost.name):
        list(table.search(contains("line"), strict=True, threads=4).rows())
    with pytest.raises(UnreadableDataError, match=lost.name):
        table.search(contains("line"), strict=True).count()
    report = open_table(path).verify()
    assert any(lost.name in problem for problem in report.data_problems), report
    table.info()
    for action in (lambda: table.optimize(), lambda: table.delete(equals("id", 3))):
        try:
            action()
        except FormatError as error:
            assert lost.name in str(error)  # noqa: PT017
        assert found(open_table(path)) in (expected, [number for number in expected if number != 3])


def test_a_vanished_data_file_is_named(path: Path) -> None:
    lost = data_files(path)[0]
    gone = ids_in(lost)
    lost.unlink()
    check_data_problem(path, lost, [number for number in range(24) if number not in gone])


@pytest.mark.parametrize("size", [0, 4, 100, -1, -8])
def test_a_truncated_data_file_is_named(path: Path, size: int) -> None:
    lost = data_files(path)[0]
    gone = ids_in(lost)
    data = lost.read_bytes()
    lost.write_bytes(data[:size])
    check_data_problem(path, lost, [number for number in range(24) if number not in gone])


def test_a_data_file_of_the_same_size_that_is_no_parquet_is_named(path: Path) -> None:
    lost = data_files(path)[0]
    gone = ids_in(lost)
    lost.write_bytes(b"x" * lost.stat().st_size)
    check_data_problem(path, lost, [number for number in range(24) if number not in gone])


def test_damage_inside_of_a_data_file_is_an_error_of_ours(path: Path) -> None:
    lost = data_files(path)[0]
    gone = set(ids_in(lost))
    data = bytearray(lost.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little")
    for place in range(4, len(data) - footer - 8, 5):
        data[place] ^= 0xFF
    lost.write_bytes(data)
    table = open_table(path)
    search = table.search(contains("line"), columns=["id"])
    rest = {row["id"] for row in search.rows()}
    assert set(range(24)) - gone <= rest
    assert any(lost.name in problem for problem in search.report.problems)
    with pytest.raises(UnreadableDataError):
        list(table.search(contains("line"), strict=True).rows())
    assert open_table(path).verify(deep=True).data_problems


def test_a_damaged_footer_is_an_error_of_ours(path: Path) -> None:
    lost = data_files(path)[0]
    data = lost.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little")
    rng = np.random.default_rng(3)
    outcomes = Counter[bool]()
    for place in rng.integers(len(data) - footer - 8, len(data), 40).tolist():
        damaged = bytearray(data)
        damaged[place] ^= 1 << (place % 8)
        lost.write_bytes(damaged)
        table = open_table(path)
        for action in (
            lambda table=table: list(table.search(contains("line"), order="newest").rows()),
            lambda table=table: table.search(contains("line"), since=1_717_200_003_000_000).count(),
            lambda table=table: table.verify(deep=True),
        ):
            try:
                action()
                outcomes[True] += 1
            except CoprlakeError:
                outcomes[False] += 1
    assert outcomes.total() == 120  # nothing but errors of ours


def test_a_vanished_file_can_be_dropped_from_the_table_as_the_error_says(path: Path) -> None:
    lost = data_files(path)[0]
    gone = ids_in(lost)
    lost.unlink()
    table = open_table(path)
    times = [1_717_200_000 + number for number in gone]
    table.delete(since=min(times) * 10**6, until=(max(times) + 1) * 10**6)
    assert found(open_table(path), strict=True) == [number for number in range(24) if number not in gone]


# --- folders of Parquet files ---


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    folder = tmp_path / "foreign"
    folder.mkdir()
    for first in (0, 12):
        pq.write_table(pa.Table.from_pylist(lines(first)), folder / f"part{first}.parquet")
    open_table(folder).index()
    return folder


def test_a_foreign_file_that_was_replaced_is_scanned(foreign: Path) -> None:
    open_before = open_table(foreign)
    assert open_before.search("alpha").count() == 4
    pq.write_table(pa.Table.from_pylist(lines(100)), foreign / "part0.parquet")
    for table in (open_before, open_table(foreign)):
        assert found(table, "line104") == [104]
        assert found(table, "line4") == []
        search = table.search("line104")
        search.count()
        assert any("part0" in problem for problem in search.report.problems)
        assert len(table.verify().sidecar_problems) == 1
    assert open_before.index().indexed == 1
    assert found(open_before, "line104") == [104]
    assert open_table(foreign).verify(deep=True).is_sound


def test_a_foreign_file_that_was_replaced_by_one_of_the_same_size_is_scanned(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"content": ["aaaaaaaa"]}), file)
    open_table(tmp_path).index()
    size = file.stat().st_size
    pq.write_table(pa.table({"content": ["bbbbbbbb"]}), file)
    assert file.stat().st_size == size
    assert open_table(tmp_path).search("bbbbbbbb").count() == 1
    assert open_table(tmp_path).search("aaaaaaaa").count() == 0


def test_foreign_files_that_come_and_go_are_seen(foreign: Path) -> None:
    table = open_table(foreign)
    pq.write_table(pa.Table.from_pylist(lines(200)), foreign / "part200.parquet")
    assert found(table, "line204") == [204]
    (foreign / "part12.parquet").unlink()
    assert found(table) == [*range(12), *range(200, 212)]


def test_a_broken_foreign_file_does_not_hide_the_others(foreign: Path) -> None:
    (foreign / "part5.parquet").write_bytes(b"PAR1 no PAR1")
    table = open_table(foreign)
    search = table.search("", columns=["id"])
    assert sorted(row["id"] for row in search.rows()) == list(range(24))
    assert any("part5" in problem for problem in search.report.problems)
    with pytest.raises(UnreadableDataError, match="part5"):
        list(table.search("", strict=True).rows())


def test_a_foreign_folder_is_only_read(foreign: Path) -> None:
    table = open_table(foreign)
    for action in (
        lambda: table.append(lines(50)),
        lambda: table.optimize(),
        lambda: table.delete(equals("id", 1)),
        lambda: table.vacuum(),
        lambda: table.deletions(),
    ):
        with pytest.raises(CoprlakeError, match="only read"):
            action()


def test_a_stale_sidecar_of_a_delta_table_is_not_used(path: Path) -> None:
    """Somebody wrote a data file again under its name, against Delta's rules, and it became longer."""
    victim = data_files(path)[0]
    pq.write_table(pa.Table.from_pylist(lines(300)), victim)
    table = open_table(path)
    search = table.search("line304", columns=["id"])
    assert sorted(row["id"] for row in search.rows()) in ([], [304])
    assert any(victim.name in problem for problem in table.search(contains("line")).explain().problems)


def test_a_sidecar_is_named_after_its_data_file(path: Path) -> None:
    assert [str(file.relative_to(path)) for file in sidecars(path)] == [sidecar_name(f.name) for f in data_files(path)]


def test_a_file_that_was_vacuumed_before_its_commit_is_not_committed(path: Path) -> None:
    table = open_table(path)
    writer = table.writer(segment_bytes=10)
    writer.append(lines(100, 1))
    open_table(path).vacuum(retention_hours=0)
    with pytest.raises(CoprlakeError, match="removed before it could be committed"):
        writer.commit()
    assert found(open_table(path)) == list(range(24))


def test_a_lost_file_makes_the_result_incomplete(path: Path) -> None:
    data_files(path)[0].unlink()
    search = open_table(path).search()
    assert search.count() < 24
    assert search.report.is_incomplete
    assert search.report.problems
