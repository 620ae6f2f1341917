"""Damage of wheel and log: every message is delivered in time, and none of those that were."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logstore.host import read_file, write_file
from logstore.segments.rocketmq.timer.timer_store import TimerStore
from logstore.segments.rocketmq.timer.timer_unit import TIMER_UNIT_BYTES
from logstore.testing.simulated_host import SimulatedHost
from tests.segments.rocketmq.timer.test_timer_store import (
    SMALL,
    START_MS,
    TimerTopic,
    host_at_start,
    take,
)

WHEEL, LOG = "/store/timerwheel", "/store/timerlog"
COUNT = 45
DELIVERED = 8
FILE_BYTES = SMALL.log_file_bytes


def remove_log(host: SimulatedHost) -> None:
    """Take all files of the log away."""
    for entry in host.fs.list_directory(LOG):
        host.fs.remove(f"{LOG}/{entry.name}")


def damage_unit(number: int) -> Callable[[SimulatedHost], None]:
    """Return what makes a unit of the log none."""

    def damage(host: SimulatedHost) -> None:
        place = number * TIMER_UNIT_BYTES
        path = f"{LOG}/{place - place % FILE_BYTES:020d}"
        data = bytearray(read_file(host.fs, path))
        data[place % FILE_BYTES + 3] ^= 1
        write_file(host.fs, path, bytes(data))

    return damage


def remove_both(host: SimulatedHost) -> None:
    """Take wheel and log away."""
    host.fs.remove(WHEEL)
    remove_log(host)


DAMAGES: dict[str, Callable[[SimulatedHost], None]] = {
    "none": lambda _: None,
    "no wheel": lambda host: host.fs.remove(WHEEL),
    "a wheel too short": lambda host: write_file(host.fs, WHEEL, read_file(host.fs, WHEEL)[:-7]),
    "no log": remove_log,
    "neither": remove_both,
    "the last unit": damage_unit(COUNT - 1),
    "the first of the last file": damage_unit(COUNT - COUNT % 10),
    "the first that is checked": damage_unit(COUNT - COUNT % 10 - 10),
}


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("damage", list(DAMAGES))
def test_every_message_is_delivered_in_time(damage: str, is_clean: bool) -> None:
    """Whatever is left of wheel and log; the timer topic has the messages."""
    host, topic = host_at_start(), TimerTopic()

    def opened() -> TimerStore:
        return TimerStore(host, "/store", SMALL, topic.message_at, lambda: topic, is_clean=is_clean)

    store = opened()
    for number in range(COUNT):
        topic.put(START_MS + 1000 + number * 1000)
    before = take(store)
    for _ in range(DELIVERED):
        host.clock.advance(1000)
        store.move_write_time()
        before += take(store)
    assert 0 < len(before) < COUNT
    store.close()
    DAMAGES[damage](host)
    store = opened()
    after: list[tuple[int, int]] = []
    for _ in range(COUNT + 5):
        after += take(store)
        host.clock.advance(1000)
        store.move_write_time()
    store.close()
    assert sorted(number for number, _ in before + after) == list(range(COUNT))
    assert all(now_ms == START_MS + 2000 + number * 1000 for number, now_ms in before + after)
    assert host.fs.exists(f"{WHEEL}.damaged") is (damage == "a wheel too short")
