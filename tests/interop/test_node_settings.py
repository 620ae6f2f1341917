"""What each node of a cluster says of settings that were changed on one of them: as real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logstore.compat import TestBroker
from tests.interop.cluster_session import ClusterSession
from tests.interop.eventually import eventually
from tests.interop.test_cluster import SETTINGS, OurCluster, real_cluster

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
RETENTION, INTERVAL = "log.retention.ms", "group.consumer.assignment.interval.ms"
#: which node is asked to change what, of whom
CHANGES = (
    (1, BROKER, "2", RETENTION, "7000000"),
    (2, LOGGER, "1", "kafka", "INFO"),
    (2, BROKER, "2", RETENTION, "7000000"),
    (2, BROKER, "2", "leader.replication.throttled.rate", "21000000"),
    (1, BROKER, "1", INTERVAL, "2000"),
    (3, BROKER, "", RETENTION, "9000000"),
    (2, BROKER, "2", RETENTION, None),
)


def test_each_node_has_its_own(tmp_path: Path) -> None:
    """Values and sources, of nodes, of a topic and of a group, after every change."""
    own = {INTERVAL: "0"}  # which a test broker has by itself
    with real_cluster(tmp_path, own) as cluster:
        real = SettingsSession(cluster).told()
    settings = {key: str(value) for key, value in (SETTINGS | own).items()}
    with TestBroker(nodes=3, settings=settings) as broker:
        ours = SettingsSession(OurCluster(broker)).told()
    assert ours == real
    assert len({line for line in ours if line.startswith("2 4 2")}) > 2, "it has changed"


class SettingsSession(ClusterSession):
    """Changes settings, and asks every node for them."""

    def told(self) -> list[str]:
        """Play the session."""
        self._create()
        self._all_nodes()
        for node_id, kind, name, key, value in CHANGES:
            change = {"name": key, "config_operation": 0 if value else 1, "value": value}
            wanted = [{"resource_type": kind, "resource_name": name, "configs": [change]}]
            answer = self.ask(
                node_id, "IncrementalAlterConfigs", 1, resources=wanted, validate_only=False
            )
            (found,) = answer["responses"]
            self.note("changed", node_id, key, found["error_code"], found["error_message"])
            if not found["error_code"]:
                eventually(lambda: self._has(node_id, name, key, value))  # noqa: B023 - asked at once
            self._all_nodes()
        return self.lines

    def _has(self, node_id: int, name: str, key: str, value: str | None) -> bool:
        """Tell whether what was changed is known by now, by all nodes if it is the cluster's."""
        source = 2 if name else 3
        asked = [node_id] if name else [1, 2, 3]
        return all(
            any(
                (one["source"], one["value"]) == (source, value)
                for entry in self._entries(asked_id, BROKER, str(asked_id), key)[1]
                for one in entry["synonyms"]
            )
            == (value is not None)
            for asked_id in asked
        )

    def _all_nodes(self) -> None:
        for node_id in (1, 2, 3):
            for kind, name, key in (
                *((BROKER, str(own), None) for own in (1, 2, 3)),
                (LOGGER, "2", "no.such"), (BROKER, "", RETENTION), (TOPIC, "t", "retention.ms"),
                (BROKER, str(node_id), RETENTION), (GROUP, "g", INTERVAL.removeprefix("group.")),
            ):  # fmt: skip
                found, entries = self._entries(node_id, kind, name, key or "node.id")
                told = [
                    (one["name"], one["value"], one["config_source"], one["synonyms"])
                    for one in entries
                ]
                self.note(node_id, kind, name, *found, told)

    def _entries(
        self, node_id: int, kind: int, name: str, key: str
    ) -> tuple[tuple[int, str], list[dict[str, Any]]]:
        """Return code and message, and the settings that a node tells of."""
        asked = [{"resource_type": kind, "resource_name": name, "configuration_keys": [key]}]
        (found,) = self.ask(
            node_id, "DescribeConfigs", 4, resources=asked, include_synonyms=True,
            include_documentation=False,
        )["results"]  # fmt: skip
        return (found["error_code"], found["error_message"]), found["configs"]
