"""Sends: what is stored, what is answered, what is refused and why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.segments.rocketmq.messages.message_batch import BatchItem, encode_batch_body
from logstore.segments.rocketmq.messages.message_id import parse_offset_message_id
from logstore.segments.rocketmq.messages.properties import parse_properties
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import ONEWAY, TOPIC, Peer, a_broker, sent_fields

KEY = "FD000000000000000000000000000002021E4E0E2F2A67D00C5A0000"
WORDS = {
    "a": "producerGroup", "b": "topic", "c": "defaultTopic", "d": "defaultTopicQueueNums",
    "e": "queueId", "f": "sysFlag", "g": "bornTimestamp", "h": "flag", "i": "properties",
    "j": "reconsumeTimes", "k": "unitMode", "m": "batch",
}  # fmt: skip


def test_a_message_is_stored_as_it_was_sent() -> None:
    """Body, flag, queue, birth and properties of a message are what a consumer gets."""
    peer = Peer(a_broker(), 40077)
    answer = peer.produce(b"hello", queue_id=2, properties=f"UNIQ_KEY\x01{KEY}\x02x\x011\x02", h=7)
    assert (answer.code, answer.remark) == (0, None)
    assert answer.fields == {
        "msgId": "7F00000100002A9F0000000000000000",
        "queueId": "2",
        "queueOffset": "0",
        "transactionId": KEY,
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
    }
    (message,) = peer.messages(queue_id=2)
    assert (message.body, message.flag, message.queue_offset) == (b"hello", 7, 0)
    assert (str(message.born_host), str(message.store_host)) == (
        "127.0.0.1:40077",
        "127.0.0.1:10911",
    )
    assert message.properties == {
        "UNIQ_KEY": KEY, "x": "1", "CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
    }  # fmt: skip


@pytest.mark.parametrize("serializer", [0, 1])
def test_words_and_letters_mean_the_same(serializer: int) -> None:
    """SEND_MESSAGE and SEND_MESSAGE_V2 store the same and answer the same, in either form."""
    peer = Peer(a_broker())
    fields = sent_fields(TOPIC, 1, f"UNIQ_KEY\x01{KEY}\x02TAGS\x01a\x02")
    named = {WORDS[letter]: value for letter, value in fields.items()}
    by_word = peer.ask(RequestCode.SEND_MESSAGE, named, b"x", serializer=serializer)
    by_letter = peer.ask(RequestCode.SEND_MESSAGE_V2, fields, b"x", serializer=serializer)
    first, second = peer.messages(queue_id=1)
    assert (first.properties, first.body) == (second.properties, second.body)
    assert by_word.fields is not None
    assert by_letter.fields is not None
    assert by_word.fields.keys() == by_letter.fields.keys()
    assert [by_word.fields["queueOffset"], by_letter.fields["queueOffset"]] == ["0", "1"]


@pytest.mark.parametrize("letter", ["d", "l"])
@pytest.mark.parametrize("value", ["", "x", "1.5", "2147483648", " "])
def test_numbers_that_nobody_asks_for(letter: str, value: str) -> None:
    """Must be some all the same, where fields have letters; of words Java passes over bad ones."""
    peer = Peer(a_broker())
    peer.produce(b"first", queue_id=1)
    fields = sent_fields(TOPIC, 1, "") | {letter: value}
    refused = peer.ask(RequestCode.SEND_MESSAGE_V2, fields, b"x")
    assert refused.code == ResponseCode.SYSTEM_ERROR
    assert refused.remark == f"the custom field <{letter}> is no number: {value!r}"
    words = {**WORDS, "l": "maxReconsumeTimes"}
    named = {words[one]: text for one, text in fields.items()}
    assert peer.ask(RequestCode.SEND_MESSAGE, named, b"x").code == 0
    assert peer.ask(RequestCode.SEND_MESSAGE_V2, fields | {letter: "-1"}, b"x").code == 0
    assert len(peer.messages(queue_id=1)) == 3


def test_a_one_way_message_is_stored_without_a_word() -> None:
    """Nothing is answered, and the message is there."""
    peer = Peer(a_broker())
    fields = sent_fields(TOPIC, 0)
    opaque = peer.send(RequestCode.SEND_MESSAGE_V2, fields, b"quiet", flag=ONEWAY)
    opaque_again = peer.send(RequestCode.SEND_MESSAGE_V2, fields, b"again", flag=ONEWAY)
    assert (peer.answer_to(opaque), peer.answer_to(opaque_again)) == (None, None)
    assert [message.body for message in peer.messages()] == [b"quiet", b"again"]


def test_a_batch_becomes_messages() -> None:
    """Every item of a batch is a message of its own; all of their ids are answered."""
    peer = Peer(a_broker())
    items = [BatchItem(b"one", b"TAGS\x01a\x02", 1), BatchItem(b"two", b"", 2)]
    answer = peer.ask(
        RequestCode.SEND_BATCH_MESSAGE, sent_fields(TOPIC, 0, m="true"), encode_batch_body(items)
    )
    first, second = peer.messages()
    assert answer.fields is not None
    assert answer.fields["msgId"] == f"{first.offset_message_id},{second.offset_message_id}"
    assert answer.fields["queueOffset"] == "0"
    assert [(first.body, first.flag), (second.body, second.flag)] == [(b"one", 1), (b"two", 2)]
    assert first.tags == "a"


def test_a_batch_of_a_java_client_is_answered_as_any_batch() -> None:
    """With a unique key of its own it gets the same fields in the same order, and that key."""
    peer = Peer(a_broker())
    body = encode_batch_body([BatchItem(b"one", b""), BatchItem(b"two", b"KEYS\x01k\x02")])
    found: list[list[tuple[str, str]]] = []
    for key in (KEY, "not-to-be-quoted-as-it-is"):
        fields = sent_fields(TOPIC, 0, f"UNIQ_KEY\x01{key}\x02", m="true")
        answer = peer.ask(RequestCode.SEND_BATCH_MESSAGE, fields, body)
        assert (answer.code, (answer.fields or {})["transactionId"]) == (0, key)
        found.append(list((answer.fields or {}).items()))
    first, second = found
    changing = ("transactionId", "msgId", "queueOffset")
    assert [name for name, _ in first] == [name for name, _ in second]
    assert [pair for pair in first if pair[0] not in changing] == [
        pair for pair in second if pair[0] not in changing
    ]
    ids = [dict(fields)["msgId"].split(",") for fields in found]
    assert [len(one) for one in ids] == [2, 2]
    places = [message.physical_offset for message in peer.messages()]
    assert [parse_offset_message_id(one)[1] for pair in ids for one in pair] == places


@pytest.mark.parametrize("flag", ["true", "1"])
def test_the_batch_of_c_plus_plus_is_one_message(flag: str) -> None:
    """Marked by ``1`` a batch stays one message, as on a real broker; by ``true`` it does not."""
    peer = Peer(a_broker())
    body = encode_batch_body([BatchItem(b"one", b""), BatchItem(b"two", b"")])
    named = {WORDS[letter]: value for letter, value in sent_fields(TOPIC, 0, m=flag).items()}
    assert peer.ask(RequestCode.SEND_MESSAGE, named, body).code == 0
    stored = [message.body for message in peer.messages()]
    assert stored == ([body] if flag == "1" else [b"one", b"two"])


def test_a_batch_that_is_cut_off_stores_nothing() -> None:
    """A batch body that ends within an item is refused whole."""
    peer = Peer(a_broker())
    body = encode_batch_body([BatchItem(b"one", b""), BatchItem(b"two", b"")])
    answer = peer.ask(RequestCode.SEND_BATCH_MESSAGE, sent_fields(TOPIC, 0, m="true"), body[:-3])
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert peer.messages() == []


@pytest.mark.parametrize("changes", [{"m": "false"}, {"m": "1"}, {"m": None}])
def test_a_batch_that_does_not_say_so_is_one_message(changes: dict[str, object]) -> None:
    """What its header says counts, not the code of the request."""
    peer = Peer(a_broker())
    body = encode_batch_body([BatchItem(b"one", b""), BatchItem(b"two", b"")])
    fields = {
        name: one for name, one in {**sent_fields(TOPIC, 0), **changes}.items() if one is not None
    }
    assert peer.ask(RequestCode.SEND_BATCH_MESSAGE, fields, body).code == 0
    assert [message.body for message in peer.messages()] == [body]


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("changes", [{"f": 4}, {"f": 8}, {"f": 12}, {"i": "DELAY\x013\x02"},
                                     {"i": "TIMER_DELAY_SEC\x015\x02"}])  # fmt: skip
def test_a_batch_is_no_half_and_not_for_later(changes: dict[str, object], is_cut: bool) -> None:
    """It is refused before its body is looked at, be batches like it known or not."""
    peer = Peer(a_broker())
    body = encode_batch_body([BatchItem(b"one", b""), BatchItem(b"two", b"")])
    text = f"UNIQ_KEY\x01{KEY}\x02WAIT\x01true\x02"
    fields = sent_fields(TOPIC, 0, text, m="true")
    for _ in range(3):
        assert peer.ask(RequestCode.SEND_BATCH_MESSAGE, fields, body).code == 0
    changed = fields | changes | ({"i": f"{text}{changes['i']}"} if "i" in changes else {})
    answer = peer.ask(RequestCode.SEND_BATCH_MESSAGE, changed, body[:-3] if is_cut else body)
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert len(peer.messages()) == 6


@pytest.mark.parametrize("level", ["x", "1.5", " 1", "2147483648", "1_0"])
@pytest.mark.parametrize("batch", ["false", "true"])
def test_a_delay_level_that_is_no_number(level: str, batch: str) -> None:
    """Is refused, and nothing is stored."""
    peer = Peer(a_broker())
    body = encode_batch_body([BatchItem(b"one", b"")])
    fields = sent_fields(TOPIC, 0, f"DELAY\x01{level}\x02", m=batch)
    answer = peer.ask(RequestCode.SEND_BATCH_MESSAGE, fields, body)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert peer.messages() == []


@pytest.mark.parametrize(
    ("attributes", "flush", "changes"),
    [
        ("", "ASYNC_FLUSH", {}),
        ("", "SYNC_FLUSH", {}),
        ("", "SYNC_FLUSH", {"i": "WAIT\x01false\x02"}),
        ("", "ASYNC_FLUSH", {"i": ""}),
        ("", "ASYNC_FLUSH", {"f": 2**31}),
        ("", "ASYNC_FLUSH", {"j": "x"}),
        ("", "ASYNC_FLUSH", {"g": 2**63}),
        ("", "ASYNC_FLUSH", {"e": 99}),
        ("", "ASYNC_FLUSH", {"e": -1, "queues": 1}),
        ("", "ASYNC_FLUSH", {"body": b"no batch"}),
        ("", "ASYNC_FLUSH", {"body": b""}),
        ("+queue.type=BatchCQ", "ASYNC_FLUSH", {}),
        ("+cleanup.policy=COMPACTION", "ASYNC_FLUSH", {}),
    ],
)
def test_a_batch_is_the_same_behind_others(
    attributes: str, flush: str, changes: dict[str, object]
) -> None:
    """What a topic is known for changes nothing of what is stored, answered or refused."""
    seen: list[object] = []
    for is_known in (False, True):
        broker = a_broker(settings={"flushDiskType": flush})
        peer = Peer(broker)
        asked = {
            "topic": TOPIC, "readQueueNums": 4, "writeQueueNums": changes.get("queues", 4),
            "perm": 6, "topicFilterType": "MULTI_TAG", "order": "false", "attributes": attributes,
        }  # fmt: skip
        peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, asked)
        text = f"UNIQ_KEY\x01{KEY}\x02WAIT\x01true\x02"
        fields = sent_fields(TOPIC, 1, text, m="true", g=7)
        body = encode_batch_body([BatchItem(b"one", b"KEYS\x01k\x02", 3), BatchItem(b"two", b"")])
        peer.ask(RequestCode.SEND_BATCH_MESSAGE, fields, body)
        assert (TOPIC in broker.topics.routes) is ("COMPACTION" not in attributes)
        if not is_known:
            broker.topics.routes.clear()
        fields = {**fields, **{name: changes[name] for name in changes.keys() & fields.keys()}}
        answer = peer.ask(RequestCode.SEND_BATCH_MESSAGE, fields, changes.get("body", body))  # type: ignore[arg-type]
        log = broker.store.commit_log
        seen.append((answer.code, answer.remark, answer.fields, log.read(0, log.wrote_where)))
        peer.produce(b"single", queue_id=1)  # a topic that is compacted goes on wanting keys
        seen[-1] = seen[-1], log.wrote_where
    assert seen[0] == seen[1]


def test_a_batch_does_not_go_to_a_retry_topic() -> None:
    """The refusal is Java's."""
    peer = Peer(a_broker())
    body = encode_batch_body([BatchItem(b"one", b"")])
    fields = sent_fields("%RETRY%g", 0, m="true")
    answer = peer.ask(RequestCode.SEND_BATCH_MESSAGE, fields, body)
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert answer.remark == "batch request does not support retry group %RETRY%g"


