"""Following a table: every record that a commit adds comes once, whatever happens to the files meanwhile."""

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from coprlake import contains, create_table
from coprlake.files import Folder
from coprlake.query.following import Following
from coprlake.storage.log.delta_log import DeltaLog

START = datetime(2026, 1, 16, tzinfo=UTC)
STEPS = st.lists(st.sampled_from(["append", "append", "append", "optimize", "delete", "look", "vacuum"]), max_size=12)


@settings(max_examples=25, deadline=None)
@given(STEPS, st.integers(0, 3), st.integers(0, 4))
def test_each_record_comes_once(steps: list[str], before: int, last: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = create_table(Path(folder, "t"))
        number = 0

        def append() -> list[str]:
            nonlocal number
            number += 1
            found = f"needle {number}"
            times = START + timedelta(seconds=number)
            table.append([{"timestamp": times, "content": found}, {"timestamp": times, "content": "hay"}])
            return [found]

        there = [text for _ in range(before) for text in append()]
        following = Following(DeltaLog.open(Folder.of(table.uri)), table.search("needle"))
        shown = [text for batch in following.last(last) for text in batch.column("content").to_pylist()]
        assert shown == there[len(there) - min(last, len(there)) :]
        expected: list[str] = []
        shown = []
        for step in [*steps, "look"]:
            if step == "append":
                expected += append()
            elif step == "optimize":
                table.optimize()
            elif step == "delete" and number:
                table.delete(contains(f"needle {number}"))
            elif step == "vacuum":
                table.vacuum()
            elif step == "look":
                shown += [text for batch in following.new() for text in batch.column("content").to_pylist()]
        assert shown == expected
        assert following.problems == []
        assert following.version == table.snapshot().version


def test_a_commit_that_is_gone_is_told() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = create_table(Path(folder, "t"))
        following = Following(DeltaLog.open(Folder.of(table.uri)), table.search("needle"))
        table.append([{"timestamp": START, "content": "needle"}])
        following._log.refresh()
        Path(folder, "t", "_delta_log", f"{1:020d}.json").unlink()
        assert list(following.new()) == []
        assert ["a commit" in problem for problem in following.problems] == [True]
