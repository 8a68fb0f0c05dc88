"""What only Linux has is never needed: its absence is simulated, as on macOS."""

import ctypes
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coprlake import files, ingestion, unchanging
from coprlake.files import Folder

FULL_SYNC = 51
"""The number of F_FULLFSYNC on macOS."""


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that sync a file, by name."""
    calls: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append("fsync"))
    return calls


def test_on_macos_a_sync_reaches_the_disk_itself(
    synced: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(descriptor: int, command: int, *rest: Any) -> int:
        assert command == FULL_SYNC
        synced.append("full")
        return 0

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", FULL_SYNC, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", full)
    Folder.of(tmp_path).write("a", [b"bytes"])
    assert "full" in synced
    assert "fsync" not in synced


def test_a_file_system_without_full_syncs_gets_a_plain_one(
    synced: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(descriptor: int, command: int, *rest: Any) -> int:
        raise OSError(45, "operation not supported")

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", FULL_SYNC, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", refused)
    files.sync_path(str(tmp_path))
    assert synced == ["fsync"]


@pytest.mark.parametrize("offset", [0, 1, 9, 10, 11])
def test_reads_at_an_offset_without_preadv(offset: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    monkeypatch.delattr(os, "preadv")
    monkeypatch.setattr(unchanging, "_READ_BYTES", 3)
    with path.open("rb") as file:
        assert unchanging.read_at(file.fileno(), 10, offset).tobytes() == b"0123456789"[offset:]


def test_another_c_library_keeps_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    class WithoutMallopt:
        def __init__(self, name: object) -> None: ...

    monkeypatch.setattr(ctypes, "CDLL", WithoutMallopt)
    ingestion.give_memory_back()


def test_tables_work_without_what_only_linux_has(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "import numba, pyarrow.parquet, deltalake\n"
        "for name in ('preadv', 'sched_getaffinity', 'posix_fadvise', 'posix_fallocate', 'fdatasync', 'memfd_create',\n"
        "             'copy_file_range', 'splice', 'getrandom', 'pidfd_open', 'sendfile'):\n"
        "    if hasattr(os, name): delattr(os, name)\n"
        "import coprlake\n"
        "table = coprlake.create_table(sys.argv[1])\n"
        "table.append([{'content': f'request {n} refused'} for n in range(100)])\n"
        "table.append([{'content': 'one more'}])\n"
        "table.optimize()\n"
        "print(table.search('request 42 refused').count(), coprlake.open_table(sys.argv[1]).search().count())\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "logs")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout == "1 101\n", done.stderr
