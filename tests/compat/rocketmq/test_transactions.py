"""Transactions: half messages, their ends, and the questions about those that never end."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.segments.rocketmq.messages.message import decode_message
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import ONEWAY, TOPIC, Peer, a_broker
from tests.compat.rocketmq.frames import Answer

HALF, OP = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
GIVEN_UP = "TRANS_CHECK_MAX_TIME_TOPIC"
KEY = "FD000000000000000000000000000002021E4E0E2F2A67D00C5A0000"
COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
TIMEOUT_MS, CHECK_MAX = 6000, 3


class SlowClock(ManualClock):
    """A clock by which every look at it takes `look_ms`."""

    look_ms = 0

    def monotonic_ms(self) -> float:
        """Return ms since some start."""
        self.advance(self.look_ms)
        return super().monotonic_ms()


class Stage:
    """A broker and a producer of transactions; the test lets time pass and calls the check."""

    def __init__(self, **settings: str) -> None:
        self.clock = SlowClock()
        self.broker: Broker = a_broker(
            SimulatedHost(clock=self.clock), {"transactionCheckMax": str(CHECK_MAX), **settings}
        )
        self.peer = Peer(self.broker)
        self.peer.produce()  # makes the topic
        beat = b'{"clientID":"p1","producerDataSet":[{"groupName":"producers"}]}'
        self.peer.ask(RequestCode.HEART_BEAT, {}, beat)

    def begin(self, body: bytes = b"half", more: str = "") -> Answer:
        """Send a half message for queue 2."""
        properties = f"TRAN_MSG\x01true\x02PGROUP\x01producers\x02UNIQ_KEY\x01{KEY}\x02{more}"
        return self.peer.produce(body, queue_id=2, properties=properties, f=4)

    def end(self, outcome: int, **fields: object) -> int:
        """End the transaction of the first half message; return the request's number."""
        place = fields.pop("commitLogOffset", None)
        asked = {
            "producerGroup": "producers",
            "tranStateTableOffset": 0,
            "commitLogOffset": self.half_place() if place is None else place,
            "commitOrRollback": outcome,
            "fromTransactionCheck": "false",
            "msgId": KEY,
            **fields,
        }
        return self.peer.send(RequestCode.END_TRANSACTION, asked)

    def half_place(self) -> int:
        """Return where the first half message stands."""
        return self.peer.messages(HALF)[0].physical_offset

    def check(self, after_ms: int = TIMEOUT_MS + 1) -> list[Answer]:
        """Let time pass and run the check; return what the producer is asked."""
        self.clock.advance(after_ms)
        self.broker.timers.run()
        self.broker.check_transactions()
        return self.peer.told(RequestCode.CHECK_TRANSACTION_STATE)


def test_a_half_message_is_seen_by_nobody() -> None:
    """It stands in the half topic, as no transaction's, and says where it belongs."""
    stage = Stage()
    answer = stage.begin()
    assert (answer.fields or {})["queueOffset"] == "0"
    assert stage.peer.messages(queue_id=2) == []
    (half,) = stage.peer.messages(HALF)
    assert (half.sys_flag & 12, half.properties["REAL_TOPIC"]) == (0, TOPIC)
    assert (half.properties["REAL_QID"], half.properties["__transactionId__"]) == ("2", KEY)


def test_a_commit_makes_it_a_message() -> None:
    """It comes to its topic and queue, with the commit flag and where its half stands."""
    stage = Stage()
    stage.begin()
    answer = stage.peer.answer_to(stage.end(COMMIT))
    assert answer is not None
    assert answer.code == 0
    (message,) = stage.peer.messages(queue_id=2)
    assert (message.body, message.sys_flag & 12) == (b"half", 8)
    assert message.prepared_transaction_offset == stage.half_place()
    assert "REAL_TOPIC" not in message.properties
    assert (message.properties["TRAN_MSG"], message.unique_key) == ("true", KEY)


def test_a_commit_that_is_written_anew_is_no_half() -> None:
    """Where a store adds to its properties, it does not say any more that it was one."""
    stage = Stage(enableLmq="true", enableMultiDispatch="true")
    stage.begin(more="INNER_MULTI_DISPATCH\x01%LMQ%a\x02")
    stage.peer.answer_to(stage.end(COMMIT))
    (message,) = stage.peer.messages(queue_id=2)
    assert (message.body, "TRAN_MSG" in message.properties) == (b"half", False)
    assert message.properties["INNER_MULTI_QUEUE_OFFSET"] == "1"  # its half has the first place


