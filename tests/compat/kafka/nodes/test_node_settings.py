"""Settings that were changed on one node of a cluster, and those of all of them."""

from __future__ import annotations

import pytest

from tests.compat.kafka.config_requests import BROKER, DELETE, GROUP, LOGGER, SET, TOPIC
from tests.compat.kafka.nodes.cluster import Cluster

RETENTION = "log.retention.ms"
INTERVAL = "consumer.assignment.interval.ms"


def described(cluster: Cluster, node_id: int, kind: int, name: str) -> tuple[int, str]:
    """Ask a node for the settings of something; return code and message."""
    asked = [{"resource_type": kind, "resource_name": name, "configuration_keys": None}]
    (found,) = cluster.ask_at(node_id, "DescribeConfigs", 4, resources=asked)["results"]
    return found["error_code"], found["error_message"]


def shown(cluster: Cluster, node_id: int, kind: int, name: str, key: str) -> tuple[str | None, int]:
    """Return value and source of a setting, as a node shows it."""
    asked = [{"resource_type": kind, "resource_name": name, "configuration_keys": [key]}]
    (found,) = cluster.ask_at(node_id, "DescribeConfigs", 4, resources=asked)["results"]
    (entry,) = found["configs"]
    return entry["value"], entry["config_source"]


def changed(
    cluster: Cluster, node_id: int, kind: int, name: str, key: str, value: str | None
) -> tuple[int, str | None]:
    """Ask a node to set something, or to forget it; return code and message."""
    operation = DELETE if value is None else SET
    change = {"name": key, "config_operation": operation, "value": value}
    wanted = [{"resource_type": kind, "resource_name": name, "configs": [change]}]
    asked = cluster.ask_at(
        node_id, "IncrementalAlterConfigs", 1, resources=wanted, validate_only=False
    )
    (found,) = asked["responses"]
    return found["error_code"], found["error_message"]


@pytest.mark.parametrize("kind", [BROKER, LOGGER])
def test_a_node_tells_of_itself_alone(kind: int) -> None:
    """Of another's settings and loggers it neither tells nor changes anything (42)."""
    cluster = Cluster()
    assert described(cluster, 2, kind, "2")[0] == 0
    code, message = described(cluster, 1, kind, "2")
    assert (code, message.startswith("Unexpected broker id, expected 1")) == (42, True)
    code, reason = changed(cluster, 2, kind, "1", "kafka", "INFO")
    assert (code, (reason or "").startswith("Unexpected")) == (42, True)


def test_what_is_changed_on_a_node_is_shown_by_it_alone() -> None:
    """What is the cluster's is shown by the others, and all of it outlives a restart."""
    cluster = Cluster()
    cluster.create("t")
    assert changed(cluster, 2, BROKER, "2", RETENTION, "7000") == (0, None)
    assert changed(cluster, 3, BROKER, "", RETENTION, "9000") == (0, None)
    for _ in range(2):
        assert shown(cluster, 2, BROKER, "2", RETENTION) == ("7000", 2)
        assert shown(cluster, 2, TOPIC, "t", "retention.ms") == ("7000", 2)
        for node_id in (1, 3):
            assert shown(cluster, node_id, BROKER, str(node_id), RETENTION) == ("9000", 3)
            assert shown(cluster, node_id, TOPIC, "t", "retention.ms") == ("9000", 3)
        cluster.restart()
    assert changed(cluster, 2, BROKER, "2", RETENTION, None) == (0, None)
    assert shown(cluster, 2, BROKER, "2", RETENTION) == ("9000", 3)


def test_what_is_changed_on_a_node_holds() -> None:
    """The nodes are one broker: the change has its effect, and the first node's is the stronger."""
    cluster = Cluster()
    config = cluster.broker.dynamic_config
    changed(cluster, 2, BROKER, "2", "producer.id.expiration.ms", "3000")
    assert config.integer("producer.id.expiration.ms") == 3000
    changed(cluster, 1, BROKER, "1", "producer.id.expiration.ms", "2000")
    assert config.integer("producer.id.expiration.ms") == 2000


def test_groups_get_what_they_do_not_say_from_the_node() -> None:
    """A group's settings are told with the values and sources of the node that is asked."""
    cluster = Cluster()
    assert changed(cluster, 2, BROKER, "2", f"group.{INTERVAL}", "2000") == (0, None)
    assert shown(cluster, 2, GROUP, "g", INTERVAL) == ("2000", 2)
    assert shown(cluster, 1, GROUP, "g", INTERVAL) == ("1000", 5)
