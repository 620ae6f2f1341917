"""Timed messages through stops, power losses, failed syncs, damage and clocks that are set back."""

from __future__ import annotations

import errno

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.errors import WriteFailedError
from logstore.host import read_file
from logstore.segments.rocketmq.messages.properties import (
    encode_properties,
)
from logstore.segments.rocketmq.timer.timer_rules import (
    TimerSettings,
)
from tests.segments.rocketmq.timer.test_timer_store import (
    START_MS,
    TimerTopic,
    host_at_start,
    store_of,
    take,
)


@settings(max_examples=40, deadline=None)
@given(
    delays=st.lists(st.integers(0, 400), min_size=1, max_size=30),
    steps=st.lists(st.integers(1, 60), min_size=1, max_size=15),
    dies_at=st.integers(0, 14),
)
def test_each_once_in_time(delays: list[int], steps: list[int], dies_at: int) -> None:
    """Every message is delivered once, when due, over many files and a clean restart."""
    host, topic = host_at_start(), TimerTopic()
    store = store_of(host, topic, TimerSettings(slot_count=1000, log_file_bytes=520))
    for delay in delays:
        topic.put(START_MS + delay * 1000)
    found: list[tuple[int, int]] = []
    for number, step in enumerate([0, *steps, 500]):
        host.clock.advance(step * 1000)
        store.move_write_time()
        found += take(store)
        if number == dies_at:
            store.close()
            store = store_of(host, topic, TimerSettings(slot_count=1000, log_file_bytes=520))
    assert sorted(number for number, _ in found) == list(range(len(delays)))
    times = [START_MS]
    for step in [*steps, 500]:
        times.append(times[-1] + step * 1000)
    for number, now_ms in found:
        due_ms = START_MS + delays[number] * 1000
        assert now_ms == min(one for one in times if one > due_ms)


@settings(max_examples=40, deadline=None)
@given(
    delays=st.lists(st.integers(0, 100), min_size=1, max_size=30),
    flushes=st.sets(st.integers(0, 12)),
    dies_at=st.integers(0, 12),
)
def test_none_lost_by_power_loss(delays: list[int], flushes: set[int], dies_at: int) -> None:
    """After a power loss no message is missing, however long ago the last flush was."""
    host, topic = host_at_start(), TimerTopic()
    given_settings = TimerSettings(slot_count=1000, log_file_bytes=520)
    store = store_of(host, topic, given_settings)
    pending = list(delays)
    found: set[int] = set()
    for number in range(13):
        for delay in pending[:3]:
            topic.put(store.write_time_ms + delay * 1000)
        del pending[:3]
        host.clock.advance(9000)
        store.move_write_time()
        found |= {one for one, _ in take(store)}
        if number in flushes:
            store.flush()
        if number == dies_at:
            host.power_loss()
            host.fs.make_directory("/store/config")
            store = store_of(host, topic, given_settings)
    host.clock.advance(200_000)
    store.move_write_time()
    found |= {one for one, _ in take(store)}
    assert found == set(range(len(topic.messages)))


@pytest.mark.parametrize("opens_between", [False, True])
def test_none_lost_by_a_sync_that_fails(opens_between: bool) -> None:
    """No checkpoint speaks of units whose sync failed; their messages come in again."""
    host, topic = host_at_start(), TimerTopic()
    store = store_of(host, topic)
    store.flush()
    topic.put(START_MS + 6000)
    take(store)
    host.fs.faults.fail_next_sync(errno.EIO, path="*/timerlog/0*")
    with pytest.raises(OSError, match="EIO"):
        store.flush()
    for _ in range(2):
        with pytest.raises(WriteFailedError, match="a sync failed"):
            store.flush()
    if opens_between:
        store.abandon()
        store = store_of(host, topic)
        take(store)
        store.flush()
    host.power_loss()
    store = store_of(host, topic)
    host.clock.advance(20_000)
    store.move_write_time()
    assert [number for number, _ in take(store)] == [0]