def test_a_topic_is_made_by_the_first_message() -> None:
    """It has as many queues as client and TBW102 both allow, and rights without inheritance."""
    broker = a_broker()
    Peer(broker).produce(topic="fresh", d=16)
    made = broker.topics.get("fresh")
    assert made is not None
    assert (made.read_queue_count, made.write_queue_count, made.perm) == (8, 8, 6)
    Peer(broker).produce(topic="small", d=2)
    small = broker.topics.get("small")
    assert small is not None
    assert small.write_queue_count == 2


def test_a_negative_queue_is_any_queue() -> None:
    """A message for queue -1 goes to one of the topic's queues, which the answer names."""
    peer = Peer(a_broker())
    peer.produce()
    chosen = {(peer.produce(queue_id=-1).fields or {})["queueId"] for _ in range(40)}
    assert chosen <= {"0", "1", "2", "3"}
    assert len(chosen) > 1


REFUSALS = [
    ({"b": "a b"}, 29, "contains illegal characters"),
    ({"b": ""}, 29, "The specified topic is blank."),
    ({"b": "x" * 128}, 29, "is longer than topic max length: 127"),
    ({"b": "SCHEDULE_TOPIC_XXXX"}, 16, "topic[SCHEDULE_TOPIC_XXXX] is forbidden."),
    ({"b": "new", "c": "nowhere"}, 17, "topic[new] not exist, apply first please!"),
    ({"e": 4}, 29, "request queueId[4] is illegal, TopicConfig [topicName=orders, readQ"),
    ({"e": "x"}, 1, "e"),
    ({"e": " 0"}, 1, "e"),
    ({"h": "0_1"}, 1, "h"),
    ({"f": "9" * 10}, 1, "f"),
    ({"g": "9" * 19}, 1, "g"),
    ({"g": None}, 1, "g"),
]


