"""Clients that come to a node which does not lead or coordinate what they ask for."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.groups.consumer.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from logstore.compat.kafka.groups.partitioning import partition_of
from logstore.compat.kafka.groups.share import messages as of_shares
from logstore.compat.kafka.groups.streams.messages import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from logstore.compat.kafka.nodes.elections import move_leaders
from logstore.segments.kafka.internal_topics.schema import Message
from logstore.segments.kafka.record import Record, encode_batch
from tests.compat.kafka.conversation import build, joined, message_class
from tests.compat.kafka.nodes.cluster import PORT, Cluster

NOT_LEADER, NOT_COORDINATOR, NOT_ENOUGH_REPLICAS = 6, 16, 19
LED_BY = {0: 1, 1: 2, 2: 3}
NOW_MS = 1_700_000_000_000


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes, each of which leads one of three partitions; the next one has it too."""
    cluster = Cluster()
    cluster.lead("t", LED_BY)
    return cluster


def test_only_the_leader_appends(cluster: Cluster) -> None:
    """In one request what is led here is appended, and the rest refused."""
    assert cluster.produce_at(2, "t", 0, 1, 2) == [NOT_LEADER, 0, NOT_LEADER]
    assert cluster.produce_at(2, "t", 1, 1 + 2) == [0, 3]
    ends = {index: one.end_offset for index, one in cluster.broker.topics["t"].partitions.items()}
    assert ends == {0: 0, 1: 2, 2: 0}


@pytest.mark.parametrize("version", [9, 10, 11, 12])
def test_who_leads_is_told(cluster: Cluster, version: int) -> None:
    """Since version 10 a refusal names the leader, its epoch, and where that is (KIP-951)."""
    records = encode_batch([Record(offset=0, timestamp_ms=NOW_MS, key=b"k", value=b"v")])
    answer = cluster.ask_at(
        1, "Produce", version, acks=-1, timeout_ms=1000, transactional_id=None,
        topic_data=[{
            "name": "t", "partition_data": [{"index": i, "records": records} for i in (0, 2)],
        }],
    )  # fmt: skip
    here, elsewhere = answer["responses"][0]["partition_responses"]
    assert (here["error_code"], elsewhere["error_code"]) == (0, NOT_LEADER)
    if version < 10:
        assert "node_endpoints" not in answer
        return
    assert here["current_leader"] is None
    assert elsewhere["current_leader"] == {"leader_id": 3, "leader_epoch": 0}
    (node,) = answer["node_endpoints"]
    assert (node["node_id"], node["port"]) == (3, PORT + 2)


def test_whoever_was_led_elsewhere_is_refused_next(cluster: Cluster) -> None:
    """A producer that goes on where it has produced is told that the leader has moved."""
    assert [cluster.produce_at(1, "t", 0) for _ in range(3)] == [[0]] * 3
    cluster.broker.nodes.stop(1)
    cluster.broker.nodes.start(1)
    assert cluster.produce_at(1, "t", 0) == [NOT_LEADER]
    assert cluster.produce_at(2, "t", 0) == [0]


def test_acks_all_wants_replicas_in_sync(cluster: Cluster) -> None:
    """Too few are 19, for those that wait for them; more than there are nobody can want."""
    for topic, settings in (("two", {"min.insync.replicas": "2"}), ("one", {})):
        cluster.broker.create_topic(topic, 1, settings)
    found = cluster.broker.topics
    for topic in ("two", "one"):
        cluster.broker.placements.assign(found[topic], [(0, [1, 2])])
    assert cluster.produce_at(1, "two", 0) == [0]
    cluster.broker.nodes.stop(2)
    assert cluster.produce_at(1, "two", 0) == [NOT_ENOUGH_REPLICAS]
    assert cluster.produce_at(1, "two", 0, acks=1) == [0]
    assert cluster.produce_at(1, "one", 0) == [0]
    cluster.broker.nodes.start(2)
    assert cluster.produce_at(1, "two", 0) == [0]
    cluster.broker.placements.assign(found["two"], [(0, [1])])
    assert cluster.produce_at(1, "two", 0) == [0]


def fetched(cluster: Cluster, node_id: int, version: int, epoch: int = -1) -> dict[str, Any]:
    """Return what a node answers to a fetch of partition 0."""
    row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    if version >= 9:
        row["current_leader_epoch"] = epoch
    answer = cluster.ask_at(
        node_id, "Fetch", version, max_wait_ms=0, min_bytes=0, max_bytes=10_000,
        topics=[{"topic": "t", "partitions": [row]}],
    )  # fmt: skip
    found: dict[str, Any] = answer["responses"][0]["partitions"][0]
    return found


