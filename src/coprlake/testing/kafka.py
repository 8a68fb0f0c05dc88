"""A private Kafka broker for testing streams: starts in seconds, can be killed at will, and is never left running."""

import atexit
import base64
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, cast

from coprlake.config import cache_folder
from coprlake.errors import StorageError, UsageError
from coprlake.spark.runtime.jars import fetch
from coprlake.spark.runtime.java import java_executable

if TYPE_CHECKING:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient

KAFKA: Final = ("org.apache.kafka:kafka_2.13:4.3.1", "org.slf4j:slf4j-simple:1.7.36")
"""The broker and its logging library."""

START_SECONDS: Final = 90
STOP_SECONDS: Final = 20
SEND_SECONDS: Final = 60
_JAVA_OPTIONS: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
_PORTS: Final = range(20_000, 32_000)
"""Below the ports that the system assigns to clients, which must not take the port while the broker is down."""

_SETTINGS: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.min.isr=1
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=4194304
"""

_TIED: Final = """\
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL: outlives the exec below
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Runs a command that dies with the thread that started it."""

Message: TypeAlias = bytes | tuple[bytes | None, bytes | None] | None
"""A value, or a key and a value; None is a tombstone."""


def broker_jars(cache: Path | None = None) -> list[Path]:
    """The jar files of the broker, fetched once and kept in `coprlake.config.cache_folder`."""
    root = cache_folder() if cache is None else cache
    return fetch(KAFKA, root / f"kafka-{KAFKA[0].rpartition(':')[2]}", transitive=True)


class KafkaBroker:
    """A broker with its own data, on loopback ports that stay the same when it restarts.

    .. code-block:: python

        with KafkaBroker(tmp_path / "kafka") as broker:
            broker.create_topic("logs", 2)
            broker.send("logs", [b"one", (b"key", b"two"), None])
            broker.kill()
            broker.start()

    Args:
        folder: holds its data, settings and log; created if it does not exist, reused otherwise.

    Attributes:
        address: the address that clients connect to.
        log_file: the log of the broker.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log_file = folder / "broker.log"
        self._settings_file = folder / "broker.properties"
        self._data = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._admin: AdminClient | None = None
        self._producer: Producer | None = None
        if not self._settings_file.exists():
            port, controller = free_ports(2)
            settings = _SETTINGS.format(port=port, controller=controller, data=self._data.absolute())
            self._settings_file.write_text(settings)
        listeners = next(line for line in self._settings_file.read_text().splitlines() if line.startswith("listeners="))
        self.address = listeners.partition("//")[2].partition(",")[0]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._admin = self._producer = None

    @property
    def is_running(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the broker and wait until it answers.

        Raises:
            StorageError: it does not answer; the message has the end of its log.
            UsageError: there is no Java, or the package confluent-kafka is not installed.
        """
        if self.is_running:
            return
        admin = self._client()
        if not (self._data / "meta.properties").exists():
            self._format()
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                tied_to_us(self._command("kafka.Kafka", str(self._settings_file))),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        atexit.register(self.kill)
        until = time.monotonic() + START_SECONDS
        while not _answers(admin):
            if not self.is_running or time.monotonic() > until:
                state = "takes too long to start" if self.is_running else "ended at once"
                self.kill()
                raise StorageError(f"the Kafka broker {state}; the end of {self.log_file}:\n{self._log_end()}")

    def stop(self) -> None:
        """Shut the broker down cleanly: it writes everything to disk first."""
        if self._process is not None and self.is_running:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        atexit.unregister(self.kill)

    def kill(self) -> None:
        """Kill the broker, as a failing machine would."""
        if self._process is not None and self.is_running:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        atexit.unregister(self.kill)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create an empty topic.

        Raises:
            StorageError: the topic exists already, or the broker is down.
        """
        from confluent_kafka import KafkaException
        from confluent_kafka.cimpl import NewTopic

        try:
            self._client().create_topics([NewTopic(name, partitions, 1)], operation_timeout=30)[name].result(60)
        except KafkaException as error:
            raise StorageError(f"the topic {name!r} cannot be created at {self.address}: {error.args[0]}") from error
        until = time.monotonic() + START_SECONDS
        while not _answers(self._client(), name):
            if time.monotonic() > until:
                raise StorageError(f"the topic {name!r} does not appear at {self.address}")
            time.sleep(0.02)

    def send(self, topic: str, messages: Iterable[Message], *, partition: int | None = None) -> int:
        """Send messages in order and return their number; each is then stored exactly once.

        Args:
            topic: an existing topic.
            messages: values, or pairs of key and value; messages with the same key go to the same partition.
            partition: for all of them; by default chosen by key, or any.

        Raises:
            StorageError: a message was not accepted within a minute.
        """
        failures: list[str] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(str(error))

        producer, count = self._sender(), 0
        for message in messages:
            key, value = message if isinstance(message, tuple) else (None, message)
            while True:
                try:
                    producer.produce(topic, value, key, -1 if partition is None else partition, delivered)
                    break
                except BufferError:  # its queue is full
                    producer.poll(0.1)
            count += 1
        left = producer.flush(SEND_SECONDS)
        if left or failures:
            self._producer = None
            raise StorageError(f"{left + len(failures)} of {count} messages were not sent: {failures[:1]}")
        return count

    def _sender(self) -> "Producer":
        """One producer across restarts of the broker: a new one takes half a second to get its id."""
        if self._producer is None:
            from confluent_kafka import Producer

            exactly_once = {"acks": "all", "enable.idempotence": True, "linger.ms": 5}
            self._producer = Producer(self._settings() | exactly_once | {"message.timeout.ms": SEND_SECONDS * 1000})
        return self._producer

    def _settings(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.address, "log_level": 0, "reconnect.backoff.max.ms": 500}

    def _client(self) -> "AdminClient":
        try:
            from confluent_kafka.admin import AdminClient
        except ImportError as error:
            raise UsageError("no Kafka client; install it with: pip install confluent-kafka") from error
        if self._admin is None:
            self._admin = AdminClient(self._settings())
        return self._admin

    def _command(self, program: str, *arguments: str) -> list[str]:
        class_path = str(broker_jars()[0].parent / "*")
        return [java_executable(), *_JAVA_OPTIONS, "-cp", class_path, program, *arguments]

    def _format(self) -> None:
        """Prepare the data folder."""
        name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        options = (
            "format",
            f"--cluster-id={name}",
            "-c",
            str(self._settings_file),
            "--standalone",
        )  # the id may start with -
        command = self._command("kafka.tools.StorageTool", *options)
        result = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=False)
        if result.returncode:
            raise StorageError(f"{self._data}: cannot be formatted for Kafka:\n{result.stdout}{result.stderr}")

    def _log_end(self) -> str:
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-30:])


