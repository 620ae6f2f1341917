"""What administrators and clients are refused, in Java's words, and what stays as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from logstore.compat.rocketmq.wire.codes import ResponseCode
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker
from tests.compat.rocketmq.name_server.conversation import Conversation
from tests.compat.rocketmq.test_pulling import heartbeat

ONLY_ADD = "only add attribute is supported while creating topic. key: message.type"
#: as Java's set has them
MESSAGE_TYPES = "UNSPECIFIED, MIXED, TRANSACTION, PRIORITY, FIFO, DELAY, LITE, NORMAL"
NOT_SET = "not set any response code"


@pytest.fixture
def peer() -> Peer:
    """A client of a new broker."""
    return Peer(a_broker())


def topic_fields(name: str, **changes: object) -> dict[str, object]:
    """Return the header by which a topic is made."""
    return {
        "topic": name, "defaultTopic": "TBW102", "readQueueNums": 1, "writeQueueNums": 1,
        "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false", **changes,
    }  # fmt: skip


def told_of(peer: Peer, name: str, **changes: object) -> tuple[int, str | None]:
    """Have a topic made or changed; return code and remark."""
    answer = peer.ask(Code.UPDATE_AND_CREATE_TOPIC, topic_fields(name, **changes))
    return answer.code, answer.remark


@pytest.mark.parametrize(
    ("attributes", "remark"),
    [
        ("-message.type", ONLY_ADD),
        ("-", "kv string format wrong."),
        ("+x=y", "unsupported key: x"),
        ("+message.type=bad", f"value is not in set: [{MESSAGE_TYPES}]"),
        ("+reserve.time=x", 'For input string: "x"'),
        ("+lite.topic.expiration=43201", "value is not in range(-1, 43200)"),
    ],
)
def test_attributes_that_a_new_topic_cannot_have(peer: Peer, attributes: str, remark: str) -> None:
    """Each flaw has its remark, and no topic is made."""
    assert told_of(peer, "new", attributes=attributes) == (ResponseCode.SYSTEM_ERROR, remark)
    assert peer.ask(Code.GET_TOPIC_CONFIG, {"topic": "new"}).code == ResponseCode.TOPIC_NOT_EXIST


def test_an_attribute_that_is_not_there_cannot_be_removed(peer: Peer) -> None:
    """One that is there can."""
    assert told_of(peer, "t", attributes="+message.type=PRIORITY") == (0, NOT_SET)
    assert told_of(peer, "t", attributes="-message.type") == (0, NOT_SET)
    remark = "attempt to delete a nonexistent key: message.type"
    assert told_of(peer, "t", attributes="-message.type") == (ResponseCode.SYSTEM_ERROR, remark)


def test_a_topic_is_filtered_in_one_of_two_ways(peer: Peer) -> None:
    """Another word is refused; but first of all the broker's own topics are."""
    remark = "topicFilterType = [x] value invalid"
    assert told_of(peer, "TBW102", attributes="+a")[0] == ResponseCode.INVALID_PARAMETER
    found = told_of(peer, "t", topicFilterType="x")
    assert found == (ResponseCode.SYSTEM_ERROR, remark)


def listed(name: str) -> dict[str, Any]:
    """Return a topic as it stands in a list of those that are to be made."""
    return {
        "topicName": name, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6,
        "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": False, "attributes": {},
    }  # fmt: skip


def test_a_list_with_a_topic_that_is_as_it_was_changes_nothing(peer: Peer) -> None:
    """Nor does one with a topic of the broker's own."""
    assert told_of(peer, "old")[0] == 0
    old, new = listed("old"), listed("new")

    def asked(*topics: dict[str, Any]) -> int:
        body = json.dumps({"topicConfigList": topics}).encode()
        return peer.ask(Code.UPDATE_AND_CREATE_TOPIC_LIST, {}, body).code

    assert asked(new, old) == 0
    assert asked(new, new | {"topicName": "TBW102"}) == ResponseCode.INVALID_PARAMETER
    assert peer.ask(Code.GET_TOPIC_CONFIG, {"topic": "new"}).code == ResponseCode.TOPIC_NOT_EXIST
    assert asked(new) == 0
    assert peer.ask(Code.GET_TOPIC_CONFIG, {"topic": "new"}).code == 0


def test_delay_levels_that_cannot_be_read_leave_a_broker_as_it_was(peer: Peer) -> None:
    """It goes on, and takes other settings."""
    answer = peer.ask(Code.UPDATE_BROKER_CONFIG, {}, b"messageDelayLevel=1s 2\n")
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "level 2 is '2'" in (answer.remark or "")
    assert peer.ask(Code.UPDATE_BROKER_CONFIG, {}, b"defaultQueryMaxNum=31\n").code == 0
    assert peer.ask(Code.GET_BROKER_RUNTIME_INFO).code == 0
    assert b"messageDelayLevel=1s 5s" in peer.ask(Code.GET_BROKER_CONFIG).body


