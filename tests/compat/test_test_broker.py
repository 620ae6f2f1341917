"""The broker for tests: what a person who writes tests may rely on."""

from __future__ import annotations

import contextlib
import importlib
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from logstore import compat
from logstore.compat import TestBroker
from logstore.compat.kafka.topics.names import GROUPS_TOPIC
from logstore.compat.running import AddressError
from logstore.errors import ForeignDirectoryError, LockedError, StorageError
from logstore.segments.kafka.config_keys import ConfigError
from logstore.segments.kafka.record import Record, encode_batch
from logstore.testing.simulated_host import SimulatedHost

SECONDS_MAX = 20

kafka: Any = importlib.import_module("kafka")  # carries no types


def append(
    broker: TestBroker, topic: str, value: bytes, producer: tuple[int, int, int] = (-1, -1, -1)
) -> int:
    """Append a record past the protocol; return its offset. `producer` is (id, epoch, sequence)."""

    def work() -> int:
        now_ms = broker.broker.host.clock.wall_ms()
        producer_id, epoch, sequence = producer
        data = encode_batch(
            [Record(0, now_ms, b"k", value)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        partition = broker.broker.topics[topic].partitions[0]
        return partition.append_produced(memoryview(data), now_ms).base_offset

    return broker.call(work)


def create(broker: TestBroker, topic: str, settings: dict[str, str] | None = None) -> None:
    """Create a topic of one partition past the protocol."""
    broker.call(lambda: broker.broker.create_topic(topic, 1, settings))


def values(broker: TestBroker, topic: str) -> list[bytes | None]:
    """Return the values of all records of a topic's first partition."""

    def work() -> list[bytes | None]:
        partition = broker.broker.topics[topic].partitions[0]
        return [record.value for record in partition.read_records(partition.start_offset, 10_000)]

    return broker.call(work)


def is_listening(port: int) -> bool:
    """Tell whether somebody listens there."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_it_lives_as_long_as_the_with_statement() -> None:
    """On a free port, in a temporary directory; both are gone afterwards."""
    assert compat.TestBroker is TestBroker
    with TestBroker() as broker:
        directory = Path(broker.directory)
        port = broker.port
        assert broker.bootstrap == f"127.0.0.1:{port}"
        assert directory.is_dir()
        assert is_listening(port)
    assert not directory.exists()
    assert not is_listening(port)
    assert not [t for t in threading.enumerate() if t.name.startswith("logstore")]


def test_it_is_there_at_once() -> None:
    """Fast enough for one per test: a tenth of a second each, many times over the usual."""
    started = time.monotonic()
    for _ in range(10):
        with TestBroker() as broker:
            assert is_listening(broker.port)
    assert time.monotonic() - started < 10


def test_an_error_in_the_test_stops_it_too() -> None:
    """And is not hidden."""
    seen: list[str] = []

    def fail() -> None:
        with TestBroker() as broker:
            seen.append(broker.directory)
            raise LookupError("the test's own")

    with pytest.raises(LookupError, match="the test's own"):
        fail()
    assert not Path(seen[0]).exists()


def test_an_own_directory_is_kept(tmp_path: Path) -> None:
    """It is a Kafka data directory that was stopped cleanly."""
    directory = tmp_path / "new" / "data"
    with TestBroker(str(directory)) as broker:
        create(broker, "t")
    names = {path.name for path in directory.iterdir()}
    assert {"meta.properties", ".kafka_cleanshutdown", "t-0"} <= names


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_restart_on_the_directory_finds_everything(tmp_path: Path, is_clean: bool) -> None:
    """Records, topics with their ids and settings, committed offsets, what producers wrote last."""
    simulated = None if is_clean else SimulatedHost()
    directory = "/data" if simulated else str(tmp_path / "data")
    first = TestBroker(directory, host=simulated).start()
    create(first, "t", {"retention.ms": "-1"})
    topic_id = first.broker.topics["t"].topic_id
    assert [append(first, "t", b"%d" % n, (7, 0, n)) for n in range(3)] == [0, 1, 2]
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=first.bootstrap, group_id="g", enable_auto_commit=False
    )
    partition = kafka.TopicPartition("t", 0)
    consumer.assign([partition])
    consumer.commit({partition: kafka.OffsetAndMetadata(2, "so far", -1)})
    consumer.close()
    if simulated is None:
        first.stop()
    else:
        simulated.fs.process_death()
        with pytest.raises((OSError, StorageError)):
            first.stop()
    with TestBroker(directory, host=simulated) as again:
        topic = again.broker.topics["t"]
        assert (topic.topic_id, topic.settings) == (topic_id, {"retention.ms": "-1"})
        assert values(again, "t") == [b"0", b"1", b"2"]
        assert append(again, "t", b"2", (7, 0, 2)) == 2  # a retry
        assert append(again, "t", b"3", (7, 0, 3)) == 3
        assert GROUPS_TOPIC in again.broker.topics
        consumer = kafka.KafkaConsumer(bootstrap_servers=again.bootstrap, group_id="g")
        assert consumer.committed(partition) == 2
        consumer.close()


class TestStart:
    """What keeps it from starting is said in one line, and leaves nothing behind."""

    def test_a_port_may_be_asked_for(self) -> None:
        """If it is free it is the one."""
        with TestBroker() as some:
            port = some.port
        with TestBroker(port=port) as broker:
            assert broker.port == port

    def test_a_port_that_is_taken(self, tmp_path: Path) -> None:
        """The error names it; the directory can be used by the next one at once."""
        directory = str(tmp_path / "data")
        with TestBroker() as other:
            with pytest.raises(AddressError, match=f"127.0.0.1:{other.port} is taken"):
                TestBroker(directory, port=other.port).start()
            temporary = TestBroker(port=other.port)
            with pytest.raises(AddressError):
                temporary.start()
            assert temporary.directory == ""
            assert is_listening(other.port)
        with TestBroker(directory):
            pass

    def test_a_directory_that_is_served_already(self, tmp_path: Path) -> None:
        """Two brokers cannot have one directory; the first one does not notice."""
        with TestBroker(str(tmp_path)) as first:
            with pytest.raises(LockedError, match="another broker serves this directory"):
                TestBroker(str(tmp_path)).start()
            create(first, "t")
            assert append(first, "t", b"v") == 0

    def test_a_directory_of_something_else(self, tmp_path: Path) -> None:
        """A directory with other files in it is not touched."""
        (tmp_path / "thesis.txt").write_text("the only copy")
        with pytest.raises(ForeignDirectoryError, match=r"thesis\.txt"):
            TestBroker(str(tmp_path)).start()
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]

    def test_a_setting_that_is_not_allowed(self) -> None:
        """The error names key and value."""
        with pytest.raises(ConfigError, match=r"many for .*num\.partitions"):
            TestBroker(settings={"num.partitions": "many"}).start()

    def test_a_group_log_that_cannot_be_read(self, tmp_path: Path) -> None:
        """The lock is let go of: the same process can try again, and recovers what it can."""
        with TestBroker(str(tmp_path)) as broker:
            create(broker, GROUPS_TOPIC)
            append(broker, GROUPS_TOPIC, b"v")
        (log,) = (tmp_path / f"{GROUPS_TOPIC}-0").glob("*.log")
        log.write_bytes(log.read_bytes()[:-1] + b"X")
        with pytest.raises(StorageError, match=GROUPS_TOPIC):
            TestBroker(str(tmp_path)).start()
        with TestBroker(str(tmp_path)) as broker:
            assert broker.broker.topics[GROUPS_TOPIC].partitions[0].end_offset == 0

    def test_starting_twice_is_a_mistake(self) -> None:
        """One object is one broker at a time; after a stop it may start again."""
        broker = TestBroker()
        with broker:
            with pytest.raises(AssertionError, match="runs already"):
                broker.start()
            first = broker.directory
        with broker:
            assert broker.directory != first

    def test_outside_of_the_with_statement_there_is_no_broker(self) -> None:
        """Asking for its port is a mistake; stopping what does not run is none."""
        broker = TestBroker()
        with pytest.raises(AssertionError, match="with statement"):
            _ = broker.port
        with pytest.raises(AssertionError, match="with statement"):
            broker.call(broker.stop)
        broker.stop()


def test_settings_are_those_of_server_properties() -> None:
    """They win over what tests usually want: no initial delay of groups, a small offsets topic."""
    with TestBroker(
        settings={"num.partitions": "4", "offsets.topic.num.partitions": "3"}
    ) as broker:
        config = broker.broker.config
        assert (config.num_partitions, config.offsets_topic_num_partitions) == (4, 3)
        assert config.group_initial_rebalance_delay_ms == 0


def test_two_brokers_are_two_clusters() -> None:
    """What is in one is not in the other."""
    with TestBroker() as first, TestBroker() as second:
        assert first.port != second.port
        assert first.broker.cluster_id != second.broker.cluster_id
        create(first, "t")
        assert (
            "t"
            not in AdminClient({"bootstrap.servers": second.bootstrap})
            .list_topics(timeout=SECONDS_MAX)
            .topics
        )


def test_several_threads_may_use_it() -> None:
    """Clients in any thread, and `call` from any thread."""
    count, each = 4, 25
    failures: list[BaseException] = []

    def work(number: int, broker: TestBroker) -> None:
        try:
            producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap)
            for index in range(each):
                producer.send("t", b"%d-%d" % (number, index), partition=0)
                append(broker, "u", b"%d" % index)
            producer.flush(SECONDS_MAX)
            producer.close()
        except BaseException as error:  # noqa: BLE001 - told by the test below
            failures.append(error)

    with TestBroker() as broker:
        for name in ("t", "u"):
            create(broker, name)
        threads = [threading.Thread(target=work, args=[n, broker]) for n in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS_MAX)
        assert failures == []
        expected = {b"%d-%d" % (n, index) for n in range(count) for index in range(each)}
        assert set(values(broker, "t")) == expected
        assert len(values(broker, "u")) == count * each


def test_kafka_python_produces_and_consumes() -> None:
    """With a group: subscribe, read, commit, and go on where it was."""
    with TestBroker(settings={"num.partitions": "2"}) as broker:
        producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap)
        for number in range(10):
            producer.send("t", b"%d" % number, key=b"k%d" % number)
        producer.close(timeout=SECONDS_MAX)
        seen: set[bytes] = set()
        for _ in range(2):
            consumer = kafka.KafkaConsumer(
                "t",
                bootstrap_servers=broker.bootstrap,
                group_id="g",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                max_poll_records=5,
            )
            got: list[bytes] = []
            deadline = time.monotonic() + SECONDS_MAX
            while len(got) < 5 and time.monotonic() < deadline:
                for records in consumer.poll(500, max_records=5 - len(got)).values():
                    got += [record.value for record in records]
            consumer.commit()
            consumer.close()
            assert len(got) == 5
            seen |= set(got)
        assert seen == {b"%d" % number for number in range(10)}


def test_confluent_kafka_produces_and_consumes() -> None:
    """librdkafka, idempotent, compressed."""
    with TestBroker() as broker:
        create(broker, "t")
        delivered: list[int] = []

        def note(error: object, message: Any) -> None:
            assert error is None
            delivered.append(message.offset())

        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "compression.type": "lz4",
                "linger.ms": 0,
            }
        )
        for number in range(100):
            producer.produce("t", b"%d" % number, on_delivery=note)
        assert producer.flush(SECONDS_MAX) == 0
        assert delivered == list(range(100))
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": "g"}
        )
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        found = consumer.consume(100, SECONDS_MAX)
        assert [message.value() for message in found] == [b"%d" % number for number in range(100)]
        consumer.close()


def test_a_failing_housekeeping_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """A checkpoint that cannot be written now is written later; the broker serves all the time."""
    with TestBroker(settings={"replica.high.watermark.checkpoint.interval.ms": "5"}) as broker:
        create(broker, "t")
        checkpoint = Path(broker.directory) / "replication-offset-checkpoint.tmp"
        deadline = time.monotonic() + SECONDS_MAX
        is_blocked = False
        while not is_blocked and time.monotonic() < deadline:  # one may just be being written
            with contextlib.suppress(FileExistsError):
                checkpoint.mkdir()
                is_blocked = True
        while str(checkpoint) not in caplog.text and time.monotonic() < deadline:
            assert is_listening(broker.port)
        assert append(broker, "t", b"v") == 0
        written = checkpoint.with_suffix("")
        written.unlink(missing_ok=True)
        checkpoint.rmdir()
        while not written.exists() and time.monotonic() < deadline:
            assert is_listening(broker.port)
        assert written.exists()


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_the_first_broker_starts_as_fast_as_the_next(layout: str) -> None:
    """What a broker needs to start is imported with `TestBroker`, nothing when it is used."""
    code = (
        "import sys\n"
        "from logstore.compat import TestBroker\n"
        "known = set(sys.modules)\n"
        f"broker = TestBroker(layout={layout!r}).start()\n"
        "late = sorted(set(sys.modules) - known)\n"
        "broker.stop()\n"
        "print(late)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=3 * SECONDS_MAX,
        check=True,
    )
    assert ended.stdout == "[]\n"
