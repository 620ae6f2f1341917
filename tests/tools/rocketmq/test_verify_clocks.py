"""``logstore verify`` does not take a clock that was set back for damage."""

from __future__ import annotations

from logstore.segments.rocketmq.store import RocketMQStore
from logstore.segments.rocketmq.tables.topics import TopicConfig
from logstore.testing import SimulatedHost
from logstore.tools.inspection.rocketmq.verification.store_check import StoreCheck
from logstore.tools.inspection.verification.finding import Finding
from tests.segments.rocketmq.drafts import draft
from tests.segments.rocketmq.small_store import DIRECTORY, SETTINGS, small_store

_DAY_MS = 24 * 3_600_000


def _put(store: RocketMQStore, count: int) -> None:
    """Put messages, three to a file of the log, eleven to one of the index, and sync all."""
    for number in range(count):
        properties = {"KEYS": f"k{number}"} if count > 3 else {}
        assert store.put_message(draft(body=bytes(1000), properties=properties)).is_ok
    store.topic_table.put(TopicConfig("TopicTest"))
    store.topic_table.persist()
    store.dispatch()
    store.syncs.run_here(store.syncs.begin_all())


def _findings(host: SimulatedHost) -> list[Finding]:
    return list(StoreCheck(host.fs, DIRECTORY, SETTINGS).findings())


def test_times_of_what_is_gone_are_no_damage() -> None:
    """What was stored before the clock went back is past its time and removed; what came stays."""
    host = SimulatedHost()
    store = small_store(host, settings={"deleteWhen": "25"})
    _put(store, 36)
    before_ms = host.clock.wall_ms()
    host.clock.jump_wall(-_DAY_MS)
    _put(store, 3)
    assert 0 < store.checkpoint.physic_msg_timestamp_ms < before_ms
    host.clock.advance(5 * _DAY_MS)
    store.cleaning.request_removal()
    while store.cleaning.run():
        pass
    assert store.commit_log.min_physical_offset == 12 * 4096
    store.close()

    (found,) = _findings(host)

    assert (found.kind, found.position, found.is_damage) == ("checkpoint", 16, False)
    assert "the clock was set back" in found.text


def test_times_of_what_the_log_should_have_are_damage() -> None:
    """While the log has its first file, nothing but its end can be missing."""
    host = SimulatedHost()
    store = small_store(host)
    _put(store, 36)
    late_ms = host.clock.wall_ms() + 1
    store.close()
    file = host.fs.open(f"{DIRECTORY}/checkpoint")
    for position in (0, 8, 16):
        file.write(position, late_ms.to_bytes(8))
    file.close()

    found = _findings(host)

    assert [(one.kind, one.position, one.is_damage) for one in found] == [
        ("checkpoint", position, True) for position in (0, 8, 16)
    ]
