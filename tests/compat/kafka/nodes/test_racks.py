"""Nodes in racks of their own: what is told, where replicas go, whom readers are sent to."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.nodes.elections import move_leaders
from logstore.compat.kafka.nodes.node import Node
from logstore.compat.kafka.nodes.racks import racks_of, striped
from tests.compat.kafka.nodes.cluster import Cluster

BY_RACK = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
SETTINGS = {"broker.rack": "a,b,c", "replica.selector.class": BY_RACK}
NOBODY, OUT_OF_RANGE, FENCED = -1, 1, 74


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes in three racks; the first leads a partition that the second holds, too."""
    cluster = Cluster(settings=SETTINGS)
    cluster.lead("t", {0: 1})
    assert cluster.produce_at(1, "t", 0) == [0]
    return cluster


def asked(rack: str, offset: int = 0, epoch: int = -1, **fields: Any) -> dict[str, Any]:
    """Return the fields of a Fetch of the only partition by a reader in a rack."""
    partition = {
        "partition": 0, "current_leader_epoch": epoch, "fetch_offset": offset,
        "last_fetched_epoch": -1, "log_start_offset": -1, "partition_max_bytes": 1000,
    }  # fmt: skip
    return {
        "replica_id": -1, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 10_000,
        "isolation_level": 0, "session_id": 0, "session_epoch": -1, "rack_id": rack,
        "topics": [{"topic": "t", "partitions": [partition]}], "forgotten_topics_data": [],
    } | fields  # fmt: skip


def fetch(
    cluster: Cluster, node_id: int, rack: str, version: int = 12, **fields: Any
) -> dict[str, Any]:
    """Return what a node answers about the only partition."""
    answer = cluster.ask_at(node_id, "Fetch", version, **asked(rack, **fields))
    found: dict[str, Any] = answer["responses"][0]["partitions"][0]
    return found


def sent_to(found: dict[str, Any]) -> tuple[int, int, bool]:
    """Return the error, whom the reader is sent to, and whether it has got records."""
    return found["error_code"], found["preferred_read_replica"], bool(found["records"])


def test_racks_are_told(cluster: Cluster) -> None:
    """By Metadata, DescribeCluster and DescribeConfigs, of each node its own."""
    told = cluster.ask("Metadata", 9, topics=[], allow_auto_topic_creation=False,
                       include_cluster_authorized_operations=False,
                       include_topic_authorized_operations=False)  # fmt: skip
    assert {one["node_id"]: one["rack"] for one in told["brokers"]} == {1: "a", 2: "b", 3: "c"}
    told = cluster.ask("DescribeCluster", 1, include_cluster_authorized_operations=False,
                       endpoint_type=1)  # fmt: skip
    assert {one["broker_id"]: one["rack"] for one in told["brokers"]} == {1: "a", 2: "b", 3: "c"}
    asked = {"resource_type": 4, "resource_name": "2", "configuration_keys": ["broker.rack"]}
    (described,) = cluster.ask_at(2, "DescribeConfigs", 4, resources=[asked])["results"]
    assert [(one["name"], one["value"]) for one in described["configs"]] == [("broker.rack", "b")]


@pytest.mark.parametrize(("text", "count", "racks"), [
    ("", 2, ["", ""]), ("a", 2, ["a", "a"]), ("a, b", 3, ["a", "b", "a"]), ("a,b", 1, ["a,b"]),
    ("a,b,c", 2, ["a", "b"]),
])  # fmt: skip
def test_racks_are_named_in_turn(text: str, count: int, racks: list[str]) -> None:
    """What a broker alone says is its rack as it stands."""
    assert racks_of(text, count) == racks


def test_neighbours_stand_in_different_racks() -> None:
    """As far as there are enough; without racks the order stays."""
    racks = {1: "a", 2: "a", 3: "a", 4: "b", 5: "c"}
    assert striped(Node(one, rack) for one, rack in racks.items()) == [1, 4, 5, 2, 3]
    assert striped(Node(one) for one in (3, 1, 2)) == [3, 1, 2]


