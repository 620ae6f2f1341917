"""Our nodes beside a real cluster of three: who answers what, before and after one is gone."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from logstore.compat import TestBroker
from logstore.compat.kafka.nodes.quorum_messages import OutcomeResponse, UnregisterBrokerRequest
from logstore.tools.dev.kafka_peer import KafkaPeer, free_port_pair
from tests.compat.kafka.groups.questioner import Line
from tests.interop.cluster_session import NODES, ClusterSession
from tests.interop.eventually import eventually
from tests.interop.own_wire import ask_own
from tests.interop.raw_wire import Wire

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(400)]

SETTINGS: dict[str, object] = {
    "offsets.topic.num.partitions": 6,
    "offsets.topic.replication.factor": 2,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.replication.factor": 2,
    "transaction.state.log.min.isr": 1,
    "auto.leader.rebalance.enable": "false",
    "log.retention.ms": -1,  # the records are old
}


Settings = Mapping[str, object]
OwnSettings = Mapping[int, Settings]


class RealCluster:
    """One controller and three brokers, the first of which is in the same process."""

    def __init__(
        self, directory: Path, settings: Settings | None = None, own: OwnSettings | None = None
    ) -> None:
        self._settings, self._own = SETTINGS | dict(settings or {}), own or {}
        first = KafkaPeer("4", directory / "1", settings=self._settings_of(1))
        self._peers = {1: first}
        self._directory = directory

    def _settings_of(self, node_id: int) -> dict[str, object]:
        return self._settings | dict(self._own.get(node_id, {}))

    @property
    def addresses(self) -> dict[int, str]:
        """Where the nodes are."""
        return {node_id: peer.bootstrap for node_id, peer in self._peers.items()}

    def start(self, stack: ExitStack) -> None:
        """Start all of them, until the stack is left."""
        first = stack.enter_context(self._peers[1])
        meta = (first.data / "meta.properties").read_text()
        (cluster_id,) = (line[11:] for line in meta.splitlines() if line.startswith("cluster.id="))
        for node_id in NODES[1:]:
            port = free_port_pair()
            settings = self._settings_of(node_id) | {
                "process.roles": "broker",
                "node.id": node_id,
                "controller.quorum.voters": f"1@127.0.0.1:{first.port + 1}",
                "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            }
            directory = self._directory / str(node_id)
            peer = KafkaPeer("4", directory, port, settings, cluster_id=cluster_id)
            self._peers[node_id] = stack.enter_context(peer)

    def stop_node(self, node_id: int) -> None:
        """Stop one as an administrator does."""
        self._peers[node_id].stop()

    def start_node(self, node_id: int) -> None:
        """Start it again."""
        self._peers[node_id].start()


class OurCluster:
    """Three nodes of one broker."""

    def __init__(self, cluster: TestBroker) -> None:
        self._cluster = cluster

    @property
    def addresses(self) -> dict[int, str]:
        """Where the nodes are."""
        return self._cluster.nodes

    def stop_node(self, node_id: int) -> None:
        """Take one out."""
        self._cluster.stop_node(node_id)

    def start_node(self, node_id: int) -> None:
        """Let it in again."""
        self._cluster.start_node(node_id)


@contextmanager
def real_cluster(
    directory: Path, settings: Settings | None = None, own: OwnSettings | None = None
) -> Generator[RealCluster]:
    """Return a real cluster that runs; nodes may have some of their `own` settings."""
    with ExitStack() as stack:
        cluster = RealCluster(directory, settings, own)
        cluster.start(stack)
        yield cluster


def test_every_node_answers_the_same(tmp_path: Path) -> None:
    """All that has to do with leaders, replicas and coordinators, of every node in turn."""
    with real_cluster(tmp_path / "real") as cluster:
        real = ClusterSession(cluster).run()
    settings = {key: str(value) for key, value in SETTINGS.items()}
    with TestBroker(nodes=3, settings=settings) as broker:
        ours = ClusterSession(OurCluster(broker)).run()
    assert ours == real


def leaders(bootstrap: str) -> list[int]:
    """Return who leads each partition of the topic, as a node tells."""
    line = Line(bootstrap)
    (topic,) = line.ask("Metadata", 9, topics=[{"name": "t"}])["topics"]
    line.close()
    found = {one["partition_index"]: one["leader_id"] for one in topic["partitions"]}
    return [found[index] for index in sorted(found)]


def brokers(bootstrap: str) -> list[tuple[int, bool]]:
    """Return the brokers that a node tells of, and whether each is fenced."""
    line = Line(bootstrap)
    told = line.ask("DescribeCluster", 2, include_fenced_brokers=True)["brokers"]
    line.close()
    return sorted((one["broker_id"], one["is_fenced"]) for one in told)


def unregistered(bootstrap: str, broker_id: int) -> int:
    """Ask for a broker to be forgotten; return the code."""
    with Wire(bootstrap) as wire:
        request = UnregisterBrokerRequest(broker_id=broker_id)
        return ask_own(wire, 64, 0, request, OutcomeResponse).error_code


def check_comings_and_goings(cluster: RealCluster | OurCluster) -> None:
    """Leaders come back with their node; who is gone is fenced, and then forgotten."""
    first = cluster.addresses[1]
    line = Line(first)
    placed = [
        {"partition_index": index, "broker_ids": ids}
        for index, ids in enumerate(([2, 3], [3, 1], [1, 2]))
    ]
    wanted = {"name": "t", "num_partitions": -1, "replication_factor": -1, "configs": []}
    line.ask("CreateTopics", 7, topics=[wanted | {"assignments": placed}], timeout_ms=10_000)
    line.close()
    eventually(lambda: leaders(first) == [2, 3, 1], what="the preferred leaders")
    cluster.stop_node(2)
    eventually(lambda: leaders(first) == [3, 3, 1], what="the next leader")
    cluster.start_node(2)
    eventually(lambda: leaders(first) == [2, 3, 1], what="the preferred leaders again")
    cluster.stop_node(3)
    fenced = [(1, False), (2, False), (3, True)]
    eventually(lambda: brokers(first) == fenced, what="a fenced broker")
    assert unregistered(first, 3) == 0
    eventually(lambda: brokers(first) == fenced[:2], what="two brokers")
    assert unregistered(first, 3) == unregistered(first, 9) == 102
    assert leaders(first) == [2, 1, 1]


def test_nodes_come_and_go(tmp_path: Path) -> None:
    """Preferred leaders get their partitions back, and a node that is gone is forgotten."""
    own: dict[str, object] = {
        "auto.leader.rebalance.enable": "true",
        "leader.imbalance.check.interval.seconds": 1,
    }
    with real_cluster(tmp_path / "real", own) as cluster:
        check_comings_and_goings(cluster)
    settings = {key: str(value) for key, value in (SETTINGS | own).items()}
    with TestBroker(nodes=3, settings=settings) as broker:
        check_comings_and_goings(OurCluster(broker))
