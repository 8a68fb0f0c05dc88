"""A cluster of several processes, and the package shipped to it: what tasks do elsewhere is what we do here."""

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest
from numba.core.caching import ZipCacheLocator

from coprlake.ingestion import ingest
from coprlake.intake.reading import Intake
from coprlake.predicate.expression import parse_query
from coprlake.table import create_table, open_table
from coprlake.testing.chosen_faults import record
from coprlake.testing.kafka import free_ports, tied_to_us
from coprlake.testing.streams import FAST_JAVA, SparkDriver

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
SPARK = Path(pyspark.__file__).parent
ARCHIVE = "coprlake.zip"
"""A wheel under another name: Spark puts only .zip, .egg and .jar on the path of its workers."""


@dataclass
class Cluster:
    """A master and two workers."""

    master: str
    folder: Path
    python: Path
    archive: Path

    def driver(self) -> SparkDriver:
        """A driver whose tasks have the package from the archive alone."""
        confs = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.submit.pyFiles": str(self.archive),
            "spark.executorEnv.PYTHONPATH": ARCHIVE,  # for the daemon, which Spark starts without the files
            "spark.executorEnv.XDG_CACHE_HOME": str(self.folder / "cache"),
        }
        environment = {
            "PYSPARK_PYTHON": str(self.python),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        return SparkDriver(self.folder / "driver.log", master=self.master, confs=confs, environment=environment)

    def seed_kernels(self) -> None:
        """Put the kernels that this machine has compiled where executors look for them.

        Numba remembers them by the path of the archive, which is new with each application: without this each executor
        compiles for half a minute.
        """
        [application] = {folder.name for folder in self.folder.glob("work?/app-*")}
        for number in range(4):
            home = self.folder / f"work{number // 2}" / application / str(number % 2) / ARCHIVE
            for made in (ROOT / "src" / "coprlake").rglob("__pycache__"):
                package = home / "coprlake" / made.parent.relative_to(ROOT / "src" / "coprlake")
                name = ZipCacheLocator.get_suitable_cache_subpath(str(package / "any.py"))
                shutil.copytree(made, self.folder / "cache" / "numba" / name, ignore=shutil.ignore_patterns("*.pyc"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def archive(folder: Path) -> Path:
    """The package as a user would build it; without a network, put together from the same files."""
    tree, made = folder / "tree", folder / ARCHIVE
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--disable-pip-version-check"]
    command += ["--retries", "1", "--wheel-dir", str(folder), str(tree)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if built.returncode == 0:
        [wheel] = folder.glob("coprlake-*.whl")
        return wheel.rename(made)
    with zipfile.ZipFile(made, "w") as archive:
        for file in sorted((tree / "src").rglob("*.py")):
            archive.write(file, file.relative_to(tree / "src"))
    return made


@pytest.fixture(scope="module")
def python(folder: Path) -> Path:
    """A Python that has everything that coprlake depends on, and not coprlake."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    [site] = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(f"{SPARK.parent}\n")  # the .pth files of that folder are not read
    found = folder / "venv" / "bin" / "python"
    script = "import pyspark, pyarrow, numba, deltalake, importlib.util as u; print(u.find_spec('coprlake'))"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    told = subprocess.run([found, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "None", "the source tree leaks into the executors' Python"
    return found


@contextmanager
def daemon(folder: Path, name: str, *arguments: str) -> Iterator[None]:
    """A part of a cluster, as ``sbin/start-master.sh`` would start it."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": FAST_JAVA,
    }
    command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1"]
    with (folder / "cluster.log").open("ab") as log:
        process = subprocess.Popen(
            tied_to_us([*command, "--webui-port", "0", *arguments]),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(folder: Path, archive: Path, python: Path) -> Iterator[Cluster]:
    [port] = free_ports(1)
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        stack.enter_context(daemon(folder, "master.Master", "--port", str(port)))
        for number in range(2):
            work = ["--cores", "1", "--memory", "700m", "--work-dir", str(folder / f"work{number}")]
            stack.enter_context(daemon(folder, "worker.Worker", *work, master))
        yield Cluster(master, folder, python, archive)


def logs(folder: Path) -> list[str]:
    """Two formats, some keys of their own, and enough for two tasks."""
    folder.mkdir()
    objects = [record(number) | {"took": number / 2} for number in range(3000)]
    (folder / "a.ndjson").write_text("".join(json.dumps(one) + "\n" for one in objects))
    for name, first in (("b.log", 0), ("c.log", 160_000)):
        times = (
            (number, f"{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}")
            for number in range(first, first + 160_000)
        )
        lines = [
            f"2026-11-16 {time} WARN [worker {number}] was refused by {number * 7919:08x}, and goes on\n"
            for number, time in times
        ]
        (folder / name).write_text("".join(lines) + "Traceback:\n  at somewhere\n")
    return [str(path) for path in sorted(folder.iterdir())]


QUERIES = [
    'contains("refused by 00")',
    'term("record") & equals("source", "host-3")',
    'contains("absent from everything")',
    'exists("took")',
]


def expected(path: Path, query: str) -> list[tuple[Any, ...]]:
    found = open_table(path).search(parse_query(query), columns=["timestamp", "source", "content"])
    return sorted((row["timestamp"].replace(tzinfo=None), row["source"], row["content"]) for row in found.rows())


def test_a_cluster_does_with_the_shipped_package_what_we_do_here(cluster: Cluster, tmp_path: Path) -> None:
    inputs = logs(tmp_path / "logs")
    here = create_table(tmp_path / "here")
    with Intake(inputs) as intake:
        total = ingest(here, intake).row_count
    with cluster.driver() as driver:
        driver.wait_until_ready()
        until = time.monotonic() + 60
        while len(list(cluster.folder.glob("work?/app-*/*"))) < 2:
            assert time.monotonic() < until, "an executor does not start"
            time.sleep(0.1)
        cluster.seed_kernels()

        found = driver.run("locate", tasks=4)
        assert len({daemon for daemon, _, _ in found}) == 2, "both executors work"
        for _, work, file in found:
            assert Path(work).parent.parent.parent == cluster.folder
            assert file == f"{work}/{ARCHIVE}/coprlake/__init__.py", "what Spark has shipped"

        there = create_table(tmp_path / "there")
        assert driver.run("ingest", inputs=inputs, table=there.uri) == total
        for query in QUERIES:
            for job in ("search", "read"):
                assert driver.run(job, table=there.uri, query=query) == expected(tmp_path / "here", query), (job, query)
        merged, conflicts = driver.run("optimize", table=there.uri, rounds=2)
        assert (merged > 0, conflicts) == (True, 0)
        for query in QUERIES:
            assert driver.run("search", table=there.uri, query=query) == expected(tmp_path / "here", query)
    assert open_table(there.uri).verify(deep=True).is_sound
    assert {field.name: field.type for field in open_table(there.uri).schema} == {
        field.name: field.type for field in open_table(here.uri).schema
    }
