"""The golden queries on DuckDB, with and without the index, and on Spark: the same rows."""

import pytest
from pyspark.sql import SparkSession

from coprlake import Table
from coprlake.spark import query
from tests.language.language_cases import NOW, Case, cases, check
from tests.spark_sessions import QUIET

pytestmark = QUIET

CASES = list(cases())
by_name = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 150
    assert len({case.name for case in CASES}) == len(CASES)


@by_name
def test_on_duckdb(table: Table, case: Case) -> None:
    check(case, table.query(case.query, now=NOW).arrow())


@by_name
def test_on_duckdb_without_the_index(table: Table, case: Case) -> None:
    check(case, table.query(case.query, now=NOW, use_sketches=False).arrow())


@by_name
def test_on_spark(spark: SparkSession, table: Table, case: Case) -> None:
    check(case, query(spark, table, case.query, now=NOW).arrow())
