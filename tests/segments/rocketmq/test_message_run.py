"""Messages that are put together: the files are those of messages put one by one."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import pytest

from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
from logstore.segments.rocketmq.messages.message_run import MessageKind, MessageRun
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.segments.rocketmq.upkeep.running_flags import RunningFlag
from logstore.testing import SimulatedHost
from logstore.testing.manual_clock import ManualClock
from tests.segments.rocketmq.drafts import BORN, BORN_MS, STORED
from tests.segments.rocketmq.small_store import DIRECTORY, bodies, small_store

ROOMY = {
    "mappedFileSizeCommitLog": "262144",
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "50",
    "maxIndexNum": "60",
}
FOLDERS = ("commitlog", "consumequeue/A/0", "consumequeue/A/1", "consumequeue/B/0", "index")


def kind(
    topic: str = "A",
    queue_id: int = 0,
    behind: bytes = b"\x02",
    *,
    before: bytes = b"x\x011\x02UNIQ_KEY\x01",
    example: bytes = bytes(8),
    unique_key_at: slice | None = None,
    keys_at: slice | None = None,
) -> MessageKind:
    """Return a kind of messages whose unique keys have eight bytes."""
    return MessageKind(
        topic=topic,
        queue_id=queue_id,
        flag=7,
        sys_flag=0,
        reconsume_times=0,
        text_before=before,
        example=example,
        text_behind=behind,
        born_host=BORN,
        store_host=STORED,
        unique_key_at=unique_key_at,
        keys_at=keys_at,
    )


#: what varies, by the message's number
KEYS_FIRST = "key{0:04d} z\x02TAGS\x01green\x02UNIQ_KEY\x01{0:08d}"
KEYS_LAST = "{0:08d}\x02KEYS\x01key{0:04d} z"
PLAIN = (
    (kind("A", 0), "{0:08d}"),
    (kind("A", 1, b"\x02TAGS\x01red\x02"), "{0:08d}"),
    (kind("B", 0, b"\x02KEYS\x01k1 k2\x02TAGS\x01blue\x02"), "{0:08d}"),
)
KEYED = (
    (
        kind(
            "A",
            1,
            before=b"KEYS\x01",
            example=KEYS_FIRST.format(5).encode(),
            unique_key_at=slice(30, 38),
            keys_at=slice(0, 9),
        ),
        KEYS_FIRST,
    ),
    (
        kind(
            "B",
            0,
            before=b"UNIQ_KEY\x01",
            example=KEYS_LAST.format(5).encode(),
            unique_key_at=slice(0, 8),
            keys_at=slice(14, 23),
        ),
        KEYS_LAST,
    ),
)


def run_of(numbers: range, kinds: Sequence[tuple[MessageKind, str]] = PLAIN) -> MessageRun:
    """Return a run of messages of these kinds."""
    run = MessageRun()
    for number in numbers:
        one, varying = kinds[number % len(kinds)]
        run.add(one, b"body %d" % number, varying.format(number).encode(), BORN_MS + number)
    return run


def opened(host: SimulatedHost) -> RocketMQStore:
    """Open a store in which every queue has a message."""
    store = small_store(host, settings=ROOMY)
    for draft in run_of(range(3)).drafts():
        assert store.put_message(draft).is_ok
    store.dispatch()
    return store


def files(host: SimulatedHost) -> dict[str, bytes]:
    """Return what stands in the store's files."""
    found: dict[str, bytes] = {}
    for folder in FOLDERS:
        path = f"{DIRECTORY}/{folder}"
        for entry in host.fs.list_directory(path):
            file = host.fs.open(f"{path}/{entry.name}", writable=False)
            found[f"{folder}/{entry.name}"] = file.read(0, file.size())
    return found