@pytest.mark.parametrize(
    ("version", "codes"),
    [(4, [0, NOT_LEADER, NOT_LEADER]), (10, [0, NOT_LEADER, NOT_LEADER]), (12, [0, 0, NOT_LEADER])],
)
def test_consumers_read_from_who_has_it(cluster: Cluster, version: int, codes: list[int]) -> None:
    """Since version 11 a consumer may read from any replica, before that from the leader."""
    cluster.produce_at(1, "t", 0)
    found = [fetched(cluster, node_id, version) for node_id in (1, 2, 3)]
    assert [one["error_code"] for one in found] == codes
    assert [bool(one["records"]) for one in found] == [code == 0 for code in codes]


@pytest.mark.parametrize(("epoch", "codes"), [(0, [74, 74, 6]), (1, [0, 0, 6]), (2, [75, 75, 6])])
def test_epochs_are_looked_at_by_replicas(cluster: Cluster, epoch: int, codes: list[int]) -> None:
    """Who has no replica knows of no epoch; a follower fences as the leader does."""
    move_leaders(cluster.broker, cluster.broker.topics["t"], [0], to=2)
    found = [fetched(cluster, node_id, 12, epoch)["error_code"] for node_id in (1, 2, 3)]
    assert found == codes


def test_a_fetch_that_waits_learns_of_the_move(cluster: Cluster) -> None:
    """The leader's next epoch ends the wait."""
    row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 9, "current_leader_epoch": 0}
    topics = [{"topic": "t", "partitions": [row]}]
    fields = {"max_wait_ms": 60_000, "min_bytes": 1, "max_bytes": 9, "topics": topics}
    request = build(message_class("FetchRequest"), 12, fields)
    request.with_header(correlation_id=5, client_id="test")
    connection = cluster.connections[1]
    assert connection.feed(request.encode(version=12, header=True, framed=True)) == []
    cluster.broker.nodes.stop(1)
    cluster.broker.readers.wake()
    answer = message_class("FetchResponse").decode(
        joined(connection.output), version=12, header=True, framed=True
    )
    assert answer.responses[0].partitions[0].error_code == 74


@pytest.mark.parametrize("node_id", LED_BY.values())
def test_other_questions_are_for_the_leader(cluster: Cluster, node_id: int) -> None:
    """Offsets by time and by epoch, and deletions: 6 from everybody else; producers any replica."""
    wanted = [0 if leader == node_id else NOT_LEADER for leader in LED_BY.values()]
    asked = [{"partition_index": index, "timestamp": -1} for index in LED_BY]
    answer = cluster.ask_at(node_id, "ListOffsets", 6, replica_id=-1, isolation_level=0,
                            topics=[{"name": "t", "partitions": asked}])  # fmt: skip
    assert [one["error_code"] for one in answer["topics"][0]["partitions"]] == wanted
    epochs = [{"partition": i, "current_leader_epoch": -1, "leader_epoch": 0} for i in LED_BY]
    answer = cluster.ask_at(node_id, "OffsetForLeaderEpoch", 3, replica_id=-1,
                            topics=[{"topic": "t", "partitions": epochs}])  # fmt: skip
    assert [one["error_code"] for one in answer["topics"][0]["partitions"]] == wanted
    answer = cluster.ask_at(node_id, "DescribeProducers", 0,
                            topics=[{"name": "t", "partition_indexes": list(LED_BY)}])  # fmt: skip
    held = [0 if node_id in (leader, leader % 3 + 1) else NOT_LEADER for leader in LED_BY.values()]
    assert [one["error_code"] for one in answer["topics"][0]["partitions"]] == held
    offsets = [{"partition_index": index, "offset": 0} for index in LED_BY]
    answer = cluster.ask_at(node_id, "DeleteRecords", 2, timeout_ms=1000,
                            topics=[{"name": "t", "partitions": offsets}])  # fmt: skip
    assert [one["error_code"] for one in answer["topics"][0]["partitions"]] == wanted


def coordinators(cluster: Cluster, kind: int, keys: list[str]) -> dict[str, int]:
    """Return who is told to coordinate groups (0) or transactions (1)."""
    answer = cluster.ask("FindCoordinator", 4, key_type=kind, coordinator_keys=keys)
    return {one["key"]: one["node_id"] for one in answer["coordinators"]}


