"""What nodes of a cluster tell of themselves and of partitions, and how leaders move."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.nodes.placement import NOBODY, Placement
from logstore.compat.kafka.nodes.quorum_messages import OutcomeResponse, UnregisterBrokerRequest
from tests.compat.kafka.nodes.cluster import PORT, Cluster

NODES = {1: PORT, 2: PORT + 1, 3: PORT + 2}


def partitions_of(cluster: Cluster, topic: str, node_id: int = 1) -> dict[int, dict[str, Any]]:
    """Return what Metadata tells of a topic's partitions."""
    answer = cluster.ask_at(node_id, "Metadata", 9, topics=[{"name": topic}])
    (told,) = answer["topics"]
    return {one["partition_index"]: one for one in told["partitions"]}


def leaders_of(cluster: Cluster, topic: str, node_id: int = 3) -> dict[int, int]:
    """Return who leads a topic's partitions, as a node tells."""
    told = partitions_of(cluster, topic, node_id)
    return {index: one["leader_id"] for index, one in told.items()}


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("node_id", NODES)
def test_every_node_tells_of_all(version: int, node_id: int) -> None:
    """All nodes are told with their own ports, whoever is asked."""
    cluster = Cluster()
    answer = cluster.ask_at(node_id, "Metadata", version, topics=[])
    assert {one["node_id"]: one["port"] for one in answer["brokers"]} == NODES
    if version:
        assert answer["controller_id"] == 1
    described = cluster.ask_at(node_id, "DescribeCluster", 0)
    assert {one["broker_id"]: one["port"] for one in described["brokers"]} == NODES


def test_partitions_are_spread() -> None:
    """Every node leads a third of the partitions, and replicas are on different nodes."""
    cluster = Cluster()
    wanted: dict[str, Any] = {"name": "t", "num_partitions": 6, "replication_factor": 2,
              "assignments": [], "configs": []}  # fmt: skip
    answer = cluster.ask("CreateTopics", 7, topics=[wanted], timeout_ms=1000)
    assert answer["topics"][0]["replication_factor"] == 2
    told = partitions_of(cluster, "t")
    assert sorted(one["leader_id"] for one in told.values()) == [1, 1, 2, 2, 3, 3]
    for one in told.values():
        assert len(set(one["replica_nodes"])) == 2
        assert one["isr_nodes"] == one["replica_nodes"]
        assert one["leader_id"] == one["replica_nodes"][0]
        assert not one["offline_replicas"]


def test_they_are_where_they_were_after_a_restart() -> None:
    """Whoever spreads them by default comes to the same, also for partitions added later."""
    cluster = Cluster(settings={"default.replication.factor": "2"})
    cluster.create("t", 4)
    before = leaders_of(cluster, "t")
    cluster.restart({"default.replication.factor": "2"})
    assert leaders_of(cluster, "t") == before
    cluster.ask("CreatePartitions", 3, topics=[{"name": "t", "count": 6}], timeout_ms=1000)
    told = partitions_of(cluster, "t")
    assert {index: told[index]["leader_id"] for index in before} == before
    assert {len(one["replica_nodes"]) for one in told.values()} == {2}


#: replication factor, assigned nodes, and what becomes of a topic that wants these
WISHES: list[tuple[int, list[list[int]], int]] = [
    (4, [], 38),
    (0, [], 38),
    (-1, [[1, 4]], 39),
    (-1, [[1, 1]], 39),
    (-1, [[]], 39),
    (-1, [[1, 2], [3]], 39),
    (-1, [[3, 1], [2, 3]], 0),
    (3, [], 0),
]


@pytest.mark.parametrize(("factor", "assignments", "code"), WISHES)
def test_topics_want_nodes_that_there_are(
    factor: int, assignments: list[list[int]], code: int
) -> None:
    """More replicas than nodes are 38; strangers, twins and uneven assignments 39."""
    cluster = Cluster()
    wanted: dict[str, Any] = {
        "name": "t", "num_partitions": -1, "replication_factor": factor, "configs": [],
        "assignments": [
            {"partition_index": index, "broker_ids": ids} for index, ids in enumerate(assignments)
        ],
    }  # fmt: skip
    answer = cluster.ask("CreateTopics", 7, topics=[wanted], timeout_ms=1000)
    assert answer["topics"][0]["error_code"] == code
    if assignments and not code:
        told = partitions_of(cluster, "t")
        assert [told[index]["replica_nodes"] for index in sorted(told)] == assignments