@pytest.mark.parametrize("is_timer", [False, True])
@pytest.mark.parametrize("is_wheel_written", [False, True])
def test_units_lead_to_no_message_but_their_own(*, is_timer: bool, is_wheel_written: bool) -> None:
    """Another one stands where a power loss cost the commit log its end: it is not due."""
    host, topic = host_at_start(), TimerTopic()
    store = store_of(host, topic)
    topic.put(START_MS + 5000)
    take(store)
    if is_wheel_written:
        store.wheel.write(store.wheel.begin_flush())
    store.abandon()
    lost = topic.messages.pop()
    if is_timer:
        topic.put(START_MS + 60_000)
    else:  # a half message, whose timer topic is empty
        properties = encode_properties({"REAL_TOPIC": "t", "REAL_QID": "3"})
        topic.messages.append(
            attrs.evolve(lost, topic="RMQ_SYS_TRANS_HALF_TOPIC", properties_text=properties)
        )
    again = store_of(host, topic)
    assert again.queue_offset == 0
    delivered: list[tuple[int, int]] = []
    for _ in range(70):
        delivered += take(again)
        host.clock.advance(1000)
        again.move_write_time()
    assert delivered == ([(0, START_MS + 61_000)] if is_timer else [])


def test_no_message_is_taken_back_by_a_strange_one() -> None:
    """A unit that takes a message back counts only with its own message."""
    host, topic = host_at_start(), TimerTopic()
    store = store_of(host, topic)
    topic.put(START_MS + 5000, UNIQ_KEY="k")
    topic.put(START_MS + 5000, TIMER_DEL_UNIQKEY="k")
    take(store)
    properties = encode_properties({"REAL_TOPIC": "t", "TIMER_DEL_UNIQKEY": "k"})
    topic.messages[1] = attrs.evolve(topic.messages[1], topic="t", properties_text=properties)
    host.clock.advance(6000)
    store.move_write_time()
    assert [number for number, _ in take(store)] == [0]


@pytest.mark.parametrize("opens_between", [False, True])
def test_none_lost_by_a_clock_that_is_set_back(opens_between: bool) -> None:
    """What is due before the tick that was read last is late, after a start, too."""
    host, topic = host_at_start(), TimerTopic()
    store = store_of(host, topic)
    host.clock.advance(60_000)
    topic.put(START_MS + 50_000)
    take(store)
    store.flush()
    host.clock.jump_wall(-40_000)
    if opens_between:
        store.abandon()
        store = store_of(host, topic)
    topic.put(START_MS + 25_000)
    topic.put(START_MS + 90_000)
    found: list[tuple[int, int]] = []
    for _ in range(80):
        found += take(store)
        host.clock.advance(1000)
        store.move_write_time()
    assert found == [(1, START_MS + 20_000), (2, START_MS + 91_000)]


def test_damaged_log_ends_there() -> None:
    """A damaged unit ends the log; messages from there on come in again from the timer topic."""
    host, topic = host_at_start(), TimerTopic()
    store = store_of(host, topic)
    for number in range(25):
        topic.put(START_MS + 5000 + number * 1000)
    take(store)
    store.close()
    path = "/store/timerlog/00000000000000000520"
    data = bytearray(read_file(host.fs, path))
    data[2 * 52 + 3] ^= 1
    file = host.fs.open(path)
    file.write(0, bytes(data))
    file.close()
    again = store_of(host, topic)
    assert again.log.max_timer_offset == 520 + 2 * 52
    assert again.queue_offset == 11
    assert again.congestion(START_MS + 5000 + 10_000) == 1
    assert again.congestion(START_MS + 5000 + 11_000) == 0
    for number in range(25):
        topic.put(START_MS + 5000 + (24 - number) * 1000)
    delivered: list[tuple[int, int]] = []
    for _ in range(60):
        delivered += take(again)
        host.clock.advance(1000)
        again.move_write_time()
    assert sorted(number for number, _ in delivered) == list(range(50))
    for number, now_ms in delivered:
        due_ms = START_MS + 5000 + (number if number < 25 else 49 - number) * 1000
        assert now_ms == due_ms + 1000


def test_old_files_go() -> None:
    """Log files whose messages are deleted go, but for the newest."""
    host, topic = host_at_start(), TimerTopic()
    store = store_of(host, topic)
    for _ in range(25):
        topic.put(START_MS + 5000)
    take(store)
    per_file = (520 - 16) // 52
    assert store.clean(per_file * 1000 - 1000) == 0
    assert store.clean(per_file * 1000) == 1
    assert store.log.min_timer_offset == 520
    assert store.clean(1 << 40) == 1
    assert store.log.min_timer_offset == 1040
