"""Messages of a real broker become records of a table: each once, whatever is in it, over stops and restarts."""

import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.spark.runtime.jars import connector_jars
from coprlake.spark.streams.streaming import BatchReport, StreamSettings
from coprlake.table import Table, create_table, open_table
from coprlake.testing.kafka import KafkaBroker
from coprlake.testing.streams import DriverError, SparkDriver

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kafka")


@pytest.fixture(scope="module")
def driver(folder: Path) -> Iterator[SparkDriver]:
    with SparkDriver(folder / "driver.log", jars=connector_jars()) as driver:
        yield driver


@pytest.fixture(scope="module")
def broker(driver: SparkDriver, folder: Path) -> Iterator[KafkaBroker]:
    with KafkaBroker(folder / "broker") as broker:  # while the driver starts
        driver.wait_until_ready()
        yield broker


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    return (f"topic{number}" for number in itertools.count())


@pytest.fixture
def topic(broker: KafkaBroker, names: Iterator[str]) -> str:
    name = next(names)
    broker.create_topic(name, 3)
    return name


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return create_table(tmp_path / "table")


class Streams:
    """Streams of a topic into a table, one after the other."""

    def __init__(self, driver: SparkDriver, broker: KafkaBroker, topic: str, table: Table) -> None:
        self.driver, self.broker, self.topic, self.table = driver, broker, topic, table

    def once(self, options: ReadOptions | None = None, **settings: Any) -> list[BatchReport]:
        """Take what is there; the batches."""
        before = len(self.driver.batches)
        self.driver.run("stream_kafka", **self.arguments(options or ReadOptions(), once=True, **settings))
        return self.driver.batches[before:]

    def arguments(self, options: ReadOptions | None = None, **settings: Any) -> dict[str, Any]:
        stream = StreamSettings(options or ReadOptions(), **settings)
        return {"servers": self.broker.address, "topics": self.topic, "table": self.table.uri, "settings": stream}

    def send(self, messages: list[bytes | None], partition: int | None = None) -> None:
        self.broker.send(self.topic, messages, partition=partition)


@pytest.fixture
def streams(driver: SparkDriver, broker: KafkaBroker, topic: str, table: Table) -> Streams:
    return Streams(driver, broker, topic, table)


def numbered(numbers: range) -> list[bytes | None]:
    return [json.dumps({"id": number, "message": f"message {number}"}).encode() for number in numbers]


def rows(table: Table, *columns: str) -> list[dict[str, Any]]:
    return list(open_table(table.uri).search(columns=list(columns) or None, strict=True).rows())


def ids(table: Table) -> list[int]:
    return sorted(row["id"] for row in rows(table, "id"))


def contents(table: Table) -> list[str]:
    return sorted(row["content"] for row in rows(table, "content"))


def total(batches: list[BatchReport]) -> IntakeReport:
    report = IntakeReport()
    for batch in batches:
        report.merge(batch.read)
    return report


def test_each_json_message_of_all_partitions_is_a_record(streams: Streams) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    for partition in range(3):
        streams.send(numbered(range(partition * 200, (partition + 1) * 200)), partition)
    [batch] = streams.once()
    assert (batch.number, batch.row_count, batch.read.records, batch.was_done) == (0, 600, 600, False)
    assert batch.read.formats == {"ndjson": 3}
    assert ids(streams.table) == list(range(600))
    found = [row for row in rows(streams.table) if row["id"] == 417]
    assert [(row["content"], row["source"]) for row in found] == [("message 417", streams.topic)]
    assert before < found[0]["timestamp"] < datetime.now(UTC) + timedelta(seconds=1), "the time of the message"
    assert open_table(streams.table.uri).verify(deep=True).is_sound


def test_messages_without_structure_are_text(streams: Streams) -> None:
    lines = [
        f"2026-11-16 03:55:{number:02} WARN [worker-{number}] took {number} ms\n  at line two" for number in range(50)
    ]
    streams.send([line.encode() for line in lines])
    batches = streams.once()
    assert total(batches).formats.keys() == {"text"}
    assert contents(streams.table) == sorted(lines), "a message is one record, whatever newlines it has"
    assert {row["loglevel"] for row in rows(streams.table, "loglevel")} == {"WARN"}
    assert {row["timestamp"].minute for row in rows(streams.table, "timestamp")} == {55}


def test_a_message_that_is_no_json_is_kept_and_one_without_content_is_counted(streams: Streams) -> None:
    odd: list[bytes | None] = [b'{"id": 1000, "message": "half', b"plain words", None, b"", b"\xff{\xfe", None]
    streams.send([*numbered(range(30)), *odd, *numbered(range(30, 60))], 0)
    report = total(streams.once())
    assert (report.records, report.broken, report.empty) == (63, 3, 3)
    assert (report.replaced, report.replaced_lines) == (2, 1)
    found = sorted(row["id"] for row in rows(streams.table, "id") if row["id"] is not None)
    assert found == list(range(60)), "half an object has no keys"
    expected = [f"message {number}" for number in range(60)]
    expected += ['{"id": 1000, "message": "half', "plain words", "\ufffd{\ufffd"]
    assert contents(streams.table) == sorted(expected)


