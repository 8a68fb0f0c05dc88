"""Which checkpoint a stream of topics goes on with: no message comes twice because a list was written otherwise."""

from pathlib import Path

import pytest
from pyarrow import fs

from coprlake.errors import UsageError
from coprlake.files import Folder
from coprlake.spark.streams.kafka_stream import checkpoint_in, kafka_checkpoint
from coprlake.table import create_table, open_table


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
    with pytest.raises(UsageError, match="x: another stream into this table has these topics already") as caught:
        kafka_checkpoint(table, {"a:1"}, {"x", "y"})
    assert first in str(caught.value)
    table.vacuum(retention_hours=0)
    assert kafka_checkpoint(table, {"a:1"}, {"x"}) == first


@pytest.mark.parametrize("uri", ["s3a://bucket/logs", "hdfs://host:8020/logs", "gs://bucket/a/logs/", "/srv/logs"])
def test_a_stream_that_is_begun_again_finds_its_checkpoint_where_the_table_is(uri: str, tmp_path: Path) -> None:
    """Without its scheme, Spark would look on this machine, find nothing, and read all messages again."""
    folder = Folder(fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "table", uri)
    first = checkpoint_in(folder, {"a:1"}, {"x"})
    assert first.startswith(f"{uri.rstrip('/')}/_coprlake/streams/kafka-")
    assert checkpoint_in(folder, {"a:1"}, {"x"}) == first
    assert checkpoint_in(folder, {"b:1", "a:1"}, {"x"}) == first
    with pytest.raises(UsageError, match=uri.rstrip("/")):
        checkpoint_in(folder, {"a:1"}, {"x", "y"})


def test_a_table_that_is_named_by_a_file_uri_has_the_same_checkpoint(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    first = kafka_checkpoint(table, {"a:1"}, {"x"})
    assert kafka_checkpoint(open_table((tmp_path / "table").as_uri()), {"a:1"}, {"x"}) == first
    assert Path(first).parent == tmp_path / "table" / "_coprlake" / "streams"
