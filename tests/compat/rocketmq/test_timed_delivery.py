"""Messages with a time of their own, on a clock that the test turns."""

from __future__ import annotations

import errno
from collections.abc import Callable
from itertools import pairwise

import pytest

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.segments.rocketmq.putting.put_redirection import TIMER_TOPIC
from logstore.segments.rocketmq.settings.release import Release
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import SMALL, TOPIC, Peer, a_broker
from tests.segments.rocketmq.drafts import draft

WHEEL = {**SMALL, "timerWheelEnable": "true", "mappedFileSizeTimerLog": "52000"}


class Stage:
    """A broker whose housekeeping runs as the test lets time pass."""

    def __init__(self, **settings: str) -> None:
        self.clock = ManualClock()
        self.host = SimulatedHost(clock=self.clock)
        self.settings = {**WHEEL, **settings}
        self.open()

    def open(self) -> None:
        """Start the broker, again perhaps."""
        self.broker: Broker = a_broker(self.host, self.settings)
        self.broker.start_housekeeping()
        self.peer = Peer(self.broker)

    def pass_ms(self, delay_ms: float) -> None:
        """Let time pass, timer by timer."""
        end_ms = self.clock.monotonic_ms() + delay_ms
        while (due_ms := self.broker.timers.next_due_ms()) is not None and due_ms <= end_ms:
            self.clock.advance(max(due_ms - self.clock.monotonic_ms(), 0))
            self.broker.timers.run()
        self.clock.advance(end_ms - self.clock.monotonic_ms())

    def send(self, body: bytes, delay_ms: int, queue_id: int = 0, more: str = "") -> int:
        """Send a message that is to come after a time; return the answer's code."""
        properties = f"TIMER_DELAY_MS\x01{delay_ms}\x02{more}"
        return self.peer.produce(body, queue_id=queue_id, properties=properties).code

    def bodies(self, queue_id: int = 0) -> list[bytes]:
        """Return what has come to a queue."""
        return [message.body for message in self.peer.messages(queue_id=queue_id)]


@pytest.mark.parametrize("delay_ms", [1500, 4000, 61_001])
def test_comes_on_time(delay_ms: int) -> None:
    """A message comes not before its time, within a second of it, and is complete."""
    stage = Stage()
    stage.pass_ms(250)
    assert stage.send(b"later", delay_ms, 3, "x\x01y\x02") == ResponseCode.SUCCESS
    stage.pass_ms(delay_ms - 1)
    assert stage.bodies(3) == []
    stage.pass_ms(1001 + 100)
    (message,) = stage.peer.messages(queue_id=3)
    assert (message.body, message.properties["x"], message.topic) == (b"later", "y", TOPIC)
    assert message.properties["REAL_TOPIC"] == TOPIC
    assert int(message.properties["TIMER_DEQUEUE_MS"]) >= int(message.properties["TIMER_OUT_MS"])


def test_wakes_a_pull() -> None:
    """A consumer that waits gets the message the moment it is delivered."""
    stage = Stage()
    stage.peer.produce()
    opaque = stage.peer.send(RequestCode.PULL_MESSAGE, stage.peer.pull_fields(TOPIC, 0, 1, "g"))
    stage.send(b"later", 2000)
    stage.pass_ms(900)
    assert stage.peer.answer_to(opaque) is None
    stage.pass_ms(1500)
    assert stage.peer.answer_to(opaque) is not None


def test_many() -> None:
    """More messages than one run delivers come all the same, each once."""
    stage = Stage()
    for number in range(1200):
        stage.send(b"%d" % number, 2000 + number % 3 * 1000)
    stage.pass_ms(8000)
    assert sorted(map(int, stage.bodies())) == list(range(1200))


@pytest.mark.parametrize("passes_ms", [(500, 3500), (4000,)], ids=["due", "late"])
def test_many_at_one_time_hold_up_nobody(passes_ms: tuple[int, ...]) -> None:
    """What is due with thousands of others comes bit by bit: in between others are served."""
    stage = Stage()
    for number in range(600):
        stage.send(b"%d" % number, 2000)
    soon: list[Callable[[], object]] = []
    stage.broker.timers.on_soon = soon.append
    counts = [0]
    for passed_ms in passes_ms:
        stage.clock.advance(passed_ms)
        soon.append(stage.broker.timers.run)
        while soon:
            soon.pop(0)()
            counts.append(len(stage.bodies()))
    assert max(after - before for before, after in pairwise(counts)) <= 128
    assert stage.bodies() == [b"%d" % number for number in range(600)]


@pytest.mark.parametrize(("path", "after"), [("*/timerlog/*", 30), ("*/commitlog/*", 7)])
def test_a_disk_that_cannot_be_read_for_a_while_costs_nothing(path: str, after: int) -> None:
    """A read that fails amid a tick's messages is made again: each of them comes once."""
    stage = Stage()
    for number in range(20):
        stage.send(b"%d" % number, 2000)
    stage.pass_ms(1000)
    stage.host.fs.faults.fail_next("read", errno.EIO, path=path, after=after)
    stage.pass_ms(4000)
    assert stage.host.fs.faults.planned == []
    assert stage.bodies() == [b"%d" % number for number in range(20)]


