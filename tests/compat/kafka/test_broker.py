"""One broker without sockets: its tables, its periodic work, its beginning and its end."""

from __future__ import annotations

import errno
import uuid

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.compat.offload import run_at_once
from logstore.errors import ForeignDirectoryError, LockedError, StorageError, WriteFailedError
from logstore.segments.kafka.config_keys import ConfigError
from logstore.segments.kafka.record import Record, encode_batch
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import NOW_MS, batch
from tests.compat.kafka.conversation import DIRECTORY
from tests.compat.kafka.peer import Peer, a_broker

CLEAN_MARKER = f"{DIRECTORY}/.kafka_cleanshutdown"
MINUTE_MS = 60_000
DAY_MS = 86_400_000


def append(broker: Broker, topic: str = "t", index: int = 0, count: int = 1) -> None:
    """Append records past the protocol."""
    partition = broker.partition(topic, index)
    assert partition is not None
    for _ in range(count):
        partition.append_produced(memoryview(bytearray(batch(bytes(100)))), NOW_MS)


def append_as(
    broker: Broker,
    *,
    producer_id: int,
    index: int = 0,
    timestamp_ms: int = NOW_MS,
    is_transactional: bool = False,
) -> None:
    """Append a producer's first batch to topic "t", past the protocol."""
    data = batch(
        timestamp_ms=timestamp_ms,
        producer=(producer_id, 0, 0),
        is_transactional=is_transactional,
    )
    partition = broker.partition("t", index)
    assert partition is not None
    partition.append_produced(memoryview(bytearray(data)), timestamp_ms)


def producers(broker: Broker, index: int) -> list[int]:
    """Return the ids of the producers that a partition of topic "t" remembers."""
    partition = broker.partition("t", index)
    assert partition is not None
    return [entry.producer_id for entry in partition.producers]


def read(host: SimulatedHost, name: str) -> str:
    """Return a text file of the data directory."""
    file = host.fs.open(f"{DIRECTORY}/{name}")
    return file.read(0, file.size()).decode()


def let_pass(host: SimulatedHost, broker: Broker, delay_ms: float) -> None:
    """Turn the clock in steps of a second and run what is due."""
    while delay_ms > 0:
        host.clock.advance(min(delay_ms, 1000))
        delay_ms -= 1000
        broker.timers.run()


class TestTopics:
    """Who is found under which name."""

    def test_a_topic_is_found_by_name_and_by_id(self) -> None:
        """In all tables, from its creation to its deletion."""
        broker = a_broker()
        topic = broker.create_topic("größe", 2)
        assert broker.topics["größe"] is topic
        assert broker.topic_by_id(topic.topic_id) is topic
        assert broker.topic_by_id(uuid.UUID(bytes=topic.topic_id)) is topic
        assert broker.by_name["größe".encode()] is topic.partitions
        assert broker.by_id[topic.topic_id] is topic.partitions
        assert broker.partition("größe", 1) is topic.partitions[1]
        assert (broker.partition("größe", 2), broker.partition("x", 0)) == (None, None)
        broker.delete_topic(topic)
        assert (broker.topics, broker.by_name, broker.by_id) == ({}, {}, {})
        assert broker.topic_by_id(topic.topic_id) is None
        assert topic.partitions == {}

    def test_a_restart_fills_the_tables(self) -> None:
        """From what stands in the directory."""
        host = SimulatedHost()
        broker = a_broker(host)
        topic_id = broker.create_topic("t", 3, {"retention.ms": "1"}).topic_id
        broker.close()
        again = a_broker(host)
        assert sorted(again.by_name[b"t"]) == sorted(again.by_id[topic_id]) == [0, 1, 2]
        assert again.topics["t"].settings == {"retention.ms": "1"}
        assert again.cluster_id == broker.cluster_id

    def test_partitions_that_are_added_keep_the_promises_of_the_others(self) -> None:
        """Their appends are flushed where the topic asks for it, and found by the tables."""
        broker = a_broker()
        topic = broker.create_topic("t", 1, {"flush.messages": "1"})
        broker.add_partitions(topic, 3)
        assert sorted(broker.by_name[b"t"]) == [0, 1, 2]
        answer = Peer(broker).produce([("t", [(2, batch())])])
        assert answer.partition["error_code"] == 0
        assert topic.partitions[2].log.recovery_point == 1

    def test_partitions_found_at_the_start_are_flushed_too(self) -> None:
        """flush.messages holds for them as for new ones."""
        host = SimulatedHost()
        broker = a_broker(host)
        broker.create_topic("t", 1, {"flush.messages": "1"})
        broker.close()
        again = a_broker(host)
        assert Peer(again).produce([("t", [(0, batch())])]).partition["error_code"] == 0
        assert again.topics["t"].partitions[0].log.recovery_point == 1


