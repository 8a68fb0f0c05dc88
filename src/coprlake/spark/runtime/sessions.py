"""Starts Spark sessions with the settings that coprlake needs, and always stops them."""

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
from coprlake.extras import require_spark
from coprlake.spark.runtime.class_archive import shared_classes
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
"""Settings of our sessions unless the user overrides them. The first is worth having in any session that reads coprlake
tables; see docs/spark.md."""

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
    """A session for a ``with`` block; uses the running session if there is one, and leaves it running.

    Args:
        master: the URL of the cluster; by default that of the environment (spark-submit sets it), or ``local[*]``.
        confs: any Spark settings; they override ours.
        name: the name of the application.
        jars: files to put on the class path, such as a connector.
        quiet: keep Spark's own log off the screen; if Spark does not start, the error quotes the log.

    Raises:
        NotInstalledError: Spark, or pandas which it needs, is not installed.
        UsageError: there is no Java, or Spark does not start.
    """
    require_spark()
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
    """The running session of this process, whichever thread started it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    present = SparkSession.getActiveSession()
    if present is None and SparkContext._active_spark_context is not None:
        present = SparkSession.builder.getOrCreate()  # getActiveSession only works in the thread that started it
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
        with _errors_into(log), shared_classes():
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
    """Kill the Java process of a session that failed to start: PySpark loses track of it when it is interrupted.

    Otherwise that process would wait forever. Works on Linux only; elsewhere the process is left running.
    """
    with suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            for child in (task / "children").read_text().split():
                with suppress(OSError):
                    command = Path(f"/proc/{child}/cmdline").read_bytes()
                    if b"pyspark-shell" in command and b"java" in command:
                        os.kill(int(child), signal.SIGKILL)


def _reason(error: Exception, log: IO[bytes] | None) -> str:
    """The first informative lines, of Java's log if there is one, otherwise of the error."""
    text = str(error)
    if log is not None:
        log.seek(0)
        text = log.read().decode("utf-8", "replace") + "\n" + text
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("at ")]
    telling = [line for line in lines if "Exception" in line or "rror" in line] or lines
    return " ".join(telling[:2])[:400]


@contextmanager
def _log_file(quiet: bool) -> Iterator[IO[bytes] | None]:
    """A file for Java's log, None if the log goes to the screen."""
    if not quiet:
        yield None
        return
    with tempfile.TemporaryFile(prefix="coprlake-spark-") as file:
        yield file


@contextmanager
def _errors_into(log: IO[bytes] | None) -> Iterator[None]:
    """Redirect standard error to the log, for processes that are started in this block: Java inherits it."""
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
    """Stop the session and its Java process, so that our process neither waits for it nor leaves it running."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    try:
        with suppress(Py4JError, OSError):  # Java is gone already: something else ended it
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
