"""Timer messages: golden wheel, log, checkpoint and metrics; in and out of it; congestion."""

from __future__ import annotations

import struct
from pathlib import Path

import attrs
import pytest

from logstore.host import write_file
from logstore.os_host import system_host
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.segments.rocketmq.messages.properties import (
    HASH_MAP_CAPACITY_5,
    encode_properties,
)
from logstore.segments.rocketmq.putting.put_redirection import TIMER_TOPIC
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT
from logstore.segments.rocketmq.reading.message_query import message_at
from logstore.segments.rocketmq.timer.due_tick import DueTick
from logstore.segments.rocketmq.timer.timer_checkpoint import TimerCheckpoint
from logstore.segments.rocketmq.timer.timer_rules import (
    NEVER_ENQUEUED_MS,
    TimerSettings,
)
from logstore.segments.rocketmq.timer.timer_steps import TimerDelivery
from logstore.segments.rocketmq.timer.timer_store import TimerStore
from logstore.segments.rocketmq.timer.timer_unit import TIMER_UNIT_BYTES, TimerUnit
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.segments.rocketmq.golden_case import golden_cases
from tests.segments.rocketmq.memory_store import MemoryCommitLog, MemoryQueue

START_MS = 1_800_000_000_000
SMALL = TimerSettings(slot_count=500, roll_window_slots=100, log_file_bytes=520)


@attrs.define
class TimerTopic:
    """A timer topic in memory: what a broker would put there."""

    messages: list[Message] = attrs.field(factory=list[Message])

    def put(self, due_ms: int, **properties: str) -> Message:
        """Put a message that is due at a time."""
        index = len(self.messages)
        given = {"TIMER_OUT_MS": str(due_ms), "REAL_TOPIC": "t", "REAL_QID": "3", **properties}
        template = golden_message()
        message = attrs.evolve(
            template,
            topic=TIMER_TOPIC,
            queue_id=0,
            queue_offset=index,
            physical_offset=index * 1000,
            size_bytes=1000,
            properties_text=encode_properties(given),
        )
        self.messages.append(message)
        return message

    @property
    def min_queue_offset(self) -> int:
        """Nothing is ever deleted."""
        return 0

    @property
    def max_queue_offset(self) -> int:
        """Behind the last message."""
        return len(self.messages)

    def units(self, queue_offset: int, count_max: int) -> memoryview:
        """Return units."""
        chosen = self.messages[queue_offset : queue_offset + count_max]
        return memoryview(b"".join(UNIT.pack(one.physical_offset, 1000, 0) for one in chosen))

    def message_at(self, physical_offset: int, size_bytes: int) -> Message | None:
        """Return a message by its place."""
        assert size_bytes == 1000
        index = physical_offset // 1000
        return self.messages[index] if index < len(self.messages) else None


def golden_message() -> Message:
    """Return some stored message to take fields from."""
    case = golden_cases("timer")[0]
    first = (case.store / "commitlog/00000000000000000000").read_bytes()[:396]
    return decode_message(first)


def store_of(
    host: SimulatedHost, topic: TimerTopic, given: TimerSettings = SMALL, *, is_master: bool = True
) -> TimerStore:
    """Open a timer store over a topic."""
    return TimerStore(
        host, "/store", given, topic.message_at, lambda: topic, runs_dequeue=is_master
    )


def host_at_start() -> SimulatedHost:
    """Return a world whose clock is at a whole second."""
    host = SimulatedHost(1, clock=ManualClock(START_MS))
    host.fs.make_directory("/store/config")
    return host


def all_of(tick: DueTick) -> list[TimerDelivery]:
    """Return what a tick has to deliver, found two units at a time."""
    while not tick.find(2):
        pass
    return list(tick)


def take(store: TimerStore) -> list[tuple[int, int]]:
    """Enqueue and dequeue all that can be; return (queue offset, now) of what is delivered."""
    now_ms = store.host.clock.wall_ms()
    found: list[tuple[int, int]] = []
    while (entering := store.enqueue(3)) is not None:
        found += [(one.message.queue_offset, now_ms) for one in entering.late]
        store.commit_enqueue(entering)
    while (step := store.dequeue()) is not None:
        found += [(one.message.queue_offset, now_ms) for one in all_of(step)]
        store.commit_dequeue(step)
    return found


# golden


