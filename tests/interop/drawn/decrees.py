"""What administrators change, out to the edges: the same twice, beyond the end, by other kinds."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.cluster import FEATURES, KRAFT_UPGRADE
from tests.interop.drawn.inquiries import INT32_MAX, INT64_MAX, doubled, numbers, places, some
from tests.interop.drawn.pair import Pair
from tests.interop.drawn.transactions import epoch_of, producer_of
from tests.interop.drawn.world import Producer, Topic, World

OFFSETS = Topic("__consumer_offsets", None, 2)
#: so much that nobody is ever held back by it
UNREACHED = 1e12
QUOTAS = (
    "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
    "connection_creation_rate", "no_such", "", "Producer_Byte_Rate",
)  # fmt: skip
LIMITS = (
    1.0, 1e9 + 0.5, 1e9 + 0.0000001, 0.0, -0.0, -1.0, 2.0**63, 1e300, float("nan"), float("inf"),
    -float("inf"), 5e-324, 100.5,
)  # fmt: skip


def log_dirs(world: World) -> None:
    """Move replicas to the directory where they are, to another spelling of it, and elsewhere."""
    answer = world.twin.exchange("DescribeLogDirs", 1, {"Topics": []})
    here: Any = answer.made(lambda told: told["Results"][0]["LogDir"])
    dirs = []
    for _ in range(world.pick(0, 1, 1, 2)):
        path = world.pick(
            here, here, Pair(f"{here.ours}/", f"{here.real}/"),
            Pair(f"/{here.ours}", f"/{here.real}"), Pair(f"{here.ours}/.", f"{here.real}/."),
            "/nowhere", "relative", "", "/",
        )  # fmt: skip
        dirs.append({"Path": path, "Topics": places(world, "Name", "Partitions")})
    world.ask("AlterReplicaLogDirs", {"Dirs": doubled(world, dirs)})


def elections(world: World) -> None:
    """Ask for elections of any kind, of everything now and then."""
    topics = None if world.likely(0.15) else places(world, "Topic", "Partitions")
    body = {
        "ElectionType": world.pick(0, 0, 0, 1, 1, 2, -1, 127),
        "TopicPartitions": topics,
        "TimeoutMs": world.pick(5000, 5000, 5000, 0, -1, INT32_MAX),
    }
    world.ask("ElectLeaders", body)


def reassign(world: World) -> None:
    """Move partitions, the same twice or not, to brokers that are there and to others."""
    items = places(world, "Name", "Partitions")
    for item in items:
        item["Partitions"] = [
            {"PartitionIndex": number,
             "Replicas": world.pick(None, None, [1], [1], [1], [], [1, 1], [2], [1, 2], [2, 1],
                                    [-1], [0], [1, -1], [INT32_MAX], [2, 2])}
            for number in item["Partitions"]
        ]  # fmt: skip
    body = {
        "AllowReplicationFactorChange": world.likely(0.6),
        "Topics": items,
        "TimeoutMs": world.pick(5000, 5000, 5000, 5000, 0, -1),
    }
    world.ask("AlterPartitionReassignments", body)


def quotas(world: World) -> None:
    """Limit named ones and everybody else, the same twice or not; nobody who asks is held back."""
    entries = []
    for _ in range(world.pick(0, 1, 1, 1, 2)):
        entity = quota_entity(world)
        is_everybody = any(one["EntityName"] is None for one in entity)
        operations = []
        for _ in range(world.pick(0, 1, 1, 1, 2, 3)):
            value = UNREACHED if is_everybody or world.likely(0.4) else world.pick(*LIMITS)
            key = world.pick(*QUOTAS[:5], *QUOTAS)
            operations.append({"Key": key, "Value": value, "Remove": world.likely(0.3)})
        entries.append({"Entity": entity, "Ops": operations})
    body = {"Entries": doubled(world, entries), "ValidateOnly": world.likely(0.2)}
    # what is changed at random might hold everybody back
    world.twin.ask("AlterClientQuotas", world.version("AlterClientQuotas"), body)


def quota_entity(world: World) -> list[dict[str, Any]]:
    """Draw whom limits may be set for, everybody else among them."""
    names: dict[str, tuple[Any, ...]] = {
        "user": (world.numbered("user"), world.numbered("user"), None, "", "User:a b", "<default>"),
        "client-id": (world.numbered("client"), world.numbered("client"), None, "", "a/b"),
        "ip": ("10.0.0.1", "10.0.0.1", None, "::1", "", "localhost", "1.2.3.4.5"),
        "colour": ("red", None),
        "": ("x",),
        "User": (world.numbered("user"),),
    }
    kinds = world.pick(
        ["user"], ["client-id"], ["ip"], ["user", "client-id"], ["client-id", "user"],
        some(world, *names),
    )  # fmt: skip
    return [
        {"EntityType": kind, "EntityName": world.pick(*names[kind])}
        for kind in doubled(world, kinds)
    ]


def passwords(world: World) -> None:
    """Give users passwords and take them away, both of one user at once or twice."""
    names = (world.numbered("user"), world.numbered("user"), "", "nobody", "a=b,c", "x" * 300)
    kinds = (1, 1, 1, 2, 2, 0, 3, -1, 127)
    deletions = [
        {"Name": world.pick(*names[:2], *names), "Mechanism": world.pick(*kinds)}
        for _ in range(world.pick(0, 0, 1, 1, 2))
    ]
    upsertions = []
    for _ in range(world.pick(0, 0, 1, 1, 2)):
        kind = world.pick(*kinds)
        length = 32 if kind == 1 else 64
        upsertions.append(
            {"Name": world.pick(*names[:2], *names), "Mechanism": kind,
             "Iterations": world.pick(4096, 4096, 4096, 8192, 16384, 4095, 16385, 0, -1, INT32_MAX),
             "Salt": world.pick(b"salt", b"salt", b"salt", b"", b"\0" * 300),
             "SaltedPassword": world.pick(*[b"p" * length] * 5, b"p" * (length - 1), b"")}
        )  # fmt: skip
    body = {"Deletions": doubled(world, deletions), "Upsertions": doubled(world, upsertions)}
    world.ask("AlterUserScramCredentials", body)


def delete_records(world: World) -> None:
    """Move the starts of logs: to the end, beyond it, back, of one partition twice."""
    items = places(world, "Name", "Partitions")
    for item in items:
        item["Partitions"] = [
            {"PartitionIndex": number,
             "Offset": world.pick(-1, -1, 0, 1, 1, 2, 3, 5, 9, 1000, -2, -(2**63), INT64_MAX)}
            for number in item["Partitions"]
        ]  # fmt: skip
    timeout_ms = world.pick(5000, 5000, 5000, 0, -1, INT32_MAX)
    world.ask("DeleteRecords", {"Topics": items, "TimeoutMs": timeout_ms})


def features(world: World) -> None:
    """Ask whether features could change, each in any way and one twice or not; nothing does."""
    updates = [
        {
            "Feature": world.pick(*FEATURES, "", "METADATA.VERSION"),
            "MaxVersionLevel": world.pick(0, 1, 2, 3, 7, 22, 29, 30, 99, -1, 32767, -32768),
            "UpgradeType": world.pick(1, 1, 2, 3, 0, 4, -1),
        }
        for _ in range(world.pick(0, 1, 1, 2, 3))
    ]
    updates = [one for one in doubled(world, updates) if one != KRAFT_UPGRADE]
    body = {
        "timeoutMs": world.pick(60_000, 60_000, 60_000, 0, -1),
        "FeatureUpdates": updates,
        "ValidateOnly": True,
    }
    world.ask("UpdateFeatures", body, max(1, world.version("UpdateFeatures")))


def markers(world: World) -> None:
    """
    End transactions in many partitions, none at all, and with epochs of any coordinator.

    A real broker does not answer if a partition comes twice, or if only some of several markers
    are for partitions that are there.
    """
    version = world.version("WriteTxnMarkers")
    producer = producer_of(world, with_name=world.likely(0.8))
    epoch = epoch_of(world, producer)
    if world.likely(0.15):
        epoch = world.pick(-2, 0, 32767, -32768)
        producer = Producer(world.pick(-2, INT64_MAX, 12345), epoch)
    is_known = not isinstance(producer.id, int)
    found: dict[str, list[int]] = {}
    for _ in range(world.pick(0, 1, 1, 2, 3)):
        topic = OFFSETS if world.likely(0.15) else world.topic()
        found.setdefault(topic.name, []).extend(numbers(world, topic))
    topics = [
        {"Name": name, "PartitionIndexes": list(dict.fromkeys(indexes))}
        for name, indexes in found.items()
    ]
    marker: dict[str, Any] = {
        "ProducerId": producer.id,
        "ProducerEpoch": epoch,
        "TransactionResult": world.likely(0.5),
        "Topics": topics,
        # a later coordinator's would keep the real one from ending what it has begun
        "CoordinatorEpoch": 0 if is_known else world.pick(0, 0, 3, -1, -2, INT32_MAX),
    }
    if version >= 2:
        marker["TransactionVersion"] = world.pick(0, 1, 2, 2, 3, -1, 127)
    items = [] if world.likely(0.05) else doubled(world, [marker])
    world.twin.ask("WriteTxnMarkers", version, {"Markers": items})
