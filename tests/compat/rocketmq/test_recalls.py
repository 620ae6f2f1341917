"""Timed messages that are taken back before they come."""

from __future__ import annotations

import base64
import re

import pytest

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker

KEY = "FD000000000000000000000000000002021E4E0E2F2A67D00C5A000"
#: what 5.5.0 says, which forgets to take the remark back
DONE = (0, "not set any response code")


class Stage:
    """A broker with a time wheel; the test lets time pass."""

    def __init__(self, recalls: str = "true") -> None:
        self.clock = ManualClock()
        settings = {"timerWheelEnable": "true", "recallMessageEnable": recalls}
        self.broker: Broker = a_broker(SimulatedHost(clock=self.clock), settings)
        self.broker.start_housekeeping()
        self.peer = Peer(self.broker)
        self.peer.produce(b"at once")

    def send_timed(self, number: int) -> str:
        """Send a message for ten seconds from now; return the handle that takes it back."""
        properties = f"UNIQ_KEY\x01{KEY}{number}\x02TIMER_DELAY_SEC\x0110\x02"
        answer = self.peer.produce(b"%d" % number, properties=properties)
        return (answer.fields or {})["recallHandle"]

    def recall(
        self, handle: str, topic: str = TOPIC, group: str | None = "producers"
    ) -> tuple[int, str | None]:
        """Take a message back; return code and remark."""
        fields = {"topic": topic, "recallHandle": handle}
        if group is not None:
            fields["producerGroup"] = group
        answer = self.peer.ask(RequestCode.RECALL_MESSAGE, fields)
        return answer.code, answer.remark

    def pass_ms(self, delay_ms: int) -> None:
        """Let time pass, a tenth of a second at a time."""
        for _ in range(delay_ms // 100):
            self.clock.advance(100)
            self.broker.timers.run()


def test_a_message_that_is_taken_back_does_not_come() -> None:
    """Only the one that the handle names stays away; nothing comes in its place."""
    stage = Stage()
    handle = stage.send_timed(1)
    stage.send_timed(2)
    stage.pass_ms(2000)
    assert stage.recall(handle) == DONE
    stage.pass_ms(15_000)
    assert [message.body for message in stage.peer.messages()] == [b"at once", b"2"]


@pytest.mark.parametrize(
    ("properties", "has_handle"),
    [
        ("TIMER_OUT_MS\x011700000000000\x02REAL_TOPIC\x01t\x02", True),
        ("TIMER_OUT_MS\x011700000000000\x02DELAY\x0118\x02", True),
        ("TIMER_OUT_MS\x011700000000000\x02", False),
        ("TIMER_OUT_MS\x011700000000000\x02REAL_TOPIC\x01%RETRY%g\x02", False),
        ("TIMER_OUT_MS\x01soon\x02REAL_TOPIC\x01t\x02", False),
    ],
)
def test_who_says_himself_what_a_timed_message_says(properties: str, *, has_handle: bool) -> None:
    """He gets a handle, as from Java, though nothing waits for its time."""
    answer = Stage().peer.produce(b"x", properties=properties)
    assert answer.code == 0
    assert ("recallHandle" in (answer.fields or {})) is has_handle


@pytest.mark.parametrize(
    ("group", "shown"), [("producers", "PGROUP=producers "), ("", "PGROUP= "), (None, "")]
)
def test_it_is_stored_as_a_real_broker_stores_it(group: str | None, shown: str) -> None:
    """The properties of 5.5.0's message for a handle, in their order; n stands for times."""
    stage = Stage()
    assert stage.recall(stage.send_timed(1), group=group) == DONE
    messages = stage.peer.messages("rmq_sys_wheel_timer")
    (message,) = [found for found in messages if "TIMER_DEL_UNIQKEY" in found.properties]
    text = message.properties_text.decode().replace(f"{KEY}1", "k")
    assert re.sub("[0-9]{13}", "n", text).replace("\x01", "=").replace("\x02", " ") == (
        f"TIMER_DEL_UNIQKEY=k REAL_TOPIC={TOPIC} BORN_TIMESTAMP=n TRACE_CONTEXT= "
        f"TIMER_DELIVER_MS=n UNIQ_KEY=k {shown}TAGS=_RECALL_TAG_ TIMER_OUT_MS=n "
        "REAL_QID=0 "
    )


@pytest.mark.parametrize(
    ("appends_topic", "came"), [("true", [b"at once", b"1"]), ("", [b"at once"])]
)
def test_a_key_may_be_one_of_its_topic_alone(appends_topic: str, came: list[bytes]) -> None:
    """With appendTopicForTimerDeleteKey, also set while the broker runs; else it is any topic's."""
    stage = Stage()
    (_, topic, *others) = base64.urlsafe_b64decode(stage.send_timed(1)).decode().split(" ")
    assert topic == TOPIC
    stage.broker.topics.ensure("another", 1)
    stage.pass_ms(1000)
    if appends_topic:
        change = f"appendTopicForTimerDeleteKey={appends_topic}".encode()
        assert stage.peer.ask(RequestCode.UPDATE_BROKER_CONFIG, body=change).code == 0
    assert stage.recall(_handle("v1", "another", *others), "another") == DONE
    own = stage.send_timed(2)
    stage.pass_ms(1000)
    assert stage.recall(own) == DONE
    stage.pass_ms(15_000)
    assert [message.body for message in stage.peer.messages()] == came


@pytest.mark.parametrize("handle", ["{0}", "{1}", "{2}", "{3}"])
def test_a_handle_is_read_as_java_reads_it(handle: str) -> None:
    """Its padding may be missing, there may be more in it, and a sign before the time."""
    stage = Stage()
    whole = stage.send_timed(1)
    parts = base64.urlsafe_b64decode(whole).decode().split(" ")
    signed = _handle(*parts[:3], f"+{parts[3]}", parts[4])
    more = _handle(*parts, "more", "")
    stage.pass_ms(2000)
    assert stage.recall(handle.format(whole, whole.rstrip("="), signed, more)) == DONE
    stage.pass_ms(15_000)
    assert [message.body for message in stage.peer.messages()] == [b"at once"]


def _handle(*parts: str) -> str:
    return base64.urlsafe_b64encode(" ".join(parts).encode()).decode()


@pytest.mark.parametrize(
    ("handle", "remark"),
    [
        ("", "recall handle is invalid"),
        ("äöü", "recall handle is invalid"),
        (_handle("v1", TOPIC, "broker-a", "1700000005000", "K") + "\n", "recall handle is invalid"),
        (_handle("v1", TOPIC, "broker-a", "1700000005000", "K") + "=", "recall handle is invalid"),
        (_handle("v1", TOPIC, "broker-a", "1700000005000", ""), "recall handle is invalid"),
        ("djEgeCAxIDIgMw=", "recall handle is invalid"),
        ("djEg_yBicm9rZXItYSAxIGs", "recall failed, topic not match"),
        (_handle("v2", TOPIC, "broker-a", "1700000005000", "K"), "recall handle is invalid"),
        (
            _handle("v1", "other", "broker-a", "1700000005000", "K"),
            "recall failed, topic not match",
        ),
        (
            _handle("v1", TOPIC, "broker-b", "1700000005000", "K"),
            "recall failed, broker service not available",
        ),
        (
            _handle("v1", TOPIC, "broker-a", "1699999999999", "K"),
            "recall failed, timestamp invalid",
        ),
        (_handle("v1", TOPIC, "broker-a", "never", "K"), "recall failed, timestamp invalid"),
    ],
)
def test_what_cannot_be_taken_back(handle: str, remark: str) -> None:
    """A handle that is none, of elsewhere, or too late is refused, and nothing is stored."""
    stage = Stage()
    before = stage.broker.store.commit_log.max_physical_offset
    assert stage.recall(handle) == (ResponseCode.ILLEGAL_OPERATION, remark)
    assert stage.broker.store.commit_log.max_physical_offset == before
    assert stage.recall(handle, "nowhere")[0] == ResponseCode.TOPIC_NOT_EXIST


def test_only_where_it_is_allowed() -> None:
    """Which it is not by itself."""
    stage = Stage("false")
    forbidden = (ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")
    assert stage.recall(stage.send_timed(1)) == forbidden
    assert Peer(a_broker()).broker.settings.recalls_messages is False


def test_a_broker_that_takes_no_messages_recalls_them_if_it_may() -> None:
    """By itself it may; before the time from which on it takes any it does not."""
    stage = Stage()
    handles = [stage.send_timed(number) for number in range(3)]
    closed = (ResponseCode.SERVICE_NOT_AVAILABLE, "recall failed, broker service not available")
    stage.broker.update_settings({"brokerPermission": "4"})
    assert stage.recall(handles[0]) == DONE
    stage.broker.update_settings({"allowRecallWhenBrokerNotWriteable": "false"})
    assert stage.recall(handles[1]) == closed
    stage.broker.update_settings({"brokerPermission": "6"})
    assert stage.recall(handles[1]) == DONE
    later_ms = stage.broker.host.clock.wall_ms() + 1
    stage.broker.update_settings({"startAcceptSendRequestTimeStamp": str(later_ms)})
    assert stage.recall(handles[2]) == closed
    stage.pass_ms(100)
    assert stage.recall(handles[2]) == DONE
