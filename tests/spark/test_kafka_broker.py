"""The broker that tests of streams use: what is sent is stored, also over a sudden death; and how it is fetched."""

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from coprlake.errors import CoprlakeError, NotFoundError, StorageError, UsageError
from coprlake.spark.runtime import jars
from coprlake.testing.kafka import KafkaBroker, tied_to_us

pytestmark = pytest.mark.kafka

SPARK = """
import json, sys
from pyspark.sql import SparkSession

address, jars = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]").config("spark.jars", jars).config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC").getOrCreate()
)
rows = (
    spark.read.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", "logs").load()
    .selectExpr("partition", "offset", "cast(key as string)", "cast(value as string)").collect()
)
print(json.dumps(sorted(map(tuple, rows))))
spark.stop()
"""
"""Runs in a process of its own: a session that is there already has no connector."""


def read_with_spark(broker: KafkaBroker) -> list[tuple[int, int, str | None, str | None]]:
    command = [sys.executable, "-c", SPARK, broker.address, ",".join(map(str, jars.connector_jars()))]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    return [tuple(row) for row in json.loads(result.stdout.splitlines()[-1])]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


def test_messages_are_stored_in_order_and_outlive_the_broker(broker: KafkaBroker) -> None:
    broker.create_topic("logs", 2)
    assert broker.send("logs", [b"first", None, (b"key", "é\n".encode()), (None, b"")], partition=0) == 4
    assert broker.send("logs", (b"%d" % number for number in range(100)), partition=1) == 100
    address = broker.address
    broker.kill()
    assert not broker.is_running
    broker.start()
    assert broker.address == address
    assert broker.send("logs", [b"after"], partition=0) == 1
    rows = read_with_spark(broker)
    first = [(None, "first"), (None, None), ("key", "é\n"), (None, ""), (None, "after")]
    assert rows[:5] == [(0, offset, key, value) for offset, (key, value) in enumerate(first)]
    assert rows[5:] == [(1, number, None, str(number)) for number in range(100)]


def test_messages_of_one_key_stay_together(broker: KafkaBroker) -> None:
    broker.create_topic("keys", 4)
    assert broker.send("keys", [(b"a", b"%d" % number) for number in range(50)]) == 50
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "counting"})
    counts = [consumer.get_watermark_offsets(TopicPartition("keys", number), timeout=30)[1] for number in range(4)]
    consumer.close()
    assert sorted(counts) == [0, 0, 0, 50]
    with pytest.raises(StorageError, match="keys"):
        broker.create_topic("keys", 4)


def test_a_broker_that_is_stopped_can_be_started_again(broker: KafkaBroker) -> None:
    broker.stop()
    broker.stop()
    assert not broker.is_running
    broker.start()
    broker.start()
    assert broker.send("logs", [b"again"]) == 1


