"""What holds for a share group: its own settings, within the broker's bounds, or the broker's."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.groups.share.settings import ShareGroupSettings
from tests.compat.kafka.groups.share.share_conversation import ShareConversation

GROUP = 32


def test_kafkas_defaults() -> None:
    """Without settings of anybody those of Kafka 4.3 hold."""
    broker = ShareConversation().broker
    assert ShareGroupSettings.of(broker, "g") == ShareGroupSettings(
        session_timeout_ms=45_000,
        heartbeat_interval_ms=5_000,
        record_lock_duration_ms=30_000,
        delivery_count_limit=5,
        partition_max_record_locks=2_000,
        auto_offset_reset="latest",
        isolation_level="read_uncommitted",
        renew_acknowledge_enable=True,
        assignment_interval_ms=1_000,
    )


def test_a_groups_own_win() -> None:
    """Every setting that a group can have of its own counts, and for no other group."""
    broker = ShareConversation({"group.share.delivery.count.limit": "3"}).broker
    own = {
        "share.session.timeout.ms": "46000",
        "share.heartbeat.interval.ms": "6000",
        "share.record.lock.duration.ms": "15000",
        "share.delivery.count.limit": "9",
        "share.partition.max.record.locks": "100",
        "share.auto.offset.reset": "by_duration:PT1H",
        "share.isolation.level": "read_committed",
        "share.renew.acknowledge.enable": "false",
        "share.assignment.interval.ms": "0",
    }
    broker.store.metadata.change_resource(GROUP, "g", own)
    assert ShareGroupSettings.of(broker, "g") == ShareGroupSettings(
        46_000, 6_000, 15_000, 9, 100, "by_duration:PT1H", "read_committed", False, 0
    )
    assert ShareGroupSettings.of(broker, "h") == ShareGroupSettings(delivery_count_limit=3)


@pytest.mark.parametrize(
    ("of_broker", "own", "held"),
    [
        ({}, "5000", 15_000),
        ({}, "70000", 60_000),
        ({"group.share.min.record.lock.duration.ms": "4000"}, "5000", 5_000),
        ({"group.share.max.record.lock.duration.ms": "90000"}, "70000", 70_000),
    ],
)
def test_bounds_that_were_changed_hold_for_stored_settings(
    of_broker: dict[str, str], own: str, held: int
) -> None:
    """A stored setting that the broker would refuse now counts as the nearest that it would not."""
    settings = ShareGroupSettings.from_layers(of_broker, {"share.record.lock.duration.ms": own})
    assert settings.record_lock_duration_ms == held


def test_the_interval_of_assignments_changes_while_the_broker_runs() -> None:
    """It is the one that 4.3 takes at run time."""
    broker = ShareConversation().broker
    name = "group.share.assignment.interval.ms"
    config = broker.dynamic_config
    config.replace(config.of_cluster | {name: "7"}, is_cluster_wide=True)
    assert ShareGroupSettings.of(broker, "g").assignment_interval_ms == 7
