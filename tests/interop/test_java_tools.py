"""Kafka's own command line tools, which are the Java clients, against both brokers."""

from __future__ import annotations

import json
import re

import pytest

from tests.interop.clients import CLIENTS, read, read_all
from tests.interop.conftest import Broker, CreateTopic, RunTool
from tests.interop.eventually import eventually
from tests.interop.samples import FIRST_TIMESTAMP_MS, numbered

pytestmark = [pytest.mark.interop, pytest.mark.either_layout]


LEFT_TO_PEOPLE = ("lz4", "gzip", "snappy")
#: in CI the other clients' tests stand for the rest
CODECS = ("none", "zstd", *(pytest.param(it, marks=pytest.mark.slow) for it in LEFT_TO_PEOPLE))


@pytest.mark.parametrize("codec", CODECS)
def test_producer_performance(
    broker: Broker, create_topic: CreateTopic, kafka_tool: RunTool, codec: str
) -> None:
    """The Java producer sends ten thousand records over three partitions, and all are counted."""
    topic = create_topic(broker.bootstrap, partitions=3)
    properties = [f"bootstrap.servers={broker.bootstrap}", "acks=all", f"compression.type={codec}"]
    done = kafka_tool(
        *("ProducerPerformance", "--topic", topic, "--num-records", "10000"),
        *("--record-size", "100", "--throughput", "-1", "--producer-props", *properties),
    )
    assert "10000 records sent" in done.stdout
    counted = kafka_tool("GetOffsetShell", "--bootstrap-server", broker.bootstrap, "--topic", topic)
    offsets = [int(line.split(":")[2]) for line in counted.stdout.split()]
    assert len(offsets) == 3
    assert sum(offsets) == 10_000


def test_console_producer_and_consumer(
    broker: Broker, create_topic: CreateTopic, kafka_tool: RunTool
) -> None:
    """Lines typed into the console producer come out of the consumer, keys and headers too."""
    topic = create_topic(broker.bootstrap)
    lines = [f"h:{number}\tk{number}\tline {number}" for number in range(20)]
    kafka_tool(
        *("ConsoleProducer", "--bootstrap-server", broker.bootstrap, "--topic", topic),
        *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
        stdin="\n".join(lines) + "\n",
    )
    done = kafka_tool(
        *("ConsoleConsumer", "--bootstrap-server", broker.bootstrap, "--topic", topic),
        *("--from-beginning", "--max-messages", "20", "--timeout-ms", "30000"),
        *("--formatter-property", "print.key=true", "--formatter-property", "print.headers=true"),
        *("--formatter-property", "print.offset=true"),
    )
    assert done.stdout.splitlines() == [
        f"Offset:{number}\t{line}" for number, line in enumerate(lines)
    ]


def test_the_java_consumer_reads_what_others_wrote(
    broker: Broker, create_topic: CreateTopic, kafka_tool: RunTool
) -> None:
    """Batches of three other libraries in all codecs pass the Java consumer's CRC check."""
    topic = create_topic(broker.bootstrap)
    expected: list[str] = []
    for client in CLIENTS:
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            sent = numbered(10, f"{client.name}-{codec}")
            client.produce(broker.bootstrap, topic, sent, codec)
            expected += [(record.value or b"").decode() for record in sent]
    done = kafka_tool(
        *("ConsoleConsumer", "--bootstrap-server", broker.bootstrap, "--topic", topic),
        *("--from-beginning", "--max-messages", str(len(expected)), "--timeout-ms", "30000"),
    )
    assert done.stdout.splitlines() == expected


def test_offset_shell(broker: Broker, create_topic: CreateTopic, kafka_tool: RunTool) -> None:
    """Earliest, latest, the newest timestamp and a given time, as GetOffsetShell asks for them."""
    topic = create_topic(broker.bootstrap)
    CLIENTS[0].produce(broker.bootstrap, topic, numbered(20))
    asked = {
        "earliest": 0,
        "latest": 20,
        "max-timestamp": 19,
        str(FIRST_TIMESTAMP_MS + 4500): 5,
        str(FIRST_TIMESTAMP_MS + 99_000_000): "",
    }
    for time, offset in asked.items():
        shell = ("GetOffsetShell", "--bootstrap-server", broker.bootstrap, "--topic", topic)
        done = kafka_tool(*shell, "--time", time)
        assert done.stdout.strip() == (f"{topic}:0:{offset}" if offset != "" else ""), time


def test_verifiable_producer_and_consumer(
    broker: Broker, create_topic: CreateTopic, kafka_tool: RunTool
) -> None:
    """Kafka's system-test pair: every send acknowledged, every record consumed and committed."""
    topic = create_topic(broker.bootstrap, partitions=2)
    where = ("--bootstrap-server", broker.bootstrap, "--topic", topic, "--max-messages", "500")
    produced = kafka_tool("VerifiableProducer", *where, "--throughput", "-1", "--acks", "-1")
    events = [json.loads(line) for line in produced.stdout.splitlines()]
    assert sum(event["name"] == "producer_send_success" for event in events) == 500
    consumed = kafka_tool(
        *("VerifiableConsumer", *where, "--group-id", f"group-of-{topic}"),
        *("--reset-policy", "earliest"),
    )
    events = [json.loads(line) for line in consumed.stdout.splitlines()]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 500
    committed = [event for event in events if event["name"] == "offsets_committed"]
    assert committed
    assert all(event["success"] for event in committed)