def test_a_rollback_of_what_is_no_half_message_ends_no_other_ones() -> None:
    """Java's answer is success; a place in another topic's queue is none in the half topic's."""
    stage = Stage()
    stage.begin()
    stage.peer.produce(b"plain", "another", properties="PGROUP\x01producers\x02")
    (plain,) = stage.peer.messages("another")
    assert plain.queue_offset == 0
    ended = stage.peer.answer_to(stage.end(ROLLBACK, commitLogOffset=plain.physical_offset))
    assert ended is not None
    assert ended.code == 0
    assert len(stage.check()) == 1


def test_an_op_message_is_that_of_a_real_broker() -> None:
    """Its properties stand in the order of 5.5.0's."""
    stage = Stage()
    stage.begin()
    stage.end(ROLLBACK)
    stage.check()
    (op,) = stage.peer.messages(OP)
    assert (op.properties_text, bytes(op.body)) == (b"WAIT\x01true\x02TAGS\x01d\x02", b"0,")


def test_a_half_message_in_the_transient_store_pool_can_be_committed() -> None:
    """A producer ends its transaction at once, before the pool's next write to the file."""
    stage = Stage(transientStorePoolEnable="true", transientStorePoolSize="2")
    answer = stage.begin()
    assert stage.peer.messages(HALF) == []
    place = int((answer.fields or {})["msgId"][-16:], 16)
    ended = stage.peer.answer_to(stage.end(COMMIT, commitLogOffset=place))
    assert ended is not None
    assert ended.code == 0
    stage.broker.store.commit_log.commit()
    (message,) = stage.peer.messages(queue_id=2)
    assert message.body == b"half"


def test_a_half_message_in_the_transient_store_pool_is_asked_about() -> None:
    """The check puts it again, and shows the producer what it has put, from the pool."""
    stage = Stage(transientStorePoolEnable="true", transientStorePoolSize="2")
    stage.begin()
    stage.broker.store.commit_log.commit()
    for _ in range(2):
        (asked,) = stage.check()
        assert decode_message(asked.body).body == b"half"
        stage.broker.store.commit_log.commit()


def test_who_is_asked_sees_that_nobody_waited_for_it() -> None:
    """It is shown WAIT=false; neither what is put again nor what is committed bears that."""
    stage = Stage()
    stage.begin()
    for times in ("1", "2"):
        (asked,) = stage.check()
        shown = decode_message(asked.body).properties
        assert (shown["WAIT"], shown["TRANSACTION_CHECK_TIMES"]) == ("false", times)
        put_again = stage.peer.messages(HALF)[-1]
        assert "WAIT" not in put_again.properties
    stage.end(
        COMMIT,
        commitLogOffset=put_again.physical_offset,
        tranStateTableOffset=put_again.queue_offset,
    )
    (message,) = stage.peer.messages(queue_id=2)
    assert "WAIT" not in message.properties


def test_a_rollback_makes_it_nothing() -> None:
    """Nothing comes to the topic, and the check does not ask."""
    stage = Stage()
    stage.begin()
    stage.end(ROLLBACK)
    assert stage.peer.messages(queue_id=2) == []
    assert stage.check() == []


def test_who_does_not_know_is_not_answered() -> None:
    """An end that leaves it open gets no answer, and the check asks later."""
    stage = Stage()
    stage.begin()
    assert stage.peer.answer_to(stage.end(UNKNOWN)) is None
    assert len(stage.check()) == 1


WRONG = [
    ({"producerGroup": "others"}, "The producer group wrong"),
    ({"tranStateTableOffset": 1}, "The transaction state table offset wrong"),
    ({"commitLogOffset": 900_000}, "Find prepared transaction message failed"),
]


@pytest.mark.parametrize(("fields", "remark"), WRONG)
def test_the_end_of_another_transaction_is_refused(fields: dict[str, object], remark: str) -> None:
    """Group and places must be those of the half message."""
    stage = Stage()
    stage.begin()
    answer = stage.peer.answer_to(stage.end(COMMIT, **fields))
    assert answer is not None
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert stage.peer.messages(queue_id=2) == []