class TestHousekeeping:
    """What happens by itself."""

    def test_checkpoints_are_written_in_their_intervals(self) -> None:
        """High watermarks every five seconds, others every minute, first after half a one."""
        host = SimulatedHost()
        broker = a_broker(host)
        broker.create_topic("t", 1)
        broker.start_housekeeping()
        append(broker, count=3)
        let_pass(host, broker, 4999)
        assert not host.fs.exists(f"{DIRECTORY}/replication-offset-checkpoint")
        let_pass(host, broker, 1)
        assert read(host, "replication-offset-checkpoint") == "0\n1\nt 0 3\n"
        assert not host.fs.exists(f"{DIRECTORY}/recovery-point-offset-checkpoint")
        log = broker.topics["t"].partitions[0]
        log.flush()
        log.delete_records(2)
        let_pass(host, broker, MINUTE_MS // 2 - 5000)
        assert read(host, "recovery-point-offset-checkpoint") == "0\n1\nt 0 3\n"
        assert read(host, "log-start-offset-checkpoint") == "0\n1\nt 0 2\n"
        log.delete_records(3)
        let_pass(host, broker, MINUTE_MS - 1)
        assert read(host, "log-start-offset-checkpoint") == "0\n1\nt 0 2\n"
        let_pass(host, broker, 1)
        assert read(host, "log-start-offset-checkpoint") == "0\n1\nt 0 3\n"

    def test_log_starts_have_an_interval_of_their_own(self) -> None:
        """``log.flush.start.offset.checkpoint.interval.ms``; recovery points wait for theirs."""
        host = SimulatedHost()
        broker = a_broker(host, log_flush_start_offset_checkpoint_interval_ms=7000)
        broker.create_topic("t", 1)
        broker.start_housekeeping()
        append(broker, count=3)
        broker.topics["t"].partitions[0].delete_records(2)
        let_pass(host, broker, 6999)
        assert not host.fs.exists(f"{DIRECTORY}/log-start-offset-checkpoint")
        let_pass(host, broker, 1)
        assert read(host, "log-start-offset-checkpoint") == "0\n1\nt 0 2\n"
        assert not host.fs.exists(f"{DIRECTORY}/recovery-point-offset-checkpoint")

    def test_intervals_are_settings(self) -> None:
        """Also one of 0, which does not mean all the time."""
        host = SimulatedHost()
        broker = a_broker(host, replica_high_watermark_checkpoint_interval_ms=0)
        broker.start_housekeeping()
        host.clock.advance(1)
        assert broker.timers.run() == 1
        assert host.fs.exists(f"{DIRECTORY}/replication-offset-checkpoint")

    def test_retention_and_removal_happen_in_time(self) -> None:
        """Old segments go at the next check, their files and those of topics after a delay."""
        host = SimulatedHost()
        broker = a_broker(host, log_retention_check_interval_ms=10_000)
        broker.create_topic(
            "t", 1, {"internal.segment.bytes": "200", "retention.bytes": "200",
                     "file.delete.delay.ms": "5000"},
        )  # fmt: skip
        gone = broker.create_topic("gone", 1, {"file.delete.delay.ms": "3000"})
        broker.start_housekeeping()
        append(broker, count=4)
        broker.delete_topic(gone)
        let_pass(host, broker, 10_000)
        log = broker.topics["t"].partitions[0]
        assert (log.start_offset, log.end_offset) == (2, 4)
        names = [entry.name for entry in host.fs.list_directory(f"{DIRECTORY}/t-0")]
        assert any(name.endswith(".deleted") for name in names)
        let_pass(host, broker, 6000)
        names = [entry.name for entry in host.fs.list_directory(f"{DIRECTORY}/t-0")]
        assert not any(name.endswith(".deleted") for name in names)
        directories = [e.name for e in host.fs.list_directory(DIRECTORY) if e.is_directory]
        assert directories == ["__cluster_metadata-0", "t-0"]

    @pytest.mark.parametrize(("cleaner", "policy", "start"), [
        (True, "compact,delete", 2), (True, "delete", 0), (False, "compact,delete", 0),
    ])  # fmt: skip
    def test_compacted_logs_are_retained_by_the_cleaner(
        self, cleaner: bool, policy: str, start: int
    ) -> None:
        """After each of its pauses of 15 s; without a cleaner they stay, as in Kafka."""
        host = SimulatedHost()
        broker = a_broker(host, log_cleaner_enable=cleaner, log_initial_task_delay_ms=60_000)
        broker.create_topic(
            "t", 1, {"internal.segment.bytes": "200", "retention.bytes": "200",
                     "cleanup.policy": policy},
        )  # fmt: skip
        broker.start_housekeeping()
        append(broker, count=4)
        let_pass(host, broker, 16_000)
        assert broker.topics["t"].partitions[0].start_offset == start
        let_pass(host, broker, 60_000)
        assert broker.topics["t"].partitions[0].start_offset == (2 if cleaner else 0)

    @pytest.mark.parametrize("first_ms", [30_000, 700])
    def test_the_first_look_for_old_records_is_early(self, first_ms: int) -> None:
        """After ``log.initial.task.delay.ms``; the next ones every five minutes."""
        host = SimulatedHost()
        broker = a_broker(host, log_initial_task_delay_ms=first_ms)
        broker.create_topic("t", 1, {"retention.ms": "1"})
        broker.start_housekeeping()
        append(broker, count=4)
        log = broker.topics["t"].partitions[0]
        let_pass(host, broker, first_ms - 1)
        assert (log.start_offset, log.end_offset) == (0, 4)
        let_pass(host, broker, 1)
        assert (log.start_offset, log.end_offset) == (4, 4)
        append(broker, count=1)
        let_pass(host, broker, 5 * MINUTE_MS - 1)
        assert (log.start_offset, log.end_offset) == (4, 5)
        let_pass(host, broker, 1)
        assert (log.start_offset, log.end_offset) == (5, 5)

    def test_compacted_topics_are_cleaned_in_time(self) -> None:
        """After log.cleaner.backoff.ms, the internal topics too; only where it is enabled."""
        settings = {"cleanup.policy": "compact", "internal.segment.bytes": "200"}
        for is_enabled in (True, False):
            host = SimulatedHost()
            broker = a_broker(
                host,
                log_cleaner_backoff_ms=7000,
                log_cleaner_enable=str(is_enabled).lower(),
            )
            log = broker.create_topic("t", 1, settings).partitions[0]
            for number in range(6):
                record = Record(0, NOW_MS, b"key", b"%d" % number * 60)
                log.append_produced(memoryview(encode_batch([record])), NOW_MS)
            broker.start_housekeeping()
            let_pass(host, broker, 6000)
            assert len(log.read_records(0, 10)) == 6
            let_pass(host, broker, 1000)
            kept = [record.offset for record in log.read_records(0, 10)]
            assert kept == ([4, 5] if is_enabled else [0, 1, 2, 3, 4, 5])
            if is_enabled:
                assert read(host, "cleaner-offset-checkpoint") == "0\n1\nt 0 5\n"
            broker.close()

    @pytest.mark.parametrize(("factor", "left"), [("0.0", 3), ("0.9", 2)])
    def test_the_cleaner_may_be_changed_while_it_runs(self, factor: str, left: int) -> None:
        """A shorter pause holds from the next second on; so does the memory it may take."""
        host = SimulatedHost()
        broker = a_broker(host)
        settings = {"cleanup.policy": "compact", "internal.segment.bytes": "200"}
        log = broker.create_topic("t", 1, settings).partitions[0]
        for number in range(6):
            record = Record(0, NOW_MS, b"key", b"%d" % number * 60)
            log.append_produced(memoryview(encode_batch([record])), NOW_MS)
        broker.start_housekeeping()
        changed = {"log.cleaner.backoff.ms": "500", "log.cleaner.io.buffer.load.factor": factor}
        dynamic = broker.dynamic_config
        dynamic.replace({**dynamic.of_cluster, **changed}, is_cluster_wide=True)
        let_pass(host, broker, 999)
        assert len(log.read_records(0, 10)) == 6
        let_pass(host, broker, 1)
        assert len(log.read_records(0, 10)) == left

    def test_what_fails_once_is_tried_again(self, caplog: pytest.LogCaptureFixture) -> None:
        """A full disk ends no periodic work: it is logged, and all goes on when there is room."""
        host = SimulatedHost()
        broker = a_broker(host)
        broker.create_topic("t", 1)
        broker.start_housekeeping()
        host.fs.faults.fail_next("open", errno.ENOSPC, path="*checkpoint*", count=None)
        let_pass(host, broker, 2 * MINUTE_MS)
        assert "checkpoint" in caplog.text
        host.fs.faults.clear()
        let_pass(host, broker, MINUTE_MS)
        assert read(host, "recovery-point-offset-checkpoint") == "0\n1\nt 0 0\n"
        assert read(host, "replication-offset-checkpoint") == "0\n1\nt 0 0\n"

    def test_producers_silent_for_a_day_are_forgotten(self) -> None:
        """Of every partition, at the next check (each ten minutes); the others stay."""
        host = SimulatedHost()
        broker = a_broker(host)
        broker.create_topic("t", 2)
        broker.start_housekeeping()
        for index in (0, 1):
            append_as(broker, producer_id=7, index=index)
        host.clock.advance(DAY_MS - 1)
        append_as(broker, producer_id=8, timestamp_ms=NOW_MS + DAY_MS - 1)
        broker.timers.run()
        assert (producers(broker, 0), producers(broker, 1)) == ([7, 8], [7])
        host.clock.advance(10 * MINUTE_MS - 1)
        broker.timers.run()
        assert (producers(broker, 0), producers(broker, 1)) == ([7, 8], [7])
        host.clock.advance(1)
        broker.timers.run()
        assert (producers(broker, 0), producers(broker, 1)) == ([8], [])

    def test_how_long_producers_are_remembered_are_settings(self) -> None:
        """The time may be changed on a running broker; an open transaction is never forgotten."""
        host = SimulatedHost()
        broker = a_broker(
            host,
            producer_id_expiration_ms=9000,
            producer_id_expiration_check_interval_ms=2000,
            transaction_partition_verification_enable="false",
        )
        broker.create_topic("t", 1)
        broker.start_housekeeping()
        append_as(broker, producer_id=7)
        append_as(broker, producer_id=8, is_transactional=True)
        let_pass(host, broker, 9999)
        assert producers(broker, 0) == [7, 8]
        let_pass(host, broker, 1)
        assert producers(broker, 0) == [8]
        append_as(broker, producer_id=9, timestamp_ms=NOW_MS + 10_000)
        broker.dynamic_config.replace({"producer.id.expiration.ms": "3000"}, is_cluster_wide=False)
        let_pass(host, broker, 2000)
        assert producers(broker, 0) == [8, 9]
        let_pass(host, broker, 2000)
        assert producers(broker, 0) == [8]


class TestLife:
    """Opening and closing."""

    def test_a_stop_leaves_a_clean_directory(self) -> None:
        """With the marker, which goes when the next one opens."""
        host = SimulatedHost()
        broker = a_broker(host)
        broker.create_topic("t", 1)
        append(broker)
        assert not host.fs.exists(CLEAN_MARKER)
        broker.close()
        assert host.fs.exists(CLEAN_MARKER)
        again = a_broker(host)
        assert again.store.was_clean
        assert not host.fs.exists(CLEAN_MARKER)

    def test_a_stop_that_fails_leaves_no_marker(self) -> None:
        """The next start recovers; the lock is free for it."""
        host = SimulatedHost()
        broker = a_broker(host)
        broker.create_topic("t", 1)
        append(broker)
        host.fs.faults.fail_next_sync(errno.EIO, path="*/t-0/*.log")
        with pytest.raises((OSError, WriteFailedError)):
            broker.close()
        assert not host.fs.exists(CLEAN_MARKER)
        host.fs.faults.clear()
        again = a_broker(host)
        assert not again.store.was_clean

    def test_an_abandoned_broker_lets_go(self) -> None:
        """Without a marker; the directory can be opened at once."""
        host = SimulatedHost()
        a_broker(host).abandon()
        assert not host.fs.exists(CLEAN_MARKER)
        a_broker(host)

    def test_two_brokers_cannot_share_a_directory(self) -> None:
        """Until the first one has closed."""
        host = SimulatedHost()
        broker = a_broker(host)
        with pytest.raises(LockedError, match=r"/data/\.lock: another broker"):
            a_broker(host)
        broker.close()
        a_broker(host)

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("num.partitions", "0"),
            ("log.cleanup.policy", "burn"),
            ("fetch.max.bytes", "1e3"),
        ],
    )
    def test_a_bad_setting_touches_nothing(self, key: str, value: str) -> None:
        """It is refused before the directory is made."""
        host = SimulatedHost()
        with pytest.raises(ConfigError, match=f"Invalid value {value} for configuration {key}: "):
            Broker.open(host, DIRECTORY, {key: value})
        assert not host.fs.exists(DIRECTORY)

    def test_settings_that_do_not_go_together_touch_nothing(self) -> None:
        """Idle connections as short as the pause after a failed login."""
        host = SimulatedHost()
        with pytest.raises(ConfigError, match=r"less than connections\.max\.idle\.ms=100 "):
            Broker.open(host, DIRECTORY, {"connections.max.idle.ms": "100"})
        assert not host.fs.exists(DIRECTORY)

    def test_an_opening_that_fails_lets_go_of_the_lock(self) -> None:
        """Whatever it was: here the log of the groups cannot be read."""
        host = SimulatedHost()
        broker = a_broker(host)
        broker.create_topic("__consumer_offsets", 1)
        append(broker, "__consumer_offsets")
        broker.close()
        host.fs.faults.fail_next("read", errno.EIO, path="*__consumer_offsets-0/*.log", count=None)
        with pytest.raises((OSError, StorageError)):
            a_broker(host)
        host.fs.faults.clear()
        a_broker(host)

    def test_recovery_takes_as_many_threads_as_are_set(self) -> None:
        """Where threads are wanted at all: a simulated world happens the same way every time."""
        settings = {"num.recovery.threads.per.data.dir": "3"}
        for is_parallel, wanted in ((True, 3), (False, 1)):
            broker = Broker.open(SimulatedHost(), DIRECTORY, settings, is_parallel=is_parallel)
            assert broker.store.options.recovery_thread_count == wanted
        default = Broker.open(SimulatedHost(), DIRECTORY, {}, is_parallel=True)
        assert default.store.options.recovery_thread_count == 2

    def test_node_and_cluster_are_those_of_the_directory(self) -> None:
        """The node id is a setting, the cluster id is made once; both are found again."""
        host = SimulatedHost()
        broker = a_broker(host, node_id=7)
        assert broker.node_id == 7
        broker.close()
        again = a_broker(host)
        assert (again.node_id, again.cluster_id) == (7, broker.cluster_id)
        assert broker.cluster_id != ""
        assert a_broker(SimulatedHost(5)).cluster_id != broker.cluster_id

    def test_clients_are_told_the_node_of_the_directory(self) -> None:
        """Also where it is not the default and no setting names it."""
        host = SimulatedHost()
        a_broker(host, node_id=7).close()
        found = Peer(a_broker(host)).ask("Metadata", 12, {"topics": []}).message
        assert [broker["node_id"] for broker in found["brokers"]] == [7]
        assert found["controller_id"] == 7

    @pytest.mark.parametrize("name", ["node_id", "broker_id"])
    def test_the_directory_of_another_node_is_refused(self, name: str) -> None:
        """Under the older name of the setting too; the right number opens it."""
        host = SimulatedHost()
        a_broker(host, node_id=7).close()
        with pytest.raises(ForeignDirectoryError, match=r"node\.id is 7, .* to be node 8"):
            a_broker(host, **{name: 8})
        assert a_broker(host, **{name: 7}).node_id == 7

    def test_a_node_has_one_id(self) -> None:
        """node.id and broker.id must agree; -1 in the older one says that nobody chose."""
        assert a_broker(node_id=7, broker_id=7).node_id == 7
        assert a_broker(node_id=7, broker_id=-1).node_id == 7
        assert a_broker(broker_id=-1).node_id == 1
        with pytest.raises(ConfigError, match=r"broker\.id = '8': must be the same as node\.id, 7"):
            a_broker(node_id=7, broker_id=8)


def test_work_without_a_server_is_done_at_once() -> None:
    """And its end is told, with the error if there was one."""
    ends: list[BaseException | None] = []
    done: list[str] = []

    def fail() -> None:
        raise OSError(errno.EIO, "no disk")

    run_at_once(lambda: done.append("work"), ends.append)
    run_at_once(fail, ends.append)
    assert (done, ends[0], type(ends[1])) == (["work"], None, OSError)
