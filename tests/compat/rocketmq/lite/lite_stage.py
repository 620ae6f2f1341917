"""A broker with light queues, a parent of lite topics, a group that reads them, and clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from logstore.compat.rocketmq.wire.codes import RequestCode
from tests.compat.rocketmq.broker_peer import Peer, decoded
from tests.compat.rocketmq.frames import Answer
from tests.compat.rocketmq.pop.pop_stage import PopStage

PARENT = "parent"
GROUP = "readers"
CLIENT = "client-1"
CHAT = "%LMQ%$parent$chat"


class LiteStage(PopStage):
    """Asks what is asked about lite topics."""

    def __init__(self, **settings: str) -> None:
        on = {"enableLmq": "true", "enableMultiDispatch": "true"}
        super().__init__(**{**on, **settings})
        self.make_topic(PARENT, "+message.type=LITE,+lite.topic.expiration=30")
        self.make_group(GROUP)

    def make_topic(self, topic: str, attributes: str) -> None:
        """Make a topic of two queues."""
        fields = {
            "topic": topic, "defaultTopic": "TBW102", "readQueueNums": 2, "writeQueueNums": 2,
            "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
            "attributes": attributes,
        }  # fmt: skip
        assert self.peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, fields).code == 0

    def make_group(self, group: str, **attributes: str) -> Answer:
        """Make a group that reads lite topics of the parent; ``_`` stands for a dot."""
        signed = {f"+lite.{name.replace('_', '.')}": text for name, text in attributes.items()}
        body = {"groupName": group, "attributes": {"+lite.bind.topic": PARENT, **signed}}
        code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        return self.peer.ask(code, {}, orjson.dumps(body))

    def send(self, lite_topic: str, *bodies: bytes, parent: str = PARENT) -> None:
        """Send messages to a lite topic; whoever waits for them is woken."""
        for body in bodies:
            properties = f"__LITE_TOPIC\x01{lite_topic}\x02"
            assert self.peer.produce(body, parent, properties=properties).code == 0
        self.broker.catch_up()
        self.broker.timers.run()

    def subscribe(
        self,
        *lite_topics: str,
        client: str = CLIENT,
        action: str = "PARTIAL_ADD",
        peer: Peer | None = None,
        **changes: object,
    ) -> Answer:
        """Say what a client reads."""
        entry = {
            "action": action, "clientId": client, "group": GROUP, "topic": PARENT,
            "liteTopicSet": lite_topics, "version": 1, **changes,
        }  # fmt: skip
        body = orjson.dumps({"subscriptionSet": [entry]})
        return (peer or self.peer).ask(RequestCode.LITE_SUBSCRIPTION_CTL, {}, body)

    def lite_fields(self, **changes: object) -> dict[str, object]:
        """Return the fields of a pop that does not wait."""
        return {
            "clientId": CLIENT, "consumerGroup": GROUP, "topic": PARENT, "maxMsgNum": 32,
            "invisibleTime": 10_000, "pollTime": 0, "bornTime": self.clock.wall_ms(), **changes,
        }  # fmt: skip

    def pop_lite(self, **changes: object) -> Answer:
        """Pop without waiting."""
        return self.peer.ask(RequestCode.POP_LITE_MESSAGE, self.lite_fields(**changes))

    def lite_bodies(self, **changes: object) -> list[bytes]:
        """Pop; return the bodies."""
        return [message.body for message in decoded(self.pop_lite(**changes).body)]

    def wait(self, **changes: object) -> int:
        """Pop and wait; return the number of the request."""
        fields = self.lite_fields(pollTime=5000, **changes)
        opaque = self.peer.send(RequestCode.POP_LITE_MESSAGE, fields)
        assert self.peer.answer_to(opaque) is None
        return opaque

    def shown(self, popped: Answer, queue_offset: int, **changes: object) -> dict[str, object]:
        """Return what a client shows of a message."""
        fields = popped.fields or {}
        words = (
            queue_offset, fields["popTime"], fields["invisibleTime"], fields["reviveQid"], 0,
            "broker-a", 0, queue_offset,
        )  # fmt: skip
        return {
            "consumerGroup": GROUP, "topic": PARENT, "queueId": 0, "offset": queue_offset,
            "extraInfo": " ".join(map(str, words)), "liteTopic": "chat", **changes,
        }  # fmt: skip

    def ack_lite(self, popped: Answer, queue_offset: int, **changes: object) -> Answer:
        """Acknowledge a message."""
        fields = self.shown(popped, queue_offset, **changes)
        answer = self.peer.ask(RequestCode.ACK_MESSAGE, fields)
        self.broker.timers.run()
        return answer

    def told(self, code: int, **fields: object) -> dict[str, Any]:
        """Return what an administrator is told."""
        answer = self.peer.ask(code, fields)
        assert answer.code == 0, answer.remark
        found: dict[str, Any] = orjson.loads(answer.body)
        return found

    def topic_info(self, lite_topic: str = "chat") -> dict[str, Any]:
        """Return what is told of a lite topic."""
        code = RequestCode.GET_LITE_TOPIC_INFO
        return self.told(code, parentTopic=PARENT, liteTopic=lite_topic)

    def client_info(self, client: str = CLIENT, group: str = GROUP) -> dict[str, Any]:
        """Return what is told of a client."""
        code = RequestCode.GET_LITE_CLIENT_INFO
        return self.told(code, parentTopic=PARENT, group=group, clientId=client)

    def end(self, lite_topic: str = "chat") -> int:
        """Return how many messages a lite topic has had."""
        return int(self.topic_info(lite_topic)["topicOffset"]["maxOffset"])

    def read(self, queue: str = CHAT) -> int:
        """Return how far the group is."""
        return self.committed(queue, 0, GROUP)


def fields_of(answer: Answer) -> Mapping[str, str]:
    """Return the fields of an answer."""
    return answer.fields or {}