def test_new_partitions_go_where_they_are_assigned() -> None:
    """CreatePartitions says who holds the new ones, which begin in their first epoch."""
    cluster = Cluster()
    cluster.lead("t", {0: 1})
    added = {"name": "t", "count": 2, "assignments": [{"broker_ids": [3, 2]}]}
    answer = cluster.ask("CreatePartitions", 3, topics=[added], timeout_ms=1000)
    assert answer["results"][0]["error_code"] == 0
    told = partitions_of(cluster, "t")[1]
    assert (told["replica_nodes"], told["leader_id"], told["leader_epoch"]) == ([3, 2], 3, 0)


def test_a_node_that_is_gone_is_told_no_more() -> None:
    """The others lead what it led, in the next epoch, and it is in sync no more."""
    cluster = Cluster()
    cluster.lead("t", {0: 1, 1: 2, 2: 3})
    cluster.broker.nodes.stop(1)
    answer = cluster.ask_at(2, "Metadata", 9, topics=[])
    assert [one["node_id"] for one in answer["brokers"]] == [2, 3]
    assert answer["controller_id"] == 2
    told = partitions_of(cluster, "t", 2)
    assert {index: one["leader_id"] for index, one in told.items()} == {0: 2, 1: 2, 2: 3}
    assert {index: one["leader_epoch"] for index, one in told.items()} == {0: 1, 1: 0, 2: 0}
    assert told[2] | {"isr_nodes": [3], "offline_replicas": [1]} == told[2]
    described = cluster.ask_at(2, "DescribeCluster", 2, include_fenced_brokers=True)
    assert {one["broker_id"]: one["is_fenced"] for one in described["brokers"]} == {
        1: True, 2: False, 3: False,
    }  # fmt: skip


@pytest.mark.parametrize(("version", "told"), [(0, (9, [2], [2])), (1, (0, [2, 1], [2]))])
def test_replicas_that_are_gone_are_told_since_version_1(
    version: int, told: tuple[int, list[int], list[int]]
) -> None:
    """Before they were left out, and that was the partition's error, unless nobody leads (5)."""
    cluster = Cluster()
    cluster.lead("t", {0: 2}, replicas=3)
    cluster.broker.placements.reassign(cluster.broker.topics["t"], 0, [2, 1])
    cluster.broker.nodes.stop(1)

    def found() -> tuple[int, list[int], list[int]]:
        answer = cluster.ask_at(3, "Metadata", version, topics=[{"name": "t"}])
        (one,) = answer["topics"][0]["partitions"]
        return one["error_code"], one["replica_nodes"], one["isr_nodes"]

    assert found() == told
    cluster.broker.nodes.stop(2)
    assert found()[0] == 5


def test_a_node_that_comes_back_is_in_sync() -> None:
    """It leads nothing until it is elected: first of the replicas, it is the preferred one."""
    cluster = Cluster()
    cluster.lead("t", {0: 1, 1: 2})
    cluster.broker.nodes.stop(1)
    cluster.broker.nodes.start(1)
    told = partitions_of(cluster, "t")
    assert (told[0]["leader_id"], told[0]["isr_nodes"]) == (2, [1, 2])
    asked = [{"topic": "t", "partitions": [0, 1]}]
    answer = cluster.ask("ElectLeaders", 2, election_type=0, topic_partitions=asked)
    (elected,) = answer["replica_election_results"]
    assert [one["error_code"] for one in elected["partition_result"]] == [0, 84]
    assert leaders_of(cluster, "t") == {0: 1, 1: 2}


def test_all_are_elected_that_can_be() -> None:
    """Without names only those are told that were elected, or cannot be (80)."""
    cluster = Cluster()
    cluster.lead("t", {0: 1, 1: 2, 2: 3})
    cluster.broker.nodes.stop(1)
    cluster.broker.nodes.stop(2)
    cluster.broker.nodes.start(2)
    answer = cluster.ask_at(3, "ElectLeaders", 2, election_type=0, topic_partitions=None)
    (elected,) = answer["replica_election_results"]
    codes = {one["partition_id"]: one["error_code"] for one in elected["partition_result"]}
    assert codes == {0: 80, 1: 0}
    assert leaders_of(cluster, "t") == {0: 2, 1: 2, 2: 3}


