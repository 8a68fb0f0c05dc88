"""Kernels from a bundle: the same answers, never stale, never from a damaged file, and no Numba on the way."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coprlake.kernel_sources import PACKAGE_FOLDER
from coprlake.native import bundle as bundles
from coprlake.native.building import build_missing, is_ready
from coprlake.native.bundle import processor_features, read_bundle, write_bundle
from coprlake.native.entries import Sources
from tests.native.conftest import KERNELS, Sample

SCRIPTS = Path(__file__).parent
KERNEL_COUNT = KERNELS.read_text().count("\ndef ")
ASK = "import sys; from coprlake.bits.sample_kernels import total; import numpy as np\n"
ASK += "print(total(np.arange(4, dtype=np.uint8), np.arange(3)), 'numba' in sys.modules)"
SUM = 6
STARTS = 3

pytestmark = pytest.mark.skipif(
    bundles.machine() != "linux-x86_64", reason="bundles are built for Linux on x86-64; elsewhere Numba compiles"
)


def ask(sample: Sample, **environment: str) -> tuple[int, bool]:
    """The answer of a new process, and whether it needed Numba."""
    answer, numba = sample.run("-c", ASK, **environment).split()
    return int(answer), numba == "True"


@pytest.mark.slow
def test_the_answers_of_the_bundle_are_those_of_numba(built_sample: Sample, tmp_path: Path) -> None:
    script = tmp_path / "same_answers.py"
    shutil.copy(SCRIPTS / "same_answers.py.txt", script)
    assert built_sample.run(str(script), str(KERNEL_COUNT)).splitlines()[-1] == "same"


@pytest.mark.slow
def test_a_bundle_is_used_without_numba_and_can_be_switched_off(built_sample: Sample) -> None:
    assert ask(built_sample) == (SUM * 3 + STARTS, False)
    assert ask(built_sample, COPRLAKE_KERNEL_BUNDLE="0") == (SUM * 3 + STARTS, True)
    assert ask(built_sample, NUMBA_BOUNDSCHECK="1") == (SUM * 3 + STARTS, True)
    assert ask(built_sample, NUMBA_DISABLE_JIT="1") == (SUM * 3 + STARTS, False)


@pytest.mark.slow
def test_a_changed_source_never_runs_old_code(sample: Sample) -> None:
    text, before = sample.kernels.read_text(), sample.kernels.stat()
    sample.kernels.write_text(text.replace("FACTOR = 3", "FACTOR = 5"))
    os.utime(sample.kernels, ns=(before.st_atime_ns, before.st_mtime_ns))  # the same size and time
    shutil.rmtree(sample.kernels.parent / "__pycache__", ignore_errors=True)  # Python itself goes by size and time
    assert ask(sample) == (SUM * 5 + STARTS, True)
    sample.build()
    assert ask(sample) == (SUM * 5 + STARTS, False)
    assert len(sample.bundles()) == 1, "the old one is replaced"
    (sample.package / "bits" / "other.py").write_text("ELSEWHERE = 1\n")
    assert ask(sample) == (SUM * 5 + STARTS, False), "a module that no kernel imports"


@pytest.mark.slow
def test_damaged_bundles_are_ignored_and_built_again(sample: Sample) -> None:
    (file,) = sample.bundles()
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    assert ask(sample) == (SUM * 3 + STARTS, True)
    assert "are ready" in sample.build()
    assert ask(sample) == (SUM * 3 + STARTS, False)


@pytest.mark.slow
def test_several_processes_build_at_the_same_time(sample: Sample) -> None:
    for file in sample.package.rglob("kernels-*"):
        file.unlink()
    building = [sample.start("-m", "coprlake.native.building") for _ in range(3)]
    printed = [process.communicate(timeout=300)[0] for process in building]
    assert [process.returncode for process in building] == [0, 0, 0], printed
    assert ask(sample) == (SUM * 3 + STARTS, False)
    assert len(sample.bundles()) == 1


@pytest.mark.slow
def test_a_package_that_cannot_be_written_to_has_its_bundle_in_the_cache(sample: Sample) -> None:
    for file in sample.package.rglob("kernels-*"):
        file.unlink()
    shutil.rmtree(sample.package / "__pycache__", ignore_errors=True)
    (sample.package / "__pycache__").write_text("no folder")
    sample.build()
    (file,) = sample.bundles()
    assert file.is_relative_to(sample.package.parent / "cache")
    assert ask(sample) == (SUM * 3 + STARTS, False)


@pytest.fixture(scope="module")
def small_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("bundle") / "small.bundle"
    index = {"machine": bundles.machine(), "features": sorted(processor_features()), "modules": {}, "sources": {}}
    write_bundle(file, index, bytes(range(256)) * 16)
    return file


@given(st.data())
def test_no_damage_goes_unnoticed(small_bundle: Path, drawn: st.DataObject) -> None:
    content = bytearray(small_bundle.read_bytes())
    if drawn.draw(st.booleans(), "cut"):
        damaged = bytes(content[: drawn.draw(st.integers(0, len(content) - 1))])
    else:
        content[drawn.draw(st.integers(0, len(content) - 1))] ^= drawn.draw(st.integers(1, 255))
        damaged = bytes(content)
    file = small_bundle.with_name("damaged.bundle")
    file.write_bytes(damaged)
    assert read_bundle(file) is None
    file.write_bytes(damaged + b"more")
    assert read_bundle(file) is None


def test_a_bundle_for_another_machine_is_ignored(small_bundle: Path) -> None:
    sound = read_bundle(small_bundle)
    assert sound is not None
    other = small_bundle.with_name("other.bundle")
    write_bundle(other, {**sound.index, "features": [*sound.index["features"], "time_travel"]}, sound.code)
    assert read_bundle(other) is None
    write_bundle(other, {**sound.index, "machine": "plan9-mips"}, sound.code)
    assert read_bundle(other) is None
    assert read_bundle(small_bundle.with_name("none.bundle")) is None


@pytest.fixture(scope="module")
def _ready() -> None:
    """The bundle of the package itself, as after `make setup`."""
    build_missing()
    assert is_ready()


@pytest.mark.slow
@pytest.mark.usefixtures("_ready")
def test_every_kernel_that_python_calls_is_in_the_bundle() -> None:
    found = [bundle for file in bundles.places() if (bundle := read_bundle(file)) is not None]
    for module, names in Sources(PACKAGE_FOLDER).entries.items():
        for name in names:
            assert any(bundle.entry_offset(module, name) is not None for bundle in found), (module, name)


RUN = """
import sys
from click.testing import CliRunner
from coprlake.cli.main import cli
shown = CliRunner().invoke(cli, {arguments})
assert shown.exit_code == {code}, shown.output
print("numba" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("_ready")
def test_commands_do_not_import_numba(tmp_path: Path) -> None:
    lines = [f"2026-11-16 03:55:{n % 60:02} WARN [{n}] request 4bf92f3577 took {n} ms" for n in range(500)]
    (tmp_path / "a.log").write_text("\n".join(lines) + "\n")
    (tmp_path / "b.ndjson").write_text('{"time": "2026-11-16T03:55:00Z", "message": "4bf92f3577"}\n' * 20)
    table = str(tmp_path / "t")
    commands: list[tuple[list[str], int]] = [
        (["ingest", str(tmp_path / "a.log"), str(tmp_path / "b.ndjson"), "--into", table, "--engine", "local"], 0),
        (["search", "4bf92f3577", table], 0),
        (["search", "took 17", table], 0),
        (["search", "absentterm", table], 1),
        (["search", "-E", "to+k 1[0-9]", table], 0),
        (["explain", "absentterm", table], 0),
        (["query", "fetch logs | parse content, \"LD 'took ' INT:ms\" | summarize sum(ms)", table], 0),
        (["optimize", table, "--engine", "local"], 0),
        (["verify", table], 0),
    ]
    for arguments, code in commands:
        environment = {**os.environ, "NUMBA_DISABLE_JIT": "0", "COPRLAKE_ENGINE": "local"}
        environment.pop("NUMBA_BOUNDSCHECK", None)
        script = RUN.format(arguments=arguments, code=code)
        asked = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert asked.stdout == "False\n", (arguments, asked.stdout, asked.stderr)


def workers_of(process: "subprocess.Popen[str]") -> list[str]:
    """The processes that compile for another one."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = file.read_bytes().split(b"\0")
            if b"--worker" in words and str(process.pid).encode() in words:
                found.append(file.parent.name)
    return found


def wait_until(happened: Callable[[], object]) -> None:
    until = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_build_that_is_interrupted_leaves_nothing_running(
    sample: Sample, tmp_path: Path, stop: signal.Signals
) -> None:
    for file in sample.package.rglob("kernels-*"):
        file.unlink()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = sample.start("-m", "coprlake.native.building", TMPDIR=str(scratch))
    wait_until(lambda: list(scratch.rglob("*.begun")))
    process.send_signal(stop)
    process.communicate(timeout=60)
    assert process.returncode != 0
    wait_until(lambda: not workers_of(process))
    if stop == signal.SIGINT:
        assert not list(scratch.iterdir())
        assert len(list(sample.package.rglob("kernels-*.objects"))) == 1, "what was compiled is kept"
    assert not sample.bundles()
    sample.build()
    assert ask(sample) == (SUM * 3 + STARTS, False)


@pytest.mark.slow
def test_a_bundle_for_the_baseline_is_found_beside_the_sources(sample: Sample) -> None:
    (host,) = sample.bundles()
    host.unlink()
    assert "are ready" in sample.run("-m", "coprlake.native.building", "--baseline")
    (file,) = sample.bundles()
    assert file == sample.package / "native" / "shipped.bundle"
    assert ask(sample) == (SUM * 3 + STARTS, False)
    assert sample.build() == "the kernels are ready\n"
    index = read_bundle(file)
    assert index is not None
    assert index.index["package"] == "", "no path of the machine that built it"
    assert set(index.index["features"]) < processor_features()


@pytest.mark.slow
def test_no_bundle_is_written_if_nothing_could_be_compiled(sample: Sample, tmp_path: Path) -> None:
    for file in sample.package.rglob("kernels-*"):
        file.unlink()
    broken = tmp_path / "broken" / "llvmlite"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('no LLVM here')\n")
    path = os.pathsep.join([str(sample.package.parent), str(broken.parent)])
    for arguments in ([], ["--baseline"]):
        process = sample.start("-m", "coprlake.native.building", *arguments, PYTHONPATH=path)
        printed, _ = process.communicate(timeout=120)
        assert process.returncode == 1
        assert "no LLVM here" in printed
        assert not sample.bundles()


FIRST_USE = """
import sys
from coprlake.native import kernels
kernels.announce = lambda seconds: print("preparing", file=sys.stderr, flush=True)
from coprlake.bits.sample_kernels import scaled, total
import numpy as np
print(total(np.arange(4, dtype=np.uint8), np.arange(3)), scaled(2), 'numba' in sys.modules)
"""


@pytest.mark.slow
def test_the_first_commands_build_the_bundle_once_and_say_so(sample: Sample, tmp_path: Path) -> None:
    for file in sample.package.rglob("kernels-*"):
        file.unlink()
    work = tmp_path / "work"
    work.mkdir()
    (work / "numba.py").write_text("raise RuntimeError('a file of the user')\n")
    began = [sample.start("-c", FIRST_USE, cwd=str(work)) for _ in range(2)]
    for process in began:
        printed, _ = process.communicate(timeout=300)
        assert printed == f"preparing\n{SUM * 3 + STARTS} 6 False\n"
    assert len(sample.bundles()) == 1
    assert sample.run("-c", FIRST_USE) == f"{SUM * 3 + STARTS} 6 False\n"
