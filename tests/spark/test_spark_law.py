"""The law for what Spark stored: search equals the naive filter."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from coprlake.predicate.predicates import EVERYTHING
from coprlake.records import TIMESTAMP
from coprlake.testing.conformance import check_law
from coprlake.testing.predicate_strategies import Row, predicates, rows, texts_in
from coprlake.testing.spark import SPARK_VARIANTS
from coprlake.testing.store_variants import numbered
from tests.spark_sessions import QUIET

pytestmark = [pytest.mark.slow, *QUIET]
GENERATE = (Phase.explicit, Phase.generate)
MOMENTS = st.none() | st.sampled_from([row[TIMESTAMP] for row in numbered([{TIMESTAMP: None}] * 4)])


EXAMPLES = {"written_by_spark": 3, "streamed_by_spark": 2, "optimized_by_spark": 5, "indexed_by_spark": 5}


@pytest.mark.parametrize("variant", SPARK_VARIANTS)
def test_search_equals_the_naive_filter(spark: SparkSession, variant: str) -> None:
    store = SPARK_VARIANTS[variant](spark)

    @settings(max_examples=EXAMPLES[variant], phases=GENERATE)
    @given(st.lists(rows(), min_size=4, max_size=14), st.data())
    def check(some_rows: list[Row], data: st.DataObject) -> None:
        with TemporaryDirectory() as folder, store(Path(folder, "table"), numbered(some_rows)) as stored:
            check_law(stored, EVERYTHING)
            assert stored.table.verify(deep=True).is_sound
            for predicate in data.draw(st.lists(predicates(texts_in(some_rows)), min_size=15, max_size=15)):
                check_law(stored, predicate, since=data.draw(MOMENTS), until=data.draw(MOMENTS))

    check()


@pytest.mark.parametrize("variant", SPARK_VARIANTS)
def test_no_rows_are_stored_too(spark: SparkSession, variant: str, tmp_path: Path) -> None:
    with SPARK_VARIANTS[variant](spark)(tmp_path / "table", []) as stored:
        check_law(stored, EVERYTHING)
