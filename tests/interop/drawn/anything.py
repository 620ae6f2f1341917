"""Any API in any version, its fields drawn from what there is: what no client would think of."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.groups import any_group
from tests.interop.drawn.records import batches_of
from tests.interop.drawn.schemas import ZERO_UUID, Field, apis
from tests.interop.drawn.topics import learn_topics
from tests.interop.drawn.transactions import transactional_id
from tests.interop.drawn.world import Topic, World

#: Questions that have to wait for others, that a real broker does not answer if they are odd
#: (SKIPPED.md), that would hinder the sessions behind, or whose answers tell of the machine.
LEFT_OUT = frozenset(
    ("JoinGroup", "SyncGroup", "ApiVersions", "SaslHandshake", "SaslAuthenticate", "Envelope",
     "UnregisterBroker", "UpdateFeatures", "AlterConfigs", "IncrementalAlterConfigs",
     "AlterClientQuotas", "DescribeConfigs", "ShareFetch", "ShareAcknowledge", "WriteTxnMarkers",
     "AddPartitionsToTxn", "DescribeLogDirs", "AddRaftVoter", "RemoveRaftVoter",
     "GetTelemetrySubscriptions", "PushTelemetry", "StreamsGroupHeartbeat", "ShareGroupHeartbeat",
     "ConsumerGroupHeartbeat", "AlterPartitionReassignments", "InitializeShareGroupState",
     "ReadShareGroupState", "WriteShareGroupState", "DeleteShareGroupState",
     "ReadShareGroupStateSummary", "AlterShareGroupOffsets")
)  # fmt: skip
OF_TOPICS = frozenset(("Name", "TopicName", "Topic", "TopicNames", "SubscribedTopicNames"))
OF_GROUPS = frozenset(("GroupId", "Groups", "GroupsNames", "GroupIds", "CoordinatorKeys", "Key"))
OF_TRANSACTIONS = frozenset(("TransactionalId", "TransactionalIds"))
OF_PARTITIONS = frozenset(
    ("Partition", "Partitions", "PartitionIndex", "PartitionIndexes", "PartitionId", "Index")
)
#: whose names are no topics'
NAMED_OTHERWISE = frozenset(("AlterUserScramCredentials", "DescribeUserScramCredentials"))
#: What must stay small, or waits.
LIMITED: dict[str, tuple[Any, ...]] = {
    "MaxWaitMs": (0, 1, 20), "TimeoutMs": (1000, 5000, 0), "timeoutMs": (1000, 5000, -1),
    "NumPartitions": (1, 2, -1), "ReplicationFactor": (1, 1, -1, 2), "Count": (1, 2, 3, 4),
    "TransactionTimeoutMs": (60_000, 0, -1), "MaxBytes": (2**20, 1), "MinBytes": (0, 1),
    "PartitionMaxBytes": (2**20, 1), "Acks": (-1, 1, 2), "SessionId": (0,), "SessionEpoch": (-1, 0),
    "ReplicaId": (-1,), "IsolationLevel": (0, 1), "ValidateOnly": (True, False),
    "validateOnly": (True, False), "Iterations": (4096, 1), "Mechanism": (1, 2, 0),
    "RequireStable": (False,), "Value": ("1", "gzip", None), "Epoch": (0, 1),
    "ResponsePartitionLimit": (1, 3, 2000), "IncludeClusterAuthorizedOperations": (False, True),
}  # fmt: skip
#: What is no whole number, or must not be negative.
OF_TYPES: dict[str, tuple[Any, ...]] = {"float64": (1e9,), "uint16": (0, 1, 9092)}


def ask(world: World) -> None:
    """Put a question of any kind."""
    names = [name for name in world.versions if name not in LEFT_OUT]
    api = world.chance.choice(sorted(names))
    version = world.version(api)
    drawn = _Drawn(world, api, version)
    body = drawn.struct(apis()[api].request.fields, world.topic())
    if api == "Metadata" and not body.get("Topics"):
        return  # of all topics, also those of other sessions
    if api == "DescribeTopicPartitions" and not body["Topics"]:
        return
    world.ask(api, body, version)
    if api in {"CreateTopics", "DeleteTopics", "CreatePartitions", "Metadata"}:
        learn_topics(world, sorted({*world.topics, *drawn.names}))


def body_of(world: World, api: str, version: int) -> dict[str, Any]:
    """Draw all that a question says."""
    return _Drawn(world, api, version).struct(apis()[api].request.fields, world.topic())


class _Drawn:
    """Draws the fields of one question."""

    def __init__(self, world: World, api: str, version: int) -> None:
        self._world = world
        self._api = api
        self._version = version
        #: the topics that it is about
        self.names: set[str] = set()

    def struct(self, fields: tuple[Field, ...], topic: Topic) -> dict[str, Any]:
        """Draw a struct; what it says of a topic is all of the same one, most often."""
        found: dict[str, Any] = {}
        for field in fields:
            if self._version not in field.versions:
                continue
            if self._version in field.tagged and self._world.likely(0.5):
                continue
            found[field.name] = self._field(field, topic)
        return found

    def _field(self, field: Field, topic: Topic) -> Any:
        world = self._world
        is_null = self._version in field.nullable and world.likely(0.15)
        if is_null and field.type != "records":  # over those a real broker stumbles in silence
            return None
        if not field.is_array:
            return self._one(field, topic)
        return [
            self._one(field, world.topic() if field.is_struct else topic)
            for _ in range(world.pick(0, 1, 1, 1, 1, 2))
        ]

    def _one(self, field: Field, topic: Topic) -> Any:
        world, name = self._world, field.name
        if field.is_struct:
            return self.struct(field.fields, topic)
        if field.type == "records":
            return batches_of(world, topic, 0, self._version)
        if field.type in OF_TYPES:
            return world.chance.choice(OF_TYPES[field.type])
        if name in LIMITED:
            return world.chance.choice(LIMITED[name])
        if field.type == "uuid":
            return topic.id if name == "TopicId" and world.likely(0.9) else ZERO_UUID
        if field.type == "string":
            return self._text(name, topic)
        if field.type == "bytes":
            return world.pick(b"", b"\0", b"bytes")
        if field.type == "bool":
            return world.likely(0.5)
        if name in OF_PARTITIONS:
            return world.partition(topic)
        if name in {"ProducerId", "ProducerEpoch", "ProducerIdFilters"}:
            if not world.producers or world.likely(0.2):
                return world.pick(-1, 12345)
            producer = world.chance.choice(world.producers)
            return producer.epoch if name == "ProducerEpoch" else producer.id
        return world.pick(-1, 0, 0, 1, 2, 0 if field.is_array else field.initial(self._version))

    def _text(self, name: str, topic: Topic) -> str:
        world = self._world
        if name in OF_TOPICS and self._api not in NAMED_OTHERWISE:
            self.names.add(topic.name)
            return topic.name
        if name in OF_GROUPS:
            return any_group(world)
        if name in OF_TRANSACTIONS:
            return transactional_id(world)
        if name == "MemberId" and world.likely(0.7):
            members = [one for group in world.groups.values() for one in group.values()]
            if members:
                found: str = world.chance.choice(members)["id"]
                return found
        return str(world.pick("", "x", "consumer", world.numbered("text")))