@pytest.mark.parametrize(("changes", "code", "remark"), REFUSALS)
def test_what_cannot_be_sent_is_refused(changes: dict[str, object], code: int, remark: str) -> None:
    """Code and remark say why; region and trace switch are told all the same."""
    peer = Peer(a_broker())
    peer.produce()
    fields = {**sent_fields(TOPIC, 0), **changes}
    given = {name: value for name, value in fields.items() if value is not None}
    answer = peer.ask(RequestCode.SEND_MESSAGE_V2, given, b"x")
    assert answer.code == code
    assert remark in (answer.remark or "")
    assert answer.fields == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    assert len(peer.messages()) == 1


def test_topics_are_not_made_where_that_is_switched_off() -> None:
    """Without autoCreateTopicEnable an unknown topic is refused, and TBW102 lends nothing."""
    broker = a_broker(settings={"autoCreateTopicEnable": "false"})
    answer = Peer(broker).produce(topic="fresh")
    assert answer.code == ResponseCode.TOPIC_NOT_EXIST
    assert broker.topics.get("fresh") is None


def test_a_message_that_is_too_large_is_refused() -> None:
    """The remark names the limit, and nothing is stored."""
    peer = Peer(a_broker(settings={"maxMessageSize": "1024"}))
    assert peer.produce(bytes(1024)).code == 0
    answer = peer.produce(bytes(1025))
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert "msg body length limit 1024B" in (answer.remark or "")
    assert len(peer.messages()) == 1


