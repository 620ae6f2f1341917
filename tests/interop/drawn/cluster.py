"""The cluster is asked about, and told to move what cannot move."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.world import World

FEATURES = (
    "metadata.version", "group.version", "transaction.version", "share.version",
    "streams.version", "kraft.version", "no.such",
)  # fmt: skip
#: what SKIPPED.md tells of: that level stays as it is
KRAFT_UPGRADE = {"Feature": "kraft.version", "MaxVersionLevel": 1, "UpgradeType": 1}


def describe_cluster(world: World) -> None:
    """Ask who belongs to it."""
    body = {
        "IncludeClusterAuthorizedOperations": world.likely(0.4),
        "EndpointType": world.pick(1, 1, 1, 1, 3, 0),
        "IncludeFencedBrokers": world.likely(0.3),
    }
    world.ask("DescribeCluster", body)


def _items(world: World, name: str, partitions: str) -> list[dict[str, Any]]:
    found: dict[str, list[int]] = {}
    for _ in range(world.pick(1, 1, 2, 3)):
        topic = world.topic()
        index = world.partition(topic)
        if index not in found.setdefault(topic.name, []):
            found[topic.name].append(index)
    return [{name: topic, partitions: indexes} for topic, indexes in found.items()]


def describe_log_dirs(world: World) -> None:
    """Ask what stands where."""
    world.ask("DescribeLogDirs", {"Topics": _items(world, "Topic", "Partitions")})


def alter_log_dirs(world: World) -> None:
    """Move replicas to another directory."""
    items = _items(world, "Name", "Partitions")
    path = world.pick("/nowhere", "relative", "")
    world.ask("AlterReplicaLogDirs", {"Dirs": [{"Path": path, "Topics": items}]})


def describe_quorum(world: World) -> None:
    """Ask for the voters."""
    topics = [{"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}]
    if world.likely(0.3):
        topics[0]["TopicName"] = world.topic_name()
    if world.likely(0.2):
        topics[0]["Partitions"] = world.pick([], [{"PartitionIndex": 1}])
    world.ask("DescribeQuorum", {"Topics": topics})


def elect_leaders(world: World) -> None:
    """Ask for an election."""
    items: Any = _items(world, "Topic", "Partitions")
    world.ask(
        "ElectLeaders",
        {"ElectionType": world.pick(0, 0, 1, 2), "TopicPartitions": items, "TimeoutMs": 5000},
    )


def reassign(world: World) -> None:
    """Move partitions, or stop moving them."""
    topics = []
    for item in _items(world, "Name", "Partitions"):
        partitions = [
            {"PartitionIndex": index,
             "Replicas": world.pick(None, [1], [1], [2], [], [1, 1], [1, 2], [-1])}
            for index in item["Partitions"]
        ]  # fmt: skip
        topics.append({"Name": item["Name"], "Partitions": partitions})
    body = {"AllowReplicationFactorChange": world.likely(0.8), "Topics": topics, "TimeoutMs": 5000}
    world.ask("AlterPartitionReassignments", body)


def list_reassignments(world: World) -> None:
    """Ask what is being moved."""
    topics = _items(world, "Name", "PartitionIndexes") if world.likely(0.7) else None
    world.ask("ListPartitionReassignments", {"Topics": topics, "TimeoutMs": 5000})


def update_features(world: World) -> None:
    """Ask whether features could change; nothing does."""
    updates = [
        {
            "Feature": world.pick(*FEATURES),
            "MaxVersionLevel": world.pick(0, 1, 2, 2, 1, 99, -1),
            "UpgradeType": world.pick(1, 1, 2, 3, 0),
        }
        for _ in range(world.pick(1, 1, 2))
    ]
    updates = [one for one in updates if one != KRAFT_UPGRADE]
    version = max(1, world.version("UpdateFeatures"))
    world.ask("UpdateFeatures", {"FeatureUpdates": updates, "ValidateOnly": True}, version)


def api_versions(world: World) -> None:
    """Ask what is served, by a name that is one or none."""
    body = {
        "ClientSoftwareName": world.pick("a", "a.b-c", "", " ", "a b", "-"),
        "ClientSoftwareVersion": world.pick("1", "1.0", "", "-1"),
    }
    answer = world.twin.exchange("ApiVersions", world.version("ApiVersions"), body, "versions")
    kept = [side["ErrorCode"] if isinstance(side, dict) else side for side in answer]
    world.twin.note("ApiVersions", body, kept)