def test_nobody_leads_what_nobody_has() -> None:
    """A partition without a replica in sync has no leader (5), until that comes back."""
    cluster = Cluster()
    cluster.lead("t", {0: 2}, replicas=1)
    cluster.broker.nodes.stop(2)
    told = partitions_of(cluster, "t")[0]
    assert (told["error_code"], told["leader_id"], told["leader_epoch"]) == (5, NOBODY, 1)
    page = cluster.ask("DescribeTopicPartitions", 0, topics=[{"name": "t"}],
                       response_partition_limit=10, cursor=None)  # fmt: skip
    (one,) = page["topics"][0]["partitions"]
    assert (one["error_code"], one["leader_id"], one["isr_nodes"]) == (0, NOBODY, [])
    assert (one["eligible_leader_replicas"], one["last_known_elr"]) == ([2], [2])
    cluster.broker.nodes.start(2)
    told = partitions_of(cluster, "t")[0]
    assert (told["error_code"], told["leader_id"], told["leader_epoch"]) == (0, 2, 2)


def test_new_partitions_go_to_nodes_that_are_up() -> None:
    """Whatever comes into being has a leader."""
    cluster = Cluster()
    cluster.broker.nodes.stop(2)
    cluster.create("t", 6)
    assert set(leaders_of(cluster, "t").values()) == {1, 3}
    wanted: dict[str, Any] = {"name": "three", "num_partitions": 1, "replication_factor": 3,
              "assignments": [], "configs": []}  # fmt: skip
    answer = cluster.ask("CreateTopics", 7, topics=[wanted], timeout_ms=1000)
    assert answer["topics"][0]["error_code"] == 0
    told = partitions_of(cluster, "three")[0]
    assert (told["replica_nodes"][2], sorted(told["isr_nodes"])) == (2, [1, 3])


def test_whoever_was_behind_does_not_lead() -> None:
    """A replica that fell out of sync before the last one may lack what was acknowledged."""
    cluster = Cluster()
    cluster.lead("t", {0: 1})
    cluster.broker.nodes.stop(2)
    cluster.broker.nodes.stop(1)
    cluster.broker.nodes.start(2)
    assert leaders_of(cluster, "t") == {0: NOBODY}
    asked = [{"topic": "t", "partitions": [0]}]
    answer = cluster.ask_at(3, "ElectLeaders", 2, election_type=1, topic_partitions=asked)
    (elected,) = answer["replica_election_results"]
    assert [one["error_code"] for one in elected["partition_result"]] == [0]
    assert leaders_of(cluster, "t") == {0: 2}


@pytest.mark.parametrize("of_topic", [True, False], ids=["of the topic", "of the broker"])
def test_whoever_was_behind_leads_where_that_is_fine(*, of_topic: bool) -> None:
    """With ``unclean.leader.election.enable`` any replica that is up leads, alone in sync."""
    setting = {"unclean.leader.election.enable": "true"}
    cluster = Cluster(settings={} if of_topic else setting)
    cluster.lead("t", {0: 1}, configs=setting if of_topic else {})
    nodes = cluster.broker.nodes
    nodes.stop(2)
    nodes.stop(1)
    assert leaders_of(cluster, "t") == {0: NOBODY}
    nodes.start(2)
    told = partitions_of(cluster, "t", 3)[0]
    assert (told["leader_id"], told["isr_nodes"]) == (2, [2])
    nodes.start(1)
    told = partitions_of(cluster, "t", 3)[0]
    assert (told["leader_id"], told["isr_nodes"]) == (2, [1, 2])


@pytest.mark.parametrize(("kind", "name"), [(2, "t"), (4, "")], ids=["topic", "cluster"])
def test_whoever_was_behind_leads_once_that_is_fine(kind: int, name: str) -> None:
    """The setting may come when nobody leads any more."""
    cluster = Cluster()
    cluster.lead("t", {0: 1})
    nodes = cluster.broker.nodes
    nodes.stop(2)
    nodes.stop(1)
    nodes.start(2)
    assert leaders_of(cluster, "t") == {0: NOBODY}
    change = {"name": "unclean.leader.election.enable", "config_operation": 0, "value": "true"}
    asked = [{"resource_type": kind, "resource_name": name, "configs": [change]}]
    answer = cluster.ask_at(3, "IncrementalAlterConfigs", 1, resources=asked, validate_only=False)
    assert answer["responses"][0]["error_code"] == 0
    assert leaders_of(cluster, "t") == {0: 2}