def test_groups_have_coordinators_of_their_own() -> None:
    """The coordinator of a group is the leader of its partition; the others refuse (16)."""
    cluster = Cluster()
    names = [f"group-{number}" for number in range(12)]
    found = coordinators(cluster, 0, names)
    assert set(found.values()) == {1, 2, 3}
    topic = cluster.broker.topics["__consumer_offsets"]
    for name, node_id in found.items():
        index = partition_of(name, len(topic.partitions))
        assert cluster.broker.placements.find(topic, index).leader == node_id
        for asked_id in (1, 2, 3):
            answer = cluster.ask_at(asked_id, "Heartbeat", 4, group_id=name, generation_id=1,
                                    member_id="m", group_instance_id=None)  # fmt: skip
            assert answer["error_code"] == (25 if asked_id == node_id else NOT_COORDINATOR)
            described = cluster.ask_at(asked_id, "DescribeGroups", 5, groups=[name])
            (group,) = described["groups"]
            assert group["error_code"] == (0 if asked_id == node_id else NOT_COORDINATOR)


def test_of_several_groups_a_node_answers_its_own(cluster: Cluster) -> None:
    """The others of a request are refused one by one (16), and nothing is done about them."""
    names = [f"group-{number}" for number in range(6)]
    found = coordinators(cluster, 0, names)
    assert set(found.values()) == {1, 2, 3}
    for name, home in found.items():
        assert commit(cluster, home, name) == 0
    lists = [
        ("DescribeGroups", 5, "groups", names, "groups", 0),
        ("OffsetFetch", 8, "groups", [{"group_id": name, "topics": None} for name in names],
         "groups", 0),
        ("DeleteGroups", 2, "groups_names", names, "results", 0),
        ("DeleteGroups", 2, "groups_names", names, "results", 69),
    ]  # fmt: skip
    for api, version, field, asked, told, code in lists:
        for node_id in (1, 2, 3):
            answer = cluster.ask_at(node_id, api, version, **{field: asked})
            codes = {one["group_id"]: one["error_code"] for one in answer[told]}
            wanted = {
                name: code if home == node_id else NOT_COORDINATOR for name, home in found.items()
            }
            assert codes == wanted, (api, node_id)


def test_groups_of_every_kind_are_described_one_by_one(cluster: Cluster) -> None:
    """A node tells of those that it coordinates; one without a name any node refuses (24)."""
    names = [f"group-{number}" for number in range(6)]
    found = coordinators(cluster, 0, names)
    starts = tuple(of_shares.DescribeOffsetsGroup(group_id=name, topics=None) for name in names)
    describe_starts = of_shares.DescribeShareGroupOffsetsRequest(groups=starts)
    asked: dict[str, Any] = {"group_ids": (*names, ""), "include_authorized_operations": 0}
    requests: list[tuple[int, int, Message, type[Message], int]] = [
        (69, 1, ConsumerGroupDescribeRequest(**asked), ConsumerGroupDescribeResponse, 69),
        (77, 1, of_shares.ShareGroupDescribeRequest(**asked),
         of_shares.ShareGroupDescribeResponse, 69),
        (89, 0, StreamsGroupDescribeRequest(**asked), StreamsGroupDescribeResponse, 69),
        (90, 1, describe_starts, of_shares.DescribeShareGroupOffsetsResponse, 0),
    ]  # fmt: skip
    for key, version, request, kind, code in requests:
        for node_id in (1, 2, 3):
            answer: Any = cluster.ask_ours_at(node_id, key, version, request, kind)
            wanted = {
                name: code if home == node_id else NOT_COORDINATOR for name, home in found.items()
            }
            if key != 90:
                wanted[""] = 24
            told = {one.group_id: one.error_code for one in answer.groups}
            assert told == wanted, (key, node_id)


def commit(cluster: Cluster, node_id: int, group: str) -> int:
    """Commit an offset at a node; return the code."""
    partition = {"partition_index": 0, "committed_offset": 3, "committed_leader_epoch": -1,
                 "committed_metadata": ""}  # fmt: skip
    answer = cluster.ask_at(
        node_id, "OffsetCommit", 8, group_id=group, generation_id_or_member_epoch=-1, member_id="",
        group_instance_id=None, topics=[{"name": "t", "partitions": [partition]}],
    )  # fmt: skip
    code: int = answer["topics"][0]["partitions"][0]["error_code"]
    return code


def test_a_group_is_where_its_coordinator_is(cluster: Cluster) -> None:
    """Offsets and lists are told by the coordinator; who takes over knows what was committed."""
    (home,) = coordinators(cluster, 0, ["g"]).values()
    codes = {node_id: commit(cluster, node_id, "g") for node_id in (1, 2, 3)}
    assert codes == {one: 0 if one == home else NOT_COORDINATOR for one in (1, 2, 3)}
    listed = {
        node_id: [one["group_id"] for one in cluster.ask_at(node_id, "ListGroups", 4)["groups"]]
        for node_id in (1, 2, 3)
    }
    assert listed == {one: ["g"] if one == home else [] for one in (1, 2, 3)}
    cluster.broker.nodes.stop(home)
    cluster.connection = cluster.connections[home % 3 + 1]
    (heir,) = coordinators(cluster, 0, ["g"]).values()
    assert heir != home
    asked = [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}]
    answer = cluster.ask_at(heir, "OffsetFetch", 8, groups=asked)
    (group,) = answer["groups"]
    assert group["error_code"] == 0
    assert group["topics"][0]["partitions"][0]["committed_offset"] == 3


