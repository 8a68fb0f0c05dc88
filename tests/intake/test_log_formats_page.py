"""docs/log-formats.md: what the page says about formats, keys, timestamps, levels and lines is what intake does."""

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from coprlake import Intake, ReadOptions
from coprlake.intake.fields.keys import CONTENT_KEYS, LEVEL_KEYS, SOURCE_KEYS, TIMESTAMP_KEYS
from coprlake.intake.fields.levels import LEVELS, WORDS
from coprlake.intake.options import FORMATS

PAGE: Final = (Path(__file__).parents[2] / "docs" / "log-formats.md").read_text()


def section(name: str) -> tuple[str, list[list[str]]]:
    """What follows the name in a marker, and the cells of the table below it."""
    found = re.search(rf"<!-- {name}(.*?) -->\n\n(.*?)\n\n<!-- end -->", PAGE, re.DOTALL)
    assert found is not None
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found[2].splitlines()[2:]]
    return found[1], rows


MODIFIED, TIMES = section("timestamps: file modified ")


@pytest.mark.parametrize(("line", "expected"), TIMES, ids=[line for line, _ in TIMES])
def test_a_timestamp_is_read_as_the_page_says(line: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(line.strip("`") + "\n")
    modified = datetime.fromisoformat(MODIFIED).replace(tzinfo=UTC).timestamp()
    os.utime(path, (modified, modified))
    intake = Intake([str(path)], ReadOptions(format="text"))
    times = [time for batch in intake for time in batch.column("timestamp").to_pylist()]
    found = [] if intake.report.without_timestamp else times
    assert found == ([] if expected == "none" else [datetime.fromisoformat(expected)])


def test_the_page_lists_every_key() -> None:
    known = {"content": CONTENT_KEYS, "timestamp": TIMESTAMP_KEYS, "loglevel": LEVEL_KEYS, "source": SOURCE_KEYS}
    assert {part: tuple(re.findall(r"`(.+?)`", keys)) for part, keys in section("keys")[1]} == known


def test_the_page_lists_every_level() -> None:
    known = {
        level: {word for word, meaning in WORDS.items() if LEVELS[meaning] == level and word != level}
        for level in LEVELS
    }
    assert {level.strip("`"): set(re.findall(r"`(\w+)`", words)) for level, words in section("levels")[1]} == known


def test_the_page_lists_every_format() -> None:
    table = PAGE.partition("| `--format` |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(FORMATS) - {"auto"}


def test_the_records_of_several_lines_are_as_many_as_the_page_says(tmp_path: Path) -> None:
    found = re.search(r"<!-- records -->\n\n```text\n(.*?)```\n\nThese are (\d+) records", PAGE, re.DOTALL)
    assert found is not None
    (tmp_path / "a.log").write_text(found[1])
    batches = list(Intake([str(tmp_path / "a.log")], ReadOptions()))
    assert sum(batch.num_rows for batch in batches) == int(found[2])