def test_a_run_is_written_as_its_messages_one_by_one() -> None:
    """Commit log, queues and index have the same bytes, index files that fill up among them."""
    together, alone = SimulatedHost(), SimulatedHost()
    store, other = opened(together), opened(alone)
    for start in range(3, 63, 12):
        run = run_of(range(start, start + 12), (*PLAIN, *KEYED))
        drafts = run.drafts()
        assert store.put_run(run)
        store.dispatch()
        results = [other.put_message(draft) for draft in drafts]
        other.dispatch()
        assert [(item[1], item[3]) for item in run.stored] == [
            (result.physical_offset, result.queue_offset) for result in results
        ]
    for opened_store in (store, other):
        opened_store.write_derived()
    assert files(together) == files(alone)
    assert len(store.index.files) > 1
    assert store.stats.put_times_by_topic == other.stats.put_times_by_topic == {"A": 38, "B": 25}
    assert store.stats.put_size_bytes_by_topic == other.stats.put_size_bytes_by_topic


@pytest.mark.parametrize("step_ms", [0, 7, 300, 2500])
def test_runs_are_dispatched_together_as_one_by_one(step_ms: int) -> None:
    """Queues and index have the same bytes, whatever times lie between, full files among them."""
    together, alone = (SimulatedHost(clock=ManualClock()) for _ in range(2))
    store, other = opened(together), opened(alone)
    for start in range(3, 63, 3):
        for one, host in ((store, together), (other, alone)):
            assert one.put_run(run_of(range(start, start + 3), (*PLAIN, *KEYED)))
            host.clock.advance(step_ms)
        other.dispatch()
        if start % 5 == 0:
            assert store.dispatch() == 15
    for opened_store in (store, other):
        opened_store.write_derived()
    # Index files are named by the time when the one before was full.
    assert list(files(together).values()) == list(files(alone).values())
    assert len(store.index.files) > 1
    now_ms = store.dispatching.current_reput_timestamp_ms
    assert now_ms == other.dispatching.current_reput_timestamp_ms


@pytest.mark.parametrize("between", ["runs", "drafts", "log"])
def test_keys_may_follow_their_messages(between: str) -> None:
    """Queues have a message at once, the index at the next dispatch that does not defer it."""
    later, at_once = (SimulatedHost(clock=ManualClock()) for _ in range(2))
    for host, defers in ((later, True), (at_once, False)):
        store = opened(host)
        for start in range(3, 63, 3):
            run = run_of(range(start, start + 3), (*PLAIN, *KEYED))
            if between != "runs" and start % 4 == 0:
                for draft in run.drafts():
                    assert store.put_message(draft).is_ok
            else:
                assert store.put_run(run)
            if between == "log" and start % 8 == 0:  # as after a start: it is read again
                store.dispatching.restart(store.dispatching.reput_from)
            before = store.index.end_physical_offset
            assert store.dispatch(defers_index=defers) == 3
            assert store.dispatching.behind_bytes == 0
            if defers and between == "runs":
                assert store.index.end_physical_offset == before
            host.clock.advance(300)
        assert store.dispatch() == (60 if defers and between == "runs" else 0)
        store.write_derived()
    assert list(files(later).values()) == list(files(at_once).values())


def test_keys_that_the_disk_refuses_stop_puts_until_it_takes_them() -> None:
    """Also those that were to follow: the next dispatch that gets them into the index ends it."""
    host = SimulatedHost()
    store = opened(host)
    for start in range(3, 63, 12):
        assert store.put_run(run_of(range(start, start + 12)))
        assert store.dispatch(defers_index=True) == 12
    host.fs.faults.fail_next("open", errno.ENOSPC, path="*/index/*", count=None)
    assert store.dispatch() == 0
    assert not store.put_run(run_of(range(63, 66)))
    assert len(bodies(store, "B")) == 21
    host.fs.faults.clear()
    assert store.dispatch() == 60
    assert store.put_run(run_of(range(63, 66)))
    assert store.dispatch() == 3
    for number in range(63, 66):
        topic = PLAIN[number % 3][0].topic
        answer = store.index.query(topic, f"{number:08d}", 10, 0, 1 << 60)
        assert len(answer.physical_offsets) == 1
    for number in range(3, 63):  # a message may be in there twice, as with Java
        topic = PLAIN[number % 3][0].topic
        assert store.index.query(topic, f"{number:08d}", 10, 0, 1 << 60).physical_offsets


