"""Messages that come into the wheel together: as if each had come by itself."""

from __future__ import annotations

import errno

import pytest

from logstore.errors import WriteFailedError
from logstore.host import read_file
from logstore.segments.rocketmq.timer.timer_store import TimerStore
from logstore.testing.simulated_host import SimulatedHost
from tests.segments.rocketmq.timer.test_timer_store import (
    SMALL,
    START_MS,
    TimerTopic,
    host_at_start,
    store_of,
)


def topic_with_all_kinds() -> TimerTopic:
    """Return messages of a few ticks and topics; some are late, far away, or take others back."""
    topic = TimerTopic()
    for number in range(60):
        properties = {"REAL_TOPIC": f"t{number % 3}"}
        if number % 7 == 3:
            properties["TIMER_DEL_UNIQKEY"] = f"key{number}"
        due_ms = START_MS + (number % 5) * 1000 + (150_000 if number % 11 == 4 else 0)
        topic.put(START_MS - 5000 if number % 13 == 6 else due_ms, **properties)
    return topic


def enqueued(host: SimulatedHost, topic: TimerTopic, count_max: int) -> TimerStore:
    """Return a store that has taken all messages, so many at a time."""
    store = store_of(host, topic)
    while (step := store.enqueue(count_max)) is not None:
        store.commit_enqueue(step)
    return store


def files_of(host: SimulatedHost, store: TimerStore) -> list[bytes]:
    """Return the files of log and wheel, and the metrics."""
    store.flush()
    names = [entry.name for entry in host.fs.list_directory("/store/timerlog")]
    paths = [f"/store/timerlog/{name}" for name in sorted(names)]
    paths += ["/store/timerwheel", "/store/config/timermetrics"]
    return [read_file(host.fs, path) for path in paths]


@pytest.mark.parametrize("count_max", [2, 7, 1000])
def test_they_leave_the_same_files(count_max: int) -> None:
    """Log files that fill up, slots, counts and the version of the counts are the same."""
    host, other = host_at_start(), host_at_start()
    topic = topic_with_all_kinds()
    assert topic.max_queue_offset * 52 > 4 * SMALL.log_file_bytes
    found = files_of(host, enqueued(host, topic, count_max))
    assert found == files_of(other, enqueued(other, topic, 1))


def test_they_are_one_write_a_file() -> None:
    """Sixty messages cost no more writes than there are files of ten."""
    host = host_at_start()
    enqueued(host, topic_with_all_kinds(), 1000)
    writes = [one for one in host.fs.journal.matching(path="*/timerlog/*") if one.kind == "write"]
    assert len(writes) < 20


def test_what_the_disk_refuses_is_in_no_slot() -> None:
    """Messages come in again, and the wheel leads to no unit that is not there."""
    host = host_at_start()
    topic = topic_with_all_kinds()
    store = store_of(host, topic)
    host.fs.faults.fail_next("write", errno.EIO, path="*/timerlog/*", count=1)
    with pytest.raises(WriteFailedError):
        store.enqueue(1000)
    assert store.wheel.count_from(START_MS) == 0
    assert (store.log.max_timer_offset, store.queue_offset) == (0, 0)
    step = store.enqueue(1000)
    assert step is not None
    store.commit_enqueue(step)
    other = host_at_start()
    assert files_of(host, store)[:-1] == files_of(other, enqueued(other, topic, 1))[:-1]