def test_a_partition_is_moved_to_other_nodes() -> None:
    """AlterPartitionReassignments is done at once; the leader stays where it may."""
    cluster = Cluster()
    cluster.lead("t", {0: 1, 1: 1})
    moves = {0: [3, 1], 1: [3, 2], 2: [1], 3: [7]}
    answer = cluster.ask(
        "AlterPartitionReassignments", 0, timeout_ms=1000,
        topics=[{
            "name": "t",
            "partitions": [
                {"partition_index": index, "replicas": ids} for index, ids in moves.items()
            ],
        }],
    )  # fmt: skip
    (moved,) = answer["responses"]
    assert [one["error_code"] for one in moved["partitions"]] == [0, 0, 3, 3]
    told = partitions_of(cluster, "t")
    assert [told[index]["replica_nodes"] for index in (0, 1)] == [[3, 1], [3, 2]]
    assert [told[index]["leader_id"] for index in (0, 1)] == [1, 3]


def test_a_move_may_have_to_keep_the_number_of_replicas() -> None:
    """Since v1 who moves may say so: what would change it is refused, and nothing else (38)."""
    cluster = Cluster()
    cluster.lead("t", {0: 1, 1: 1})
    moves = [(0, [3, 2]), (1, [3])]
    asked = [{"partition_index": index, "replicas": ids} for index, ids in moves]
    fields = {"timeout_ms": 1000, "topics": [{"name": "t", "partitions": asked}]}
    before = len(partitions_of(cluster, "t")[1]["replica_nodes"])
    answer = cluster.ask(
        "AlterPartitionReassignments", 1, allow_replication_factor_change=False, **fields
    )
    assert answer["allow_replication_factor_change"] is False
    wanted = [0 if len(ids) == before else 38 for _, ids in moves]
    assert [one["error_code"] for one in answer["responses"][0]["partitions"]] == wanted
    assert 38 in wanted
    answer = cluster.ask(
        "AlterPartitionReassignments", 1, allow_replication_factor_change=True, **fields
    )
    assert [one["error_code"] for one in answer["responses"][0]["partitions"]] == [0, 0]


def test_all_nodes_may_go() -> None:
    """One after the other they come back, and lead what they had; strangers are refused."""
    cluster = Cluster(2)
    cluster.lead("t", {0: 1, 1: 2})
    nodes = cluster.broker.nodes
    for node_id in (1, 1, 2):
        nodes.stop(node_id)
    assert nodes.states() == {1: False, 2: False}
    nodes.start(1)
    assert leaders_of(cluster, "t", 1) == {0: NOBODY, 1: NOBODY}
    nodes.start(2)
    assert leaders_of(cluster, "t", 1) == {0: 2, 1: 2}
    for change in (nodes.stop, nodes.start):
        with pytest.raises(ValueError, match="no node 5"):
            change(5)


def test_a_deleted_topic_comes_back_anew() -> None:
    """What was assigned to a topic is forgotten with it."""
    cluster = Cluster()
    cluster.lead("t", {0: 3}, replicas=3)
    cluster.ask("DeleteTopics", 5, topic_names=["t"], timeout_ms=1000)
    cluster.create("t")
    assert len(partitions_of(cluster, "t")[0]["replica_nodes"]) == 1


def test_settings_tell_which_node_they_are_of() -> None:
    """Every node is asked for its own settings by its number; others are not there (42)."""
    cluster = Cluster()
    for node_id, name, code in ((2, "2", 0), (1, "2", 42), (2, "5", 42)):
        asked = [{"resource_type": 4, "resource_name": name, "configuration_keys": None}]
        answer = cluster.ask_at(node_id, "DescribeConfigs", 4, resources=asked)
        (found,) = answer["results"]
        assert found["error_code"] == code
        told = {one["name"]: one["value"] for one in found["configs"]}
        assert told.get("node.id") == (None if code else "2")


def test_a_broker_on_its_own_is_a_node() -> None:
    """Without company everything is at home, and nobody would take over if it went."""
    nodes = Cluster(1).broker.nodes
    assert nodes.is_alone
    with pytest.raises(ValueError, match="node 1 is the only one"):
        nodes.stop(1)
    assert nodes.states() == {1: True}


def test_without_eligible_replicas_the_last_stays_in_sync() -> None:
    """Whatever goes, somebody remains who has everything, though nobody may lead."""
    placement = Placement((1, 2), (1, 2), 1)
    without = placement.without(1, {2, 3}, 0).without(2, {3}, 0)
    assert without == Placement((1, 2), (2,), NOBODY)
    assert without.with_(1, {1, 3}, 0) == without
    assert without.with_(2, {2, 3}, 0) == Placement((1, 2), (2,), 2)
    assert without.with_(3, {3}, 0) == without