def test_transactions_have_coordinators_of_their_own() -> None:
    """A producer with a transactional id is for its coordinator, one without for anybody."""
    cluster = Cluster()
    names = [f"transaction-{number}" for number in range(9)]
    found = coordinators(cluster, 1, names)
    assert set(found.values()) == {1, 2, 3}
    for name, home in found.items():
        for node_id in (1, 2, 3):
            answer = cluster.ask_at(
                node_id, "InitProducerId", 3, transactional_id=name, transaction_timeout_ms=1000,
                producer_id=-1, producer_epoch=-1,
            )  # fmt: skip
            assert answer["error_code"] == (0 if node_id == home else NOT_COORDINATOR)
    for node_id in (1, 2, 3):
        described = cluster.ask_at(node_id, "DescribeTransactions", 0, transactional_ids=names)
        told = {one["transactional_id"]: one["error_code"]
                for one in described["transaction_states"]}  # fmt: skip
        assert told == {
            name: 0 if home == node_id else NOT_COORDINATOR for name, home in found.items()
        }
        answer = cluster.ask_at(node_id, "InitProducerId", 3, transactional_id=None,
                                transaction_timeout_ms=1000)  # fmt: skip
        assert answer["error_code"] == 0
        listed = cluster.ask_at(node_id, "ListTransactions", 0, state_filters=[],
                                producer_id_filters=[])  # fmt: skip
        mine = {one["transactional_id"] for one in listed["transaction_states"]}
        assert mine == {name for name, home in found.items() if home == node_id}


def test_partitions_are_added_to_the_transactions_that_a_node_coordinates(cluster: Cluster) -> None:
    """Since version 4 a request names several; each is answered by itself, at the partitions."""
    names = [f"transaction-{number}" for number in range(9)]
    found = coordinators(cluster, 1, names)
    assert set(found.values()) == {1, 2, 3}
    transactions = [
        {
            "transactional_id": name, "producer_id": given["producer_id"],
            "producer_epoch": given["producer_epoch"], "verify_only": False,
            "topics": [{"name": "t", "partitions": [0, 1]}],
        }
        for name, home in found.items()
        for given in [
            cluster.ask_at(home, "InitProducerId", 3, transactional_id=name,
                           transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1)
        ]
    ]  # fmt: skip
    for node_id in (1, 2, 3):
        answer = cluster.ask_at(node_id, "AddPartitionsToTxn", 5, transactions=transactions)
        assert answer["error_code"] == 0
        told = {
            one["transactional_id"]: [
                partition["partition_error_code"]
                for topic in one["topic_results"]
                for partition in topic["results_by_partition"]
            ]
            for one in answer["results_by_transaction"]
        }
        wanted = {name: 0 if home == node_id else NOT_COORDINATOR for name, home in found.items()}
        assert told == {name: [code, code] for name, code in wanted.items()}


@pytest.mark.parametrize("version", range(4))
def test_partitions_that_there_are_not_are_told_first(cluster: Cluster, version: int) -> None:
    """By any node (3, and 55 for the others); what there is a wrong coordinator refuses."""
    (home,) = coordinators(cluster, 1, ["transaction"]).values()
    node_id = home % 3 + 1
    for topics, wanted in ((["t"], [NOT_COORDINATOR]), (["t", "none"], [3, 55])):
        answer = cluster.ask_at(
            node_id, "AddPartitionsToTxn", version,
            v3_and_below_transactional_id="transaction", v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[{"name": name, "partitions": [0]} for name in topics],
        )  # fmt: skip
        told = answer["results_by_topic_v3_and_below"]
        codes = [one["partition_error_code"] for row in told for one in row["results_by_partition"]]
        assert sorted(codes) == wanted


def test_a_node_shows_the_partitions_that_it_has(cluster: Cluster) -> None:
    """DescribeLogDirs tells of a node's replicas."""
    for node_id in (1, 2, 3):
        answer = cluster.ask_at(node_id, "DescribeLogDirs", 4, topics=None)
        (directory,) = answer["results"]
        (topic,) = [one for one in directory["topics"] if one["name"] == "t"]
        held = {one["partition_index"] for one in topic["partitions"]}
        assert held == {node_id - 1, (node_id - 2) % 3}
