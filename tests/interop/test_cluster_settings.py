"""What is set for a whole cluster, by Kafka's own tools: the real Kafka goes on with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.interop.conftest import RunTool
from tests.interop.test_metadata_log import complaints, our_broker, real_on

pytestmark = [pytest.mark.interop, pytest.mark.slow]

FEATURES = "org.apache.kafka.tools.FeatureCommand"
CONFIGS = "kafka.admin.ConfigCommand"
METRICS = ("--entity-type", "client-metrics", "--entity-name", "m")
GROUP = ("--entity-type", "groups", "--entity-name", "g")


def levels(kafka_tool: RunTool, bootstrap: str) -> dict[str, str]:
    """Return the level in force of every feature."""
    done = kafka_tool(FEATURES, "--bootstrap-server", bootstrap, "describe")
    found = re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)\s", done.stdout)
    assert found, done.stdout
    return dict(found)


def described(kafka_tool: RunTool, bootstrap: str, *entity: str) -> set[str]:
    """Return the settings of its own that a resource has, as the tool prints them."""
    done = kafka_tool(CONFIGS, "--bootstrap-server", bootstrap, "--describe", *entity)
    return set(re.findall(r"^\s+(\S+=\S*) sensitive=false", done.stdout, re.MULTILINE))


def test_features_and_settings_outlive_their_broker(tmp_path: Path, kafka_tool: RunTool) -> None:
    """Levels of features, subscriptions to metrics and settings of groups are in the log."""
    data = tmp_path / "data"
    ours = our_broker(tmp_path / "ours", data)
    server = ("--bootstrap-server", ours.bootstrap)
    kafka_tool(FEATURES, *server, "downgrade", "--feature", "transaction.version=1")
    done = kafka_tool(FEATURES, *server, "upgrade", "--feature", "kraft.version=1", check=False)
    assert "Could not upgrade kraft.version to 1" in done.stdout
    kafka_tool(
        CONFIGS, *server, "--alter", *METRICS, "--add-config",
        "interval.ms=1000,match=[client_id=a.*]",
    )  # fmt: skip
    kafka_tool(
        CONFIGS, *server, "--alter", *GROUP, "--add-config",
        "consumer.session.timeout.ms=50000,share.auto.offset.reset=earliest",
    )  # fmt: skip
    wanted = levels(kafka_tool, ours.bootstrap)
    assert (wanted["transaction.version"], wanted["group.version"]) == ("1", "1")
    own = [described(kafka_tool, ours.bootstrap, *entity) for entity in (METRICS, GROUP)]
    assert own == [
        {"interval.ms=1000", "match=client_id=a.*"},
        {"consumer.session.timeout.ms=50000", "share.auto.offset.reset=earliest"},
    ]
    ours.stop()

    real = real_on(data, tmp_path / "real", "4")
    try:
        found = levels(kafka_tool, real.bootstrap)
        assert {name: found[name] for name in wanted} == wanted
        assert own == [described(kafka_tool, real.bootstrap, *one) for one in (METRICS, GROUP)]
        server = ("--bootstrap-server", real.bootstrap)
        kafka_tool(FEATURES, *server, "upgrade", "--feature", "transaction.version=2")
        kafka_tool(CONFIGS, *server, "--alter", *METRICS, "--delete-config", "match")
        assert complaints(real.log) == []
    finally:
        real.stop()

    ours.start()
    assert levels(kafka_tool, ours.bootstrap)["transaction.version"] == "2"
    assert described(kafka_tool, ours.bootstrap, *METRICS) == {"interval.ms=1000"}
    ours.stop()
