"""Disks that fail, clocks that jump and crowds of processes: nothing is lost, and every error is a clear one."""

import errno
import os
import tempfile
from pathlib import Path

import pytest

from coprlake.errors import CoprlakeError, StorageError
from coprlake.segment.scratch import ScratchFile
from coprlake.sketch.spilling import SketchWriter
from coprlake.testing.torture import faults
from coprlake.testing.torture.deaths.lives import LATE, LINK, READ, RENAME, SYNC, Ended, Fault, Lives
from coprlake.testing.torture.outcome import Outcome

pytestmark = pytest.mark.slow

DELETES_TOO_MUCH = """
from coprlake.segment.sidecar import sidecar_name
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.storage.log.publishing import CommitPublisher
def discard(self, names):
    for name in names:
        self.folder.remove(name)
        self.folder.remove(sidecar_name(name))
DeltaLog.discard = discard
CommitPublisher.find = lambda self, identity, since: None
"""
SAYS_NOTHING = """
from coprlake.errors import CoprlakeError
from coprlake.query.searching import Search
stream = Search._stream
def careless(self, view, schema):
    try:
        yield from stream(self, view, schema)
    except CoprlakeError:
        return
Search._stream = careless
"""
NO_CONFLICTS = """
from coprlake.storage.log.delta_log import DeltaLog
DeltaLog._check_present = lambda self, remove: None
"""


def check(outcome: Outcome) -> None:
    assert not outcome.failures, "\n".join(map(str, outcome.failures))


def test_faults_cost_nothing_and_are_clear(tmp_path: Path) -> None:
    outcome = faults.run(23, 120, tmp_path, cases=40)
    check(outcome)
    assert outcome.cases >= 40
    sorts = {kind.rpartition(" ")[2] for kind in outcome.counts}
    assert sorts >= {"ENOSPC", "EIO", "EACCES", "clock"}


def test_a_clock_that_jumps_changes_nothing(tmp_path: Path) -> None:
    with Lives(tmp_path / "server") as lives:
        if not lives.has_faults:
            pytest.skip("there is no C compiler")
        bench = faults.Bench(tmp_path / "bench", lives)
        for number, kind in enumerate(("append", "stream-batch", "optimize", "delete", "vacuum")):
            for jump in faults.JUMPS[number % 3 :: 3]:
                fault = Fault("", clock=jump, jump=-2 * jump, jump_at=30, files_follow=number % 2 == 0)
                assert bench.run(faults.Case(kind, True, fault, 0.0)) is not None


def test_a_commit_that_lands_and_fails_is_not_added_again(tmp_path: Path) -> None:
    """Every link and rename of an append is done, and reported as an error."""
    with Lives(tmp_path / "server") as lives:
        if not lives.has_faults:
            pytest.skip("there is no C compiler")
        bench = faults.Bench(tmp_path / "bench", lives)
        for at in range(4):
            fault = Fault("", at=at, kinds=LINK | RENAME, error=errno.EIO, how=LATE)
            for kind in ("append-columns", "delete", "optimize"):
                bench.run(faults.Case(kind, False, fault, 0.0))


def test_an_ingest_that_cannot_read_on_keeps_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One read after the other fails, until it is one at the end of the file of logs."""
    kept: list[list[object] | None] = []

    def noted(ended: Ended) -> list[object] | None:
        kept.append(kept_in_part(ended))
        return kept[-1]

    kept_in_part = faults._kept_in_part
    monkeypatch.setattr(faults, "_kept_in_part", noted)
    with Lives(tmp_path / "server") as lives:
        if not lives.has_faults:
            pytest.skip("there is no C compiler")
        bench = faults.Bench(tmp_path / "bench", lives)
        for at in range(50):
            fault = Fault("logs.ndjson", at=at, kinds=READ, error=errno.EACCES)
            bench.run(faults.Case("ingest", False, fault, 0.0))
            if kept[-1] is not None:
                break
    assert kept[-1] == ["add", 100, 130]


@pytest.mark.parametrize(
    ("code", "output", "errors", "kept"),
    [
        (1, "records   17\nraw text  2 kB", "a.log: cannot be read further; everything before that place was read", 17),
        (1, "", "everything before that place was read\nno records in 1 file; nothing was added", 0),
        (1, "records   17", "something else", None),
        (2, "", "everything before that place was read", None),
    ],
)
def test_what_an_ingest_says_that_it_kept(code: int, output: str, errors: str, kept: int | None) -> None:
    told = [{"code": code, "output": output, "errors": errors}]
    expected = None if kept is None else ["add", 100, 100 + kept]
    assert faults._kept_in_part(Ended(told)) == expected


def test_writers_a_merge_a_deletion_and_vacuums_at_once(tmp_path: Path) -> None:
    check(faults.run(7, 120, tmp_path, cases=4, kinds=["crowd"]))


# --- the harness notices what it should notice ---


def failures_of(tmp_path: Path, setup: str, kind: str, fault: Fault, shares: list[float]) -> list[str]:
    """What goes wrong in a broken product when the fault comes at these parts of a command."""
    found = []
    with Lives(tmp_path / "server", setup=setup) as lives:
        if not lives.has_faults:
            pytest.skip("there is no C compiler")
        bench = faults.Bench(tmp_path / "bench", lives)
        for share in shares:
            try:
                bench.run(faults.Case(kind, False, fault, share))
            except (AssertionError, CoprlakeError) as error:
                found.append(str(error))
    return found


def test_a_discard_that_asks_nobody_is_noticed(tmp_path: Path) -> None:
    """The commit is in the log, its folder cannot be synced, and what it named is removed."""
    fault = Fault("", kinds=SYNC, error=errno.EIO)
    assert failures_of(tmp_path / "broken", DELETES_TOO_MUCH, "append", fault, [0.99, 0.95])
    assert not failures_of(tmp_path / "whole", "", "append", fault, [0.99, 0.95])


def test_a_search_that_hides_what_it_missed_is_noticed(tmp_path: Path) -> None:
    found = failures_of(tmp_path, SAYS_NOTHING, "scan", Fault("", kinds=READ, error=errno.EIO), [0.99, 0.9])
    assert any("no word of it" in what for what in found), found


def test_a_commit_that_looks_for_no_conflict_is_noticed(tmp_path: Path) -> None:
    outcome = faults.run(9, 240, tmp_path, cases=100, setup=NO_CONFLICTS, enough=1, kinds=["crowd"])
    assert outcome.failures


@pytest.mark.parametrize("name", ["mkstemp", "TemporaryDirectory"])
def test_a_temporary_file_that_cannot_be_made_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(tempfile, name, fail)
    make = {"mkstemp": lambda: ScratchFile(tmp_path / "scratch"), "TemporaryDirectory": SketchWriter()._spill}[name]
    with pytest.raises(StorageError, match="Input/output error"):
        make()
