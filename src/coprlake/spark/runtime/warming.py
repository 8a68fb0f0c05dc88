"""Has the kernels ready before tasks need them: once per machine, and in each daemon before its workers fork.

A worker that compiles takes half a minute for its first record. So starting a session builds the bundle of kernels if
it is not there, and the daemon from which Spark forks its workers has everything in memory: workers start at once.
"""

import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from subprocess import SubprocessError

from coprlake.files import Folder
from coprlake.intake.reading import Intake
from coprlake.native.building import build_missing, is_ready
from coprlake.native.bundle import is_enabled
from coprlake.predicate.predicates import Contains, Predicate, Term
from coprlake.segment.mutable import MutableSegment, SegmentOptions
from coprlake.table import open_table

_SECONDS = range(20)
_FILES = {
    "a.log": "\n".join(f"2026-11-16 03:55:{n:02}.125 WARN [{n}] request 4bf92f3577 took {n} ms" for n in _SECONDS),
    "a.ndjson": "\n".join(f'{{"time": "2026-11-16T03:55:{n:02}Z", "message": "m {n}"}}' for n in _SECONDS),
    "b.log": "\n".join(f"<34>Nov 16 03:55:{n:02} host app[1]: failed {n}" for n in _SECONDS),
}
_NEEDLES: list[Predicate] = [Term("4bf92f3577"), Contains("took 1"), Contains("absent" * 3)]


@cache
def warm_up_once() -> None:
    """Have the kernels ready on disk before a worker needs them, also in sessions that the user started.

    Where no bundle can be built, as for a package in an archive, Numba fills its cache.
    """
    with suppress(OSError, SubprocessError):
        build_missing()
    if not (is_enabled() and is_ready()):
        warm_up()


def warm_up() -> None:
    """Read, index, seal and search a few lines.

    This does not call delta-rs, whose threads would not survive a later fork.
    """
    with tempfile.TemporaryDirectory(prefix="coprlake-") as folder:
        for name, text in _FILES.items():
            (Path(folder) / name).write_text(text)
        for name in _FILES:
            _write(Path(folder), name)
        table = open_table(Path(folder) / "table")  # no log: plain Parquet with sidecars
        for needle in _NEEDLES:
            table.search(needle, threads=1).count()


def _write(folder: Path, name: str) -> None:
    options = SegmentOptions(searchable=False, scratch_folder=str(folder))
    with Intake([folder / name]) as intake:
        for batch in intake:
            segment = MutableSegment(Folder.of(folder / "table"), f"{name}.parquet", batch.schema, options)
            segment.append(batch)
            segment.seal()
