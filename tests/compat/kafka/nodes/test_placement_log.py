"""Where partitions are over restarts: as assigned and moved, by a file beside the data."""

from __future__ import annotations

import errno
import logging
from typing import Any

import pytest

from logstore.compat.kafka.nodes.elections import move_leaders
from logstore.compat.kafka.nodes.placement_log import FILE_NAME, PlacementLog
from logstore.host import read_file, write_file
from logstore.testing.power_loss import LOSE_UNSYNCED
from tests.compat.kafka.conversation import DIRECTORY
from tests.compat.kafka.nodes.cluster import Cluster

PATH = f"{DIRECTORY}/{FILE_NAME}"


def told(cluster: Cluster, topic: str = "t") -> dict[int, tuple[list[int], int]]:
    """Return what clients are told: replicas and leader of each partition."""
    answer = cluster.ask("Metadata", 9, topics=[{"name": topic}], allow_auto_topic_creation=False,
                         include_cluster_authorized_operations=False,
                         include_topic_authorized_operations=False)  # fmt: skip
    partitions: list[dict[str, Any]] = answer["topics"][0]["partitions"]
    return {one["partition_index"]: (one["replica_nodes"], one["leader_id"]) for one in partitions}


def test_a_restart_finds_what_was_assigned_and_moved() -> None:
    """Assignments, reassignments and leaders; more partitions than there were have their share."""
    cluster = Cluster()
    cluster.lead("t", {0: 2, 1: 3, 2: 1})
    topic = cluster.broker.topics["t"]
    move_leaders(cluster.broker, topic, [0])
    cluster.broker.placements.reassign(topic, 1, (1, 2, 3))
    before = {0: ([2, 3], 3), 1: ([1, 2, 3], 3), 2: ([1, 2], 1)}
    assert told(cluster) == before
    cluster.restart()
    assert told(cluster) == before
    cluster.ask("CreatePartitions", 3, topics=[{"name": "t", "count": 4}], timeout_ms=1000)
    after = told(cluster)
    cluster.restart({"default.replication.factor": "1"})
    assert told(cluster) == after


def test_a_loss_of_power_loses_none_of_it() -> None:
    """What was assigned and moved is as durable as the topic."""
    cluster = Cluster()
    cluster.lead("t", {0: 2, 1: 3})
    move_leaders(cluster.broker, cluster.broker.topics["t"], [0])
    before = told(cluster)
    cluster.host.power_loss(LOSE_UNSYNCED)
    cluster.reopen()
    assert told(cluster) == before


def test_a_setting_changes_new_topics_alone() -> None:
    """A topic keeps the number of replicas that it was made with."""
    cluster = Cluster(settings={"default.replication.factor": "3"})
    cluster.create("t", 2)
    before = told(cluster)
    assert {len(replicas) for replicas, _ in before.values()} == {3}
    cluster.restart({"default.replication.factor": "1"})
    assert told(cluster) == before


def test_who_led_when_a_node_went_leads_after_a_restart() -> None:
    """A node that comes back with the others does not take its partitions back by itself."""
    cluster = Cluster()
    cluster.lead("t", {0: 2})
    cluster.broker.nodes.stop(2)
    cluster.restart()
    assert told(cluster) == {0: ([2, 3], 3)}


def test_nodes_that_are_no_more_hold_nothing() -> None:
    """With fewer nodes the others have it; what none of them had is spread anew."""
    cluster = Cluster()
    cluster.lead("t", {0: 2, 1: 3})
    cluster.lead("u", {0: 3}, replicas=1)
    cluster.restart(node_count=2)
    assert told(cluster) == {0: ([2], 2), 1: ([1], 1)}
    ((replicas, leader),) = told(cluster, "u").values()
    assert leader in replicas
    assert set(replicas) <= {1, 2}


@pytest.mark.parametrize("damage", [
    b'{"topic": "zz", "partitions": {}}\n', b'{"topic', b"[]\n", b"\xff\n", b'{"partitions": {}}\n',
    b'{"topic": "%s", "partitions": {"0": [[], 1]}}\n', b'{"topic": "%s", "partitions": 5}\n',
    b'{"topic": "%s", "partitions": {"0": [["1"], 1]}}\n',
    b'{"topic": "%s", "partitions": {"x": [[1], 1]}}\n',
])  # fmt: skip
def test_a_line_that_cannot_be_read_is_left_out(damage: bytes) -> None:
    """The rest counts, and the file is written anew without it."""
    cluster = Cluster()
    cluster.lead("t", {0: 2})
    cluster.lead("gone", {0: 3})
    topic_id = cluster.broker.topics["t"].topic_id.hex().encode()
    cluster.ask("DeleteTopics", 5, topic_names=["gone"], timeout_ms=1000)
    fs = cluster.host.fs
    damage = damage.replace(b"%s", topic_id)
    write_file(fs, PATH, read_file(fs, PATH) + damage)
    cluster.restart()
    assert told(cluster) == {0: ([2, 3], 2)}
    assert read_file(fs, PATH) == (b'{"topic":"%s","partitions":{"0":[[2,3],2]}}\n' % topic_id)


def test_a_disk_that_refuses_is_no_reason_not_to_create(caplog: pytest.LogCaptureFixture) -> None:
    """It is warned of; a restart reckons the place from the topic's name."""
    cluster = Cluster()
    cluster.host.fs.faults.fail_next("write", errno.EIO, path=f"*/{FILE_NAME}", count=None)
    with caplog.at_level(logging.WARNING):
        cluster.lead("t", {0: 2})
    assert "a restart will not know what moved" in caplog.text
    assert told(cluster) == {0: ([2, 3], 2)}
    assert PlacementLog(cluster.host.fs, DIRECTORY).load({b""}) == {}


def test_one_node_keeps_nothing() -> None:
    """Everything is at home, and there is no file."""
    cluster = Cluster(1)
    cluster.create("t", 2)
    assert not cluster.host.fs.exists(PATH)