def test_a_broker_that_does_not_start_says_why(tmp_path: Path, broker: KafkaBroker) -> None:
    other = KafkaBroker(tmp_path)
    assert other.address != broker.address
    settings = tmp_path / "broker.properties"
    settings.write_text(settings.read_text().replace("node.id=1", "node.id=-1"))
    with pytest.raises(StorageError, match=r"node\.id"):
        other.start()
    assert not other.is_running


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can do that")
def test_what_is_tied_to_a_process_dies_with_it() -> None:
    script = (
        "import subprocess, time; from coprlake.testing.kafka import tied_to_us;"
        "print(subprocess.Popen(tied_to_us(['/bin/sleep', '60'])).pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        child = Path("/proc") / parent.stdout.readline().decode().strip()
        until = time.monotonic() + 20
        while b"sleep" not in (child / "comm").read_bytes():
            assert time.monotonic() < until
        parent.kill()
        while child.exists() and "Z" not in (child / "stat").read_text().rpartition(")")[2].split()[0]:
            assert time.monotonic() < until
            time.sleep(0.01)
    assert tied_to_us(["/bin/true"])[-1] == "/bin/true"


# --- fetching, without a network ---


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was fetched in earnest; ``bad`` libraries are not to be had."""
    done: list[str] = []

    def run(module: str, coordinates: list[str], scratch: Path, target: Path) -> None:
        done.extend(coordinates)
        target.mkdir()
        for coordinate in coordinates:
            (target / f"{coordinate.split(':')[1]}.jar").write_text(coordinate)
            if "bad" in coordinate:
                raise NotFoundError(coordinate)

    monkeypatch.setattr(jars, "_run_ivy", run)
    return done


def test_what_is_there_is_not_fetched_again(tmp_path: Path, fetched: list[str]) -> None:
    folder = tmp_path / "deep" / "jars"
    for _ in range(2):
        assert [jar.name for jar in jars.fetch(["o:a:1", "o:b:1"], folder)] == ["a.jar", "b.jar"]
    assert fetched == ["o:a:1", "o:b:1"]
    (folder / "a.jar").write_text("half")
    jars.fetch(["o:a:1", "o:b:1"], folder)
    assert (folder / "a.jar").read_text() == "o:a:1", "a damaged folder is replaced"
    assert [jar.name for jar in jars.fetch(["o:c:1"], folder)] == ["c.jar"], "and so is one with other libraries"
    assert sorted(path.name for path in folder.iterdir()) == ["c.jar", "fetched.json"]
    assert [path.name for path in folder.parent.iterdir()] == ["jars"]


def test_half_of_a_folder_is_none(tmp_path: Path, fetched: list[str]) -> None:
    with pytest.raises(NotFoundError, match="o:bad:1"):
        jars.fetch(["o:a:1", "o:bad:1"], tmp_path / "jars")
    assert not list(tmp_path.iterdir())
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "a.jar").write_text("somebody's")
    assert jars.fetch(["o:a:1"], tmp_path / "jars")[0].read_text() == "o:a:1"


def test_bad_coordinates_and_places(tmp_path: Path, fetched: list[str]) -> None:
    for coordinate in ("a", "a:b", "a:b:", "a:b:c:d"):
        with pytest.raises(UsageError, match="organisation:name:version"):
            jars.fetch([coordinate], tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file"):
        jars.fetch(["o:a:1"], tmp_path / "file" / "jars")


def test_the_connector_falls_back_to_one_that_works(
    tmp_path: Path, fetched: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(jars, "_spark_version", lambda: "1.bad")
    wanted = [f"{jars.CONNECTOR}:1.bad", *jars.PINNED_CONNECTOR]
    with caplog.at_level(logging.WARNING):
        assert len(jars.connector_jars(tmp_path)) == 4
    assert fetched == wanted
    assert "1.bad" in caplog.text
    jars.connector_jars(tmp_path)
    assert fetched == wanted, "it is remembered that there is none"
    yesterday = time.time() - 25 * 60 * 60
    os.utime(tmp_path / "kafka-connector-1.bad.missing", (yesterday, yesterday))
    jars.connector_jars(tmp_path)
    assert fetched == [*wanted, wanted[0]], "for a day"
    monkeypatch.setattr(jars, "_spark_version", lambda: "4.9.9")
    monkeypatch.setenv("COPRLAKE_CACHE", str(tmp_path / "other"))
    [jar] = jars.connector_jars()
    assert jar.parent == tmp_path / "other" / "kafka-connector-4.9.9"


def test_what_ivy_says(tmp_path: Path) -> None:
    told = ":: UNRESOLVED DEPENDENCIES ::\n\t\t:: o#n_2.13;1.0: not found\n"
    for text, kind, words in (
        (told, NotFoundError, "^o:n_2.13:1.0: not found in .*network.*--jars"),
        (f"Server access error at url x\n{told}", StorageError, "^o:n_2.13:1.0: .* cannot be reached"),
        ("Exception in thread main", NotFoundError, "^all: "),
    ):
        error = jars._failure("all", text)
        assert isinstance(error, CoprlakeError)
        with pytest.raises(kind, match=words):
            raise error


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="JAVA_HOME"):
        jars.fetch(["o:a:1"], tmp_path / "jars")
    assert not list(tmp_path.iterdir())
