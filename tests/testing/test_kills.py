"""kill -9 at seeded moments of everything that writes; and the harness that does it notices what it should notice."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from coprlake.testing.torture import kills
from coprlake.testing.torture.deaths import spark_kills
from coprlake.testing.torture.deaths.lives import Fault, Lives

TWO_STEPS = """
from coprlake.storage.log.delta_log import DeltaLog
commit = DeltaLog.commit
def commit_one_by_one(self, add=(), remove=(), **named):
    for file in add[:-1]:
        commit(self, [file], (), **named)
    return commit(self, add[-1:], remove, **named)
DeltaLog.commit = commit_one_by_one
"""
EARLY = """
from coprlake.testing.torture.deaths.lives import World
tell = World.tell
def tell_too_early(self, **values):
    tell(self, **values)
    if "begin" in values:
        tell(self, done=values["begin"])
World.tell = tell_too_early
"""


@pytest.mark.slow
def test_commands_that_are_killed_cost_no_record_and_double_none(tmp_path: Path) -> None:
    outcome = kills.run(11, 120, tmp_path, cases=15)
    assert not outcome.failures, "\n".join(map(str, outcome.failures))
    assert outcome.cases == 15
    assert len(outcome.counts) > 4


@pytest.mark.parametrize("setup", [TWO_STEPS, EARLY], ids=["a commit in two steps", "told before it is done"])
def test_a_broken_commit_is_noticed(setup: str, tmp_path: Path) -> None:
    """Kills all along the commits of some appends, each of several files."""
    step = kills.Step("append", 5, 0.5, by_operation=True, in_commit=True)
    steps = [asdict(replace(step, at=at)) for at in range(400, 960, 40)]
    with pytest.raises(AssertionError, match=r"records lost|too many"):
        kills.replay(tmp_path, ["day", "source"], steps, setup=setup)


def test_a_command_that_fails_is_told_from_one_that_was_killed(tmp_path: Path) -> None:
    with Lives(tmp_path) as lives:
        if not lives.has_faults:
            pytest.skip("there is no C compiler")
        crashed = lives.run("signal:raise_signal")
        assert crashed.last("error")["type"] == "TypeError"
        assert crashed.code == 1
        assert not crashed.was_killed
        killed = lives.run("create", Fault(str(tmp_path), 2, how=2), path=str(tmp_path / "table"), partition_by=[])
        assert killed.was_killed
        slept = lives.run("append", None, 0.0, path=str(tmp_path / "table"), first=0, end=3)
        assert slept.was_killed


@pytest.mark.slow
def test_processes_of_spark_that_are_killed_cost_nothing(tmp_path: Path) -> None:
    outcome = spark_kills.run(1, 300, tmp_path / "spark", cases=1)
    assert not outcome.failures, "\n".join(map(str, outcome.failures))
    assert sum(outcome.counts.values()) == 2, "a worker or the daemon, and then the driver"
