"""A Spark session that can do what coprlake needs, and that is never left running."""

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coprlake.errors import UsageError
from coprlake.spark.java import java_executable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER: Final = "local[*]"
DAEMON_MODULE: Final = "coprlake.spark.daemon"

CONFS: Final[Mapping[str, str]] = {
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.python.daemon.module": DAEMON_MODULE,
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""What a session of ours has unless the user says otherwise. The first two are worth having in any session that reads
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
) -> Iterator["SparkSession"]:
    """A session for the time of a ``with`` block; one that is there already is used, and left as it was.

    Args:
        master: of the cluster; by default what the environment says (spark-submit does), or else ``local[*]``.
        confs: any settings of Spark's; these win over ours.
        name: of the application.
        jars: files to put on the class path, such as a connector.

    Raises:
        UsageError: there is no Java, or Spark does not start.
    """
    from pyspark.sql import SparkSession

    present = SparkSession.getActiveSession()
    if present is not None:
        yield present
        return
    java_executable()
    spark = _start(master, dict(confs or {}), name, [str(jar) for jar in jars])
    try:
        yield spark
    finally:
        _stop(spark)


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


def _start(master: str | None, confs: dict[str, str], name: str, jars: list[str]) -> "SparkSession":
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from coprlake.spark.warming import warm_up

    warm_up()  # compiled kernels are on disk before any worker asks for them
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    builder = SparkSession.builder.appName(name)
    for key, value in settings(master, confs, jars).items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise UsageError(
            f"Spark does not start: {str(error).partition(chr(10))[0]}; the lines above tell more"
        ) from error
    except Exception as error:  # of Java, through Py4J, which has a class for everything
        raise UsageError(f"Spark does not start: {_java_message(error)}") from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _java_message(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.strip().startswith("at ")]
    return " ".join(lines[:3])[:400]


def _stop(spark: "SparkSession") -> None:
    """Stop the session and the Java behind it: a process that ends must not wait for it, nor leave it behind."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    try:
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
