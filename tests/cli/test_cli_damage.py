"""What the command line says and does about damaged tables: the advice that it gives works."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import Result

from coprlake.table import create_table, open_table

Run = Callable[..., Result]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    made = create_table(tmp_path / "logs")
    for day in (14, 15):
        moment = datetime(2026, 11, day, 12, tzinfo=UTC)
        made.append([{"timestamp": moment, "content": f"needle of day {day}"}])
    return tmp_path / "logs"


@pytest.mark.parametrize("damage", ["cut short", "gone"])
def test_records_of_a_data_file_that_cannot_be_read_are_dropped_by_their_time(
    run: Run, table: Path, damage: str
) -> None:
    file = sorted(table.glob("*.parquet"))[-1]
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:50])
    advice = run("verify", table)
    assert advice.exit_code == 1
    assert "coprlake delete" in advice.stdout
    done = run("delete", table, "--since", "2026-11-15", "--until", "2026-11-16", "--yes")
    assert done.exit_code == 0, done.stderr
    assert file.name in done.stderr, "what could not be read is named"
    assert "1 file dropped" in done.stdout
    assert run("verify", table).exit_code == 0
    assert [row["content"] for row in open_table(table).search().rows()] == ["needle of day 14"]


def test_an_ingest_on_top_of_an_empty_commit_says_so(run: Run, table: Path, tmp_path: Path) -> None:
    (table / "_delta_log" / f"{2:020}.json").write_bytes(b"")
    (tmp_path / "app.log").write_text("2026-11-16 03:55:00 WARN one more\n")
    done = run("ingest", tmp_path / "app.log", "--into", table, "--engine", "local")
    assert done.exit_code == 0, done.stderr
    assert f"{2:020}.json" in done.stderr
