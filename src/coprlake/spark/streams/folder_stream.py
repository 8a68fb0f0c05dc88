"""Streams the files that appear in a folder into a table; each file is read once."""

import re
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from coprlake.errors import UsageError
from coprlake.ingestion import IngestReport
from coprlake.intake.sources.inputs import InputFile, Walk
from coprlake.intake.sources.table_folders import refuse_tables_above, refuse_tables_within
from coprlake.spark.jobs.ingesting import ingest_files
from coprlake.spark.source.open_tables import opened
from coprlake.spark.streams.streaming import StreamSettings, start
from coprlake.storage.log.delta_log import Transaction
from coprlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_FILE_COLUMNS: Final = "path string, modificationTime timestamp, length long, content binary"
_PATTERN_SIGN = re.compile(r"[*?{}\[\]\\]")
"""Characters to escape: Spark treats the path of a folder as a pattern."""


def stream_folder(
    spark: "SparkSession",
    folder: str | PathLike[str],
    table: str | PathLike[str] | Table,
    settings: StreamSettings | None = None,
) -> "StreamingQuery":
    """Append every file that appears in a folder; each is read once, by its name.

    Files must be renamed into place, from outside the folder or from a name that starts with a dot or an underscore:
    one that is still growing is read as it is at that moment.

    Args:
        spark: the session.
        folder: the folder to watch, with its subfolders.
        table: an existing table.
        settings: see `StreamSettings`.
    """
    settings = settings or StreamSettings()
    target = opened(table)
    root = Path(folder).resolve()  # the same folder by another path is the same stream
    if not root.is_dir():
        raise UsageError(f"{folder}: there is no such folder to watch; create it first")
    refuse_tables_within(str(root))
    reader = spark.readStream.format("binaryFile").schema(_FILE_COLUMNS).option("recursiveFileLookup", "true")
    reader = reader.option("maxFilesPerTrigger", str(settings.limit or 10_000))
    reader = reader.option("maxFileAge", "36500d")  # read files however old they are
    files = reader.load(_PATTERN_SIGN.sub(r"\\\g<0>", str(root))).select("path", "length", "modificationTime")

    def write(batch: "DataFrame", once: Transaction) -> IngestReport:
        walk = Walk(follow_links=settings.follow_links)
        listed = [_input_file(row, root) for row in batch.collect()]
        found = [file for file in listed if not walk.leads_outside(file.path, str(root))]
        refuse_tables_above(str(root), dict.fromkeys(str(Path(file.path).parent) for file in found))
        present = [file for file in found if Path(file.path).exists()]  # a task that misses one of these must fail
        report = ingest_files(
            spark,  # not the stream's session, whose queries cannot adapt at run time
            sorted(present, key=lambda file: (file.modified or 0, file.path)),
            target,
            settings.options,
            segment_bytes=settings.segment_bytes,
            once=once,
            note={"stream": str(root)},
        )
        for file in found:
            if file not in present:
                report.read.unreadable += 1
                report.read.warn(file.path, "vanished before it was read")
        report.read.passed_over([], walk.links)
        return report

    return start(files, target, f"folder-{root.name}", str(root), settings, write)


def _input_file(row: Any, root: Path) -> InputFile:
    path = Path("/" + row["path"].removeprefix("file:").lstrip("/"))  # the path is not quoted
    source = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
    return InputFile(str(path), source, row["length"], row["modificationTime"].timestamp())
