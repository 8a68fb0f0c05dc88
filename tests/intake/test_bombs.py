"""Inputs that are small on disk and endless in memory: read up to a limit, and named."""

import bz2
import gzip
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import coprlake
from coprlake.errors import UsageError
from coprlake.intake.sources import compression
from coprlake.intake.sources.compression import ByteStream
from coprlake.intake.sources.inputs import InputFile

LINE = b"all work and no play makes jack a dull boy\n"
LINE_COUNT = 60_000
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda data: bytes(pa.Codec("zstd").compress(data)),
}


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "EXPANSION_FREE_BYTES", 1 << 20)


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.usefixtures("small_limit")
def test_a_bomb_is_read_up_to_the_limit_and_named(tmp_path: Path, kind: str) -> None:
    bomb = tmp_path / f"app.log.{kind}"
    bomb.write_bytes(PACKERS[kind](LINE * LINE_COUNT))
    (tmp_path / "other.log").write_bytes(LINE)
    with coprlake.Intake([tmp_path], coprlake.ReadOptions(max_expansion=20)) as intake:
        batches = list(intake)
    report = intake.report
    assert 10_000 < report.records < LINE_COUNT
    assert sum(map(len, batches)) == report.records
    assert report.unreadable == 1
    assert any(str(bomb) in warning and "--max-expansion" in warning for warning in report.warnings)


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("factor", [0, 1_000_000])
@pytest.mark.usefixtures("small_limit")
def test_the_limit_can_be_raised(tmp_path: Path, kind: str, factor: int) -> None:
    (tmp_path / f"app.log.{kind}").write_bytes(PACKERS[kind](LINE * LINE_COUNT))
    with coprlake.Intake([tmp_path], coprlake.ReadOptions(max_expansion=factor)) as intake:
        assert sum(map(len, intake)) == LINE_COUNT
    assert intake.report.unreadable == 0


def test_what_expands_to_less_than_a_gibibyte_is_no_bomb(tmp_path: Path) -> None:
    (tmp_path / "app.log.gz").write_bytes(gzip.compress(LINE * LINE_COUNT))
    with coprlake.Intake([tmp_path], coprlake.ReadOptions(max_expansion=1)) as intake:
        assert sum(map(len, intake)) == LINE_COUNT


def test_a_factor_below_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="max_expansion"):
        coprlake.ReadOptions(max_expansion=-1)


def test_a_zstd_window_of_gigabytes_is_damage(tmp_path: Path) -> None:
    """The frame's header asks for a window of 2 GiB (exponent 21), which no reader should take memory for."""
    file = tmp_path / "app.log.zst"
    file.write_bytes(b"\x28\xb5\x2f\xfd" + bytes([0x00, 21 << 3]) + b"\x01\x00\x00" + bytes(100))
    stream = ByteStream(InputFile(str(file), "", file.stat().st_size, 0.0))
    assert stream.read(100) == b""
    assert stream.damage is not None


def test_an_endless_line_takes_little_memory(tmp_path: Path) -> None:
    bomb = tmp_path / "app.log.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        for _ in range(160):
            file.write(b"x" * (1 << 20))
    (tmp_path / "small.log.gz").write_bytes(gzip.compress(b"x" * 100_000))  # what it takes to compile is not counted
    script = """
        import resource, sys, coprlake

        def taken(path):
            with coprlake.Intake([path]) as intake:
                size = sum(batch.nbytes for batch in intake)
            return size >> 20, intake.report.split, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

        _, _, before = taken(sys.argv[1])
        size, split, peak = taken(sys.argv[2])
        print(size, split, peak - before)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "small.log.gz"), str(bomb)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    size, split, growth = map(int, result.stdout.split())
    assert size >= 160
    assert split > 8
    assert growth < 250, "a few pieces of 16 MiB, however long the line is"
