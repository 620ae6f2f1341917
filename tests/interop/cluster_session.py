"""One session with a cluster of three: what each node answers, before and after one is gone."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from operator import attrgetter
from typing import Any, Protocol

from logstore.segments.kafka.record import Record, encode_batch
from tests.compat.kafka.conversation import build, message_class, plain
from tests.interop.eventually import eventually
from tests.interop.raw_wire import Wire
from tests.interop.share_wire import ShareWire
from tests.interop.streams_wire import StreamsWire

NODES = (1, 2, 3)
#: which nodes hold the partitions of the first topic, and of one that wants two in sync
HELD = {"t": {0: [1, 2], 1: [2, 3], 2: [3, 1]}, "two": {0: [1, 2]}, "lone": {0: [2]}}
GROUPS = [f"group-{number}" for number in range(6)]
_WAIT_SECONDS_MAX = 60


class Nodes(Protocol):
    """A cluster, of which one goes and comes back."""

    @property
    def addresses(self) -> Mapping[int, str]:
        """Where they are."""
        ...

    def stop_node(self, node_id: int) -> None:
        """Take a node out, cleanly."""
        ...

    def start_node(self, node_id: int) -> None:
        """Let it in again."""
        ...


class ClusterSession:
    """Asks; what is told is kept as lines."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.lines: list[str] = []

    def ask(self, node_id: int, api: str, version: int, **fields: Any) -> dict[str, Any]:
        """Return a node's answer."""
        request = build(message_class(f"{api}Request"), version, fields)
        request.with_header(correlation_id=1, client_id="test")
        with Wire(self._nodes.addresses[node_id]) as wire:
            wire.send(request.encode(version=version, header=True, framed=True))
            frame = wire.receive_frame()
        assert frame is not None, f"{api} v{version} was not answered"
        data = struct.pack(">i", len(frame)) + frame
        response = message_class(f"{api}Response")
        found: dict[str, Any] = plain(
            response.decode(data, version=version, header=True, framed=True)
        )
        return found

    def note(self, *words: object) -> None:
        """Keep a line."""
        self.lines.append(" ".join(map(str, words)))

    def run(self) -> list[str]:
        """Play the whole session."""
        self._create()
        for node_id in NODES:
            self._all_of(node_id)
        self._coordinators(NODES)
        self._nodes.stop_node(2)
        self._until_leaders_are({0: 1, 1: 3, 2: 3})
        self.note("== without node 2")
        for node_id in (1, 3):
            self._all_of(node_id)
        self._coordinators((1, 3))
        self._refused_topics(1)
        self._elections(1)
        self._nodes.start_node(2)
        eventually(lambda: self._are_in_sync(1), _WAIT_SECONDS_MAX)
        self.note("== with node 2 again")
        self._metadata(1)
        self._elections(3)
        self._reassigned(1)
        return self.lines

    def _create(self) -> None:
        topics = [
            {
                "name": name, "num_partitions": -1, "replication_factor": -1,
                "assignments": [
                    {"partition_index": index, "broker_ids": ids} for index, ids in held.items()
                ],
                "configs": [{"name": "min.insync.replicas", "value": str(min(2, len(held[0])))}]
                if name == "two" else [],
            }
            for name, held in HELD.items()
        ]  # fmt: skip
        answer = self.ask(1, "CreateTopics", 7, topics=topics, timeout_ms=30_000)
        self.note("created", [(one["name"], one["error_code"]) for one in answer["topics"]])
        for node_id in NODES:
            eventually(lambda: self._are_in_sync(node_id), _WAIT_SECONDS_MAX)  # noqa: B023 - asked at once
        eventually(lambda: self._produced(2, "lone", {0: -1}) == [0], _WAIT_SECONDS_MAX)

    def _partitions(self, node_id: int, topic: str = "t") -> dict[int, dict[str, Any]]:
        answer = self.ask(node_id, "Metadata", 9, topics=[{"name": topic}],
                          allow_auto_topic_creation=False)  # fmt: skip
        (found,) = answer["topics"]
        return {one["partition_index"]: one for one in found["partitions"]}

    def _are_in_sync(self, node_id: int) -> bool:
        """Tell whether all replicas of all topics are in sync, as a node knows."""
        return all(
            sorted(one["isr_nodes"]) == sorted(held[index])
            for topic, held in HELD.items()
            for index, one in self._partitions(node_id, topic).items()
        )

    def _until_leaders_are(self, leaders: dict[int, int]) -> None:
        for node_id in (1, 3):
            eventually(
                lambda: {
                    index: one["leader_id"] for index, one in self._partitions(node_id).items()  # noqa: B023
                } == leaders,
                _WAIT_SECONDS_MAX,
            )  # fmt: skip

    def _all_of(self, node_id: int) -> None:
        """Ask a node for everything that has to do with leaders and replicas."""
        self.note("-- at node", node_id)
        self._metadata(node_id)
        self.note("produce", self._produced(node_id, "t", {0: -1, 1: -1, 2: -1}))
        self.note("leaders told", *self._leaders_told(node_id))
        self.note("produce one by one", [self._produced(node_id, "t", {i: 1}) for i in range(4)])
        for acks in (-1, 1):
            self.note("to two", acks, self._produced(node_id, "two", {0: acks}))
            self.note("to the lone one", acks, self._produced(node_id, "lone", {0: acks}))
        for version in (4, 10, 11, 12):
            for epoch in (-1, 0, 9) if version >= 10 else (-1,):
                self.note("fetch", version, epoch, self._fetched(node_id, version, epoch))
        for line in self._asked_of_leaders(node_id):
            self.note(*line)

    def _metadata(self, node_id: int) -> None:
        for topic in HELD:
            for index, one in sorted(self._partitions(node_id, topic).items()):
                lists = [sorted(one[name]) for name in ("isr_nodes", "offline_replicas")]
                self.note("metadata", topic, index, one["error_code"], one["leader_id"],
                          one["leader_epoch"], one["replica_nodes"], *lists)  # fmt: skip
        page = self.ask(node_id, "DescribeTopicPartitions", 0, response_partition_limit=100,
                        topics=[{"name": topic} for topic in HELD], cursor=None)  # fmt: skip
        for found in page["topics"]:
            for one in found["partitions"]:
                self.note("described", found["name"], one["partition_index"], one["error_code"],
                          one["leader_id"], sorted(one["isr_nodes"]), one["last_known_elr"],
                          sorted(one["eligible_leader_replicas"] or ()))  # fmt: skip
        answer = self.ask(node_id, "DescribeCluster", 0)
        self.note("cluster", sorted(one["broker_id"] for one in answer["brokers"]))
        directories = self.ask(node_id, "DescribeLogDirs", 4, topics=None)["results"]
        held = [
            (topic["name"], one["partition_index"])
            for directory in directories
            for topic in directory["topics"]
            for one in topic["partitions"]
            if topic["name"] in HELD
        ]
        self.note("holds", sorted(held))
        asked = [{"resource_type": 4, "resource_name": str(node_id), "configuration_keys": None}]
        (found,) = self.ask(node_id, "DescribeConfigs", 4, resources=asked)["results"]
        settings = {one["name"]: one["value"] for one in found["configs"]}
        self.note("settings", found["error_code"], settings["node.id"], settings["broker.id"])

    def _produced(self, node_id: int, topic: str, acks: Mapping[int, int]) -> list[int]:
        (told,) = self._produce(node_id, topic, acks, 9)["responses"]
        return [code for _, code in codes(told["partition_responses"], "index")]

    def _leaders_told(self, node_id: int) -> tuple[object, ...]:
        """Return which leaders and nodes the refusals of one produce request name."""
        answer = self._produce(node_id, "t", {0: -1, 1: -1, 2: -1}, 12)
        (told,) = answer["responses"]
        leaders = {one["index"]: one["current_leader"] for one in told["partition_responses"]}
        nodes = sorted(one["node_id"] for one in answer["node_endpoints"] or ())
        return sorted(leaders.items()), nodes

    def _produce(
        self, node_id: int, topic: str, acks: Mapping[int, int], version: int
    ) -> dict[str, Any]:
        records = encode_batch([Record(0, 1_700_000_000_000, b"k", b"v")])
        return self.ask(
            node_id, "Produce", version, acks=max(acks.values()), timeout_ms=10_000,
            transactional_id=None,
            topic_data=[{
                "name": topic,
                "partition_data": [{"index": index, "records": records} for index in acks],
            }],
        )  # fmt: skip

    def _fetched(self, node_id: int, version: int, epoch: int) -> list[int]:
        rows = [
            {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1000}
            | ({"current_leader_epoch": epoch} if version >= 9 else {})
            for index in range(4)
        ]
        answer = self.ask(
            node_id, "Fetch", version, max_wait_ms=0, min_bytes=0, max_bytes=10_000,
            topics=[{"topic": "t", "partitions": rows}],
        )  # fmt: skip
        (told,) = answer["responses"]
        found = {one["partition_index"]: one["error_code"] for one in told["partitions"]}
        return [found[index] for index in sorted(found)]

    def _asked_of_leaders(self, node_id: int) -> Iterator[tuple[object, ...]]:
        for epoch in (-1, 0, 9):
            rows: list[dict[str, int]] = [
                {"partition_index": index, "timestamp": -1, "current_leader_epoch": epoch}
                for index in range(4)
            ]
            answer = self.ask(node_id, "ListOffsets", 6, replica_id=-1, isolation_level=0,
                              topics=[{"name": "t", "partitions": rows}])  # fmt: skip
            yield "offsets", epoch, codes(answer["topics"][0]["partitions"], "partition_index")
            rows = [
                {"partition": index, "current_leader_epoch": epoch, "leader_epoch": 0}
                for index in range(4)
            ]
            answer = self.ask(node_id, "OffsetForLeaderEpoch", 3, replica_id=-1,
                              topics=[{"topic": "t", "partitions": rows}])  # fmt: skip
            yield "epochs", epoch, codes(answer["topics"][0]["partitions"], "partition")
        answer = self.ask(node_id, "DescribeProducers", 0,
                          topics=[{"name": "t", "partition_indexes": list(range(4))}])  # fmt: skip
        yield "producers", codes(answer["topics"][0]["partitions"], "partition_index")
        rows = [{"partition_index": index, "offset": 0} for index in range(4)]
        answer = self.ask(node_id, "DeleteRecords", 2, timeout_ms=10_000,
                          topics=[{"name": "t", "partitions": rows}])  # fmt: skip
        yield "deleted", codes(answer["topics"][0]["partitions"], "partition_index")

    def _coordinators(self, node_ids: tuple[int, ...]) -> None:
        """Where coordinators are is drawn in Kafka: what is told is who answers and who refuses."""
        for group in GROUPS:
            home = eventually(lambda: self._coordinator(group), _WAIT_SECONDS_MAX)  # noqa: B023 - asked at once
            answers: list[tuple[bool, int, int, bool]] = []
            for node_id in node_ids:
                is_home = node_id == home
                beat = self.ask(node_id, "Heartbeat", 4, group_id=group, generation_id=1,
                                member_id="m", group_instance_id=None)  # fmt: skip
                described = self.ask(node_id, "DescribeGroups", 5, groups=[group])["groups"][0]
                ended = self.ask(node_id, "DescribeTransactions", 0, transactional_ids=[group])
                code = ended["transaction_states"][0]["error_code"]
                answers.append(
                    (is_home, beat["error_code"], described["error_code"], code in (16, 105))
                )
            self.note("coordinator or not", sorted(answers))
            told = [(node_id == home, self._described(node_id, group)) for node_id in node_ids]
            self.note("described", sorted(told, key=repr))

    def _described(self, node_id: int, group: str) -> list[tuple[int, str | None]]:
        """Ask about groups of several coordinators and one without a name; tell of two of them."""
        address = self._nodes.addresses[node_id]
        with closing(ShareWire(address)) as wire, closing(StreamsWire(address)) as other:
            lists: list[Sequence[Any]] = [
                wire.describe(*GROUPS, ""),
                wire.describe_share(*GROUPS, ""),
                other.describe_streams(*GROUPS, ""),
                [wire.starts(group), wire.starts(group, {})],
            ]
        return [
            (one.error_code, one.error_message)
            for told in lists
            for one in sorted(told, key=attrgetter("group_id"))
            if one.group_id in {group, ""}
        ]

    def _coordinator(self, group: str) -> int:
        for kind in (1, 0):
            answer = self.ask(1, "FindCoordinator", 4, key_type=kind, coordinator_keys=[group])
            (found,) = answer["coordinators"]
            if found["error_code"]:
                return 0
        beat = self.ask(found["node_id"], "Heartbeat", 4, group_id=group, generation_id=1,
                        member_id="m", group_instance_id=None)  # fmt: skip
        return found["node_id"] if beat["error_code"] == 25 else 0  # it may still be loading

    def _refused_topics(self, node_id: int) -> None:
        for factor, ids in ((3, None), (2, None), (-1, [1, 7]), (-1, [1, 1]), (-1, [])):
            assigned = [] if ids is None else [{"partition_index": 0, "broker_ids": ids}]
            wanted = {
                "name": "new", "num_partitions": 1 if ids is None else -1,
                "replication_factor": factor, "assignments": assigned, "configs": [],
            }  # fmt: skip
            answer = self.ask(node_id, "CreateTopics", 7, topics=[wanted], timeout_ms=10_000,
                              validate_only=True)  # fmt: skip
            (told,) = answer["topics"]
            self.note("new", factor, ids, told["error_code"], told["replication_factor"])
        for lists in ([[1]], [[1, 7]], [[1, 3], [3, 1]], [[1, 3]]):
            grown = {"name": "t", "count": 4, "assignments": [{"broker_ids": one} for one in lists]}
            answer = self.ask(node_id, "CreatePartitions", 3, topics=[grown], timeout_ms=10_000,
                              validate_only=True)  # fmt: skip
            self.note("grown", lists, answer["results"][0]["error_code"])

    def _elections(self, node_id: int) -> None:
        for kind in (0, 1):
            for asked in ([{"topic": "t", "partitions": [0, 1, 2, 3]}], None):
                answer = self.ask(node_id, "ElectLeaders", 2, election_type=kind,
                                  topic_partitions=asked, timeout_ms=10_000)  # fmt: skip
                results = {
                    one["topic"]: codes(one["partition_result"], "partition_id")
                    for one in answer["replica_election_results"]
                    if one["topic"] in HELD
                }
                self.note("elected", kind, bool(asked), answer["error_code"], results)
        eventually(lambda: bool(self._partitions(node_id)), _WAIT_SECONDS_MAX)

    def _reassigned(self, node_id: int) -> None:
        wanted: dict[int, list[int] | None] = {0: [3, 1], 1: [7], 2: None, 3: [1]}
        rows = [{"partition_index": index, "replicas": ids} for index, ids in wanted.items()]
        answer = self.ask(node_id, "AlterPartitionReassignments", 0, timeout_ms=10_000,
                          topics=[{"name": "t", "partitions": rows}])  # fmt: skip
        self.note("moved", codes(answer["responses"][0]["partitions"], "partition_index"))
        is_there: Callable[[], bool] = lambda: (  # noqa: E731
            sorted(self._partitions(node_id)[0]["isr_nodes"]) == [1, 3]
            and self._partitions(node_id)[0]["replica_nodes"] == [3, 1]
        )
        eventually(is_there, _WAIT_SECONDS_MAX)
        found = self._partitions(node_id)[0]
        self.note("is at", found["leader_id"], found["replica_nodes"])


def codes(told: list[dict[str, Any]], number: str) -> list[tuple[int, int]]:
    """Return what became of each partition."""
    return sorted((one[number], one["error_code"]) for one in told)
