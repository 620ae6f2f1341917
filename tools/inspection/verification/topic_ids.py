"""The id in each ``partition.metadata`` held against the cluster's metadata and its neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from logstore.errors import CorruptFileError
from logstore.host import FileSystem
from logstore.segments.kafka.kafka_uuid import uuid_to_text
from logstore.segments.kafka.partition_metadata import FILE_NAME, PartitionMetadata
from logstore.tools.inspection.cluster_image import cluster_image
from logstore.tools.inspection.verification.finding import Finding


def topic_id_findings(
    fs: FileSystem, directory: str, topics: Mapping[str, str]
) -> Iterator[Finding]:
    """
    Yield which partitions have the id of another topic; `topics` is topic by partition directory.

    What cannot be read is said where the partition is looked at. Without metadata of the cluster
    the id counts that most partitions of the topic have.
    """
    ids: dict[str, bytes] = {}
    for root in topics:
        try:
            found = PartitionMetadata.read(fs, f"{directory}/{root}")
        except CorruptFileError:
            continue
        if found is not None:
            ids[root] = found.topic_id
    image = cluster_image(fs, directory)
    known = {} if image is None else {name: one.topic_id for name, one in image.topics.items()}
    for root, topic_id in ids.items():
        expected, by = known.get(topics[root]), "the cluster's metadata"
        if expected is None:
            others = [one for other, one in ids.items() if topics[other] == topics[root]]
            expected = Counter(others).most_common(1)[0][0]
            by = "another partition of the topic"
        if topic_id != expected:
            text = (
                f"says topic id {uuid_to_text(topic_id)}, {by} {uuid_to_text(expected)}: a broker "
                "takes the partition for one of another topic"
            )
            yield Finding("topic-id", f"{root}/{FILE_NAME}", text)
