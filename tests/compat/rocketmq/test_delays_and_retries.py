"""Delayed messages, messages sent back, dead letters: on a clock that the test turns."""

from __future__ import annotations

import errno

import pytest

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.segments.rocketmq.messages.message import Message
from logstore.segments.rocketmq.queues.consume_queue import ConsumeQueue
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import SMALL, TOPIC, Peer, a_broker

LEVELS = "1s 5s 10s 30s 1m"
SCHEDULE = "SCHEDULE_TOPIC_XXXX"


class Stage:
    """A broker whose housekeeping runs as the test lets time pass."""

    def __init__(self, **settings: str) -> None:
        self.clock = ManualClock()
        self.host = SimulatedHost(clock=self.clock)
        self.settings = {**SMALL, "messageDelayLevel": LEVELS, **settings}
        self.open()

    def open(self) -> None:
        """Start the broker, again perhaps."""
        self.broker: Broker = a_broker(self.host, self.settings)
        self.broker.start_housekeeping()
        self.peer = Peer(self.broker)

    def pass_ms(self, delay_ms: int) -> None:
        """Let time pass, timer by timer."""
        end_ms = self.clock.monotonic_ms() + delay_ms
        while (due_ms := self.broker.timers.next_due_ms()) is not None and due_ms <= end_ms:
            self.clock.advance(max(due_ms - self.clock.monotonic_ms(), 0))
            self.broker.timers.run()
        self.clock.advance(end_ms - self.clock.monotonic_ms())

    def send_back(self, message: Message, **fields: object) -> int:
        """Say that group g cannot consume a message; return the answer's code."""
        asked = {"group": "g", "offset": message.physical_offset, "delayLevel": 0, **fields}
        return self.peer.ask(RequestCode.CONSUMER_SEND_MSG_BACK, asked).code


@pytest.mark.parametrize(("level", "delay_ms"), [(1, 1000), (2, 5000), (4, 30_000), (9, 60_000)])
def test_a_delayed_message_comes_on_time(level: int, delay_ms: int) -> None:
    """It waits in the schedule topic, and comes when its level says, not 100 ms later."""
    stage = Stage()
    stage.peer.produce(b"later", queue_id=3, properties=f"DELAY\x01{level}\x02x\x01y\x02")
    assert len(stage.peer.messages(SCHEDULE, min(level, 5) - 1)) == 1
    stage.pass_ms(delay_ms - 1)
    assert stage.peer.messages(queue_id=3) == []
    stage.pass_ms(1)
    (message,) = stage.peer.messages(queue_id=3)
    assert (message.body, message.properties["x"]) == (b"later", "y")
    assert (message.properties["REAL_TOPIC"], message.properties["REAL_QID"]) == (TOPIC, "3")


@pytest.mark.parametrize("is_ext_lost", [False, True])
def test_units_with_an_extension_come_on_time_too(is_ext_lost: bool) -> None:
    """When they are due stands in the extension; if that is lost, the level tells."""
    stage = Stage(enableConsumeQueueExt="true")
    stage.peer.produce(b"later", properties="DELAY\x012\x02")
    queue = stage.broker.store.consume_queues.get(SCHEDULE, 1)
    assert isinstance(queue, ConsumeQueue)
    if is_ext_lost:
        queue.ext = None
    stage.pass_ms(4999)
    assert stage.peer.messages() == []
    stage.pass_ms(1)
    assert [message.body for message in stage.peer.messages()] == [b"later"]


def test_a_level_whose_first_message_waits_is_told_of() -> None:
    """A real broker notes that it has delivered none of them, and shows how many wait."""
    stage = Stage()
    assert stage.broker.store.delay_offsets.get(2) is None
    stage.peer.produce(b"later", properties="DELAY\x012\x02")
    stage.pass_ms(100)
    assert stage.broker.store.delay_offsets.get(2) == 0
    told = stage.peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO).content["table"]
    assert told["scheduleMessageOffset_2"] == "0,1"
    assert "scheduleMessageOffset_1" not in told


