"""Clients, topics, groups and messages that come and go leave nothing behind in a broker."""

from __future__ import annotations

import orjson
import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.compat.rocketmq.broker_peer import Peer, decoded
from tests.compat.rocketmq.pop.pop_stage import PopStage, popped_in
from tests.leftovers import left_behind

_SETTLED_MS = 1_200_000
_HALF_FLAG, _COMMIT, _ROLLBACK = 4, 8, 12
#: what stays, and why
KEPT = {
    # caches, with a most that they hold
    "compat.rocketmq.sending.sent_properties._Shape",
    "compat.rocketmq.sending.sent_properties.PropertyRewriter._shapes",
    "compat.rocketmq.sending.sent_properties.PropertyRewriter._plans",
    "compat.rocketmq.sending.send_kind.SendKind",
    "compat.rocketmq.sending.send_run.SendRun._seen",
    "compat.rocketmq.sending.send_run.SendRun._kinds",
    "compat.rocketmq.topics.broker_topics.SendRoute",
    "compat.rocketmq.clients.subscriptions.Subscription",
    "segments.rocketmq.messages.host_address.HostAddress",
    "segments.rocketmq.messages.message_run.MessageKind",
    "segments.rocketmq.messages.properties_shape.PropertiesShape",
}


class Visit:
    """One client with names of its own, from its first request to the last."""

    def __init__(self, stage: PopStage, number: int) -> None:
        self.stage = stage
        self.number = number
        self.peer: Peer = stage.client()
        self.topic, self.group, self.poppers = f"t{number}", f"g{number}", f"p{number}"

    def ask(self, code: Code, fields: dict[str, object] | None = None, body: object = b"") -> None:
        """Ask for what must be done."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        assert self.peer.ask(code, fields, data).code == 0

    def arrive(self) -> None:
        """Make a topic and groups, and say who is here."""
        topic = {"topic": self.topic, "defaultTopic": "TBW102", "readQueueNums": 2,
                 "writeQueueNums": 2, "perm": 6, "topicFilterType": "SINGLE_TAG",
                 "topicSysFlag": 0, "order": "false"}  # fmt: skip
        self.ask(Code.UPDATE_AND_CREATE_TOPIC, dict[str, object](topic))
        for group in (self.group, self.poppers):
            self.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, {"groupName": group})
        subscription = {"topic": self.topic, "subString": "*", "subVersion": 1}
        consumer = {
            "groupName": self.group, "consumeType": "CONSUME_PASSIVELY",
            "messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
            "subscriptionDataSet": [subscription],
        }  # fmt: skip
        beat = {"clientID": f"c{self.number}", "producerDataSet": [{"groupName": self.poppers}],
                "consumerDataSet": [consumer]}  # fmt: skip
        self.ask(Code.HEART_BEAT, {}, beat)

    def send(self) -> None:
        """Send what comes at once, later, and in a transaction."""
        for index in range(6):
            keys = f"TAGS\x01a\x02KEYS\x01k{self.number}\x02UNIQ_KEY\x01U{self.number}-{index}\x02"
            assert self.peer.produce(b"%d" % index, self.topic, index % 2, keys).code == 0
        assert self.peer.produce(b"later", self.topic, 0, "TIMER_DELAY_MS\x013000\x02").code == 0
        assert self.peer.produce(b"level", self.topic, 0, "DELAY\x011\x02").code == 0
        half = f"TRAN_MSG\x01true\x02PGROUP\x01{self.poppers}\x02UNIQ_KEY\x01H{self.number}\x02"
        told = self.peer.produce(b"half", self.topic, 0, half, f=_HALF_FLAG).fields or {}
        end = {"producerGroup": self.poppers, "tranStateTableOffset": told["queueOffset"],
               "commitLogOffset": int(told["msgId"][16:], 16), "msgId": f"H{self.number}",
               "commitOrRollback": _COMMIT if self.number % 2 else _ROLLBACK,
               "fromTransactionCheck": "false"}  # fmt: skip
        self.ask(Code.END_TRANSACTION, dict[str, object](end))

    def consume(self) -> None:
        """Pull, commit, give back, lock, and wait for more."""
        first, *_ = decoded(self.peer.pull(self.topic, 0, 0, self.group).body)
        of_queue: dict[str, object] = {"topic": self.topic, "queueId": 0}
        self.ask(Code.CONSUMER_SEND_MSG_BACK, {"group": self.group, "delayLevel": 1,
                 "offset": first.physical_offset, "originTopic": self.topic})  # fmt: skip
        self.ask(Code.UPDATE_CONSUMER_OFFSET,
                 {"consumerGroup": self.group, "commitOffset": 1, **of_queue})  # fmt: skip
        self.ask(Code.LOCK_BATCH_MQ, {}, self._locks())
        self.ask(Code.QUERY_ASSIGNMENT, {}, {"topic": self.topic, "consumerGroup": self.group,
                 "clientId": f"c{self.number}", "strategyName": "AVG",
                 "messageModel": "CLUSTERING"})  # fmt: skip
        self.ask(Code.GET_CONSUME_STATS, {"consumerGroup": self.group})
        self.ask(Code.QUERY_MESSAGE, {"topic": self.topic, "key": f"k{self.number}", "maxNum": 10,
                 "beginTimestamp": 0, "endTimestamp": 1 << 60})  # fmt: skip
        self.peer.send(Code.PULL_MESSAGE, self.peer.pull_fields(self.topic, 1, 100, self.group))

    def pop(self) -> None:
        """Pop: acknowledge one message, ask for more time with another, forget the third."""
        asked: dict[str, object] = {"topic": self.topic, "consumerGroup": self.poppers}
        fields = self.stage.fields(**asked, queueId=1, maxMsgNums=3)
        one, two, *_ = popped_in(self.peer.ask(Code.POP_MESSAGE, fields))
        self.ask(Code.ACK_MESSAGE, {**one.fields(), **asked})
        change = {**two.fields(), **asked, "invisibleTime": 5000}
        self.ask(Code.CHANGE_MESSAGE_INVISIBLETIME, change)
        self.peer.send(Code.POP_MESSAGE, self.stage.fields(**asked, order="true", attemptId="a"))
        self.peer.send(Code.POP_MESSAGE, self.stage.fields(**asked, queueId=1, pollTime=4000))

    def leave(self, *, is_polite: bool) -> None:
        """Delete it all, and hang up; with a word before it or without."""
        if is_polite:
            self.ask(Code.UNLOCK_BATCH_MQ, {}, self._locks())
            self.ask(Code.UNREGISTER_CLIENT, {"clientID": f"c{self.number}",
                     "producerGroup": self.poppers, "consumerGroup": self.group})  # fmt: skip
        for group in (self.group, self.poppers):
            self.ask(Code.DELETE_SUBSCRIPTIONGROUP, {"groupName": group, "cleanOffset": "true"})
        for topic in (f"%RETRY%{self.group}", f"%RETRY%{self.poppers}_{self.topic}", self.topic):
            self.ask(Code.DELETE_TOPIC_IN_BROKER, {"topic": topic})
        self.peer.hang_up()

    def _locks(self) -> dict[str, object]:
        queue = {"topic": self.topic, "brokerName": "broker-a", "queueId": 0}
        return {"consumerGroup": self.group, "clientId": f"c{self.number}", "mqSet": [queue]}


@pytest.mark.parametrize("is_polite", [True, False])
def test_who_is_gone_is_forgotten(*, is_polite: bool) -> None:
    """Whatever a client did: twenty minutes later nothing of it is in memory."""

    def visit(stage: PopStage, number: int) -> None:
        one = Visit(stage, number)
        one.arrive()
        one.send()
        one.consume()
        one.pop()
        stage.pass_ms(20_000)
        one.leave(is_polite=is_polite)

    left = left_behind(PopStage, visit, lambda stage: stage.pass_ms(_SETTLED_MS))
    assert {name: count for name, count in left.items() if name not in KEPT} == {}
