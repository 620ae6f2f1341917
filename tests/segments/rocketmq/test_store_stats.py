"""What a store counts, and how Java's runtime table says it."""

from __future__ import annotations

import pytest

from logstore.segments.rocketmq.upkeep.running_flags import RunningFlag, RunningFlags
from logstore.segments.rocketmq.upkeep.store_stats import StoreStats
from logstore.testing import ManualClock


def test_puts_are_put_into_thirteen_classes_a_minute_at_a_time() -> None:
    """The table shows the minute before; each class ends below its bound."""
    clock = ManualClock()
    stats = StoreStats(clock)
    for elapsed_ms in (0, 1, 9, 10, 99, 500, 999, 1000, 4999, 9999, 10_000):
        stats.time_put(elapsed_ms)
    assert "[<=0ms]:0 " in stats.runtime()["putMessageDistributeTime"]
    clock.advance(60_000)
    stats.tick()
    assert stats.runtime()["putMessageDistributeTime"] == (
        "[<=0ms]:1 [0~10ms]:2 [10~50ms]:1 [50~100ms]:1 [100~200ms]:0 [200~500ms]:0 "
        "[500ms~1s]:2 [1~2s]:1 [2~3s]:0 [3~4s]:0 [4~5s]:1 [5~10s]:1 [10s~]:1 "
    )
    assert stats.runtime()["putMessageEntireTimeMax"] == "10000"


def test_rates_need_as_many_samples_as_seconds() -> None:
    """A young store has one figure or two, later three (``putTps``)."""
    clock = ManualClock()
    stats = StoreStats(clock)
    for _ in range(12):
        stats.tick()
        stats.count_put("TopicTest", 50, 5000)
        clock.advance(1000)
    assert stats.rate("put", 10) == pytest.approx(50)
    assert stats.rate("put", 60) is None
    assert stats.runtime()["putTps"] == "50.0  "
    assert stats.runtime()["getTotalTps"] == "0.0 0.0 0.0"


def test_totals_and_averages() -> None:
    """Messages and bytes of all topics; an average of nothing is 0."""
    stats = StoreStats(ManualClock())
    assert stats.runtime()["putMessageAverageSize"] == "0.0"
    stats.count_put("A", 2, 300)
    stats.count_put("B", 1, 300)
    stats.put_failed_times += 1
    runtime = stats.runtime()
    assert runtime["putMessageTimesTotal"] == "3"
    assert runtime["putMessageSizeTotal"] == "600"
    assert runtime["putMessageAverageSize"] == "200.0"
    assert runtime["putMessageFailedTimes"] == "1"


def test_percentiles_are_those_of_the_last_minute() -> None:
    """99 of 100 puts took one ms at most."""
    clock = ManualClock()
    stats = StoreStats(clock)
    for number in range(1000):
        stats.time_put(1 if number < 999 else 700)
    clock.advance(60_000)
    stats.tick()
    assert stats.put_percentile_ms(0.99) <= 1
    assert 600 <= stats.put_percentile_ms(1.0) <= 700


def test_the_run_time_is_told_in_days_hours_minutes_and_seconds() -> None:
    """Since the start of the store."""
    clock = ManualClock()
    stats = StoreStats(clock)
    clock.advance(((26 * 60 + 3) * 60 + 4) * 1000)
    assert stats.runtime()["runtime"] == "[ 1 days, 2 hours, 3 minutes, 4 seconds ]"


def test_flags_have_javas_bits() -> None:
    """Each of them is raised and lowered on its own; the text names those that are up."""
    flags = RunningFlags()
    assert flags.raise_flag(RunningFlag.DISK_FULL)
    assert not flags.raise_flag(RunningFlag.DISK_FULL)
    flags.raise_flag(RunningFlag.NOT_READABLE)
    assert int(flags.flags) == 17
    assert (flags.is_readable, flags.is_writeable) == (False, False)
    assert flags.lower_flag(RunningFlag.DISK_FULL)
    assert not flags.lower_flag(RunningFlag.DISK_FULL)
    assert (str(flags), flags.is_writeable) == ("NOT_READABLE", True)
