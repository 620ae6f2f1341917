"""One directory, two brokers: the real Kafka starts on ours as it stands, and ours on its."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest
from confluent_kafka import Consumer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
)

from logstore.tools.dev.kafka_peer import VERSIONS, KafkaPeer, fetch, java
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.clients import CLIENTS, read_all, settings
from tests.interop.conftest import SETTINGS, RunTool, led_partitions, missing, new_topic
from tests.interop.eventually import eventually
from tests.interop.our_broker import OurBroker
from tests.interop.samples import Sample, numbered

pytestmark = pytest.mark.interop

SECONDS_MAX = 60
RECORDS = 20
OFFSETS_TOPIC = "__consumer_offsets"
LIBRDKAFKA = CLIENTS[0]


@attrs.frozen
class Known:
    """What a broker tells of one topic: its id, how many partitions, its own settings."""

    topic_id: str
    partition_count: int
    settings: dict[str, str]


def known(bootstrap: str) -> dict[str, Known]:
    """Return what a broker tells of all its topics."""
    admin = AdminClient(settings(bootstrap))
    names = list(admin.list_topics(timeout=SECONDS_MAX).topics)
    found: dict[str, Known] = {}
    for name, future in admin.describe_topics(TopicCollection(names)).items():
        topic = future.result(SECONDS_MAX)
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        entries = admin.describe_configs([resource])[resource].result(SECONDS_MAX)
        own = {
            entry.name: entry.value
            for entry in entries.values()
            if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        }
        found[name] = Known(str(topic.topic_id), len(topic.partitions), own)
    return found


def set_config(bootstrap: str, topic: str, name: str, value: str | None) -> None:
    """Set one of a topic's settings, or take it back."""
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(name, value or "", incremental_operation=operation)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient(settings(bootstrap))
    admin.incremental_alter_configs([resource])[resource].result(SECONDS_MAX)


def commit(bootstrap: str, topic: str, offset: int) -> None:
    """Commit an offset for group ``g``."""
    consumer = Consumer({**settings(bootstrap), "group.id": "g"})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def committed(bootstrap: str, topic: str) -> int:
    """Return what group ``g`` has committed."""
    consumer = Consumer({**settings(bootstrap), "group.id": "g"})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=SECONDS_MAX)
    consumer.close()
    return int(found.offset)


def live_a_life(bootstrap: str) -> list[Sample]:
    """Create, fill, change, grow and delete topics; return the records of topic ``full``."""
    records = numbered(RECORDS)
    new_topic(bootstrap, "full", 2, {"retention.ms": "-1", "max.message.bytes": "900000"})
    new_topic(bootstrap, "empty", 1, {"cleanup.policy": "compact"})
    new_topic(bootstrap, "gone", 2, {"retention.ms": "5"})
    assert LIBRDKAFKA.produce(bootstrap, "full", records) == list(range(RECORDS))
    admin = AdminClient(settings(bootstrap))
    admin.delete_topics(["gone"])["gone"].result(SECONDS_MAX)
    admin.create_partitions([NewPartitions("empty", 3)])["empty"].result(SECONDS_MAX)
    set_config(bootstrap, "full", "max.message.bytes", None)
    set_config(bootstrap, "full", "segment.ms", "86400000")
    commit(bootstrap, "full", 7)
    # The real controller answers first, and tells its broker a little later.
    eventually(lambda: "gone" not in admin.list_topics(timeout=SECONDS_MAX).topics, what="no topic")
    eventually(lambda: len(led_partitions(admin, "empty")) == 3, what="three partitions")
    own = {"retention.ms": "-1", "segment.ms": "86400000"}
    eventually(lambda: known(bootstrap)["full"].settings == own, what="settings")
    return records


def check(bootstrap: str, expected: dict[str, Known], records: list[Sample]) -> None:
    """See that a broker knows the same topics, serves every record, and takes another one."""
    assert known(bootstrap) == expected
    assert read_all(LIBRDKAFKA, bootstrap, "full", len(records)) == records
    assert committed(bootstrap, "full") == 7
    more = numbered(1, f"more-{len(records)}")
    assert LIBRDKAFKA.produce(bootstrap, "full", more) == [len(records)]
    records += more


