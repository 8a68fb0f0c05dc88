"""Source archive and wheel, tried in an empty environment outside the checkout, without Java, Spark and pandas."""

import zipfile
from pathlib import Path

import pytest

import coprlake
from scripts.fresh_environment import Environment, build, build_one, copied_sources

pytestmark = pytest.mark.slow

MOST_BYTES = 750_000_000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def wheel(built: tuple[Path, Path]) -> Path:
    return built[1]


def contents(wheel: Path) -> dict[str, int]:
    """The files of a wheel with their checksums, without those that describe it."""
    with zipfile.ZipFile(wheel) as archive:
        return {file.filename: file.CRC for file in archive.infolist() if ".dist-info/" not in file.filename}


def test_the_wheel_has_what_belongs_into_it_and_nothing_else(wheel: Path) -> None:
    names = set(contents(wheel))
    needed = {
        "coprlake/__init__.py",
        "coprlake/__init__.pyi",
        "coprlake/py.typed",
        "coprlake/language/grammar.lark",
        "pyspark_coprlake/__init__.py",
    }
    assert needed <= names
    source = Path(coprlake.__file__).parent
    modules = {f"coprlake/{path.relative_to(source)}" for path in source.rglob("*.py")}
    assert modules <= names
    assert {name.partition("/")[0] for name in names} == {"coprlake", "pyspark_coprlake"}
    odd = [name for name in names if "/tests/" in name or "/test_" in name or "__pycache__" in name]
    assert not odd


def test_the_archive_builds_the_same_wheel_as_the_checkout(built: tuple[Path, Path], tmp_path: Path) -> None:
    tools = Environment.__new__(Environment)
    tools.folder = built[0].parent.parent / "tools"
    direct = build_one(tools, "wheel", copied_sources(tmp_path / "sources"), tmp_path / "built")
    assert direct.name == built[1].name
    assert contents(direct) == contents(built[1])


def test_a_fresh_installation_works_without_java_spark_and_pandas(wheel: Path, tmp_path: Path) -> None:
    fresh = Environment(tmp_path / "fresh")
    before = sum(fresh.disk_bytes().values())
    fresh.install(str(wheel))
    sizes = fresh.disk_bytes()
    assert not {"pyspark", "pandas", "py4j", "polars", "hypothesis"} & set(sizes)
    assert sum(sizes.values()) - before < MOST_BYTES

    assert fresh.run("coprlake", "--version") == f"coprlake {coprlake.__version__}\n"
    work = tmp_path / "work"
    work.mkdir()
    fresh.run("coprlake", "generate", "--megabytes", "0.2", "--out", "a.log", cwd=work)
    fresh.run("coprlake", "ingest", "a.log", "--into", "logs", cwd=work)
    lines = (work / "a.log").read_text().splitlines()
    assert int(fresh.run("coprlake", "search", "-c", "error", "logs", cwd=work)) > 0
    counted = fresh.run(
        "coprlake", "query", "fetch logs | summarize n = count()", "--table", "logs", "-o", "csv", cwd=work
    )
    assert 0 < int(counted.split()[-1]) <= len(lines)
    script = "import coprlake; print(coprlake.__file__); print(coprlake.open_table('logs').search('error').count() > 0)"
    where, found = fresh.python("-c", script, cwd=work).splitlines()
    assert Path(where).is_relative_to(fresh.packages)
    assert found == "True"
