"""An archive of Java's classes from which Spark starts in half the time (class-data sharing).

``python -m coprlake.spark.runtime.class_archive`` makes it, once per installation of Spark and Java; sessions of
coprlake then use it. Java checks by itself that the archive fits its version and the jar files, and starts as usual if
it does not.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from coprlake.config import cache_folder
from coprlake.errors import StorageError
from coprlake.extras import require_spark
from coprlake.spark.runtime.java import java_executable

OPTIONS_VARIABLE: Final = "SPARK_SUBMIT_OPTS"
"""Options for the Java of the driver, besides those of the settings."""

_PATIENCE_SECONDS: Final = 15 * 60
_TRAINING: Final = """
import sys
from pyspark import SparkContext
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.range(100).selectExpr("id", "cast(id as string) AS text")
frame.write.parquet(sys.argv[1])
spark.read.parquet(sys.argv[1]).mapInArrow(lambda parts: parts, "id long, text string").createOrReplaceTempView("t")
spark.sql("SELECT text, count(*) AS n FROM t WHERE id > 3 GROUP BY text ORDER BY n").toArrow()
assert spark.sparkContext.parallelize([1, 2], 2).map(lambda number: number + 1).sum() == 5
spark.stop()
gateway = SparkContext._gateway
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait()  # it writes the archive now
"""
"""What Java does while it notes which classes are needed."""


def archive_path() -> Path:
    """Where the archive for the installed Spark and Java is, or would be."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    java = Path(java_executable()).resolve()
    known = [pyspark.__version__, str(jars), str(jars.stat().st_mtime_ns), str(java), str(java.stat().st_mtime_ns)]
    return cache_folder() / "spark-classes" / f"{hashlib.sha256(repr(known).encode()).hexdigest()[:16]}.jsa"


@contextmanager
def shared_classes() -> Iterator[None]:
    """Let a Java that starts within the block use the archive, if there is one."""
    try:
        archive = archive_path()
        is_usable = archive.is_file()
    except OSError:
        is_usable = False
    before = os.environ.get(OPTIONS_VARIABLE)
    if not is_usable or "SharedArchiveFile" in (before or ""):
        yield
        return
    own = f'"-XX:SharedArchiveFile={archive}" -Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off'
    os.environ[OPTIONS_VARIABLE] = f"{before} {own}" if before else own
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(OPTIONS_VARIABLE, None)
        else:
            os.environ[OPTIONS_VARIABLE] = before


def make_archive() -> Path:
    """Start Spark once, let it note which classes it needs, and keep them; archives of other installations go.

    Raises:
        NotInstalledError: Spark is not installed.
        UsageError: there is no Java.
        StorageError: Spark or Java failed.
    """
    require_spark()
    path = archive_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=path.parent) as scratch:
        made = Path(scratch) / path.name
        options = f'"-XX:ArchiveClassesAtExit={made}" -Xlog:disable'
        environment = {**os.environ, OPTIONS_VARIABLE: options, "SPARK_LOCAL_IP": "127.0.0.1"}
        environment |= {"PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, "-c", _TRAINING, str(Path(scratch) / "rows")]
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise StorageError(f"{path}: not made within {_PATIENCE_SECONDS // 60} minutes") from error
        if done.returncode or not made.is_file():
            last = (done.stderr.strip().splitlines() or ["this Java makes no archive"])[-1]
            raise StorageError(f"{path}: could not be made: {last}")
        made.replace(path)
    for old in path.parent.glob("*.jsa"):
        if old != path:
            old.unlink(missing_ok=True)
    return path


if __name__ == "__main__":
    print(make_archive())