@pytest.mark.parametrize("end", ["close", "abandon", "power loss"])
def test_goes_on_after_a_restart(end: str) -> None:
    """What was pending comes after a restart; after a clean stop nothing comes twice."""
    stage = Stage()
    stage.send(b"late", -5)
    stage.send(b"soon", 2000)
    stage.send(b"later", 30_000)
    stage.pass_ms(12_000)  # a commit log of less than four pages is flushed every ten seconds
    assert stage.bodies() == [b"late", b"soon"]
    if end == "close":
        stage.broker.close()
    else:
        stage.broker.abandon()
    if end == "power loss":
        stage.host.power_loss()
    stage.open()
    stage.pass_ms(35_000)
    bodies = stage.bodies()
    assert set(bodies) == {b"late", b"soon", b"later"}
    assert end != "close" or len(bodies) == 3


@pytest.mark.parametrize("delay_ms", [-5000, 3000], ids=["late", "due"])
def test_a_message_that_does_not_say_where_it_belongs_goes(delay_ms: int) -> None:
    """A power loss may cost it its properties: put once more, it would be due for ever."""
    stage = Stage()
    stage.send(b"other", 2000)
    due_ms = stage.clock.wall_ms() + delay_ms
    torn = draft(TIMER_TOPIC, b"torn", properties={"TIMER_OUT_MS": str(due_ms)})
    assert stage.broker.store.put_message(torn, is_delivery=True).is_ok
    stage.pass_ms(8000)
    assert stage.bodies() == [b"other"]
    assert stage.broker.store.max_queue_offset(TIMER_TOPIC, 0) == 2
    assert stage.broker.timed_delivery.delivered_until_ms


def test_taken_back() -> None:
    """A message that another one takes back never comes, and neither does that other one."""
    stage = Stage()
    stage.send(b"one", 5000, 0, "UNIQ_KEY\x01A\x02")
    stage.send(b"two", 5000, 0, "UNIQ_KEY\x01B\x02")
    stage.send(b"back", 5000, 0, "UNIQ_KEY\x01C\x02TIMER_DEL_UNIQKEY\x01A\x02")
    stage.pass_ms(8000)
    assert stage.bodies() == [b"two"]


def test_crowded_slot() -> None:
    """Where too many messages are due at one time no more are taken."""
    stage = Stage(timerCongestNumEachSlot="2")
    codes: list[int] = []
    for _ in range(8):
        codes.append(stage.send(b"x", 10_000))
        stage.pass_ms(1)
    stage.pass_ms(200)
    assert codes[:3] == [ResponseCode.SUCCESS] * 3
    assert stage.send(b"x", 9900) != ResponseCode.SUCCESS


def test_nothing_is_made_without_need() -> None:
    """As long as no message has a time there is no wheel: no file, no timer."""
    stage = Stage()
    stage.peer.produce()
    stage.pass_ms(5000)
    assert stage.broker.timed_delivery.timer_store is None
    assert not stage.host.fs.exists("/store/timerwheel")
    stage.send(b"x", 2000)
    stage.pass_ms(100)
    assert stage.host.fs.exists("/store/timerwheel")


def test_switched_off() -> None:
    """Without the wheel such messages are refused, and nothing is delivered."""
    stage = Stage(timerWheelEnable="false")
    assert stage.send(b"x", 2000) != ResponseCode.SUCCESS
    assert not stage.broker.timed_delivery.is_enabled
    assert stage.broker.store.options.release is Release.V5


def test_disk_that_refuses() -> None:
    """A message that the store does not take is tried again until it does."""
    stage = Stage()
    stage.send(b"later", 2000)
    stage.pass_ms(500)
    stage.broker.store.putting.closed_reason = "for a while"
    stage.pass_ms(4000)
    assert stage.bodies() == []
    stage.broker.store.putting.closed_reason = ""
    stage.pass_ms(200)
    assert stage.bodies() == [b"later"]
    stage.pass_ms(5000)
    assert stage.bodies() == [b"later"]


def test_files_of_the_wheel_go_with_those_of_the_log() -> None:
    """What the wheel's log knows of deleted commit log files is deleted, and the rest still due."""
    stage = Stage(mappedFileSizeTimerLog="5200", mappedFileSizeCommitLog="20000")
    for number in range(300):
        assert stage.send(b"%d" % number, 1500) == ResponseCode.SUCCESS
    stage.pass_ms(20_000)
    assert len(stage.bodies()) == 300
    folder = "/store/timerlog"
    before = {entry.name for entry in stage.host.fs.list_directory(folder)}
    stage.clock.advance(74 * 3_600_000)
    assert stage.send(b"last", 3000) == ResponseCode.SUCCESS
    assert stage.peer.ask(RequestCode.DELETE_EXPIRED_COMMITLOG).code == ResponseCode.SUCCESS
    stage.pass_ms(30_000)
    assert stage.broker.store.commit_log.min_physical_offset > 0
    after = {entry.name for entry in stage.host.fs.list_directory(folder)}
    assert len(after) < len(before)
    assert b"last" in stage.peer.pull(queue_offset=300).body


@pytest.mark.parametrize("end", ["close", "abandon"])
def test_a_sync_of_the_wheel_that_fails_costs_no_message(end: str) -> None:
    """The broker goes on, and after its stop and a power loss what waited is still to come."""
    stage = Stage()
    stage.send(b"waits", 60_000)
    stage.pass_ms(500)
    stage.host.fs.faults.fail_next_sync(errno.EIO, path="*/timerlog/0*")
    stage.pass_ms(25_000)
    assert stage.host.fs.faults.planned == []
    stage.broker.close() if end == "close" else stage.broker.abandon()
    stage.host.power_loss()
    stage.open()
    stage.pass_ms(70_000)
    assert stage.bodies() == [b"waits"]
