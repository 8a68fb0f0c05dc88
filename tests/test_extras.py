"""Without its optional packages, coprlake works, and whatever needs one says in one line what to install."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coprlake import NotInstalledError, create_table
from coprlake.extras import OPTIONAL, hide_pandas, is_installed, missing_package, require, require_spark, show_pandas

BLOCKED = ("pyspark", "py4j", "pandas", "polars")
INSTALL_SPARK = "Spark is not installed; run: pip install 'coprlake[spark]'"

BLOCKER = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {blocked!r}:
            raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)
sys.meta_path.insert(0, Blocker())
"""


def run(code: str, *arguments: str, blocked: tuple[str, ...] = BLOCKED) -> "subprocess.CompletedProcess[str]":
    """Run a program in which some packages cannot be imported, and neither Java nor a default engine is known."""
    hidden = {"COPRLAKE_ENGINE", "JAVA_HOME", "SPARK_HOME", "COPRLAKE_DEBUG"}
    environment = {key: value for key, value in os.environ.items() if key not in hidden} | {"PATH": "/nowhere"}
    script = BLOCKER.format(blocked=set(blocked)) + code
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL
    )


def command(*arguments: object, blocked: tuple[str, ...] = BLOCKED) -> "subprocess.CompletedProcess[str]":
    code = "import sys; sys.argv[0] = 'coprlake'\nfrom coprlake.cli.main import main; main()"
    return run(code, *map(str, arguments), blocked=blocked)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("extras") / "logs"
    table = create_table(path)
    table.append([{"content": f"request {number} refused"} for number in range(2)])
    table.append([{"content": f"request {number} refused"} for number in range(3)])
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["ingest", "{file}", "--into", "{new}", "--engine", "spark"], id="ingest"),
        pytest.param(["ingest", "{file}", "--into", "{new}", "--master", "local[1]"], id="ingest with a master"),
        pytest.param(["search", "refused", "{logs}", "--engine", "spark"], id="search"),
        pytest.param(["query", "fetch logs", "--table", "{logs}", "--engine", "spark"], id="query"),
        pytest.param(["optimize", "{logs}", "--engine", "spark"], id="optimize"),
        pytest.param(["index", "{logs}", "--engine", "spark"], id="index"),
        pytest.param(["stream", "{folder}", "--into", "{new}", "--once"], id="stream"),
        pytest.param(["stream", "--kafka", "no:1", "--topic", "t", "--into", "{new}", "--once"], id="stream of Kafka"),
    ],
)
def test_commands_of_the_cluster_say_what_to_install(arguments: list[str], logs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    file = folder / "a.log"
    file.write_text("2026-11-16T03:00:00Z a line\n")
    places = {"file": file, "folder": folder, "logs": logs, "new": tmp_path / "new"}
    done = command(*[argument.format(**places) for argument in arguments])
    assert done.stderr == f"coprlake: error: {INSTALL_SPARK}\n"
    assert done.returncode == 2
    assert not (tmp_path / "new").exists()


def test_a_cluster_without_pandas_says_what_to_install(logs: Path) -> None:
    done = command("search", "refused", logs, "--engine", "spark", blocked=("pandas",))
    expected = "Spark needs pandas, which is not installed; run: pip install 'coprlake[spark]'"
    assert done.stderr == f"coprlake: error: {expected}\n"
    assert done.returncode == 2


@pytest.mark.slow
def test_the_commands_of_the_core_work_without_optional_packages(tmp_path: Path) -> None:
    file, table = tmp_path / "a.log", tmp_path / "logs"
    assert command("generate", "--megabytes", "0.01", "--out", file).returncode == 0
    for arguments in (
        ["ingest", file, "--into", table, "--engine", "local"],
        ["search", "e", table, "-n", "1"],
        ["query", "fetch logs | summarize n = count()", "--table", table],
        ["explain", "e", table],
        ["info", table],
        ["optimize", table],
        ["verify", table],
        ["index", table],
        ["vacuum", table, "--dry-run"],
        ["delete", "nowhere-at-all", table, "--yes"],
    ):
        done = command(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)


def test_python_says_what_to_install(logs: Path) -> None:
    code = (
        "import sys, coprlake\n"
        "found = coprlake.open_table(sys.argv[1]).search('refused')\n"
        "assert len(list(found.rows())) == 5\n"
        "from coprlake import spark as lake\n"
        "def of_spark():\n"
        "    with lake.session(): pass\n"
        "for call in (found.pandas, found.polars, of_spark, lambda: lake.connector_jars()):\n"
        "    try:\n"
        "        call()\n"
        "    except coprlake.NotInstalledError as error:\n"
        "        print(error)\n"
    )
    done = run(code, str(logs))
    assert done.stdout.splitlines() == [
        "pandas is not installed; run: pip install pandas",
        "Polars is not installed; run: pip install polars",
        INSTALL_SPARK,
        INSTALL_SPARK,
    ], done.stderr


def test_an_error_with_a_missing_package_as_its_cause_is_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    try:
        try:
            import polars  # noqa: F401
        except ImportError as error:
            raise RuntimeError("no frame") from error
    except RuntimeError as error:
        told = missing_package(error)
    assert str(told) == "Polars is not installed; run: pip install polars"


def test_other_errors_are_not_translated() -> None:
    assert missing_package(None) is None
    assert missing_package(ValueError("pandas")) is None
    assert missing_package(ModuleNotFoundError("no", name="coprlake.nothing")) is None
    assert missing_package(ModuleNotFoundError("no", name="pandas.nothing")) is None, "pandas itself is there"
    looping = ValueError("itself")
    looping.__context__ = RuntimeError("other")
    looping.__context__.__context__ = looping
    assert missing_package(looping) is None


def test_what_is_installed_is_known_without_importing_it() -> None:
    code = "from coprlake.extras import is_installed; print(is_installed('pandas'), 'pandas' in sys.modules)"
    assert run(code, blocked=()).stdout == "True False\n"
    assert run(code).stdout == "False False\n"
    assert not is_installed("no_such_package")


@pytest.mark.parametrize("package", ["pandas", "polars", "pyspark"], ids=["frames", "other frames", "cluster"])
def test_a_package_that_is_required_and_missing(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require(package)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(NotInstalledError, match=r"; run: pip install \S+$") as caught:
        require(package)
    assert OPTIONAL[package].installed_by in str(caught.value)


def test_pandas_is_hidden_until_it_is_needed() -> None:
    code = (
        "import pyarrow as pa\n"
        "from coprlake.extras import *\n"
        "hide_pandas(); hide_pandas()\n"
        "pa.array([1, 2]); pa.scalar(1)\n"
        "print('pandas.core' in sys.modules, is_installed('pandas'))\n"
        "require_spark()\n"
        "print(len(pa.table({'a': [1]}).to_pandas()), 'pandas.core' in sys.modules)\n"
    )
    done = run(code, blocked=())
    assert done.stdout == "False False\n1 True\n", done.stderr


def test_a_loaded_pandas_is_not_hidden() -> None:
    import pandas as pd

    hide_pandas()
    assert sys.modules["pandas"] is pd
    show_pandas()
    require_spark()
    assert sys.modules["pandas"] is pd