def test_a_batch_of_nothing_but_tombstones_is_done_and_the_stream_goes_on(streams: Streams) -> None:
    streams.send([None, b"", None])
    batches = streams.once()
    assert total(batches).empty == 3
    assert rows(streams.table) == []
    assert streams.once() == []
    streams.send(numbered(range(5)))
    assert total(streams.once()).records == 5
    assert ids(streams.table) == list(range(5))


def test_keys_that_come_later_become_columns(streams: Streams) -> None:
    streams.send(numbered(range(10)))
    streams.once()
    later = [{"id": n, "message": "m", "user": {"name": f"u{n}"}, "ms": n / 4} for n in range(10, 20)]
    streams.send([json.dumps(one).encode() for one in later])
    streams.once()
    schema = open_table(streams.table.uri).schema
    assert schema.field("ms").type == pa.float64()
    found = {row["id"]: row["ms"] for row in rows(streams.table, "id", "ms")}
    assert found == {n: n / 4 if n >= 10 else None for n in range(20)}


def test_types_that_contradict_each_other_lose_no_value(streams: Streams) -> None:
    """In one batch, by tasks that know nothing of each other; then against a column that is there."""
    for partition, value in enumerate((7, "seven", 7.5)):
        streams.send([json.dumps({"id": partition, "message": "m", "v": value}).encode()] * 3, partition)
    [batch] = streams.once()
    assert batch.row_count == 9
    assert open_table(streams.table.uri).schema.field("v").type == pa.string()
    found = {row["id"]: row["v"] for row in rows(streams.table, "id", "v")}
    assert found == {0: "7", 1: "seven", 2: "7.5"}
    streams.send([json.dumps({"id": "word", "message": "m", "v": 8}).encode()], 0)
    [batch] = streams.once()
    assert (batch.row_count, batch.read.misfits) in ((1, 0), (1, 1))
    late = [row for row in rows(streams.table) if row["id"] is None]
    assert [(row["v"], dict(row["attributes"])) for row in late] == [("8", {"id": "word"})]
    assert open_table(streams.table.uri).verify(deep=True).is_sound


def test_a_stream_that_is_stopped_goes_on_where_it_was(streams: Streams) -> None:
    """In the middle of its batches; what is sent meanwhile is not missed."""
    batches: list[BatchReport] = []
    for sent in range(0, 1500, 500):
        before = len(streams.driver.batches)
        streams.send(numbered(range(sent, sent + 300)))
        job = streams.driver.begin("stream_kafka", **streams.arguments(trigger_seconds=0, limit=100))
        while len(streams.driver.batches) < before + 2:
            streams.driver.wait()
        streams.driver.run("stop_streams")
        streams.driver.result(job)
        streams.send(numbered(range(sent + 300, sent + 500)))
        batches += streams.driver.batches[before:]
    batches += streams.once(limit=100)
    assert ids(streams.table) == list(range(1500))
    assert {batch.number for batch in batches if not batch.was_done} == set(range(batches[-1].number + 1))
    assert sum(batch.row_count for batch in batches) == 1500, "none was counted twice"
    assert streams.once() == []


def test_a_checkpoint_of_another_table_is_refused(streams: Streams, tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "checkpoint")
    streams.send(numbered(range(5)))
    assert len(streams.once(checkpoint=checkpoint)) == 1
    other = create_table(tmp_path / "other")
    wrong = Streams(streams.driver, streams.broker, streams.topic, other)
    with pytest.raises(DriverError, match=r"checkpoint belongs to a stream into another table.*choose a new") as error:
        wrong.once(checkpoint=checkpoint)
    assert error.value.kind == "UsageError"
    assert "\n" not in str(error.value)
    assert rows(other) == []
    assert len(wrong.once(checkpoint=str(tmp_path / "new"))) == 1
    assert ids(other) == ids(streams.table) == list(range(5))


def test_a_limit_makes_more_batches_and_no_other_records(streams: Streams) -> None:
    streams.send(numbered(range(250)))
    batches = streams.once(limit=60)
    assert len(batches) >= 5
    assert [batch.number for batch in batches] == list(range(len(batches)))
    assert sum(batch.row_count for batch in batches) == 250
    assert ids(streams.table) == list(range(250))


def test_several_topics_are_several_sources(streams: Streams, names: Iterator[str]) -> None:
    other = next(names)
    streams.broker.create_topic(other)
    streams.send(numbered(range(10)))
    streams.broker.send(other, numbered(range(10, 30)))
    streams.topic = f"{streams.topic},{other}"
    assert sum(batch.row_count for batch in streams.once()) == 30
    sources = [row["source"] for row in rows(streams.table, "source")]
    assert [sources.count(name) for name in streams.topic.split(",")] == [10, 20]


def test_a_stream_that_cannot_begin_says_why(streams: Streams) -> None:
    with pytest.raises(DriverError, match="messages cannot have the format csv"):
        streams.once(ReadOptions(format="csv"))
    streams.topic = "absent"
    with pytest.raises(DriverError, match=r"^the Spark job failed: \S+ This server does not host this topic"):
        streams.once()
