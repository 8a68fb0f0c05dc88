"""Fetches Java libraries that do not come with Spark, by their coordinates, and keeps them in the user's cache.

Apache Ivy, which is part of every Spark, does the fetching, from its default public repository.
"""

import json
import logging
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from coprlake.config import cache_folder
from coprlake.errors import NotFoundError, StorageError, UsageError
from coprlake.extras import require_spark
from coprlake.spark.runtime.java import java_executable

CONNECTOR: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13"
PINNED_CONNECTOR: Final = (
    f"{CONNECTOR}:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
"""Libraries that Spark 4.3.0 is known to work with if the connector of its own version is not available."""

_OLDER: Final = {"4.0": "4.0.0", "4.1": "4.1.0"}
"""The connectors that take its place for older versions of Spark."""

_IN_SPARK: Final = (
    "at.yawk.lz4:*",
    "com.google.code.findbugs:*",
    "org.apache.hadoop:*",
    "org.apache.spark:spark-tags_2.13",
    "org.lz4:*",
    "org.scala-lang:*",
    "org.scala-lang.modules:*",
    "org.slf4j:*",
    "org.xerial.snappy:*",
)
"""Dependencies of the connector that come with Spark."""

_MANIFEST: Final = "fetched.json"
_DAY_SECONDS: Final = 24 * 60 * 60
_PATIENCE_SECONDS: Final = 15 * 60
_ADVICE: Final = (
    "check the version and the network (behind a proxy set JAVA_TOOL_OPTIONS to "
    "'-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT'), or name the jar files with --jars"
)
_log: Final = logging.getLogger(__name__)


def connector_jars(cache: Path | None = None) -> list[Path]:
    """The jar files of the Kafka connector for the installed Spark, with its dependencies.

    If there is no connector of Spark's own version, this returns `pinned_connector` with a warning in the log, and does
    not look for the right one again for a day.

    Args:
        cache: the folder to keep it in; by default `cache_folder`.

    Raises:
        NotFoundError: no connector is available.
        StorageError: the network or the disk failed.
        NotInstalledError: Spark is not installed.
        UsageError: there is no Java.
    """
    version = _spark_version()
    root = cache_folder() if cache is None else cache
    missing = root / f"kafka-connector-{version}.missing"
    looked_for = _is_recent(missing)
    if not looked_for:
        try:
            return fetch(
                [f"{CONNECTOR}:{version}"], root / f"kafka-connector-{version}", transitive=True, without=_IN_SPARK
            )
        except (NotFoundError, StorageError) as error:
            _log.debug("%s", error)
    libraries = pinned_connector(version)
    pinned = libraries[0].rpartition(":")[2]
    jars = fetch(libraries, root / f"kafka-connector-{pinned}-pinned")
    if not looked_for:
        missing.touch()
    _log.warning("no Kafka connector for Spark %s was found; using that for %s", version, pinned)
    return jars


def pinned_connector(version: str) -> tuple[str, ...]:
    """The libraries for a version of Spark if the connector of that version is not available."""
    older = _OLDER.get(".".join(version.split(".")[:2]))
    return PINNED_CONNECTOR if older is None else (f"{CONNECTOR}:{older}", *PINNED_CONNECTOR[1:])


def fetch(
    coordinates: Sequence[str], folder: Path, *, transitive: bool = False, without: Sequence[str] = ()
) -> list[Path]:
    """The jar files of some libraries, in their own folder; fetched unless they exist.

    The folder appears only when it is complete, so several processes may fetch at once, and any may die.

    Args:
        coordinates: as ``organisation:name:version``.
        folder: holds the files; replaced if its contents differ.
        transitive: also fetch the dependencies.
        without: dependencies to leave out, as ``organisation:name`` with ``*`` for any.

    Raises:
        NotFoundError: a library is not available; the message names it.
        StorageError: the network or the disk failed.
        NotInstalledError: Spark is not installed.
        UsageError: there is no Java, or a coordinate is not valid.
    """
    module = _module(coordinates, transitive, without)
    jars = _complete(folder, module)
    if jars is not None:
        return jars
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as name:
            made = Path(name) / "jars"
            _run_ivy(module, coordinates, Path(name), made)
            _publish(made, folder, module)
    except OSError as error:
        if isinstance(error, NotFoundError | StorageError):
            raise
        raise StorageError(f"{folder}: cannot store jar files here: {error.strerror or error}") from error
    return _complete(folder, module) or []


def _module(coordinates: Sequence[str], transitive: bool, without: Sequence[str]) -> str:
    """Ivy's description of what to fetch."""
    lines = ['<ivy-module version="2.0">', '<info organisation="coprlake" module="jars"/>']
    lines += ['<configurations><conf name="default"/></configurations>', "<dependencies>"]
    conf = "default->default" if transitive else "default->master"
    for coordinate in coordinates:
        parts = coordinate.split(":")
        if len(parts) != 3 or not all(parts):
            raise UsageError(f"{coordinate!r} is not a valid library coordinate; expected organisation:name:version")
        organisation, name, version = map(quoteattr, parts)
        lines.append(f"<dependency org={organisation} name={name} rev={version} conf={quoteattr(conf)}/>")
    for unwanted in without:
        organisation, _, name = unwanted.partition(":")
        lines.append(f"<exclude org={quoteattr(organisation)} module={quoteattr(name)}/>")
    return "\n".join([*lines, "</dependencies>", "</ivy-module>", ""])


def _complete(folder: Path, module: str) -> list[Path] | None:
    """The jar files in the folder, None unless its manifest says that they are all the files of the module."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_bytes())
        jars = {folder / name: size for name, size in manifest["sizes"].items()}
        if manifest["module"] == module and all(jar.stat().st_size == size for jar, size in jars.items()):
            return sorted(jars)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass  # missing, or not ours
    return None


def _publish(made: Path, folder: Path, module: str) -> None:
    """Move complete files into place; another process may have done so in the meantime."""
    sizes = {jar.name: jar.stat().st_size for jar in made.glob("*.jar")}
    (made / _MANIFEST).write_text(json.dumps({"module": module, "sizes": sizes}, indent=1))
    try:
        made.rename(folder)
    except OSError:
        if _complete(folder, module) is None:
            folder.rename(made.with_name("old"))
            made.rename(folder)


def _run_ivy(module: str, coordinates: Sequence[str], scratch: Path, target: Path) -> None:
    (scratch / "ivy.xml").write_text(module)
    command = [java_executable(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", str(_ivy())]
    command += ["org.apache.ivy.Main", "-ivy", str(scratch / "ivy.xml"), "-cache", str(scratch / "cache")]
    command += ["-confs", "default", "-types", "jar", "bundle"]
    command += ["-retrieve", str(target / "[artifact]-[revision].[ext]")]
    names = ", ".join(coordinates)
    try:
        result = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_PATIENCE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise StorageError(f"{names}: not fetched within {_PATIENCE_SECONDS // 60} minutes; {_ADVICE}") from error
    if result.returncode:
        raise _failure(names, result.stdout.decode("utf-8", "replace"))
    if not any(target.glob("*.jar")):
        raise NotFoundError(f"{names}: has no jar file; {_ADVICE}")


def _failure(names: str, told: str) -> NotFoundError | StorageError:
    """What went wrong, from Ivy's output."""
    unresolved = re.findall(r":: ([\w.-]+)#([\w.-]+);([\w.-]+)[:!]", told.partition("UNRESOLVED")[2])
    if unresolved:
        names = ", ".join(dict.fromkeys(":".join(parts) for parts in unresolved))
    if re.search(r"Server access error|Host .* not found|timed out", told):
        return StorageError(f"{names}: the public repository of Java libraries cannot be reached; {_ADVICE}")
    return NotFoundError(f"{names}: not found in the public repository of Java libraries; {_ADVICE}")


def _spark_version() -> str:
    require_spark()
    import pyspark

    return str(pyspark.__version__)


def _ivy() -> Path:
    """Spark's copy of Ivy."""
    _spark_version()
    import pyspark

    home = os.environ.get("SPARK_HOME")
    folders = [Path(pyspark.__file__).parent / "jars", *([Path(home) / "jars"] if home else [])]
    found = [jar for folder in folders for jar in sorted(folder.glob("ivy-*.jar"))]
    if not found:
        raise UsageError("this Spark has no ivy-*.jar among its jars; install it with: pip install 'coprlake[spark]'")
    return found[-1]


def _is_recent(marker: Path) -> bool:
    try:
        return time.time() - marker.stat().st_mtime < _DAY_SECONDS
    except OSError:
        return False
