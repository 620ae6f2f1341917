"""Sends of what comes later, or is half of a transaction: together as one by one."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping

import pytest

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.host import read_file
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker
from tests.compat.rocketmq.frames import Answer
from tests.compat.rocketmq.test_send_run import fed, joined_frames, log_of, sends, spaced_frames

WHEEL = {"timerWheelEnable": "true", "mappedFileSizeTimerLog": "5200"}
KEY = "UNIQ_KEY\x01{key}\x02"
HALF = f"{KEY}TRAN_MSG\x01true\x02PGROUP\x01producers\x02"
SOON = f"{KEY}TIMER_DELAY_SEC\x0130\x02"
START_MS = 1_700_000_000_300


def opened(settings: Mapping[str, str] | None = None) -> Broker:
    """Return a broker with a time wheel that knows the topic and delivers."""
    host = SimulatedHost(clock=ManualClock(START_MS))
    broker = a_broker(host, {**WHEEL, **(settings or {})})
    assert {one.code for one in fed(broker, joined_frames(sends(range(4))))} == {0}
    broker.start_housekeeping()
    return broker


def pass_ms(broker: Broker, delay_ms: float) -> None:
    """Let time pass, timer by timer."""
    clock = broker.host.clock
    assert isinstance(clock, ManualClock)
    end_ms = clock.monotonic_ms() + delay_ms
    while (due_ms := broker.timers.next_due_ms()) is not None and due_ms <= end_ms:
        clock.advance(max(due_ms - clock.monotonic_ms(), 0))
        broker.timers.run()
    clock.advance(end_ms - clock.monotonic_ms())


def files_of(broker: Broker) -> dict[str, bytes]:
    """Return what is made of the commit log: queues, index, and the time wheel's log."""
    broker.store.dispatch()
    broker.store.write_derived()
    fs = broker.host.fs
    found: dict[str, bytes] = {}
    folders = [f"{broker.store.directory}/{name}" for name in ("consumequeue", "index", "timerlog")]
    while folders:
        folder = folders.pop()
        for entry in fs.list_directory(folder) if fs.exists(folder) else ():
            path = f"{folder}/{entry.name}"
            if entry.is_directory:
                folders.append(path)
            else:
                found[path] = read_file(fs, path)
    return found


def commit_log_writes(broker: Broker) -> int:
    """Return how often the commit log was written to."""
    host = broker.host
    assert isinstance(host, SimulatedHost)
    return len(host.fs.journal.matching(path="*/commitlog/*"))


def served_twice(
    numbers: Iterable[int], together: Broker, alone: Broker, properties: str, **fields: object
) -> tuple[list[Answer], list[Answer]]:
    """Return the answers to sends that come in one read, and to the same one by one."""
    requests = sends(numbers, properties, **fields)
    gathered = fed(together, joined_frames(requests))
    return gathered, [one for frame in spaced_frames(requests) for one in fed(alone, frame)]


@pytest.mark.parametrize(
    ("properties", "is_fast"),
    [
        (f"{KEY}DELAY\x013\x02", True),
        (f"{KEY}DELAY\x0199\x02TAGS\x01red\x02", True),
        (f"KEYS\x01k-{{number}}\x02{KEY}DELAY\x013\x02", True),
        (f"{KEY}DELAY\x013\x02TIMER_DELAY_SEC\x0130\x02", True),
        (f"{KEY}DELAY\x010\x02", False),
        (f"{KEY}DELAY\x01soon\x02", False),
        (f"{KEY}MYDELAY\x013\x02", False),
        (SOON, True),
        (f"{KEY}TIMER_DELAY_MS\x012500\x02TAGS\x01red\x02", True),
        (f"{KEY}KEYS\x01k-{{number}} 100%\x02TIMER_DELAY_MS\x0170000\x02", True),
        (f"{KEY}TIMER_DELIVER_MS\x01{START_MS + 60_000}\x02", True),
        (f"{KEY}TIMER_DELIVER_MS\x01{START_MS + 1_500}\x02", True),
        (f"{KEY}TIMER_DELIVER_MS\x01{START_MS - 1}\x02", False),
        (f"{KEY}TIMER_DELAY_MS\x01soon\x02", False),
        (f"{KEY}TIMER_DELAY_SEC\x01999999999\x02", False),
        (f"{SOON}TIMER_OUT_MS\x01{START_MS + 5_000}\x02REAL_TOPIC\x01t\x02", False),
        (HALF, True),
        (f"{HALF}KEYS\x01k-{{number}}\x02TAGS\x01red\x02", True),
        (f"KEYS\x01{{key}}\x02{HALF}", True),
        (f"{HALF}__transactionId__\x01mine\x02", True),
        (f"{HALF}DELAY\x013\x02", True),
        (f"{HALF}TIMER_DELAY_SEC\x0130\x02", True),
        (f"{HALF}_SYS_MSG_PRIORITY_\x013\x02", False),
        (f"{KEY}TRAN_MSG\x01false\x02", False),
    ],
)
def test_they_are_served_together_as_one_by_one(properties: str, is_fast: bool) -> None:
    """Every answer, the commit log and all that follows from it are the same."""
    together, alone = opened(), opened()
    flags = {"f": 4 if "TRAN_MSG" in properties else 0}
    for start in range(10, 100, 10):
        numbers = range(start, start + 10)
        gathered, single = served_twice(numbers, together, alone, properties, **flags)
        assert [one.header for one in gathered] == [one.header for one in single]
        for broker in (together, alone):
            pass_ms(broker, 333)
    assert log_of(together) == log_of(alone)
    assert (commit_log_writes(together) < commit_log_writes(alone)) is is_fast
    for broker in (together, alone):
        pass_ms(broker, 80_000)
    assert log_of(together) == log_of(alone)
    assert files_of(together) == files_of(alone)


