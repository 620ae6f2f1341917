"""Metadata of real clusters: what is read is what Kafka's own tools read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import attrs
import pytest

from logstore.os_host import SystemFileSystem, system_host
from logstore.segments.kafka.batch_walk import walk_batches
from logstore.segments.kafka.clean_shutdown import read_broker_epoch
from logstore.segments.kafka.cluster_metadata.batches import Entry, decode_entries
from logstore.segments.kafka.cluster_metadata.image import ResourceType
from logstore.segments.kafka.cluster_metadata.metadata_log import MetadataLog
from logstore.segments.kafka.cluster_metadata.records import MetadataRecord, OtherRecord
from logstore.segments.kafka.cluster_metadata.release import NEWEST
from logstore.segments.kafka.cluster_metadata.snapshot import read_snapshot
from logstore.segments.kafka.kafka_uuid import uuid_from_text, uuid_to_text
from logstore.segments.kafka.partition_metadata import PartitionMetadata

FS = SystemFileSystem()
GOLDEN = Path(__file__).resolve().parents[3] / "golden"
METADATA = GOLDEN / "metadata-4.3"

#: the fields of end points and features, which we keep as tuples
_STRUCTS = {
    "endPoints": ("name", "host", "port", "securityProtocol"),
    "features": ("name", "minSupportedVersion", "maxSupportedVersion"),
    "entity": ("entityType", "entityName"),
}
#: fields that have another name here, because Python has something of Kafka's
_RENAMED = {"entryId": "id"}
_PRINTED = re.compile(r"^\| offset: (\d+) .* payload: (.*)$", re.MULTILINE)


def printed(path: Path) -> dict[int, dict[str, Any]]:
    """Return what Kafka's tool says of a file's records, by offset."""
    text = (METADATA / "dump.txt").read_text()
    about = text.partition(f"Dumping {path.name}\n")[2].partition("\nDumping ")[0]
    return {int(offset): json.loads(payload) for offset, payload in _PRINTED.findall(about)}


def entries(path: Path) -> Iterator[Entry]:
    """Yield every record of a log or a snapshot."""
    if path.suffix == ".checkpoint":
        yield from read_snapshot(FS, str(path))
        return
    for batch in walk_batches(FS.open(str(path), writable=False), str(path)):
        yield from decode_entries(batch, str(path))


def as_printed(record: MetadataRecord, version: int) -> dict[str, Any]:
    """Return the fields of a record as Kafka's converters to JSON write them."""
    found: dict[str, Any] = {}
    for field in record.FIELDS:
        value = getattr(record, field.name)
        if version < field.since or (field.tag is not None and value == field.default):
            continue
        name = re.sub("_([a-z])", lambda match: match[1].upper(), field.name)
        if name in _STRUCTS:
            value = [dict(zip(_STRUCTS[name], item, strict=True)) for item in value]
        found[_RENAMED.get(name, name)] = _printed_value(value)
    return found


def _printed_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_printed_value(item) for item in cast("Sequence[Any]", value)]
    return uuid_to_text(value) if isinstance(value, bytes) else value


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in sorted((METADATA / "data" / "__cluster_metadata-0").iterdir())
        if path.suffix in {".log", ".checkpoint"}
    ],
    ids=lambda path: path.name,
)
def test_every_record_is_what_kafkas_tool_prints(path: Path) -> None:
    """Offsets, versions and every field agree with DumpLogSegments, in the log and in snapshots."""
    expected = printed(path)
    assert len(expected) > 10
    for entry in entries(path):
        told = expected.pop(entry.offset)
        assert entry.version == told["version"]
        if not isinstance(entry.record, OtherRecord):
            assert as_printed(entry.record, entry.version) == told["data"], told["type"]
    assert expected == {}


def test_the_image_is_what_the_broker_described() -> None:
    """Snapshot and log together give the topics, ids and configs that its last answers told."""
    log = MetadataLog(system_host(), str(METADATA / "data"), 1, release=NEWEST, is_writable=False)
    about = json.loads((METADATA / "set.json").read_text())
    found = {
        topic.name: {
            "topic_id": uuid_to_text(topic.topic_id),
            "partition_count": len(topic.partitions),
            "configs": log.image.configs_of(ResourceType.TOPIC, topic.name),
        }
        for topic in log.image.topics.values()
    }
    assert found == about["topics"]
    for name, configs in about["broker_configs"].items():
        assert log.image.configs_of(ResourceType.BROKER, name) == configs
    assert log.image.next_producer_id == 1000
    assert log.image.metadata_version == NEWEST
    assert log.image.broker_epochs == {1: read_broker_epoch(FS, str(METADATA / "data"))}
    log.close()


def test_the_log_alone_says_the_same(tmp_path: Path) -> None:
    """Where its beginning is still there, a log without its snapshots gives the same image."""
    source, target = METADATA / "data", tmp_path / "data"
    (target / "__cluster_metadata-0").mkdir(parents=True)
    for path in (source / "__cluster_metadata-0").iterdir():
        if path.suffix != ".checkpoint":
            (target / "__cluster_metadata-0" / path.name).write_bytes(path.read_bytes())
    images = [
        MetadataLog(system_host(), str(path), 1, release=NEWEST, is_writable=False).image
        for path in (source, target)
    ]
    with_snapshot, alone = ({name: attrs.asdict(topic) for name, topic in image.topics.items()}
                            for image in images)  # fmt: skip
    assert with_snapshot == alone
    assert images[0].configs == images[1].configs
    assert images[0].features == images[1].features


@pytest.mark.parametrize("name", ["kafka-4.3", "kafka-3.9", "epochs-4.3"])
def test_topics_are_those_of_the_directories(name: str) -> None:
    """Every partition directory has its partition in the metadata, under the same id and home."""
    data = GOLDEN / name / "data"
    log = MetadataLog(system_host(), str(data), 1, release=NEWEST, is_writable=False)
    directory_id = re.search("directory.id=(.*)", (data / "meta.properties").read_text())
    assert directory_id is not None
    expected: set[tuple[str, int]] = set()
    for topic in log.image.topics.values():
        for number, partition in topic.partitions.items():
            metadata = PartitionMetadata.read(FS, str(data / f"{topic.name}-{number}"))
            assert metadata is not None
            assert metadata.topic_id == topic.topic_id
            assert partition.directories == (uuid_from_text(directory_id[1]),)
            expected.add((topic.name, number))
    found = {
        (path.name.rpartition("-")[0], int(path.name.rpartition("-")[2]))
        for path in data.iterdir()
        if path.is_dir() and not path.name.startswith("__cluster")
    }
    assert found == expected


@pytest.mark.parametrize("name", ["kafka-4.3", "kafka-3.9", "epochs-4.3"])
def test_configs_are_those_that_were_set(name: str) -> None:
    """A topic's configs are those of its case; what a case changed later on is there as well."""
    data = GOLDEN / name / "data"
    log = MetadataLog(system_host(), str(data), 1, release=NEWEST, is_writable=False)
    cases = [json.loads(path.read_text()) for path in (data.parent / "cases").glob("*/case.json")]
    looked_at = 0
    for case in cases:
        settings = log.image.configs_of(ResourceType.TOPIC, case["topic"])
        if case["case"] == "compacted":  # its settings were changed between two cleanings
            assert settings.keys() == case["topic_configs"].keys()
        elif not case["topic"].startswith("__"):
            assert settings == case["topic_configs"], case["case"]
        looked_at += 1
    assert looked_at == len(cases) > 0