def directories(data: Path) -> set[str]:
    """Return the names of the directories in a data directory, without what is deleted by now."""
    return {
        path.name for path in data.iterdir() if path.is_dir() and not path.name.endswith("-delete")
    }


def real_on(data: Path, directory: Path, version: str) -> KafkaPeer:
    """Return a real broker that serves `data` as it stands; that it does not start is a failure."""
    try:
        fetch(VERSIONS[version])
        java(version, "kafka.Kafka")
    except PeerUnavailable as reason:
        missing(str(reason))
    peer = KafkaPeer(version, directory, settings=SETTINGS, as_is=data)
    try:
        return peer.start()
    except PeerUnavailable as reason:
        pytest.fail(str(reason), pytrace=False)


#: A broker that was killed leads its partitions still when it comes back, until its own controller
#: fences it: the coordinator may be at reading one by then, and reads it again when it leads again.
STOPPED_LOADING = re.compile(
    r"Stopped loading records from (\S+) because the partition is not online"
)


def complaints(log: Path) -> list[str]:
    """
    Return what a real broker's log says of errors, and of partitions that nobody knows.

    To be asked before it is stopped: its two halves may then complain of one another.
    """
    lines = log.read_text().splitlines()
    return [
        line
        for number, line in enumerate(lines)
        if re.search(r"\] (ERROR|FATAL) |[Ss]tray", line)
        and not is_loaded_later(line, lines[number:])
    ]


def is_loaded_later(line: str, later: list[str]) -> bool:
    """Tell whether a line is of a partition that a later one says was read to its end."""
    stopped = STOPPED_LOADING.search(line)
    if stopped is None:
        return False
    finished = f"Finished loading of metadata from {stopped[1]} with epoch"
    return any(finished in one for one in later)


def test_a_partition_that_is_read_again_is_no_complaint(tmp_path: Path) -> None:
    """One that is never read to its end is."""
    log = tmp_path / "broker.log"
    stopped = (
        "[now] ERROR [GroupCoordinator id=1] Failed to load metadata from {0} with epoch 0 due to "
        "Stopped loading records from {0} because the partition is not online or is no longer ..."
    )
    again = "[now] INFO [GroupCoordinator id=1] Finished loading of metadata from t-0 with epoch 2"
    log.write_text("\n".join([stopped.format("t-0"), stopped.format("t-1"), again]))
    assert complaints(log) == [stopped.format("t-1")]


def our_broker(directory: Path, data: Path, release: str | None = None) -> OurBroker:
    """Return our broker on `data`, started."""
    arguments = () if release is None else ("--release-version", release)
    return OurBroker(directory, SETTINGS, data, arguments).start()


@pytest.mark.parametrize(
    ("version", "release", "is_killed"),
    [
        pytest.param("4", None, False, marks=pytest.mark.slow),
        ("4", None, True),
        ("3.9", "3.9", False),
        pytest.param("3.9", "3.9", True, marks=pytest.mark.slow),
    ],
)
def test_the_real_kafka_starts_on_our_directory(
    version: str, release: str | None, is_killed: bool, tmp_path: Path
) -> None:
    """It knows every topic, id and setting, serves every record, and deletes nothing as stray."""
    data = tmp_path / "data"
    ours = our_broker(tmp_path / "ours", data, release)
    records = live_a_life(ours.bootstrap)
    expected = known(ours.bootstrap)
    ours.stop(kill=is_killed)
    found = directories(data)

    real = real_on(data, tmp_path / "real", version)
    try:
        check(real.bootstrap, expected, records)
        new_topic(real.bootstrap, "of-the-real-one", 2, {"retention.ms": "7"})
        expected = known(real.bootstrap)
        assert expected["of-the-real-one"].settings == {"retention.ms": "7"}
        found |= {"of-the-real-one-0", "of-the-real-one-1"}
        # It tells of a topic first, and makes the directories then: not if it is killed between.
        eventually(lambda: directories(data) == found, SECONDS_MAX, what="its directories")
        assert complaints(real.log) == []
    finally:
        real.stop(kill=is_killed)
    assert directories(data) == found

    ours.start()
    check(ours.bootstrap, expected, records)
    ours.stop()