def test_eligible_replicas_lead_when_nobody_else_can() -> None:
    """Below the least number in sync nothing is acknowledged that they would not have."""
    placement = Placement((1, 2, 3), (1, 2, 3), 1)
    two = placement.without(1, {2, 3}, 2)
    assert two == Placement((1, 2, 3), (2, 3), 2)
    one = two.without(2, {3}, 2)
    assert one == Placement((1, 2, 3), (3,), 3, (2,))
    none = one.without(3, set(), 2)
    assert none == Placement((1, 2, 3), (), NOBODY, (2, 3), 3)
    assert none.with_(1, {1}, 2) == none
    back = none.with_(2, {2}, 2)
    assert back == Placement((1, 2, 3), (2,), 2, (3,))
    assert back.with_(1, {1, 2}, 2) == Placement((1, 2, 3), (1, 2), 2)


class NotedDoors:
    """Doors that note what is done with them."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, int]] = []

    def shut(self, port: int) -> None:
        """Note it."""
        self.noted.append(("shut", port))

    def reopen(self, port: int) -> None:
        """Note it."""
        self.noted.append(("reopen", port))


def test_the_doors_of_a_node_are_where_it_listens() -> None:
    """Not where clients are told that it does: something may stand in between."""
    nodes = Cluster(2).broker.nodes
    nodes.doors = doors = NotedDoors()
    (listener,) = nodes.by_id[2].listeners
    listener.advertised_port = 1
    nodes.stop(2)
    nodes.start(2)
    assert doors.noted == [("shut", PORT + 1), ("reopen", PORT + 1)]


def test_a_node_that_is_unregistered_is_no_fenced_one() -> None:
    """It is told again once it is back; the last one that is up stays, and strangers are 102."""
    cluster = Cluster()

    def unregister(node_id: int) -> int:
        request = UnregisterBrokerRequest(broker_id=node_id)
        return cluster.ask_ours_at(3, 64, 0, request, OutcomeResponse).error_code

    def told() -> list[int]:
        answer = cluster.ask_at(3, "DescribeCluster", 2, include_fenced_brokers=True)
        return [one["broker_id"] for one in answer["brokers"]]

    nodes = cluster.broker.nodes
    nodes.stop(1)
    assert told() == [1, 2, 3]
    assert [unregister(one) for one in (1, 1, 9)] == [0, 102, 102]
    assert told() == [2, 3]
    assert unregister(2) == 0
    assert nodes.states() == {1: False, 2: False, 3: True}
    assert unregister(3) == 42
    nodes.start(1)
    assert told() == [1, 3]


def pass_time(cluster: Cluster, duration_ms: int) -> None:
    """Let time go by, with all that is due."""
    cluster.host.clock.advance(duration_ms)
    cluster.broker.timers.run()


def test_preferred_leaders_get_their_partitions_back() -> None:
    """Some time after they are back, as the settings say (``auto.leader.rebalance.enable``)."""
    settings = {"leader.imbalance.check.interval.seconds": "10"}
    for is_on in (True, False):
        given = settings | {"auto.leader.rebalance.enable": str(is_on).lower()}
        cluster = Cluster(settings=given)
        cluster.broker.start_housekeeping()
        cluster.lead("t", {0: 1, 1: 2})
        before = leaders_of(cluster, "t")
        cluster.broker.nodes.stop(1)
        pass_time(cluster, 10_000)
        cluster.broker.nodes.start(1)
        moved = leaders_of(cluster, "t")
        assert moved != before
        pass_time(cluster, 9_999)
        assert leaders_of(cluster, "t") == moved
        pass_time(cluster, 1)
        assert (leaders_of(cluster, "t") == before) is is_on


def test_partitions_are_assigned_to_nodes_of_which_one_is_up() -> None:
    """A node that is down may hold one beside others; one that is forgotten is none any more."""
    cluster = Cluster()

    def refusal(*broker_ids: int) -> tuple[int, str]:
        assigned = [{"partition_index": 0, "broker_ids": list(broker_ids)}]
        wanted: dict[str, Any] = {"name": "a", "num_partitions": -1, "replication_factor": -1,
                  "assignments": assigned, "configs": []}  # fmt: skip
        answer = cluster.ask(
            "CreateTopics", 7, topics=[wanted], timeout_ms=1000, validate_only=True
        )
        (result,) = answer["topics"]
        return result["error_code"], (result["error_message"] or "")[-40:]

    cluster.broker.nodes.stop(2)
    assert refusal(2, 1) == (0, "")
    assert refusal(2) == (39, " 0 are fenced or in controlled shutdown.")
    cluster.broker.nodes.unregister(2)
    assert refusal(2, 1) == (39, "ker 2, but no such broker is registered.")