def test_an_empty_body_is_refused() -> None:
    """As 5.5.0 does; clients send none."""
    peer = Peer(a_broker())
    assert peer.produce(b"").code == ResponseCode.SYSTEM_ERROR
    assert peer.messages() == []


def test_many_messages_of_one_read_are_answered_in_order() -> None:
    """Frames that come together are answered together, each with its place."""
    peer = Peer(a_broker())
    peer.produce()
    for number in range(5):
        peer.produce(b"%d" % number)
    assert [message.body for message in peer.messages()][1:] == [b"0", b"1", b"2", b"3", b"4"]


def test_a_synchronous_flush_holds_the_answer_back() -> None:
    """Under SYNC_FLUSH the answer comes with the end of the sync, and only then can it be read."""
    broker = a_broker(settings={"flushDiskType": "SYNC_FLUSH"})
    peer = Peer(broker)
    peer.produce()
    pending: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []
    broker.offload = lambda run, done: pending.append((run, done))
    opaque = peer.send(RequestCode.SEND_MESSAGE_V2, sent_fields(TOPIC, 0), b"safe")
    other = Peer(broker, 40002)
    opaque_of_other = other.send(RequestCode.SEND_MESSAGE_V2, sent_fields(TOPIC, 0), b"too")
    assert (peer.answer_to(opaque), len(pending)) == (None, 1)
    assert len(peer.messages()) == 1
    for _ in range(2):
        run, done = pending.pop(0)
        run()
        done(None)
    first, second = peer.answer_to(opaque), other.answer_to(opaque_of_other)
    assert first is not None
    assert second is not None
    assert (first.code, second.code) == (0, 0)
    assert [message.body for message in peer.messages()] == [b"hello", b"safe", b"too"]


