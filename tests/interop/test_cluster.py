"""Our nodes beside a real cluster of three: who answers what, before and after one is gone."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from logstore.compat import TestBroker
from logstore.tools.dev.kafka_peer import KafkaPeer, free_port_pair
from tests.interop.cluster_session import NODES, ClusterSession

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