def having(words: str, text: str) -> str:
    """Return the text if the words stand in it, else nothing."""
    return text if words in text else ""


def test_topic_command(broker: Broker, topic_name: str, kafka_tool: RunTool) -> None:
    """Create, list, describe, alter and delete, each as the tool words it."""
    where = ("TopicCommand", "--bootstrap-server", broker.bootstrap)
    named = ("--topic", topic_name)
    settings = ("--partitions", "2", "--config", "retention.ms=777000")
    done = kafka_tool(*where, "--create", *named, *settings)
    assert done.stdout.strip() == f"Created topic {topic_name}."
    done = kafka_tool(*where, "--create", *named, check=False)
    assert done.status == 1
    assert "already exists" in done.stdout + done.stderr
    kafka_tool(*where, "--alter", *named, "--partitions", "3")
    # The real controller answers first, and tells its broker a little later.
    described = eventually(
        lambda: having("PartitionCount: 3", kafka_tool(*where, "--describe", *named).stdout),
        what="three partitions",
    )
    assert "retention.ms=777000" in described
    assert len(re.findall(r"Partition: \d\tLeader: 1\tReplicas: 1\tIsr: 1", described)) == 3
    assert topic_name in kafka_tool(*where, "--list").stdout.split()
    kafka_tool(*where, "--delete", *named)
    eventually(
        lambda: topic_name not in kafka_tool(*where, "--list").stdout.split(),
        what="the topic is gone",
    )


def test_config_command(broker: Broker, create_topic: CreateTopic, kafka_tool: RunTool) -> None:
    """Add a config, see it, delete it again."""
    topic = create_topic(broker.bootstrap)
    where = (
        *("kafka.admin.ConfigCommand", "--bootstrap-server", broker.bootstrap),
        *("--entity-type", "topics", "--entity-name", topic),
    )
    kafka_tool(*where, "--alter", "--add-config", "max.message.bytes=54321")
    shown = eventually(
        lambda: having("max.message.bytes=54321", kafka_tool(*where, "--describe").stdout),
        what="the config is there",
    )
    assert "max.message.bytes=54321" in shown
    kafka_tool(*where, "--alter", "--delete-config", "max.message.bytes")
    eventually(
        lambda: "54321" not in kafka_tool(*where, "--describe").stdout, what="the config is gone"
    )


def test_consumer_group_command(
    broker: Broker, create_topic: CreateTopic, kafka_tool: RunTool
) -> None:
    """List and describe with lag, reset the offsets, delete the group."""
    topic = create_topic(broker.bootstrap)
    group = f"group-of-{topic}"
    CLIENTS[0].produce(broker.bootstrap, topic, numbered(20))
    member = CLIENTS[0].consumer(broker.bootstrap, topic, group=group, records_max=5)
    assert len(read(member, 5)) == 5
    member.commit()
    member.close()
    where = ("ConsumerGroupCommand", "--bootstrap-server", broker.bootstrap)
    assert group in kafka_tool(*where, "--list").stdout.split()
    described = kafka_tool(*where, "--describe", "--group", group).stdout
    assert re.search(rf"{group}\s+{topic}\s+0\s+5\s+20\s+15\s", described), described
    kafka_tool(
        *(*where, "--reset-offsets", "--group", group, "--topic", topic),
        *("--to-offset", "12", "--execute"),
    )
    described = kafka_tool(*where, "--describe", "--group", group).stdout
    assert re.search(rf"{group}\s+{topic}\s+0\s+12\s+20\s+8\s", described), described
    kafka_tool(*where, "--delete", "--group", group)
    assert group not in kafka_tool(*where, "--list").stdout.split()


def test_delete_records_command(
    broker: Broker,
    create_topic: CreateTopic,
    kafka_tool: RunTool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A JSON file of offsets moves the start of the log."""
    topic = create_topic(broker.bootstrap)
    sent = numbered(10)
    CLIENTS[0].produce(broker.bootstrap, topic, sent)
    file = tmp_path_factory.mktemp("offsets") / "offsets.json"
    entry = {"topic": topic, "partition": 0, "offset": 4}
    file.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    done = kafka_tool(
        *("DeleteRecordsCommand", "--bootstrap-server", broker.bootstrap),
        *("--offset-json-file", str(file)),
    )
    assert "low_watermark: 4" in done.stdout
    assert read_all(CLIENTS[0], broker.bootstrap, topic, 6) == sent[4:]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("LogDirsCommand", "--describe"), '"logDir":"{data}'),  # or what is beside it
        (("BrokerApiVersionsCommand",), "(id: 1 rack: null isFenced: false)"),
        (("ClusterTool", "cluster-id"), "Cluster ID: "),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_describing_commands(
    broker: Broker, kafka_tool: RunTool, command: tuple[str, ...], expected: str
) -> None:
    """Log directories, API versions and the cluster id are shown."""
    done = kafka_tool(*command, "--bootstrap-server", broker.bootstrap)
    assert expected.format(data=broker.data) in done.stdout
