"""Delay levels and the times at which delayed messages are due."""

from __future__ import annotations

import pytest

from logstore.segments.rocketmq.messages.dispatch_request import (
    DispatchRequest,
    read_dispatch_request,
)
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT
from logstore.segments.rocketmq.settings.delay_levels import (
    DEFAULT_DELAY_LEVELS,
    SCHEDULE_TOPIC,
    DelayLevels,
    DelayLevelsError,
)
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.memory_store import MemoryCommitLog, MemoryQueue


def test_default_levels() -> None:
    """Java's default has 18 levels from one second to two hours."""
    levels = DelayLevels.parse()
    assert levels.level_max == 18
    assert [levels.delay_ms(level) for level in (1, 2, 5, 17, 18)] == [
        1000,
        5000,
        60_000,
        3_600_000,
        7_200_000,
    ]


def test_own_levels() -> None:
    """A setting may have other levels, days too, and spaces behind the last one."""
    assert DelayLevels.parse("2d 10s  ").delays_ms == {1: 172_800_000, 2: 10_000}


@pytest.mark.parametrize("text", ["", "1", "s", "1s  2s", "1S", "1.5s", "1s,2s", "٣s"])
def test_bad_levels(text: str) -> None:
    """What Java cannot read is refused, and the error names the level and what to write."""
    with pytest.raises(DelayLevelsError, match=r"level \d is .*one space"):
        DelayLevels.parse(text)


def test_deliver_time() -> None:
    """A message is due its level's delay after it was stored; high levels count as the highest."""
    levels = DelayLevels.parse("1s 5s")
    assert levels.deliver_time_ms(2, 1000) == 6000
    assert levels.deliver_time_ms(9, 1000) == 6000
    assert levels.deliver_time_ms(0, 1000) == 2000


@pytest.mark.parametrize(("now_ms", "is_due"), [(5999, False), (6000, True), (900, True)])
def test_due(now_ms: int, is_due: bool) -> None:
    """A message is due at its time, or when its time is further away than its level allows."""
    assert DelayLevels.parse("1s 5s").is_due(2, 6000, now_ms) is is_due


def test_queues() -> None:
    """Level 1 waits in queue 0 of the schedule topic."""
    assert [DelayLevels.queue_id_of(level) for level in (1, 18)] == [0, 17]
    assert DelayLevels.level_of(17) == 18


@pytest.mark.parametrize("case", golden_cases("delay"), ids=lambda one: one.id)
def test_golden(case: GoldenCase) -> None:
    """Every tags code in a real broker's schedule queues is the time that is computed here."""
    levels = DelayLevels.parse(case.settings.get("messageDelayLevel", DEFAULT_DELAY_LEVELS))
    commit_log = MemoryCommitLog.of_store(case.store, 1 << 40)
    seen = 0
    for folder in (case.store / "consumequeue" / SCHEDULE_TOPIC).iterdir():
        queue = MemoryQueue.of_store(case.store, SCHEDULE_TOPIC, int(folder.name))
        for physical_offset, size, tags_code in UNIT.iter_unpack(queue.data):
            request = read_dispatch_request(
                commit_log.read(physical_offset, size), deliver_time=levels.deliver_time_ms
            )
            assert isinstance(request, DispatchRequest)
            assert request.tags_code == tags_code
            level = levels.level_of(int(folder.name))
            assert tags_code - request.store_timestamp_ms == levels.delay_ms(level)
            seen += 1
    assert seen > 5


@pytest.mark.parametrize(
    ("delay_ms", "level"), [(-1, 2), (999, 2), (1000, 1), (4999, 1), (5000, 3), (70_000, 3)]
)
def test_the_level_that_waits_a_little_longer(delay_ms: int, level: int) -> None:
    """Or the longest of all, in whatever order they stand."""
    assert DelayLevels.parse("5s 1s 10s").level_of_delay(delay_ms) == level