def test_a_delayed_message_wakes_a_pull() -> None:
    """A consumer that waits gets a delayed message the moment it is delivered."""
    stage = Stage()
    stage.peer.produce()
    opaque = stage.peer.send(RequestCode.PULL_MESSAGE, stage.peer.pull_fields(TOPIC, 0, 1, "g"))
    stage.peer.produce(b"later", properties="DELAY\x011\x02")
    stage.pass_ms(999)
    assert stage.peer.answer_to(opaque) is None
    stage.pass_ms(1)
    assert stage.peer.answer_to(opaque) is not None


def test_many_delayed_messages_come_in_order() -> None:
    """More messages than one run delivers come all the same, each once, in their order."""
    stage = Stage()
    bodies = [b"%d" % number for number in range(1200)]
    for body in bodies:
        stage.peer.produce(body, properties="DELAY\x011\x02")
    stage.pass_ms(1100)
    assert [message.body for message in stage.peer.messages()] == bodies


@pytest.mark.parametrize("is_clean", [True, False])
def test_delays_go_on_after_a_restart(is_clean: bool) -> None:
    """What was pending comes after a restart; after a clean stop what was delivered does not."""
    stage = Stage()
    stage.peer.produce(b"soon", properties="DELAY\x011\x02")
    stage.peer.produce(b"later", properties="DELAY\x013\x02")
    stage.pass_ms(2000)
    if is_clean:
        stage.broker.close()
    else:
        stage.broker.abandon()
    stage.open()
    stage.pass_ms(10_000)
    bodies = [message.body for message in stage.peer.messages()]
    assert bodies in ([b"soon", b"later"], [b"soon", b"soon", b"later"])
    assert not is_clean or len(bodies) == 2


def test_a_message_that_is_sent_back_comes_again() -> None:
    """It comes from the retry topic after the first level, and says where it comes from."""
    stage = Stage()
    stage.peer.produce(b"hard", properties="KEYS\x01k\x02")
    (message,) = stage.peer.messages()
    assert stage.send_back(message) == 0
    stage.pass_ms(9999)
    assert stage.peer.messages("%RETRY%g") == []
    stage.pass_ms(1)
    (again,) = stage.peer.messages("%RETRY%g")
    assert (again.body, again.reconsume_times) == (b"hard", 1)
    assert again.born_timestamp_ms == message.born_timestamp_ms
    assert again.properties["RETRY_TOPIC"] == TOPIC
    assert again.properties["ORIGIN_MESSAGE_ID"] == message.offset_message_id
    assert (again.properties["WAIT"], again.properties["KEYS"]) == ("false", "k")


def test_each_failure_waits_longer() -> None:
    """The level is 3 and one more for every time that the message came already."""
    stage = Stage()
    stage.peer.produce()
    (message,) = stage.peer.messages()
    stage.send_back(message)
    stage.pass_ms(10_000)
    (again,) = stage.peer.messages("%RETRY%g")
    stage.send_back(again)
    assert len(stage.peer.messages(SCHEDULE, 3)) == 1
    (twice,) = stage.peer.messages(SCHEDULE, 3)
    assert twice.properties["ORIGIN_MESSAGE_ID"] == message.offset_message_id


@pytest.mark.parametrize(
    "fields", [{"maxReconsumeTimes": 0}, {"delayLevel": -1}, {"maxReconsumeTimes": -1}]
)
def test_a_message_that_is_given_up_is_a_dead_letter(fields: dict[str, object]) -> None:
    """After the last try, or on request, a message goes to the group's dead letters, readable."""
    stage = Stage()
    stage.peer.produce(b"dead")
    (message,) = stage.peer.messages()
    assert stage.send_back(message, **fields) == 0
    (letter,) = stage.peer.messages("%DLQ%g")
    assert (letter.body, letter.reconsume_times) == (b"dead", 1)
    assert letter.properties["RETRY_TOPIC"] == TOPIC


