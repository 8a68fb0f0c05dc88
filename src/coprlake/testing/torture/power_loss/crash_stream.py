"""Records a real stream: Spark reads files from a folder, and a power loss may damage its checkpoint as well.

``python -m coprlake.testing.torture.power_loss.crash_stream FOLDER`` is recorded. Spark identifies files by path, so a
state is restored where it was recorded. There, with one more file in the folder, the stream is restarted: every line of
every file must be in the table once.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from coprlake import spark as lake
from coprlake.errors import CoprlakeError
from coprlake.files import Folder
from coprlake.spark.streams.streaming import StreamSettings
from coprlake.table import create_table, open_table
from coprlake.testing.torture.power_loss.crash_checks import CrashError
from coprlake.testing.torture.power_loss.crash_jobs import TABLE, Marker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB = "spark"
LINES = 3
"""The number of lines in each file."""


def add_file(folder: Path, number: int) -> None:
    """Add a file that is complete and synced when it appears, which is the duty of its writer."""
    text = "".join(f"2024-06-01 00:00:{line:02d} file {number} line {line}\n" for line in range(LINES))
    outside = folder.with_name(f"unfinished-{number}")
    outside.write_text(text)
    Folder.of(folder.parent).sync(outside.name)
    outside.rename(folder / f"file-{number}.log")
    Folder.of(folder).sync(f"file-{number}.log")


def take(spark: "SparkSession", folder: Path) -> None:
    """Let the stream read all files and stop."""
    settings = StreamSettings(checkpoint=str(folder / "checkpoint"), once=True)
    query = lake.stream_folder(spark, folder / "files", folder / TABLE, settings)
    if not query.awaitTermination(60):
        raise TimeoutError("the stream did not end in a minute")


def run_job(folder: Path) -> None:
    """Stream two batches of one file each."""
    (folder / "files").mkdir(parents=True)
    create_table(folder / TABLE)
    mark = Marker(folder)
    with lake.session("local[1]", {"spark.sql.shuffle.partitions": "1"}, quiet=True) as spark:
        mark.say([], begin=True)
        for number in range(2):
            add_file(folder / "files", number)
            mark.say(range(number), begin=number == 0)  # files that must be in the table
            take(spark, folder)
            mark.say(range(number + 1))


def check_restart(spark: "SparkSession", folder: Path, files: list[int]) -> bool:
    """Restart the stream after a power loss; return whether Spark could read its checkpoint, which it never syncs.

    Args:
        spark: a session.
        folder: the state.
        files: the files whose batch was acknowledged.

    Raises:
        CrashError: a line is missing or doubled.
    """
    _expect(folder, files)
    present = [int(file.stem.rpartition("-")[2]) for file in (folder / "files").glob("*.log")]
    add_file(folder / "files", 9)
    try:
        take(spark, folder)
    except Exception:  # whatever the error, Spark must have changed nothing
        _expect(folder, files)
        return False
    _expect(folder, [*present, 9], exactly=True)
    return True


def _expect(folder: Path, files: list[int], *, exactly: bool = False) -> None:
    try:
        rows = open_table(folder / TABLE).search(columns=["content"], strict=True).rows()
        found = sorted(row["content"].partition("file ")[2] for row in rows)
    except CoprlakeError as error:
        raise CrashError(f"the table cannot be read: {error}") from error
    expected = sorted(f"{number} line {line}" for number in files for line in range(LINES))
    missing = [line for line in expected if line not in found]
    if missing or len(set(found)) != len(found) or (exactly and found != expected):
        raise CrashError(f"expected {'exactly' if exactly else 'at least'} {expected}, found {found}")


if __name__ == "__main__":
    run_job(Path(sys.argv[1]) / JOB)