def test_a_run_goes_to_the_disk_with_one_write() -> None:
    """However many messages a run holds, the commit log is written to once."""
    host = SimulatedHost()
    store = opened(host)
    before = len(host.fs.journal.matching(path="*/commitlog/*"))
    assert store.put_run(run_of(range(30)))
    assert len(host.fs.journal.matching(path="*/commitlog/*")) - before == 1
    store.dispatch()
    assert bodies(store, "B")[-1] == b"body 29"


def test_messages_of_a_run_are_found_by_their_keys() -> None:
    """Each message of a run is found by its unique key, its keys and nothing of its neighbours'."""
    store = opened(SimulatedHost())
    run = run_of(range(3, 9))
    assert store.put_run(run)
    store.dispatch()
    keyed = run_of(range(10, 12), KEYED)
    assert store.put_run(keyed)
    store.dispatch()
    for item, *keys in (
        (run.stored[2], "00000005"),
        (run.stored[0], "00000003"),
        (keyed.stored[0], "00000010", "key0010"),
        (keyed.stored[1], "00000011", "key0011"),
    ):
        for key in keys:
            answer = store.index.query(item[0].topic, key, 10, 0, 1 << 60)
            assert answer.physical_offsets == [item[1]]


@pytest.mark.parametrize("why", ["new queue", "no room", "refused", "too large"])
def test_a_run_that_cannot_be_put_together_changes_nothing(why: str) -> None:
    """Whoever asked is told to put the messages one by one, and can."""
    host = SimulatedHost()
    store = opened(host)
    end = store.commit_log.max_physical_offset
    run = run_of(range(3, 6))
    if why == "new queue":
        run.add(kind("C", 0), b"body", b"00000099", BORN_MS)
    elif why == "no room":
        for number in range(1000):
            run.add(PLAIN[0][0], bytes(300), b"%08d" % number, BORN_MS)
    elif why == "refused":
        store.running_flags.raise_flag(RunningFlag.DISK_FULL)
    else:
        run.add(PLAIN[0][0], bytes(40_000), b"00000099", BORN_MS)
    assert not store.put_run(run)
    store.dispatch()
    assert store.commit_log.max_physical_offset == end
    assert len(bodies(store, "A")) == 1
    assert len(run.drafts()) == len(run)
    assert store.put_message(run.drafts()[0]).is_ok is (why != "refused")


def test_a_run_that_the_disk_refuses_leaves_no_trace() -> None:
    """Nothing of it is counted or read, and the messages can be put one by one afterwards."""
    host = SimulatedHost()
    store = opened(host)
    host.fs.faults.fail_next("write", errno.ENOSPC, path="*/commitlog/*")
    run = run_of(range(3, 9))
    assert not store.put_run(run)
    results = [store.put_message(draft) for draft in run.drafts()]
    store.dispatch()
    assert [result.queue_offset for result in results] == [1, 1, 1, 2, 2, 2]
    assert bodies(store, "A") == [b"body 0", b"body 3", b"body 6"]
    assert store.stats.put_times_total == 9


def test_a_run_is_there_after_a_crash() -> None:
    """What a recovery reads of a run are its messages, in all queues."""
    host = SimulatedHost()
    store = opened(host)
    assert store.put_run(run_of(range(3, 9)))
    store.abandon()
    again = small_store(host, settings=ROOMY)
    assert bodies(again, "A", 1) == [b"body 1", b"body 4", b"body 7"]
    assert again.max_queue_offset("B", 0) == 3


def test_only_awaited_queues_are_told_of() -> None:
    """Listeners see the messages of a run that go where somebody waits, and no others."""
    store = opened(SimulatedHost())
    heard: list[DispatchRequest] = []
    store.add_arrival_listener(heard.append)
    store.dispatching.is_awaited = lambda queue: queue == ("B", 0)
    run = run_of(range(3, 9))
    assert store.put_run(run)
    assert store.dispatch() == 6
    assert [(one.topic, one.queue_offset, one.tags, one.keys) for one in heard] == [
        ("B", 1, "blue", "k1 k2"),
        ("B", 2, "blue", "k1 k2"),
    ]
    assert [one.physical_offset for one in heard] == [run.stored[2][1], run.stored[5][1]]