@pytest.mark.parametrize(
    ("version", "is_killed"),
    [
        pytest.param("4", False, marks=pytest.mark.slow),
        ("4", True),
        pytest.param("3.9", False, marks=pytest.mark.slow),
    ],
)
def test_we_open_a_directory_of_the_real_kafka(
    version: str, is_killed: bool, tmp_path: Path
) -> None:
    """Topics, ids and settings are its own, also of empty ones; and it takes the directory back."""
    try:
        real = KafkaPeer(version, tmp_path / "real", settings=SETTINGS).start()
    except PeerUnavailable as reason:
        missing(str(reason))
    try:
        records = live_a_life(real.bootstrap)
        expected = known(real.bootstrap)
    finally:
        real.stop(kill=is_killed)

    ours = our_broker(tmp_path / "ours", real.data)
    check(ours.bootstrap, expected, records)
    new_topic(ours.bootstrap, "of-ours", 2, {"retention.ms": "7"})
    expected = known(ours.bootstrap)
    ours.stop(kill=is_killed)
    found = directories(real.data)

    real.log.unlink()
    real.start()
    try:
        check(real.bootstrap, expected, records)
        assert complaints(real.log) == []
    finally:
        real.stop()
    assert directories(real.data) == found


def test_kafkas_tool_reads_our_metadata_log(tmp_path: Path, kafka_tool: RunTool) -> None:
    """Every record of the log and of the bootstrap snapshot is one that Kafka knows."""
    ours = our_broker(tmp_path / "ours", tmp_path / "data")
    live_a_life(ours.bootstrap)
    ours.stop()
    log = tmp_path / "data" / "__cluster_metadata-0" / f"{0:020d}.log"
    done = kafka_tool("DumpLogSegments", "--cluster-metadata-decoder", "--files", str(log))
    assert done.stderr == ""
    assert "isvalid: false" not in done.stdout
    kinds = re.findall(r'payload: {"type":"([A-Z_]+)"', done.stdout)
    assert kinds.count("TOPIC_RECORD") == 4  # with the groups' own
    assert kinds.count("REMOVE_TOPIC_RECORD") == 1
    assert kinds.count("PARTITION_RECORD") == 2 + 1 + 2 + 2 + 2
    assert kinds.count("PRODUCER_IDS_RECORD") <= 1
    assert {"FEATURE_LEVEL_RECORD", "CONFIG_RECORD", "BEGIN_TRANSACTION_RECORD"} <= set(kinds)
    assert 'LeaderChange: {"version":0,"leaderId":1,"voters":[{"voterId":1}]' in done.stdout
    bootstrap = str(tmp_path / "data" / "bootstrap.checkpoint")
    done = kafka_tool("DumpLogSegments", "--cluster-metadata-decoder", "--files", bootstrap)
    assert done.stdout.count("FEATURE_LEVEL_RECORD") == 6
    assert "SnapshotHeader" in done.stdout
    assert "SnapshotFooter" in done.stdout


def test_the_tool_that_checks_a_directory_is_content(tmp_path: Path, kafka_tool: RunTool) -> None:
    """``kafka-storage info`` finds the directory formatted, as one of KRaft."""
    ours = our_broker(tmp_path / "ours", tmp_path / "data")
    ours.stop()
    config = tmp_path / "server.properties"
    config.write_text(
        f"process.roles=broker,controller\nnode.id=1\nlog.dirs={tmp_path / 'data'}\n"
        "controller.quorum.voters=1@127.0.0.1:1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
    )
    done = kafka_tool("kafka.tools.StorageTool", "info", "-c", str(config), check=False)
    assert "Found metadata: {cluster.id=" in done.stdout
    assert "version=1}" in done.stdout
    assert "following problem" not in done.stdout
    assert done.status == 0