def test_sums_of_offsets_go_round(peer: Peer) -> None:
    """Offsets may be any number, and the stats of all groups are told all the same."""
    peer.produce()
    peer.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC))
    for queue_id in range(4):
        fields = {
            "consumerGroup": "g", "topic": TOPIC, "queueId": queue_id, "commitOffset": 2**62,
        }  # fmt: skip
        assert peer.ask(Code.UPDATE_CONSUMER_OFFSET, fields).code == 0
    answer = peer.ask(Code.GET_BROKER_CONSUME_STATS, {"isOrder": "false"})
    assert answer.code == 0
    assert b'"totalDiff":1,"totalInflightDiff":0}' in answer.body
    assert b'"pullOffset":0' in answer.body


def test_offsets_before_the_start_of_a_queue_correct_nobody(peer: Peer) -> None:
    """What a group has committed counts from the queue's start on."""
    peer.produce()
    peer.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC))
    fields = {"consumerGroup": "g", "topic": TOPIC, "queueId": 0, "commitOffset": -1}
    assert peer.ask(Code.UPDATE_CONSUMER_OFFSET, fields).code == 0
    asked = {"compareGroup": "x", "topic": TOPIC}
    assert peer.ask(Code.QUERY_CORRECTION_OFFSET, asked).body == b'{"correctionOffsets":{}}'


def test_an_expression_that_makes_no_sense_is_not_waited_for(peer: Peer) -> None:
    """Who asks for notices is told so, with the fields of an answer."""
    peer.produce()
    fields = {"consumerGroup": "g", "topic": TOPIC, "queueId": 0, "pollTime": 0, "bornTime": 1}
    answer = peer.ask(Code.NOTIFICATION, fields | {"expType": "SQL92", "exp": "a >"})
    assert answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    assert answer.remark == "parse the consumer's subscription failed"
    assert answer.fields == {"hasMsg": "false", "pollingFull": "false"}
    answer = peer.ask(Code.POLLING_INFO, fields | {"queueId": 100})
    assert (answer.code, answer.fields) == (ResponseCode.INVALID_PARAMETER, {"pollingNum": "0"})


def test_a_queue_named_twice_is_locked_once(peer: Peer) -> None:
    """And told of once."""
    queue = {"brokerName": "broker-a", "topic": TOPIC, "queueId": 0}
    body = {"consumerGroup": "g", "clientId": "c", "mqSet": [queue, queue]}
    answer = peer.ask(Code.LOCK_BATCH_MQ, {}, json.dumps(body).encode())
    assert answer.content["lockOKMQSet"] == [queue]


def test_a_transaction_ends_in_one_of_three_ways(peer: Peer) -> None:
    """Anything else is refused."""
    fields = {
        "producerGroup": "p", "tranStateTableOffset": 0, "commitLogOffset": 0,
        "commitOrRollback": 4, "msgId": "x",
    }  # fmt: skip
    answer = peer.ask(Code.END_TRANSACTION, fields)
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "commitOrRollback field wrong",
    )


@pytest.mark.parametrize("fields", [{}, {"msgId": "x"}, {"msgId": "0" * 32}])
def test_a_half_message_that_is_not_there_is_not_checked_again(
    peer: Peer, fields: dict[str, object]
) -> None:
    """Whatever is wrong with its id."""
    answer = peer.ask(Code.RESUME_CHECK_HALF_MESSAGE, fields)
    remark = "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC."
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)


def test_units_of_a_queue_for_a_group_without_a_name(peer: Peer) -> None:
    """It is a group, and not online; who wants fewer than none gets none."""
    peer.produce()
    fields = {"topic": TOPIC, "queueId": 0, "index": 0, "count": 1, "consumerGroup": ""}
    answer = peer.ask(Code.QUERY_CONSUME_QUEUE, fields)
    assert answer.content["filterData"] == f"@{TOPIC} is not online!"
    answer = peer.ask(Code.QUERY_CONSUME_QUEUE, fields | {"count": -1})
    assert (answer.code, answer.content["queueData"]) == (0, [])


@pytest.mark.parametrize("index", [-(2**63), 2**62])
def test_units_from_a_place_whose_bytes_are_beyond_java_s(peer: Peer, index: int) -> None:
    """Its product goes round to 0, and none of the units is as far away as was asked for."""
    peer.produce()
    peer.produce()
    fields = {"topic": TOPIC, "queueId": 0, "index": index, "count": 1}
    assert len(peer.ask(Code.QUERY_CONSUME_QUEUE, fields).content["queueData"]) == 2


def test_a_key_that_the_broker_makes_stands_where_java_puts_it(peer: Peer) -> None:
    """Before the cluster, which falls into the same place of the table."""
    peer.produce(properties="a\x011\x02")
    (message,) = peer.messages()
    names = list(message.properties)
    assert names.index("UNIQ_KEY") < names.index("CLUSTER")


def test_a_name_server_takes_a_flag_for_what_it_is_and_keeps_what_is_fixed() -> None:
    """Any word but true is false; a name without a value is one that is not to be changed, too."""
    conversation = Conversation()
    assert conversation.ask(318, {}, b"orderMessageEnable=x\n").code == 0
    assert b"orderMessageEnable=false\n" in conversation.ask(319, {}).body
    assert conversation.ask(318, {}, b"rocketmqHome\n").code == ResponseCode.NO_PERMISSION