def test_a_flush_that_takes_too_long_is_told() -> None:
    """After syncFlushTimeout the answer is 10: stored, but perhaps not safe."""
    clock = ManualClock()
    broker = a_broker(
        SimulatedHost(clock=clock), {"flushDiskType": "SYNC_FLUSH", "syncFlushTimeout": "200"}
    )
    broker.offload = lambda run, done: None  # noqa: ARG005 - a disk that never answers
    peer = Peer(broker)
    opaque = peer.send(RequestCode.SEND_MESSAGE_V2, sent_fields(TOPIC, 0), b"x")
    clock.advance(200)
    broker.timers.run()
    answer = peer.answer_to(opaque)
    assert answer is not None
    assert (answer.code, (answer.fields or {})["queueOffset"]) == (10, "0")


def test_who_does_not_wait_is_answered_at_once() -> None:
    """``WAIT=false`` is answered before the sync, even under SYNC_FLUSH."""
    broker = a_broker(settings={"flushDiskType": "SYNC_FLUSH"})
    broker.offload = lambda run, done: None  # noqa: ARG005 - a disk that never answers
    assert Peer(broker).produce(properties="WAIT\x01false\x02").code == 0


def test_a_dead_letter_that_a_client_sends_itself() -> None:
    """A retry beyond the client's limit goes to the dead letters, one within it does not."""
    peer = Peer(a_broker())
    peer.produce(topic="%RETRY%g", j=3, l=3, d=1)
    peer.produce(topic="%RETRY%g", j=4, l=3, d=1)
    assert len(peer.messages("%RETRY%g")) == 1
    (dead,) = peer.messages("%DLQ%g")
    assert (dead.reconsume_times, dead.properties["DELAY"]) == (4, "-1")


def test_a_timed_message_can_be_taken_back() -> None:
    """A message for the time wheel is answered with a handle that names it."""
    peer = Peer(a_broker(settings={"timerWheelEnable": "true"}))
    answer = peer.produce(properties=f"UNIQ_KEY\x01{KEY}\x02TIMER_DELAY_SEC\x0160\x02")
    assert answer.code == 0
    assert "recallHandle" in (answer.fields or {})
    assert peer.messages() == []
    (waiting,) = peer.messages("rmq_sys_wheel_timer")
    assert parse_properties(waiting.properties_text)["REAL_TOPIC"] == TOPIC


