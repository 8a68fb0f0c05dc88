"""Older versions of PySpark lack some names; what depends on them works without, or says what to do."""

import os
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession, datasource, functions
from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

from coprlake.errors import UsageError
from coprlake.spark.jobs.querying import _arrow_udf
from coprlake.spark.runtime import class_archive
from coprlake.spark.runtime.jars import CONNECTOR, PINNED_CONNECTOR, pinned_connector
from coprlake.spark.runtime.java import java_executable
from coprlake.spark.source import column_types, sink
from coprlake.spark.source.registering import register
from tests.spark_sessions import QUIET

pytestmark = QUIET


def test_streams_get_arrow_data_without_a_class_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(datasource, "DataSourceStreamArrowWriter", raising=False)  # as in 4.0
    made = runpy.run_path(sink.__file__)["StreamSink"]
    assert issubclass(made, datasource.DataSourceStreamWriter)
    assert issubclass(made, datasource.DataSourceArrowWriter)  # what 4.0 asks before it hands over Arrow data
    assert not made.__abstractmethods__


def test_a_query_that_needs_a_newer_version_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(functions, "arrow_udf", raising=False)  # as in 4.0
    monkeypatch.setattr(pyspark, "__version__", "4.0.5")
    with pytest.raises(UsageError, match=r"needs PySpark 4.1 or newer, for lower; found 4.0.5; run it on DuckDB"):
        _arrow_udf("lower")


def test_times_keep_their_zone_or_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([("a", pa.timestamp("us", "UTC")), ("b", pa.timestamp("us"))])
    kinds = column_types.spark_schema(schema)
    assert [type(field.dataType) for field in kinds] == [TimestampType, TimestampNTZType]
    assert column_types.arrow_schema(kinds) == schema

    def without_zone(kinds: StructType, timestamp_utc: bool = True) -> pa.Schema:
        return schema  # as in 4.1

    monkeypatch.setattr(column_types, "to_arrow_schema", without_zone)
    assert column_types.arrow_schema(kinds) is schema


@pytest.mark.parametrize(("message", "is_fine"), [("[DATA_SOURCE_ALREADY_EXISTS] as in 4.0", True), ("other", False)])
def test_the_data_source_may_be_registered_again(message: str, is_fine: bool) -> None:
    class Refusing:
        dataSource = property(lambda self: self)  # noqa: N815

        def register(self, source: Any) -> None:
            raise AnalysisException(message)

    if is_fine:
        register(Refusing())
    else:
        with pytest.raises(AnalysisException, match="other"):
            register(Refusing())


def test_the_connector_follows_the_version() -> None:
    assert pinned_connector("4.0.5")[0] == f"{CONNECTOR}:4.0.0"
    assert pinned_connector("4.1.4")[0] == f"{CONNECTOR}:4.1.0"
    assert pinned_connector("4.2.1") == pinned_connector("4.3.0") == PINNED_CONNECTOR


def test_java_uses_the_archive_of_classes_if_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COPRLAKE_CACHE", str(tmp_path / "a cache"))
    monkeypatch.delenv(class_archive.OPTIONS_VARIABLE, raising=False)
    with class_archive.shared_classes():
        assert class_archive.OPTIONS_VARIABLE not in os.environ
    path = class_archive.archive_path()
    path.parent.mkdir(parents=True)
    path.touch()
    with class_archive.shared_classes():
        assert f'"-XX:SharedArchiveFile={path}" -Xshare:auto' in os.environ[class_archive.OPTIONS_VARIABLE]
    assert class_archive.OPTIONS_VARIABLE not in os.environ
    monkeypatch.setenv(class_archive.OPTIONS_VARIABLE, "-Dx=y")
    with class_archive.shared_classes():
        assert os.environ[class_archive.OPTIONS_VARIABLE].startswith("-Dx=y ")
    assert os.environ[class_archive.OPTIONS_VARIABLE] == "-Dx=y"


def test_a_damaged_archive_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COPRLAKE_CACHE", str(tmp_path))
    path = class_archive.archive_path()
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no archive" * 1000)
    options = [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    told = subprocess.run([java_executable(), *options, "--version"], capture_output=True, timeout=60, check=True)
    assert told.stderr == b""
    assert b"warning" not in told.stdout


def test_the_session_is_of_this_version(spark: SparkSession) -> None:
    assert spark.version == pyspark.__version__
