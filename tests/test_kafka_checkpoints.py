"""Which checkpoint a stream of topics goes on with: no message comes twice because a list was written otherwise."""

from pathlib import Path

import pytest

from coprlake.errors import UsageError
from coprlake.spark.kafka_stream import kafka_checkpoint
from coprlake.store import create_table


def test_servers_may_come_and_go_and_the_order_does_not_matter(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    first = kafka_checkpoint(table, {"a:1"}, {"x", "y"})
    assert kafka_checkpoint(table, {"b:1", "a:1"}, {"y", "x"}) == first
    assert kafka_checkpoint(table, {"b:1"}, {"x", "y"}) == first
    assert kafka_checkpoint(table, {"c:1"}, {"x", "y"}) != first  # another cluster
    assert kafka_checkpoint(table, {"a:1"}, {"z"}) != first


def test_topics_that_are_streamed_already_are_not_begun_again(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    first = kafka_checkpoint(table, {"a:1"}, {"x"})
    with pytest.raises(UsageError, match="x: streamed into this table already") as caught:
        kafka_checkpoint(table, {"a:1"}, {"x", "y"})
    assert first in str(caught.value)
    table.vacuum(retention_hours=0)
    assert kafka_checkpoint(table, {"a:1"}, {"x"}) == first
