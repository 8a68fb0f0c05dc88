"""Files that change while they are read spoil what is read of them, never the process."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coprlake import unchanging
from coprlake.files import Folder
from coprlake.sketch.immutable import SealedSketch
from coprlake.sketch.merge import add_sealed
from coprlake.sketch.mutable import MutableSketch
from coprlake.sketch.sealing import encode
from coprlake.spark.progress import Done, TaskProgress, _counts

LINES = [f"request {number} of session {number * 7919 % 10007} refused" for number in range(40_000)]


def in_child(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own: what kills it must not kill the test."""
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment}
    )


REWRITE = """
    import os, sys
    import pyarrow as pa
    import coprlake
    path, file = sys.argv[1:]
    table = coprlake.open_table(path)
    batches = iter(table.search("refused", threads=1))
    next(batches)
    os.truncate(file, 4096)  # as a writer does that begins the file again
    try:
        for _ in batches:
            pass
        print("searched")
    except coprlake.CoprlakeError as error:
        print(error)
"""


@pytest.fixture
def folder_of_parquet(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"content": LINES}), tmp_path / "a.parquet", row_group_size=2000)
    return tmp_path


def test_rewriting_a_parquet_file_during_a_search_is_an_error_not_a_crash(folder_of_parquet: Path) -> None:
    result = in_child(REWRITE, str(folder_of_parquet), str(folder_of_parquet / "a.parquet"))
    assert result.returncode == 0, (signal.Signals(-result.returncode), result.stderr)
    assert "a.parquet" in result.stdout