def test_golden_again(tmp_path: Path) -> None:
    """The messages of a real broker's timer topic give its wheel and log again, byte for byte."""
    case = golden_cases("timer")[0]
    recorded = (case.store / "timerlog/00000000000000000000").read_bytes()
    places = range(0, len(recorded), TIMER_UNIT_BYTES)
    units = [unit for at in places if (unit := TimerUnit.decode(recorded, at)) is not None]
    queue = MemoryQueue.of_store(case.store, TIMER_TOPIC, 0)
    commit_log = MemoryCommitLog.of_store(case.store, 1 << 40)
    clock = ManualClock(units[0].write_time_ms)
    host = attrs.evolve(system_host(), clock=clock)
    store = TimerStore(
        host,
        str(tmp_path / "store"),
        TimerSettings.of_settings(case.settings),
        lambda place, size: message_at(commit_log, place, size),
        lambda: queue,
    )
    for unit in units:
        clock.jump_wall(unit.write_time_ms - clock.wall_ms())
        store.move_write_time()
        step = store.enqueue(1)
        assert step is not None
        assert step.late == []
        store.commit_enqueue(step)
    assert store.enqueue() is None
    store.flush()
    made = tmp_path / "store"
    assert (made / "timerlog/00000000000000000000").read_bytes() == recorded
    wheel = made / "timerwheel"
    assert wheel.stat().st_blocks * 512 < 200_000, "the wheel is sparse"
    with wheel.open("rb") as ours, (case.store / "timerwheel").open("rb") as theirs:
        while (piece := theirs.read(1 << 20)) != b"":
            assert ours.read(1 << 20) == piece
        assert ours.read(1) == b""
    check_deliveries(store, clock, commit_log)
    assert store.metrics.count("stock_cart_87") == 5
    store.close()


def check_deliveries(store: TimerStore, clock: ManualClock, commit_log: MemoryCommitLog) -> None:
    """What comes due is what the real broker put, in its order, with the same properties."""
    case = golden_cases("timer")[0]
    expected = sorted(case.expected, key=lambda one: one["commitLogOffset"])
    delivered = 0
    clock.jump_wall(expected[-1]["storeTimestamp"] - clock.wall_ms())
    store.move_write_time()
    while (step := store.dequeue()) is not None:
        for delivery in all_of(step):
            theirs = message_at(commit_log, expected[delivered]["commitLogOffset"])
            assert theirs is not None
            assert (delivery.topic, delivery.queue_id) == (theirs.topic, theirs.queue_id)
            assert delivery.message.body == theirs.body
            dequeued = {"TIMER_DEQUEUE_MS": theirs.properties["TIMER_DEQUEUE_MS"]}
            ours = {**delivery.properties, **dequeued}
            assert ours == theirs.properties
            text = encode_properties(ours, capacity=HASH_MAP_CAPACITY_5)
            assert text == theirs.properties_text
            delivered += 1
        store.commit_dequeue(step)
    assert delivered == len(expected) == 15


def test_golden_files_are_read(tmp_path: Path) -> None:
    """A real broker's timer files are opened, say the same, and are written as they were."""
    case = golden_cases("timer")[0]
    copy = case.copy_store(tmp_path / "store")
    names = ("config/timercheck", "config/timermetrics", "timerlog/00000000000000000000")
    before = {name: (copy / name).read_bytes() for name in names}
    queue = MemoryQueue.of_store(case.store, TIMER_TOPIC, 0)
    commit_log = MemoryCommitLog.of_store(case.store, 1 << 40)
    clock = ManualClock(1_795_234_029_500)
    store = TimerStore(
        attrs.evolve(system_host(), clock=clock),
        str(copy),
        TimerSettings.of_settings(case.settings),
        lambda place, size: message_at(commit_log, place, size),
        lambda: queue,
    )
    assert store.queue_offset == 20
    assert store.read_time_ms == 1_795_234_029_000
    assert store.log.max_timer_offset == store.log.flushed_where == 1040
    assert store.wheel.count_from(store.read_time_ms) == 5
    assert store.metrics.count("stock_cart_87") == 5
    assert [slot.count for slot in store.wheel.pending(store.read_time_ms)] == [1, 1, 2, 1]
    checkpoint = TimerCheckpoint.decode(before["config/timercheck"])
    assert checkpoint == store.checkpoint
    checkpoint.store(store.host, str(copy / "config/timercheck"))
    store.metrics.persist()
    assert {name: (copy / name).read_bytes() for name in names} == before
    assert store.enqueue() is None
    clock.jump_wall(7_200_000)
    store.move_write_time()
    assert len(take(store)) == 5
    store.abandon()


# in and out


def test_delivered_when_due() -> None:
    """A message is delivered at its tick, not before, and once."""
    host, topic = host_at_start(), TimerTopic()
    store = store_of(host, topic)
    topic.put(START_MS + 2000)
    assert take(store) == []
    host.clock.advance(2999)
    store.move_write_time()
    assert take(store) == []
    host.clock.advance(1)
    store.move_write_time()
    step = store.dequeue()
    assert step is not None
    (due,) = all_of(step)
    assert (due.topic, due.queue_id) == ("t", 3)
    assert due.properties["TIMER_ENQUEUE_MS"] == str(START_MS)
    assert due.properties["TIMER_DEQUEUE_MS"] == str(START_MS + 3000)
    again = store.dequeue()
    assert again is not None
    assert [one.message for one in all_of(again)] == [due.message], "it is not committed"
    store.commit_dequeue(step)
    assert store.dequeue() is None


