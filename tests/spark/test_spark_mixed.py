"""A field whose values have different types gives the same answers on Spark."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coprlake import spark as lake
from tests.language.mixed_types import BIG, check, new_table, numbered
from tests.spark_sessions import QUIET

pytestmark = [pytest.mark.slow, *QUIET]


@pytest.mark.parametrize(
    "files",
    [[[3, 7, BIG], [2.5, 404.0, 1e17, 1.5e-7], ["abc", "12", True, "404.0"], [None, 404]], [[2.5], [BIG, 3], ["abc"]]],
    ids=["whole numbers first", "doubles first"],
)
def test_a_query_finds_every_value_of_any_type(spark: SparkSession, tmp_path: Path, files: list[list[object]]) -> None:
    table = new_table(tmp_path, files)
    check(numbered(files), lambda text: lake.query(spark, table, text).rows())