def test_ended_transactions_are_noted_together() -> None:
    """Ends of three seconds make one op message that names all of their half messages."""
    stage = Stage()
    for _ in range(3):
        stage.begin()
    halves = stage.peer.messages(HALF)
    for half in halves:
        stage.end(
            COMMIT,
            tranStateTableOffset=half.queue_offset,
            commitLogOffset=half.physical_offset,
        )
    assert stage.peer.messages(OP) == []
    stage.clock.advance(3000)
    stage.broker.timers.run()
    (op,) = stage.peer.messages(OP)
    assert (op.body, op.tags) == (b"0,1,2,", "d")


def test_a_clean_stop_notes_what_is_ended() -> None:
    """What was ended just before the stop is not asked about after the start."""
    stage = Stage()
    stage.begin()
    stage.end(COMMIT)
    stage.broker.close()
    stage.broker = a_broker(stage.broker.host)  # type: ignore[arg-type]
    stage.peer = Peer(stage.broker)
    assert len(stage.peer.messages(OP)) == 1


def test_the_producer_is_asked_about_what_it_did_not_end() -> None:
    """After the timeout one of the group is asked, with the message as it would be."""
    stage = Stage()
    stage.begin(b"what now")
    assert stage.check(after_ms=TIMEOUT_MS) == []
    (asked,) = stage.check(after_ms=1)
    first, again = stage.peer.messages(HALF)
    assert (first.queue_offset, again.properties["TRANSACTION_CHECK_TIMES"]) == (0, "1")
    assert asked.flag & ONEWAY
    assert asked.fields == {
        "topic": HALF,
        "tranStateTableOffset": str(again.queue_offset),
        "commitLogOffset": str(again.physical_offset),
        "msgId": KEY,
        "transactionId": KEY,
        "offsetMsgId": again.offset_message_id,
        "bname": "broker-a",
    }
    shown = decode_message(asked.body, verify_crc=False)
    assert (shown.topic, shown.queue_id, shown.body) == (TOPIC, 2, b"what now")


def test_nobody_is_asked_about_what_is_noted_and_not_in_its_queue_yet() -> None:
    """A broker whose queues follow the log later has them follow before it checks."""
    stage = Stage()
    stage.begin()
    place = stage.half_place()
    stage.broker.catch_up()
    stage.broker.defers_work = stage.broker.lingers = True
    stage.end(COMMIT, commitLogOffset=place)
    stage.clock.advance(3000)
    stage.broker.timers.run()
    assert stage.broker.store.max_queue_offset(OP, 0) == 0
    assert stage.check() == []
    assert stage.broker.store.max_queue_offset(OP, 0) == 1


def test_the_answer_to_the_question_ends_it() -> None:
    """What the producer answers about the half message that was put again counts."""
    stage = Stage()
    stage.begin()
    (asked,) = stage.check()
    places = asked.fields or {}
    stage.end(
        COMMIT,
        fromTransactionCheck="true",
        tranStateTableOffset=places["tranStateTableOffset"],
        commitLogOffset=places["commitLogOffset"],
    )
    assert len(stage.peer.messages(queue_id=2)) == 1
    stage.clock.advance(3000)
    stage.broker.timers.run()
    assert stage.check() == []


def test_nobody_asks_for_ever() -> None:
    """After transactionCheckMax questions a half message is set aside, where it can be found."""
    stage = Stage()
    stage.begin(b"lost")
    for _ in range(CHECK_MAX):
        assert len(stage.check()) == 1
    assert stage.check() == []
    (lost,) = stage.peer.messages(GIVEN_UP)
    assert (lost.body, lost.properties["TRANSACTION_CHECK_TIMES"]) == (b"lost", str(CHECK_MAX))
    assert stage.check() == []
    assert len(stage.peer.messages(GIVEN_UP)) == 1


def test_many_are_asked_about_once_a_round() -> None:
    """A round that takes long goes on slice by slice; what is put again waits for the next one."""
    stage = Stage()
    for number in range(30):
        stage.begin(b"%d" % number)
    stage.clock.advance(TIMEOUT_MS + 1)
    stage.broker.timers.run()
    stage.clock.look_ms = 1
    checks, slice_count = stage.broker.transaction_checks, 1
    while not checks.check():
        slice_count += 1
        assert stage.peer.produce(b"in between").code == ResponseCode.SUCCESS
    asked = stage.peer.told(RequestCode.CHECK_TRANSACTION_STATE)
    assert slice_count > 3
    assert [decode_message(answer.body).body for answer in asked] == [
        b"%d" % number for number in range(30)
    ]
    assert len(stage.peer.messages(HALF)) == 60
    while not checks.check():
        pass
    assert len(stage.peer.told(RequestCode.CHECK_TRANSACTION_STATE)) == 30


