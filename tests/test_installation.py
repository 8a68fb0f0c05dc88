"""Source archive and wheel, tried in an empty environment outside the checkout, without Java, Spark and pandas."""

import base64
import csv
import hashlib
import tarfile
import zipfile
from pathlib import Path

import pytest

import coprlake
from coprlake.native.building import SUPPORTED_MACHINE
from coprlake.native.bundle import machine
from scripts.fresh_environment import Environment, build, build_one, copied_sources

pytestmark = pytest.mark.slow

MOST_BYTES = 750_000_000
IS_SUPPORTED = machine() == SUPPORTED_MACHINE


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


def test_the_wheel_brings_compiled_kernels_for_any_python_on_its_platform(built: tuple[Path, Path]) -> None:
    archive, wheel = built
    names = set(contents(wheel))
    assert ("coprlake/native/shipped.bundle" in names) == IS_SUPPORTED
    tag = "py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64" if IS_SUPPORTED else "py3-none-any"
    assert wheel.name == f"coprlake-{coprlake.__version__}-{tag}.whl"
    with tarfile.open(archive) as tar:
        assert not [name for name in tar.getnames() if name.endswith(".bundle")]


def test_the_wheel_lists_its_files_with_their_digests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [record] = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
        rows = list(csv.reader(archive.read(record).decode().splitlines()))
        assert sorted(name for name, _, _ in rows) == sorted(archive.namelist())
        for name, digest, size in rows:
            content = archive.read(name)
            expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            assert [digest, size] == ([f"sha256={expected}", str(len(content))] if name != record else ["", ""])


def test_the_archive_builds_the_same_wheel_as_the_checkout(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Compared without the bundle, which would be compiled once more; without it, a wheel is for every platform."""
    tools = Environment.__new__(Environment)
    tools.folder = built[0].parent.parent / "tools"
    without = {"COPRLAKE_KERNEL_BUNDLE": "0"}
    direct = build_one(tools, "wheel", copied_sources(tmp_path / "sources"), tmp_path / "built", without)
    assert direct.name == f"coprlake-{coprlake.__version__}-py3-none-any.whl"
    expected = contents(built[1])
    expected.pop("coprlake/native/shipped.bundle", None)
    assert contents(direct) == expected


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
    compiled = [path for path in fresh.folder.rglob("*") if path.name.endswith((".objects", ".nbi"))]
    assert not (IS_SUPPORTED and compiled), "the wheel brings the kernels"
    counted = fresh.run(
        "coprlake", "query", "fetch logs | summarize n = count()", "--table", "logs", "-o", "csv", cwd=work
    )
    assert 0 < int(counted.split()[-1]) <= len(lines)
    script = "import coprlake; print(coprlake.__file__); print(coprlake.open_table('logs').search('error').count() > 0)"
    where, found = fresh.python("-c", script, cwd=work).splitlines()
    assert Path(where).is_relative_to(fresh.packages)
    assert found == "True"