def test_late_message() -> None:
    """What is due before it comes into the wheel is delivered at once and marked so."""
    host, topic = host_at_start(), TimerTopic()
    store = store_of(host, topic)
    topic.put(START_MS - 1000)
    step = store.enqueue()
    assert step is not None
    assert step.late[0].properties["TIMER_ENQUEUE_MS"] == str(NEVER_ENQUEUED_MS)
    assert store.log.max_timer_offset == 0
    assert store.metrics.count("t") == 0


@pytest.mark.parametrize(
    ("delay_slots", "waits_slots"), [(99, 99), (100, 50), (132, 50), (133, 100)]
)
def test_rolls(delay_slots: int, waits_slots: int) -> None:
    """What is due beyond the window comes out earlier, for another round in the timer topic."""
    host, topic = host_at_start(), TimerTopic()
    store = store_of(host, topic)
    topic.put(START_MS + delay_slots * 1000)
    take(store)
    host.clock.advance((waits_slots + 1) * 1000)
    store.move_write_time()
    step = store.dequeue()
    assert step is not None
    assert step.time_ms == START_MS + waits_slots * 1000
    is_roll = delay_slots >= 100
    (due,) = all_of(step)
    assert due.is_roll is is_roll
    assert due.topic == (TIMER_TOPIC if is_roll else "t")
    assert due.properties.get("TIMER_ROLL_TIMES") == ("1" if is_roll else None)


def test_taken_back() -> None:
    """A message that another one of its tick takes back is not delivered, and neither is that."""
    host, topic = host_at_start(), TimerTopic()
    store = store_of(host, topic)
    topic.put(START_MS + 1000, UNIQ_KEY="A")
    topic.put(START_MS + 1000, UNIQ_KEY="B")
    topic.put(START_MS + 1000, UNIQ_KEY="C", TIMER_DEL_UNIQKEY="A")
    take(store)
    assert store.congestion(START_MS + 1000) == 1
    assert store.metrics.count("t") == 1
    host.clock.advance(2000)
    store.move_write_time()
    assert take(store) == [(1, START_MS + 2000)]
    assert store.metrics.count("t") == 0


def test_slave_waits_for_its_master() -> None:
    """A slave puts messages into its wheel no further than its master, and takes none out."""
    host, topic = host_at_start(), TimerTopic()
    store = store_of(host, topic, is_master=False)
    for _ in range(4):
        topic.put(START_MS - 5000)
    assert store.enqueue() is None
    store.checkpoint.master_timer_queue_offset = 3
    step = store.enqueue()
    assert step is not None
    assert (step.next_queue_offset, step.late) == (3, [])
    store.commit_enqueue(step)
    assert store.enqueue() is None
    host.clock.advance(5000)
    store.move_write_time()
    assert store.dequeue() is None


# settings and congestion


def test_congestion() -> None:
    """A slot with more messages than allowed refuses some by chance, with twice as many all."""
    host, topic = host_at_start(), TimerTopic()
    store = store_of(host, topic, attrs.evolve(SMALL, congestion_count=10))
    due_ms = START_MS + 5000
    refused: list[int] = []
    for count in range(1, 22):
        topic.put(due_ms)
        take(store)
        assert store.congestion(due_ms) == count
        refused.append(sum(store.is_full_at(due_ms) for _ in range(200)))
    assert refused[:10] == [0] * 10
    assert 0 < refused[14] < 200
    assert refused[-2:] == [200, 200]
    assert not store.is_full_at(due_ms + 1000)


@pytest.mark.parametrize(
    ("given_ms", "used_ms"), [(1000, 1000), (700, 500), (50, 100), (5000, 1000)]
)
def test_precision(given_ms: int, used_ms: int) -> None:
    """Only four precisions are allowed; the next finer one is taken."""
    assert TimerSettings.of_settings({"timerPrecisionMs": str(given_ms)}).precision_ms == used_ms


def test_missing_checkpoint() -> None:
    """A checkpoint that is missing or cut short counts as all zeros."""
    host = host_at_start()
    assert TimerCheckpoint.load(host, "/store/config/timercheck").last_read_time_ms == 0
    write_file(host.fs, "/store/config/timercheck", struct.pack(">q", 7))
    assert TimerCheckpoint.load(host, "/store/config/timercheck").last_read_time_ms == 7