def test_replicas_are_spread_over_racks() -> None:
    """No partition has its two replicas in one rack."""
    cluster = Cluster(4, {"broker.rack": "a,a,b,b", "default.replication.factor": "2"})
    cluster.create("t", 8)
    placements = [
        cluster.broker.placements.find(cluster.broker.topics["t"], index) for index in range(8)
    ]
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    assert all({racks[one] for one in found.replicas} == {"a", "b"} for found in placements)
    assert {found.leader for found in placements} == {1, 2, 3, 4}


@pytest.mark.parametrize("version", [11, 12])
def test_a_reader_is_sent_to_the_follower_in_its_rack(cluster: Cluster, version: int) -> None:
    """Which then serves it; who is in the leader's rack, or in none with a replica, stays."""
    assert sent_to(fetch(cluster, 1, "b", version)) == (0, 2, False)
    assert sent_to(fetch(cluster, 2, "b", version)) == (0, NOBODY, True)
    for rack in ("a", "c", "d", ""):
        assert sent_to(fetch(cluster, 1, rack, version)) == (0, NOBODY, True)


def test_who_is_sent_on_does_not_wait(cluster: Cluster) -> None:
    """The answer comes at once, with the offsets of the log."""
    found = fetch(cluster, 1, "b", offset=1, max_wait_ms=60_000)
    assert sent_to(found) == (0, 2, False)
    assert (found["high_watermark"], found["log_start_offset"]) == (1, 0)


def test_only_a_follower_in_sync_is_named(cluster: Cluster) -> None:
    """While it is down the leader reads itself, and sends on as soon as it is back."""
    cluster.broker.nodes.stop(2)
    assert sent_to(fetch(cluster, 1, "b")) == (0, NOBODY, True)
    cluster.broker.nodes.start(2)
    assert sent_to(fetch(cluster, 1, "b")) == (0, 2, False)


def test_a_session_sends_on_when_somebody_is_back(cluster: Cluster) -> None:
    """Also from a partition of which there was nothing new to tell."""
    cluster.broker.nodes.stop(2)
    first = cluster.ask_at(1, "Fetch", 12, **asked("b", 1, session_epoch=0))
    assert first["session_id"] > 0
    again: dict[str, Any] = {"session_id": first["session_id"], "topics": []}
    for epoch in (1, 2):
        quiet = cluster.ask_at(1, "Fetch", 12, **asked("b", session_epoch=epoch, **again))
        assert quiet["responses"] == []
    cluster.broker.nodes.start(2)
    for epoch in (3, 4):  # it is named as long as it is asked for here
        told = cluster.ask_at(1, "Fetch", 12, **asked("b", session_epoch=epoch, **again))
        assert sent_to(told["responses"][0]["partitions"][0]) == (0, 2, False)


def test_what_is_wrong_is_told_by_the_leader(cluster: Cluster) -> None:
    """An offset that there is not, and an epoch of the past."""
    assert sent_to(fetch(cluster, 1, "b", offset=9)) == (OUT_OF_RANGE, NOBODY, False)
    move_leaders(cluster.broker, cluster.broker.topics["t"], [0], to=1)
    assert sent_to(fetch(cluster, 1, "b", epoch=0)) == (FENCED, NOBODY, False)


def test_nobody_is_sent_on_where_racks_do_not_count() -> None:
    """Without the class that selects by them, and before version 11."""
    cluster = Cluster(settings={"broker.rack": "a,b,c"})
    cluster.lead("t", {0: 1})
    cluster.produce_at(1, "t", 0)
    assert sent_to(fetch(cluster, 1, "b")) == (0, NOBODY, True)
    cluster.restart(SETTINGS)
    assert sent_to(fetch(cluster, 1, "b")) == (0, 2, False)
    found = fetch(cluster, 1, "", version=10)
    assert (found["error_code"], bool(found["records"])) == (0, True)
