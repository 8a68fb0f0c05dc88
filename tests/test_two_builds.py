"""Two builds side by side: an older one refuses what it would misread, and says what to do."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import coprlake
from coprlake import UnreadableTableError, create_table, open_table, term
from coprlake.storage.log.features import READER_PROPERTY, WRITER_PROPERTY

PACKAGE = Path(coprlake.__file__).parent
Build = Callable[[str, str, str], Path]
ROWS = '[{"content": "GET /login from 10.1.2.3"}, {"content": "refused"}]'


@pytest.fixture
def newer(tmp_path: Path) -> Build:
    """A later build: a copy of the sources that knows one more feature, and gives it to the tables that it makes."""

    def make(version: str, reads: str, writes: str) -> Path:
        home = tmp_path / f"build-{version}"
        for name in ("coprlake", "pyspark_coprlake"):
            ignored = shutil.ignore_patterns("*.pyc")  # compiled kernels come along
            shutil.copytree(PACKAGE.parent / name, home / name, ignore=ignored)
        change(home / "coprlake" / "__init__.py", f'"{coprlake.__version__}"', f'"{version}"')
        features = home / "coprlake" / "storage" / "log" / "features.py"
        known = [name for name in (reads, writes) if name]
        change(features, "READER_FEATURES: Final[frozenset[str]] = frozenset()", f"READER_FEATURES = {set(known)!r}")
        needed = {name: value for name, value in ((READER_PROPERTY, reads), (WRITER_PROPERTY, writes)) if value}
        change(features, "OF_NEW_TABLES: Final[Mapping[str, str]] = {}", f"OF_NEW_TABLES = {needed!r}")
        return home

    return make


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def run(build: Path, code: str, *arguments: str) -> str:
    """What a program prints that imports this build."""
    environment = {**os.environ, "PYTHONPATH": str(build)}
    asked = [sys.executable, "-c", f"from coprlake import *; import sys\n{code}", *arguments]
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


MAKE = f"t = create_table(sys.argv[1], partition_by=None); t.append({ROWS}); print(t.search('refused').count())"


def test_an_older_build_refuses_to_read_a_table_that_it_would_misread(newer: Build, tmp_path: Path) -> None:
    build, path = newer("0.9.0", "times-cut-out", ""), str(tmp_path / "logs")
    assert run(build, MAKE, path) == "1"
    with pytest.raises(UnreadableTableError, match="times-cut-out; upgrade coprlake") as caught:
        open_table(path)
    assert caught.value.section == READER_PROPERTY
    for command in (["search", "refused", path], ["info", path], ["verify", path], ["query", "fetch logs", path]):
        asked = [sys.executable, "-m", "coprlake.cli.main", *command]
        told = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=False)
        assert told.returncode == 2, command
        assert "upgrade coprlake" in told.stderr
        assert told.stderr.count("\n") == 1


def test_an_older_build_reads_a_table_that_it_must_not_write_to(newer: Build, tmp_path: Path) -> None:
    build, path = newer("0.9.0", "", "hot-columns"), str(tmp_path / "logs")
    assert run(build, MAKE, path) == "1"
    table = open_table(path)
    assert table.search("refused").count() == 1
    changes: list[Callable[[], object]] = [
        lambda: table.append([{"content": "lost"}]),
        lambda: table.writer(),
        lambda: table.optimize(full=True),
        lambda: table.delete(term("refused")),
        lambda: table.vacuum(retention_hours=0),
        lambda: table.index(rebuild=True),
    ]
    for one in changes:
        with pytest.raises(UnreadableTableError, match="hot-columns; upgrade coprlake"):
            one()
    assert (
        run(build, "t = open_table(sys.argv[1]); t.append([{'content': 'x'}]); print(t.search().count())", path) == "3"
    )


def test_a_newer_build_works_on_tables_of_this_one(newer: Build, tmp_path: Path) -> None:
    build, path = newer("0.9.0", "times-cut-out", ""), str(tmp_path / "logs")
    create_table(path).append([{"content": "refused here"}])
    code = "t = open_table(sys.argv[1]); t.append([{'content': 'refused there'}]); print(t.search('refused').count())"
    assert run(build, code, path) == "2"
    assert open_table(path).search("refused").count() == 2


def test_a_table_whose_rules_are_unknown_is_searched_and_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    create_table(path, partition_by=None, rules="paper").append([{"content": "refused"}])
    change(path / "_delta_log" / f"{0:020}.json", '"coprlake.rules":"paper"', '"coprlake.rules":"later"')
    table = open_table(path)
    assert table.search("refused").count() == 1
    assert table.info().rules == "later"
    with pytest.raises(UnreadableTableError, match="upgrade coprlake"):
        table.append([{"content": "lost"}])


ON_SPARK = """
import sys
from pathlib import Path
from coprlake import create_table, open_table
from coprlake import spark as lake
from coprlake.errors import CoprlakeError

path, workers = sys.argv[1:]
create_table(path, partition_by=None).append([{"content": "refused"}])
Path(path + ".log").write_text("2026-11-16 03:55:00 WARN refused again\\n")
conf = {"spark.executorEnv.PYTHONPATH": workers}
with lake.session("local[1]", conf) as spark:
    jobs = {
        "ingest": lambda: lake.ingest(spark, [path + ".log"], path),
        "search": lambda: lake.search(spark, path, "refused").collect(),
        "index": lambda: lake.index(spark, path, rebuild=True),
    }
    for name, job in jobs.items():
        try:
            job()
        except Exception as error:
            told = [line for line in str(error).splitlines() if "driver runs coprlake" in line]
            print(name, told[-1] if told else repr(error)[:300])
        else:
            print(name, "went through")
print(open_table(path).search().count())
"""


def test_a_spark_driver_and_workers_of_different_builds_say_so(newer: Build, tmp_path: Path) -> None:
    workers = newer("0.9.0", "", "")
    asked = [sys.executable, "-c", ON_SPARK, str(tmp_path / "logs"), str(workers)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    *jobs, rows = done.stdout.strip().splitlines()
    expected = f"the driver runs coprlake {coprlake.__version__}, this worker 0.9.0; install the same version"
    assert len(jobs) == 3
    for job in jobs:
        assert expected in job
    assert rows == "1", "nothing was written"