def test_those_of_one_read_are_one_write() -> None:
    """Delayed, timed and half messages and plain ones go into the log together."""
    broker = opened()
    kinds = (f"{KEY}DELAY\x013\x02", SOON, HALF, KEY)
    frames = joined_frames(
        request
        for number, properties in enumerate(kinds * 3)
        for request in sends([number], properties, e=1, f=4 * (properties is HALF))
    )
    before = 0
    for _ in range(3):
        before = commit_log_writes(broker)
        assert {one.code for one in fed(broker, frames)} == {0}
    assert commit_log_writes(broker) - before == 1


@pytest.mark.parametrize("properties", [f"{KEY}DELAY\x013\x02", SOON, HALF])
def test_where_the_disk_refuses_once_they_go_one_by_one(properties: str) -> None:
    """What was redirected already is not redirected again, and is told as before."""
    together, alone = opened(), opened()
    flags = {"f": 4 if properties is HALF else 0}
    for start in (10, 20, 30):
        host = together.host
        assert isinstance(host, SimulatedHost)
        if start == 30:
            host.fs.faults.fail_next("write", errno.EIO, path="*/commitlog/*", count=1)
        numbers = range(start, start + 10)
        gathered, single = served_twice(numbers, together, alone, properties, **flags)
        assert [one.header for one in gathered] == [one.header for one in single]
    assert log_of(together) == log_of(alone)


def test_a_tick_that_is_full_takes_no_more() -> None:
    """Where there is a limit to messages of a tick each is looked at by itself."""
    broker = opened({"timerCongestNumEachSlot": "5"})
    codes: list[list[int]] = []
    for start in range(10, 60, 10):
        answered = fed(broker, joined_frames(sends(range(start, start + 10), SOON)))
        codes.append([one.code for one in answered])
        pass_ms(broker, 100)
    assert codes[0] == [0] * 10
    assert 0 not in codes[-1]


@pytest.mark.parametrize(
    ("properties", "setting"),
    [(SOON, "timerMaxDelaySec=10"), (HALF, "rejectTransactionMessage=true")],
)
def test_settings_that_change_are_followed(properties: str, setting: str) -> None:
    """What was taken a moment ago is refused by what has been set since."""
    broker = opened()
    flags = {"f": 4 if properties is HALF else 0}
    for _ in range(3):
        answered = fed(broker, joined_frames(sends(range(10, 20), properties, **flags)))
        assert {one.code for one in answered} == {0}
    assert Peer(broker).ask(RequestCode.UPDATE_BROKER_CONFIG, {}, setting.encode()).code == 0
    answered = fed(broker, joined_frames(sends(range(10, 20), properties, **flags)))
    assert 0 not in {one.code for one in answered}


def test_a_transaction_that_bears_a_name_of_its_own_keeps_it() -> None:
    """Only what the broker has named itself is the unique key of the next message, too."""
    broker = opened()
    first, second = (f"7F0000010000{number:020X}" for number in (10, 11))
    named = f"{KEY}__transactionId__\x01{first}\x02"
    for number in (10, 10, 10, 11):
        assert fed(broker, joined_frames(sends([number], named, e=0)))[0].code == 0
    *_, last = Peer(broker).messages(queue_id=0)
    assert (last.unique_key, last.properties["__transactionId__"]) == (second, first)


def test_a_topic_that_is_made_anew_is_learned_again() -> None:
    """Sends of a kind whose topic has changed take the short way again by and by."""
    broker = opened()
    for _ in range(3):
        fed(broker, joined_frames(sends(range(10, 14), HALF, f=4)))
    Peer(broker).ask(
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        {
            "topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": 8, "writeQueueNums": 8,
            "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
        },
    )  # fmt: skip
    before = 0
    for _ in range(4):
        before = commit_log_writes(broker)
        assert {one.code for one in fed(broker, joined_frames(sends(range(4), HALF, f=4)))} == {0}
    assert commit_log_writes(broker) - before == 1
