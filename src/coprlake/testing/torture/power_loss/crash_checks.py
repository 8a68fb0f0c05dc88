"""Checks what must hold for a table after a power loss, whatever was lost."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coprlake.errors import CoprlakeError, NotFoundError
from coprlake.predicate.predicates import Term
from coprlake.segment.sidecar import sidecar_name
from coprlake.storage.verifying import VerifyReport, verify_log
from coprlake.table import Table, create_table, open_table
from coprlake.testing.torture.power_loss.crash_jobs import record_of, stream_batch

NEXT = (700, 701)
"""The records to append after a crash; no job uses them."""

SOUND = "verify finds it sound"
_OF_LOG = re.compile(r"\d{20}\.(json|checkpoint\..*parquet|crc)|_last_checkpoint")
"""The files of a log, without unfinished files of a writer."""


class CrashError(AssertionError):
    """A check failed after a crash."""


def check(path: Path, said: Mapping[str, Any], *, vacuum_first: bool = True) -> None:
    """Open and use the table as the next process after a power loss does.

    Args:
        path: the table.
        said: the last mark before the loss; see `crash_jobs`.
        vacuum_first: whether to vacuum before the next append; otherwise after it.

    Raises:
        CrashError: says what was expected and what was found.
    """
    may: list[list[int] | None] = said["may"]
    try:
        table = open_table(path)
    except NotFoundError as error:
        if None not in may:
            raise CrashError(f"the table is gone: {error}") from error
        _check_next(create_table(path, exist_ok=True), [])
        return
    except CoprlakeError as error:
        raise CrashError(f"the table cannot be opened: {error}; {_judged(verify_log(path))}") from error
    if said.get("is_folder") is None and not (path / "_delta_log").exists():
        if None not in may:
            raise CrashError("the table has no log any more")
        _check_next(create_table(path, exist_ok=True), [])
        return
    present = _contents(table)
    if present not in may:
        raise CrashError(f"{_difference(present, may)}; {_verdict(table)}")
    _check_steps(table, path, said)
    _check_verified(table, said, present)
    _check_searches(table, present)
    if said.get("is_folder"):
        return
    if vacuum_first:
        _check_vacuum(table, path)
    if "batch" in said:
        batch, numbers = said["batch"]
        stream_batch(path, batch, numbers)
        present = sorted({*present, *numbers})
        _expect(open_table(path), present, "after the stream was started again")
    again = _check_next(table, present)
    if not vacuum_first:
        _check_vacuum(again, path)


def _contents(table: Table) -> list[int]:
    """The numbers of all records, after checking that each is as it was written."""
    try:
        rows = list(table.search(strict=True, threads=1).rows())
    except CoprlakeError as error:
        raise CrashError(f"the table cannot be read: {error}; {_verdict(table)}") from error
    for row in rows:
        expected = record_of(row["id"])
        found = {name: row.get(name) for name in expected if name != "timestamp"}
        if found != {name: value for name, value in expected.items() if name != "timestamp"}:
            raise CrashError(f"a record changed: expected {expected}, found {row}")
    return sorted(row["id"] for row in rows)


def _difference(present: list[int], may: list[list[int] | None]) -> str:
    surely = set.intersection(*(set(each or ()) for each in may))
    perhaps = set().union(*(set(each or ()) for each in may))
    lost = sorted(surely - set(present))
    doubled = sorted({number for number in present if present.count(number) > 1})
    strange = sorted(set(present) - perhaps)
    named = [("lost", lost), ("doubled", doubled), ("back from the dead", strange)]
    told = [f"{what}: {numbers}" for what, numbers in named if numbers]
    return "; ".join(told) or f"a part of a commit: {present}, expected one of {may}"


def _verdict(table: Table) -> str:
    """The result of `verify`."""
    try:
        report = table.verify()
    except CoprlakeError as error:
        return f"verify: {error}"
    return _judged(report)


def _judged(report: VerifyReport) -> str:
    return SOUND if report.is_sound else f"verify: {report}"


def _check_steps(table: Table, path: Path, said: Mapping[str, Any]) -> None:
    """Check that acknowledged steps that change no records are done, too."""
    if table.version < said.get("version", 0):
        raise CrashError(f"version {said['version']} is gone; the table is at {table.version}")
    if back := [name for name in said.get("gone", ()) if (path / name).exists()]:
        raise CrashError(f"vacuum had removed {back}")


def _check_verified(table: Table, said: Mapping[str, Any], present: list[int]) -> None:
    report = table.verify()
    if report.data_problems or report.log_problems or report.rows != len(present):
        raise CrashError(f"verify finds fault with data that is all there: {report}")
    if report.sidecar_problems and said.get("has_sidecars", True):
        raise CrashError(f"a sidecar is not as it was: {report.sidecar_problems}")
    for segment in table.snapshot().segments if "grams" in said else ():
        assert segment.sidecar is not None
        if not set(said["grams"]) <= segment.sidecar.description.plan.gram_fields:
            raise CrashError(f"{segment.name}: the sidecar is an older one")


def _check_searches(table: Table, present: list[int]) -> None:
    """Check that searches with and without sketches find the records that are there."""
    for number in {*present[:1], *present[-1:]}:
        needle = Term(f"{number * 7919:08x}")
        for use_sketches in (True, False):
            search = table.search(needle, columns=["id"], threads=1, use_sketches=use_sketches)
            found = [row["id"] for row in search.rows()]
            if found != [number]:
                raise CrashError(f"a search for record {number} {use_sketches=} found {found}")


def _expect(table: Table, expected: list[int], when: str) -> None:
    found = _contents(table)
    if found != expected:
        raise CrashError(f"{when}: {_difference(found, [expected])}; {_verdict(table)}")


def _check_vacuum(table: Table, path: Path) -> None:
    """Check that a vacuum removes nothing that is needed, and exactly what it announces."""
    segments = [segment.name for segment in table.snapshot().segments]
    needed = {path / name for name in segments} | {path / sidecar_name(name) for name in segments}
    needed = {file for file in needed if file.exists()}
    needed |= {file for file in (path / "_delta_log").iterdir() if _OF_LOG.fullmatch(file.name)}
    planned = table.vacuum(retention_hours=0, dry_run=True)
    doomed = planned.data_files + planned.sidecars + planned.leftovers
    if missing := [name for name in doomed if not (path / name).exists()]:
        raise CrashError(f"a vacuum that should only tell removed {missing}")
    table.vacuum(retention_hours=0)
    gone = sorted(str(file.relative_to(path)) for file in needed if not file.exists())
    if gone or needed & {path / name for name in doomed}:
        raise CrashError(f"vacuum removes what is needed: {gone}")
    if left := [name for name in doomed if (path / name).exists()]:
        raise CrashError(f"vacuum left what it wanted to remove: {left}")


def _check_next(table: Table, present: list[int]) -> Table:
    """Check that the next append works and changes nothing else; return the table after it."""
    table.append([record_of(number) for number in NEXT])
    again = open_table(table.uri)
    _expect(again, sorted([*present, *NEXT]), "after the next append")
    _check_searches(again, [NEXT[0]])
    return again