def test_what_is_sent_back_is_not_counted_as_sent() -> None:
    """A real broker counts it as sent back, and among no topic's messages but those that wait."""
    stage = Stage()
    stage.peer.produce(b"hard")
    stage.peer.produce(b"dead")
    later, dead = stage.peer.messages()
    assert stage.send_back(later) == stage.send_back(dead, maxReconsumeTimes=0) == 0
    told = stage.peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO).content["table"]
    assert told["msgPutTotalTodayNow"] == "2"
    counted = [
        stage.peer.ask(RequestCode.VIEW_BROKER_STATS_DATA, {"statsName": name, "statsKey": key})
        for name, key in (
            ("TOPIC_PUT_NUMS", "%DLQ%g"), ("TOPIC_PUT_NUMS", "SCHEDULE_TOPIC_XXXX"),
            ("SNDBCK_PUT_NUMS", f"{TOPIC}@g"),
        )
    ]  # fmt: skip
    assert [answer.code for answer in counted] == [1, 0, 0]


def test_old_clients_do_not_say_how_often() -> None:
    """Of a client before V3_4_9 the group's own limit counts."""
    stage = Stage()
    stage.peer.produce()
    (message,) = stage.peer.messages()
    old = Peer(stage.broker, 40002, version=120)
    asked = {
        "group": "g",
        "offset": message.physical_offset,
        "delayLevel": 0,
        "maxReconsumeTimes": 0,
    }
    assert old.ask(RequestCode.CONSUMER_SEND_MSG_BACK, asked).code == 0
    assert stage.broker.topics.get("%DLQ%g") is None


def test_what_is_not_there_cannot_be_sent_back() -> None:
    """A place where no message stands is refused with the place."""
    stage = Stage()
    stage.peer.produce()
    answer = stage.peer.ask(
        RequestCode.CONSUMER_SEND_MSG_BACK, {"group": "g", "offset": 100_000, "delayLevel": 0}
    )
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "look message by offset failed, 100000",
    )


def test_a_group_without_retry_queues_wants_nothing_back() -> None:
    """With retryQueueNums 0 the answer is success, and nothing is stored."""
    stage = Stage()
    stage.peer.produce()
    (message,) = stage.peer.messages()
    group = b'{"groupName":"g","retryQueueNums":0}'
    assert stage.peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, group).code == 0
    assert stage.send_back(message) == 0
    assert stage.broker.topics.get("%RETRY%g") is None


@pytest.mark.parametrize("has_crc", ["true", "false"])
def test_a_message_that_is_put_again_does_not_take_its_old_crc_along(has_crc: str) -> None:
    """Delivered or sent back, its record ends with the CRC of its own, or with none."""
    stage = Stage(enabledAppendPropCRC="true")
    stage.peer.produce(b"later", properties="DELAY\x011\x02")
    stage.broker.close()
    stage.settings["enabledAppendPropCRC"] = has_crc
    stage.open()
    stage.pass_ms(1000)
    (message,) = stage.peer.messages()
    assert stage.send_back(message) == ResponseCode.SUCCESS
    stage.pass_ms(60_000)
    (again,) = stage.peer.messages("%RETRY%g")
    for one in (message, again):
        assert ("__CRC32#" in one.properties) == (has_crc == "true"), one


def test_a_delivery_that_fails_is_tried_again() -> None:
    """A disk that cannot be read for a moment stops no delay level for good."""
    stage = Stage()
    stage.peer.produce(b"later", properties="DELAY\x011\x02")
    stage.pass_ms(500)
    stage.host.fs.faults.fail_next("read", errno.EIO, path="*/commitlog/*")
    stage.pass_ms(1000)
    assert stage.host.fs.faults.planned == []
    stage.pass_ms(10_000)
    stage.peer.produce(b"after", properties="DELAY\x011\x02")
    stage.pass_ms(1000)
    assert [message.body for message in stage.peer.messages()] == [b"later", b"after"]


def test_a_count_of_attempts_goes_round() -> None:
    """One more than the largest is the smallest, as in Java, and the message is kept."""
    stage = Stage()
    stage.peer.produce(b"often", j=2**31 - 1)
    (message,) = stage.peer.messages()
    assert stage.send_back(message, delayLevel=1) == ResponseCode.SUCCESS
    (dead,) = stage.peer.messages("%DLQ%g")
    assert dead.reconsume_times == -(2**31)