def test_a_driven_broker_answers_senders_first() -> None:
    """Where a server runs the timers, queues follow the answer, once for all; held pulls do not."""
    broker = a_broker()
    consumer, producer = Peer(broker), Peer(broker, 40002)
    producer.produce(b"first")
    broker.defers_work = True
    opaque = consumer.send(RequestCode.PULL_MESSAGE, consumer.pull_fields(TOPIC, 0, 1, "g"))
    assert producer.produce(b"second").code == 0
    answer = consumer.answer_to(opaque)
    assert answer is not None
    assert (answer.fields or {})["nextBeginOffset"] == "2"
    assert producer.produce(b"third").code == 0
    assert producer.produce(b"fourth").code == 0
    assert broker.store.max_queue_offset(TOPIC, 0) == 2
    broker.timers.run()
    assert broker.store.max_queue_offset(TOPIC, 0) == 4


def test_a_driven_broker_tells_the_end_of_a_queue_at_once() -> None:
    """Who asks for offsets, or pulls, sees every message that was acknowledged before."""
    broker = a_broker()
    peer = Peer(broker)
    broker.defers_work = True
    peer.produce(b"first")
    asked = {"topic": TOPIC, "queueId": 0}
    assert peer.ask(RequestCode.GET_MAX_OFFSET, asked).fields == {"offset": "1"}
    peer.produce(b"second")
    assert (peer.pull().fields or {})["nextBeginOffset"] == "2"


def test_a_batch_that_is_kept_whole_gets_what_every_message_gets() -> None:
    """Where it was sent, whether it is traced; and who popped it is not the client's to say."""
    peer = Peer(a_broker())
    asked = {
        "topic": TOPIC, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6,
        "topicFilterType": "SINGLE_TAG", "order": "false", "attributes": "+queue.type=BatchCQ",
    }  # fmt: skip
    assert peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, asked).code == ResponseCode.SUCCESS
    fields = sent_fields(TOPIC, 0, f"UNIQ_KEY\x01{KEY}\x02POP_CK\x01x\x02", m="true")
    body = encode_batch_body([BatchItem(b"one", b""), BatchItem(b"two", b"")])
    assert peer.ask(RequestCode.SEND_BATCH_MESSAGE, fields, body).code == ResponseCode.SUCCESS
    (stored,) = peer.messages()
    assert stored.properties == {
        "UNIQ_KEY": KEY, "INNER_NUM": "2", "INNER_BASE": "0", "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true", "CLUSTER": "DefaultCluster",
    }  # fmt: skip


@pytest.mark.parametrize("flag", ["x", "", "1.5"])
def test_a_batch_says_a_flag_as_one_message_does(flag: str) -> None:
    """It is refused without, though each of its messages has its own."""
    peer = Peer(a_broker())
    body = encode_batch_body([BatchItem(b"one", b"")])
    for is_batch in ("true", "false"):
        fields = sent_fields(TOPIC, 0, "", m=is_batch, h=flag)
        answer = peer.ask(RequestCode.SEND_BATCH_MESSAGE, fields, body)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert "custom field <h>" in (answer.remark or "")


@pytest.mark.parametrize(
    ("index", "count", "sizes"),
    [(0, 5, 2), (0, 6, 3), (0, 3, 1), (0, 0, 0), (1, 0, 1), (1, 2, 1), (3, 2, 1), (3, 3, 2),
     (5, 9, 1)],
)  # fmt: skip
def test_units_of_batches_are_counted_by_their_offsets(index: int, count: int, sizes: int) -> None:
    """Who asks for some is shown the batches that begin among as many offsets."""
    peer = Peer(a_broker())
    asked = {
        "topic": TOPIC, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6,
        "topicFilterType": "SINGLE_TAG", "order": "false", "attributes": "+queue.type=BatchCQ",
    }  # fmt: skip
    assert peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, asked).code == ResponseCode.SUCCESS
    fields = sent_fields(TOPIC, 0, f"UNIQ_KEY\x01{KEY}\x02", m="true")
    for number in (3, 2, 1):
        body = encode_batch_body([BatchItem(b"one", b"")] * number)
        assert peer.ask(RequestCode.SEND_BATCH_MESSAGE, fields, body).code == ResponseCode.SUCCESS
    place = {"topic": TOPIC, "queueId": 0, "index": index, "count": count}
    assert len(peer.ask(RequestCode.QUERY_CONSUME_QUEUE, place).content["queueData"]) == sizes
