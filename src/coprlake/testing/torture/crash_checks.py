"""What must be true of a table after a power loss, whatever was lost."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coprlake.errors import CoprlakeError, NotFoundError
from coprlake.predicate.predicates import Term
from coprlake.store import Table, create_table, open_table
from coprlake.testing.torture.crash_jobs import record_of, stream_batch

NEXT = (700, 701)
"""The records that are appended after a crash; no job uses them."""


class CrashError(AssertionError):
    """Something is not as it must be."""


def check(path: Path, said: Mapping[str, Any]) -> None:
    """Open the table as whoever comes after the power loss does, and use it.

    Args:
        path: the table.
        said: the last mark before the loss; see `crash_jobs`.

    Raises:
        CrashError: what was expected and what was found.
    """
    may: list[list[int] | None] = said["may"]
    try:
        table = open_table(path)
    except NotFoundError as error:
        if None not in may:
            raise CrashError(f"the table is gone: {error}") from error
        create_table(path, exist_ok=True)
        _check_next(path, [])
        return
    except CoprlakeError as error:
        raise CrashError(f"the table cannot be opened: {error}") from error
    if said.get("is_folder") is None and not (path / "_delta_log").exists():
        if None not in may:
            raise CrashError("the table has no log any more")
        create_table(path, exist_ok=True)
        _check_next(path, [])
        return
    present = _contents(table)
    if present not in may:
        raise CrashError(f"{_difference(present, may)}; {_verdict(table)}")
    _check_verified(table, said, present)
    _check_searches(table, present)
    if said.get("is_folder"):
        return
    _check_vacuum(path, present)
    if "batch" in said:
        batch, numbers = said["batch"]
        stream_batch(path, batch, numbers)
        present = sorted({*present, *numbers})
        _expect(open_table(path), present, "after the stream was started again")
    _check_next(path, present)


def _contents(table: Table) -> list[int]:
    """The numbers of all records, each of which is as it was written."""
    try:
        rows = list(table.search(strict=True).rows())
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
    """What `verify` says of it."""
    try:
        report = table.verify()
    except CoprlakeError as error:
        return f"verify: {error}"
    return "verify finds it sound" if report.is_sound else f"verify: {report}"


def _check_verified(table: Table, said: Mapping[str, Any], present: list[int]) -> None:
    report = table.verify()
    if report.data_problems or report.rows != len(present):
        raise CrashError(f"verify finds fault with data that is all there: {report}")
    if report.sidecar_problems and said.get("has_sidecars", True):
        raise CrashError(f"a sidecar is not as it was: {report.sidecar_problems}")


def _check_searches(table: Table, present: list[int]) -> None:
    """With sketches and without, the same is found, and it is what is there."""
    for number in {*present[:1], *present[-1:]}:
        needle = Term(f"{number * 7919:08x}")
        for use_sketches in (True, False):
            found = [row["id"] for row in table.search(needle, columns=["id"], use_sketches=use_sketches).rows()]
            if found != [number]:
                raise CrashError(f"a search for record {number} {use_sketches=} found {found}")


def _expect(table: Table, expected: list[int], when: str) -> None:
    found = _contents(table)
    if found != expected:
        raise CrashError(f"{when}: {_difference(found, [expected])}; {_verdict(table)}")


def _check_vacuum(path: Path, present: list[int]) -> None:
    """What it says that it would remove is what it removes, and nothing that is needed."""
    table = open_table(path)
    planned = table.vacuum(retention_hours=0, dry_run=True)
    _expect(table, present, "after a vacuum that only tells")
    removed = table.vacuum(retention_hours=0)
    again = open_table(path)
    _expect(again, present, "after a vacuum")
    if set(removed.data_files) != set(planned.data_files):
        raise CrashError(f"vacuum removed {removed.data_files}; it had said {planned.data_files}")


def _check_next(path: Path, present: list[int]) -> None:
    """The next append works, and changes nothing else."""
    open_table(path).append([record_of(number) for number in NEXT])
    table = open_table(path)
    _expect(table, sorted([*present, *NEXT]), "after the next append")
    _check_searches(table, [NEXT[0]])
