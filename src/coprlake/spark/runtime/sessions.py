"""A Spark session that can do what coprlake needs, and that is never left running."""

import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from coprlake.errors import UsageError
from coprlake.spark.runtime.java import java_executable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER: Final = "local[*]"
DAEMON_MODULE: Final = "coprlake.spark.runtime.daemon"

CONFS: Final[Mapping[str, str]] = {
    "spark.python.daemon.module": DAEMON_MODULE,
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""What a session of ours has unless the user says otherwise. The first is worth having in any session that reads
tables of coprlake; see docs/spark.md."""

_LOCAL_CONFS: Final[Mapping[str, str]] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


@contextmanager
def session(
    master: str | None = None,
    confs: Mapping[str, str] | None = None,
    *,
    name: str = "coprlake",
    jars: Sequence[str | Path] = (),
    quiet: bool = False,
) -> Iterator["SparkSession"]:
    """A session for the time of a ``with`` block; one that is there already is used, and left as it was.

    Args:
        master: of the cluster; by default what the environment says (spark-submit does), or else ``local[*]``.
        confs: any settings of Spark's; these win over ours.
        name: of the application.
        jars: files to put on the class path, such as a connector.
        quiet: keep Spark's own log from the screen; if it does not start, the end of the log is told.

    Raises:
        UsageError: there is no Java, or Spark does not start.
    """
    present = running_session()
    if present is not None:
        yield present
        return
    java_executable()
    with _log_file(quiet) as log:
        spark = _start(settings(master, confs or {}, [str(jar) for jar in jars]), name, log)
        try:
            yield spark
        finally:
            _stop(spark)


def running_session() -> "SparkSession | None":
    """The session of this process, whichever thread began it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    present = SparkSession.getActiveSession()
    if present is None and SparkContext._active_spark_context is not None:
        present = SparkSession.builder.getOrCreate()  # the active one is known to the thread that began it
    return present


def settings(master: str | None, confs: Mapping[str, str], jars: Sequence[str] = ()) -> dict[str, str]:
    """All settings of a new session."""
    chosen = dict(CONFS)
    where = confs.get("spark.master") or master or os.environ.get("MASTER") or DEFAULT_MASTER
    if where.startswith("local"):
        chosen |= _LOCAL_CONFS
    chosen |= confs
    chosen["spark.master"] = where
    if jars:
        present = [chosen["spark.jars"]] if chosen.get("spark.jars") else []
        chosen["spark.jars"] = ",".join([*present, *jars])
    return chosen


def _start(chosen: dict[str, str], name: str, log: IO[bytes] | None) -> "SparkSession":
    from pyspark.sql import SparkSession

    from coprlake.spark.runtime.warming import warm_up_once

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if chosen["spark.master"].startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    logging.getLogger("py4j").setLevel(logging.ERROR)
    builder = SparkSession.builder.appName(name)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    compiling = threading.Thread(target=warm_up_once, daemon=True)  # while Java starts, and before any worker does
    compiling.start()
    try:
        with _errors_into(log):
            spark = builder.getOrCreate()
        compiling.join()
    except BaseException as error:
        _end_unborn()
        if not isinstance(error, Exception):
            raise
        raise UsageError(f"Spark does not start: {_reason(error, log)}") from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _end_unborn() -> None:
    """End the Java of a session that did not come to be: PySpark forgets it when its start is interrupted.

    Such a process waits for ever for somebody who does not know it. On Linux; elsewhere it is left.
    """
    with suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            for child in (task / "children").read_text().split():
                with suppress(OSError):
                    command = Path(f"/proc/{child}/cmdline").read_bytes()
                    if b"pyspark-shell" in command and b"java" in command:
                        os.kill(int(child), signal.SIGKILL)


def _reason(error: Exception, log: IO[bytes] | None) -> str:
    """The first lines that say something: of Java's log if there is one, else of the error."""
    text = str(error)
    if log is not None:
        log.seek(0)
        text = log.read().decode("utf-8", "replace") + "\n" + text
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("at ")]
    telling = [line for line in lines if "Exception" in line or "rror" in line] or lines
    return " ".join(telling[:2])[:400]


@contextmanager
def _log_file(quiet: bool) -> Iterator[IO[bytes] | None]:
    """A file for what Java says, None if that goes to the screen."""
    if not quiet:
        yield None
        return
    with tempfile.TemporaryFile(prefix="coprlake-spark-") as file:
        yield file


@contextmanager
def _errors_into(log: IO[bytes] | None) -> Iterator[None]:
    """What is started inside writes its errors to the log: Java inherits where they go."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    own = os.dup(2)
    try:
        os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


def _stop(spark: "SparkSession") -> None:
    """Stop the session and the Java behind it: a process that ends must not wait for it, nor leave it behind."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    try:
        with suppress(Py4JError, OSError):  # Java is gone already: somebody else has ended it
            spark.stop()
    finally:
        if gateway is not None:
            gateway.shutdown()
            process = getattr(gateway, "proc", None)
            if process is not None:
                process.stdin.close()
                process.wait(30)
            SparkContext._gateway = None
            SparkContext._jvm = None
