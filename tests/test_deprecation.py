"""Old names work for one more release, and say what to write instead."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from coprlake import create_table
from coprlake.cli.printing.json_reports import as_plain
from coprlake.deprecation import Renamed, old_names
from coprlake.ingestion import IngestReport
from coprlake.intake.options import IntakeReport


class Box:
    old_size = Renamed("size")
    old_double = Renamed("double")
    size = 3

    def double(self) -> int:
        return 2 * self.size


def test_an_old_name_gives_what_the_new_one_gives_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="Box.old_size is deprecated, use size"):
        assert Box().old_size == 3
    with pytest.warns(DeprecationWarning, match="Box.old_double is deprecated, use double"):
        assert Box().old_double() == 6
    assert old_names(Box) == {"old_size": "size", "old_double": "double"}


def test_the_size_of_sidecars_is_also_there_under_its_old_name(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", partition_by=None)
    reports = [table.append([{"content": f"line {n}"}]) for n in range(2)]
    ingested = IngestReport(IntakeReport(), reports)
    indexed = table.index(rebuild=True)
    optimized = table.optimize()
    segment = reports[0].segments[0]
    sized: list[Any] = [*reports, ingested, indexed, segment]
    for report in sized:
        with pytest.warns(DeprecationWarning, match="sketch_bytes is deprecated, use index_bytes"):
            assert report.sketch_bytes == report.index_bytes > 0
    with pytest.warns(DeprecationWarning, match="use index_bytes_by_part"):
        assert segment.sketch_bytes_by_part is segment.index_bytes_by_part
    with pytest.warns(DeprecationWarning, match="use index_bytes_before"):
        assert optimized.sketch_bytes_before == optimized.index_bytes_before == indexed.index_bytes
    with pytest.warns(DeprecationWarning, match="use index_bytes_after"):
        assert optimized.sketch_bytes_after == optimized.index_bytes_after == table.info().index_bytes


def test_reports_as_json_have_the_new_and_the_old_keys(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", partition_by=None)
    for n in range(2):
        table.append([{"content": f"line {n}"}])
    optimized = table.optimize()
    plain = as_plain(optimized)
    for key in ("before", "after"):
        assert plain[f"index_bytes_{key}"] == plain[f"sketch_bytes_{key}"] == getattr(optimized, f"index_bytes_{key}")
    (segment,) = plain["segments"]
    assert segment["index_bytes_by_part"] == segment["sketch_bytes_by_part"]
    new = {key: value for key, value in plain.items() if not key.startswith("sketch_")}
    assert {**new, "segments": optimized.segments} == {
        field.name: getattr(optimized, field.name) for field in dataclasses.fields(optimized)
    }