def _answers(admin: "AdminClient", topic: str | None = None) -> bool:
    """Whether the broker leads all partitions that it knows, or those of one topic; it lists them before it leads."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka import admin as untyped

    latest = cast(Any, untyped).OffsetSpec.latest()
    try:
        known = admin.list_topics(timeout=0.5)
        topics = {name: one for name, one in known.topics.items() if topic in (None, name)}
        parts = [TopicPartition(name, number) for name, one in topics.items() for number in one.partitions]
        ends = admin.list_offsets(dict.fromkeys(parts, latest), request_timeout=2) if parts else {}
        for end in ends.values():
            end.result(5)
    except (KafkaException, TimeoutError):
        return False
    return bool(known.brokers) and (topic is None or topic in topics)


def free_ports(count: int) -> list[int]:
    """Loopback ports that are not in use."""
    sockets: list[socket.socket] = []
    candidates = random.SystemRandom().sample(_PORTS, 200)
    try:
        while len(sockets) < count:
            taken = socket.socket()
            sockets.append(taken)
            try:
                taken.bind(("127.0.0.1", candidates.pop()))
            except OSError:
                sockets.pop().close()
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def tied_to_us(command: list[str]) -> list[str]:
    """Wrap a command so that the system kills it when this process dies for any reason; on Linux only.

    The system watches the thread that starts the command, so it is wrapped only in the main thread: others may end.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return command
    return [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), *command]
