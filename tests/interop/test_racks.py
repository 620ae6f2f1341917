"""Our nodes beside a real cluster of three, each in a rack: whom leaders send readers to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from logstore.compat import TestBroker
from tests.interop.cluster_session import NODES, ClusterSession
from tests.interop.test_cluster import SETTINGS, OurCluster, real_cluster

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

BY_RACK = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
RACKS = {1: "a", 2: "b", 3: "c"}


def test_readers_are_sent_where_a_real_cluster_sends_them(tmp_path: Path) -> None:
    """From every node, in every rack, at good and bad offsets, before and after one is gone."""
    own = {node_id: {"broker.rack": rack} for node_id, rack in RACKS.items()}
    with real_cluster(tmp_path, BY_RACK, own) as cluster:
        real = RackSession(cluster).told()
    settings = {key: str(value) for key, value in (SETTINGS | BY_RACK).items()}
    with TestBroker(nodes=3, settings=settings | {"broker.rack": "a,b,c"}) as broker:
        ours = RackSession(OurCluster(broker)).told()
    assert ours == real
    assert {who for *_, who in ours} == {-1, 1, 2, 3}, "somebody was sent everywhere"


class RackSession(ClusterSession):
    """Readers in racks, at every node."""

    def told(self) -> list[tuple[object, ...]]:
        """Return (node down, node asked, rack, offset, partition, error, node sent to)."""
        self._create()
        for node_id in NODES:
            self._produced(node_id, "t", {0: -1, 1: -1, 2: -1})
        found = [(0, *one) for node_id in NODES for one in self._read(node_id)]
        self._nodes.stop_node(2)
        self._until_leaders_are({0: 1, 1: 3, 2: 3})
        return found + [(2, *one) for node_id in (1, 3) for one in self._read(node_id)]

    def _read(self, node_id: int) -> Iterator[tuple[object, ...]]:
        for rack, offset in product((*RACKS.values(), "d", ""), (0, 1, 99)):
            rows = [
                {"partition": index, "current_leader_epoch": -1, "fetch_offset": offset,
                 "log_start_offset": -1, "partition_max_bytes": 1000} for index in range(3)
            ]  # fmt: skip
            answer = self.ask(
                node_id, "Fetch", 11, replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=10_000,
                isolation_level=0, session_id=0, session_epoch=-1, rack_id=rack,
                topics=[{"topic": "t", "partitions": rows}], forgotten_topics_data=[],
            )  # fmt: skip
            for one in sorted(partitions_of(answer), key=itemgetter("partition_index")):
                yield (node_id, rack, offset, one["partition_index"], one["error_code"],
                       one["preferred_read_replica"])  # fmt: skip


def partitions_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a fetch tells of a topic, which may come more than once."""
    return [one for topic in answer["responses"] for one in topic["partitions"]]