def test_what_ends_amid_a_round_is_not_asked_about() -> None:
    """Ends that are noted between two slices count at once."""
    stage = Stage()
    for number in range(30):
        stage.begin(b"%d" % number)
    places = [half.physical_offset for half in stage.peer.messages(HALF)]
    stage.clock.advance(TIMEOUT_MS + 1)
    stage.broker.timers.run()
    stage.clock.look_ms = 1
    checks = stage.broker.transaction_checks
    assert not checks.check()
    stage.end(COMMIT, tranStateTableOffset=29, commitLogOffset=places[29])
    stage.broker.op_messages.write()
    while not checks.check():
        pass
    bodies = {
        decode_message(answer.body).body
        for answer in stage.peer.told(RequestCode.CHECK_TRANSACTION_STATE)
    }
    assert bodies == {b"%d" % number for number in range(29)}


def test_what_was_given_up_can_be_checked_again() -> None:
    """RESUME_CHECK_HALF_MESSAGE puts it back with no questions counted."""
    stage = Stage()
    stage.begin()
    for _ in range(CHECK_MAX + 1):
        stage.check()
    (lost,) = stage.peer.messages(GIVEN_UP)
    resumed = {"msgId": lost.offset_message_id}
    assert stage.peer.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, resumed).code == 0
    assert len(stage.check()) == 1


def test_what_is_checked_again_and_is_not_for_now_has_not_been_waited_for() -> None:
    """What is written anew of such a message says so, as in Java."""
    stage = Stage()
    stage.begin(more="DELAY\x0118\x02")
    (delayed,) = stage.peer.messages("SCHEDULE_TOPIC_XXXX", 17)
    resumed = {"msgId": delayed.offset_message_id}
    assert stage.peer.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, resumed).code == 0
    _, again = stage.peer.messages("SCHEDULE_TOPIC_XXXX", 17)
    assert "WAIT" not in delayed.properties
    assert again.properties == {
        **delayed.properties, "WAIT": "false", "TRANSACTION_CHECK_TIMES": "0",
        "REAL_TOPIC": HALF, "REAL_QID": "0",
    }  # fmt: skip


def test_a_producer_may_ask_for_more_time() -> None:
    """Within its immunity a half message is put off, unasked; after it the question comes."""
    stage = Stage()
    stage.begin(more="CHECK_IMMUNITY_TIME_IN_SECONDS\x0160\x02")
    assert stage.check() == []
    _, put_off = stage.peer.messages(HALF)
    assert put_off.properties["TRAN_PREPARED_QUEUE_OFFSET"] == "0"
    # As 5.5.0 stores it, which counts this as a check.
    assert put_off.properties["TRANSACTION_CHECK_TIMES"] == "1"
    assert put_off.properties["WAIT"] == "false"
    assert len(stage.check(after_ms=60_000)) == 1
    answer = stage.peer.answer_to(stage.end(COMMIT))
    assert answer is not None
    assert answer.code == ResponseCode.ILLEGAL_OPERATION


def test_a_question_without_anybody_to_ask_comes_again() -> None:
    """With no producer connected the half message is counted, and asked about next time."""
    stage = Stage()
    stage.begin()
    stage.peer.ask(RequestCode.UNREGISTER_CLIENT, {"clientID": "p1", "producerGroup": "producers"})
    assert stage.check() == []
    beat = b'{"clientID":"p1","producerDataSet":[{"groupName":"producers"}]}'
    stage.peer.ask(RequestCode.HEART_BEAT, {}, beat)
    assert len(stage.check()) == 1


def test_transactions_can_be_forbidden() -> None:
    """RejectTransactionMessage refuses half messages, and no others."""
    stage = Stage()
    stage.broker.update_settings({"rejectTransactionMessage": "true"})
    assert stage.begin().code == ResponseCode.NO_PERMISSION
    assert stage.peer.produce().code == 0
