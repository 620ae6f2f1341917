"""What one broker answers about lite topics: the same requests, sent by hand to any broker."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any

from tests.interop.eventually import eventually
from tests.interop.rocketmq_wire import SEND_MESSAGE_V2, Answer, Wire, pulled, send_fields

UPDATE_TOPIC, DELETE_TOPIC, UPDATE_GROUP, DELETE_GROUP = 17, 215, 200, 207
SEARCH_OFFSET, PULL, QUERY_OFFSET, MAX_OFFSET = 29, 11, 14, 30
ACK, CHANGE = 200051, 200053
POP_LITE, SUBSCRIBE, ACK_LITE, UNSUBSCRIBED = 200070, 200071, 200072, 200073
BROKER_INFO, PARENT_INFO, TOPIC_INFO, CLIENT_INFO, GROUP_INFO, TRIGGER = range(200074, 200080)

PARENT, PLAIN = "parent", "plain"
GROUP = "readers"
CLIENT = "client-1"
SYSTEM_ERROR = 1
#: what is different each time: times since 1970, and where a connection comes from
_VARYING = re.compile(r"\b1[6-9]\d{11}\b|\d+(?:\.\d+){3}:\d+")
_WALL_MS = 1_000_000_000_000
#: what Java says around the text of an exception: its class before, and where it was behind
_CLASS, _PLACE = (
    re.compile(r"^java\.lang\.(Runtime|NumberFormat)Exception: "),
    re.compile(r", [\w.$/<>]+\([\w.:]+\)$"),
)
#: these speak of Java alone
_JAVA_ALONE = re.compile(r"java\.lang\.(NullPointer|IllegalArgument)Exception.*")


class Session:
    """Asks one broker, and keeps what it answered by the name of the question."""

    def __init__(self, address: str) -> None:
        self._wire = Wire(address)
        self.address = address
        self.found: dict[str, Any] = {}

    def run(self) -> dict[str, Any]:
        """Ask everything; return the answers."""
        self._topics_and_groups()
        self._sending()
        self._refusals()
        self._consuming()
        self._again()
        self._many_topics()
        self._exclusive()
        self._wildcard()
        self._administration()
        self._wire.close()
        return self.found

    def ask(self, name: str, code: int, fields: Mapping[str, object], body: Any = None) -> Answer:
        """Ask, and remember the answer under that name."""
        answer = self.quietly(code, fields, body)
        assert name not in self.found, name
        self.found[name] = told(answer)
        return answer

    def quietly(self, code: int, fields: Mapping[str, object], body: Any = None) -> Answer:
        """Ask what need not be compared."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body)
        return self._wire.ask(code, fields, data if isinstance(data, bytes) else data.encode())

    # what is asked again and again

    def topic(self, name: str, topic: str, attributes: str) -> None:
        """Make or change a topic."""
        fields = {
            "topic": topic, "defaultTopic": "TBW102", "readQueueNums": 2, "writeQueueNums": 2,
            "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
            "attributes": attributes,
        }  # fmt: skip
        self.ask(name, UPDATE_TOPIC, fields)

    def group(self, name: str, group: str, attributes: dict[str, str], **more: object) -> None:
        """Make or change a group."""
        self.ask(name, UPDATE_GROUP, {}, {"groupName": group, "attributes": attributes, **more})

    def send(self, lite_topic: str, *bodies: str, parent: str = PARENT) -> None:
        """Send messages to a lite topic, and wait until they have arrived."""
        end = self._end(lite_topic, parent) + len(bodies)
        for body in bodies:
            fields = send_fields(parent, 0, f"__LITE_TOPIC\x01{lite_topic}\x02")
            assert self.quietly(SEND_MESSAGE_V2, fields, body.encode()).code == 0
        eventually(lambda: self._end(lite_topic, parent) == end, what=lite_topic)

    def _end(self, lite_topic: str, parent: str = PARENT) -> int:
        answer = self.quietly(TOPIC_INFO, {"parentTopic": parent, "liteTopic": lite_topic})
        return int(json.loads(answer.body)["topicOffset"]["maxOffset"])

    def subscribe(
        self, name: str, action: str, *lite_topics: str, client: str = CLIENT, group: str = GROUP,
        topic: str = PARENT, **more: object,
    ) -> Answer:  # fmt: skip
        """Say what a client reads."""
        entry = {
            "action": action, "clientId": client, "group": group, "topic": topic,
            "liteTopicSet": list(lite_topics), "version": 1, **more,
        }  # fmt: skip
        return self.ask(name, SUBSCRIBE, {}, {"subscriptionSet": [entry]})

    def pop_fields(self, **changes: object) -> dict[str, object]:
        """Return the fields of a pop that does not wait."""
        return {
            "clientId": CLIENT, "consumerGroup": GROUP, "topic": PARENT, "maxMsgNum": 32,
            "invisibleTime": 60_000, "pollTime": 0, "bornTime": time.time_ns() // 1_000_000,
            **changes,
        }  # fmt: skip

    def pop(self, name: str, **changes: object) -> Answer:
        """Pop."""
        return self.ask(name, POP_LITE, self.pop_fields(**changes))

    def ack(
        self, name: str, popped: Answer, lite_topic: str, offset: int, **changes: object
    ) -> Answer:
        """Acknowledge a message."""
        return self.ask(name, ACK, {**handle(popped, lite_topic, offset), **changes})

    def change(self, name: str, shown: Mapping[str, object]) -> None:
        """Change an invisible time: what is told of it is counted from the pop on."""
        answer = self.quietly(CHANGE, shown)
        code, remark, fields, body = told(answer)
        fields["invisibleTime"] = int(fields["invisibleTime"]) // 10_000
        self.found[name] = code, remark, fields, body

    def info(self, name: str, *, lite_topic: str = "chat", client: str = CLIENT) -> None:
        """Ask everything that is told about lite topics."""
        self.ask(f"{name}: topic", TOPIC_INFO, {"parentTopic": PARENT, "liteTopic": lite_topic})
        of_client = {"parentTopic": PARENT, "group": GROUP, "clientId": client}
        self.ask(f"{name}: client", CLIENT_INFO, of_client)
        of_group = {"group": GROUP, "liteTopic": lite_topic}
        self.ask(f"{name}: one of a group", GROUP_INFO, of_group)
        self.ask(f"{name}: all of a group", GROUP_INFO, {"group": GROUP, "topK": 50})
        offset = {"consumerGroup": GROUP, "topic": f"%LMQ%${PARENT}${lite_topic}", "queueId": 0}
        self.ask(f"{name}: committed", QUERY_OFFSET, offset)

    # the sections

    def _topics_and_groups(self) -> None:
        self.ask("nothing yet", BROKER_INFO, {})
        self.topic("a parent", PARENT, "+message.type=LITE,+lite.topic.expiration=30")
        self.topic("too long", "long", "+message.type=LITE,+lite.topic.expiration=43201")
        self.topic("no number", "none", "+message.type=LITE,+lite.topic.expiration=soon")
        self.topic("plain", PLAIN, "+message.type=NORMAL")
        self.group("a group", GROUP, {"+lite.bind.topic": PARENT})
        self.group("a plain group", "others", {})
        self.group("a closed group", "closed", {"+lite.bind.topic": PARENT}, consumeEnable=False)
        self.group("unknown attribute", "odd", {"+lite.something": "1"})
        self.group("no sign", "odd", {"lite.bind.topic": PARENT})
        self.group("no model", "odd", {"+lite.sub.model": "Mine"})
        self.group("no switch", "odd", {"+lite.sub.reset.offset.exclusive": "maybe"})
        self.group("quota too low", "odd", {"+lite.sub.client.quota": "-2"})
        self.group("quota no number", "odd", {"+lite.sub.client.quota": "many"})
        self.group("too few events", "odd", {"+lite.sub.client.max.event.cnt": "9"})
        self.group("priorities", "odd", {"+priority.factor": "101"})
        self.group("nothing to delete", GROUP, {"-lite.sub.model": ""})
        self.group("kept", GROUP, {"+lite.sub.client.quota": "10"})
        self.ask("the group", 352, {"group": GROUP})
        self.group("deleted", GROUP, {"-lite.sub.client.quota": ""})
        self.ask("the group without it", 352, {"group": GROUP})
        self.ask("the parent", PARENT_INFO, {"topic": PARENT})
        self.ask("a broker with a parent", BROKER_INFO, {})

    def _sending(self) -> None:
        self.info("before all")
        for name, properties in (
            ("sent", "__LITE_TOPIC\x01chat\x02"),
            ("with a queue", "__LITE_TOPIC\x01chat\x02INNER_MULTI_DISPATCH\x01%LMQ%mine\x02"),
            ("to no lite topic", "__LITE_TOPIC\x01\x02"),
            ("with a slash", "__LITE_TOPIC\x01a/b\x02"),
        ):
            self.ask(name, SEND_MESSAGE_V2, send_fields(PARENT, 1, properties), name.encode())
        self.ask(
            "of a plain topic", SEND_MESSAGE_V2,
            send_fields(PLAIN, 0, "__LITE_TOPIC\x01chat\x02"), b"p",
        )  # fmt: skip
        queue = {"topic": PARENT, "queueId": 1}
        eventually(lambda: self.quietly(MAX_OFFSET, queue).fields["offset"] == "4", what="all")
        for lite_topic in ("chat", "a/b", "a$b", "a", "", "other"):
            fields = {"parentTopic": PARENT, "liteTopic": lite_topic}
            self.ask(f"info of {lite_topic!r}", TOPIC_INFO, fields)
        self.ask("count", PARENT_INFO, {"topic": PARENT})
        pull = {
            "consumerGroup": GROUP, "topic": PARENT, "queueId": 0, "queueOffset": 0,
            "maxMsgNums": 32, "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0,
            "subscription": "*", "subVersion": 0, "expressionType": "TAG",
        }  # fmt: skip
        self.ask("pulled", PULL, {**pull, "liteTopic": "chat"})
        self.ask("pulled of its queue", PULL, {**pull, "queueId": 1})
        self.ask("end of the queue", MAX_OFFSET, {"topic": PARENT, "queueId": 1})
        self.ask("end of the light queue", MAX_OFFSET, {"topic": "%LMQ%$parent$chat", "queueId": 0})
        for lite_topic in ("chat", "none"):
            for queue_id in (0, 1):
                search: dict[str, object] = {
                    "topic": PARENT, "queueId": queue_id, "timestamp": 0, "liteTopic": lite_topic,
                }  # fmt: skip
                self.ask(f"searched {lite_topic} {queue_id}", SEARCH_OFFSET, search)

    def _refusals(self) -> None:
        self.subscribe("closed", "PARTIAL_ADD", "chat", group="closed")
        self.subscribe("closed completely", "COMPLETE_ADD", "chat", group="closed")
        self.subscribe("no client", "PARTIAL_ADD", "chat", client="")
        self.subscribe("no group", "PARTIAL_ADD", "chat", group=" ")
        self.subscribe("no topic", "PARTIAL_ADD", "chat", topic="")
        self.subscribe("no lite topic", "PARTIAL_ADD", "", client="c-0")
        self.ask("no body", SUBSCRIBE, {})
        self.ask("an empty body", SUBSCRIBE, {}, {"subscriptionSet": []})
        self.ask("no set", SUBSCRIBE, {}, {})
        for name, changes in (
            ("pop too much", {"maxMsgNum": 33}),
            ("pop too late", {"bornTime": 1}),
            ("pop no topic", {"topic": "nothing"}),
            ("pop a plain topic", {"topic": PLAIN}),
            ("pop by a plain group", {"consumerGroup": "others"}),
            ("pop by a closed group", {"consumerGroup": "closed"}),
            ("pop nothing", {"clientId": "nobody"}),
        ):
            self.pop(name, **changes)
        self.ask("parent: nothing", PARENT_INFO, {"topic": "nothing"})
        self.ask("parent: plain", PARENT_INFO, {"topic": PLAIN})
        self.ask("topic: nothing", TOPIC_INFO, {"parentTopic": "nothing", "liteTopic": "chat"})
        self.ask("topic: plain", TOPIC_INFO, {"parentTopic": PLAIN, "liteTopic": "chat"})
        fields = {"parentTopic": PARENT, "group": GROUP, "clientId": "nobody"}
        self.ask("client: nobody", CLIENT_INFO, fields)
        for name, change in (
            ("nothing", {"parentTopic": "nothing"}),
            ("plain", {"parentTopic": PLAIN}),
            ("plain group", {"group": "others"}),
        ):
            self.ask(f"client: {name}", CLIENT_INFO, {**fields, **change})
        self.ask("group: plain", GROUP_INFO, {"group": "others", "topK": 5})
        self.ask("group: topK 0", GROUP_INFO, {"group": GROUP, "topK": 0})
        self.ask("trigger: plain", TRIGGER, {"group": "others"})
        self.ask("trigger", TRIGGER, {"group": GROUP})
        self.ask("trigger for nobody", TRIGGER, {"group": GROUP, "clientId": "nobody"})
        self.ask("ack lite", ACK_LITE, {})

    def _consuming(self) -> None:
        self.subscribe("subscribed", "PARTIAL_ADD", "chat", "news")
        self.info("subscribed")
        popped = self.pop("the last message of before")
        self.info("popped")
        self.pop("locked")
        for name, changes in (
            ("another topic", {"topic": PLAIN}),
            ("another group", {"consumerGroup": "others"}),
            ("another queue", {"queueId": 1}),
            ("beyond the end", {"offset": 99}),
            ("not popped", {"offset": 2}),
        ):
            self.ask(f"ack: {name}", ACK, {**handle(popped, "chat", 1), **changes})
        again = {**handle(popped, "chat", 1), "invisibleTime": 70_000}
        self.change("changed", again)
        self.change("changed beyond the end", {**again, "offset": 99})
        self.pop("still locked")
        self.ack("acknowledged", popped, "chat", 1)
        self.ack("acknowledged before", popped, "chat", 0)
        self.ack("acknowledged twice", popped, "chat", 1)
        self.change("changed too late", {**again, "offset": 0})
        self.info("acknowledged")
        self.send("chat", "one", "two", "three")
        popped = self.pop("two of three", maxMsgNum=2)
        self.ack("the second first", popped, "chat", 3)
        self.info("the second first")
        self.pop("not the third yet")
        self.ack("the first", popped, "chat", 2)
        popped = self.pop("the third")
        self.ack("the third, acknowledged", popped, "chat", 4)
        self.info("all")

    def _again(self) -> None:
        self.send("chat", "four")
        self.pop("for a short time", invisibleTime=500, attemptId="a")
        self.pop("the same attempt", invisibleTime=500, attemptId="a")
        self.pop("comes again", invisibleTime=1000, pollTime=5000)
        self.pop("comes a third time", invisibleTime=1000, pollTime=5000)
        popped = self.pop("a fourth time", pollTime=5000)
        shown = handle(popped, "chat", 5)
        self.change("suspended", {**shown, "invisibleTime": 300, "suspend": "true"})
        popped = self.pop("a suspended one", pollTime=5000)
        shown = handle(popped, "chat", 5)
        self.change("changed soon", {**shown, "invisibleTime": 300})
        popped = self.pop("a changed one", pollTime=5000)
        self.ack("done at last", popped, "chat", 5)
        waiting = Wire(self.address)
        waiting.send(POP_LITE, self.pop_fields(pollTime=5000))
        time.sleep(0.2)
        self.send("news", "extra")
        self.found["waited"] = told(answer := waiting.receive())
        self.ack("waited, done", answer, "news", 0)
        waiting.send(POP_LITE, self.pop_fields(pollTime=1000))
        self.found["waited in vain"] = told(waiting.receive())
        waiting.close()

    def _many_topics(self) -> None:
        lite_topics = [f"t{number}" for number in range(5)]
        self.subscribe("to all", "COMPLETE_ADD", *lite_topics)
        self.info("to all", lite_topic="t1")
        for lite_topic in lite_topics:
            self.send(lite_topic, f"{lite_topic} a", f"{lite_topic} b")
        answer = self.pop("of all", maxMsgNum=5)
        self.found["of all, sorted"] = sorted(body for _, body in pulled(answer.body))
        self.found.pop("of all")
        self.subscribe("to none of them", "PARTIAL_REMOVE", "t0", "t1")
        self.info("to none of them", lite_topic="t1")
        options = {
            "first": {"type": "POLICY", "value": 1},
            "end": {"type": "POLICY", "value": 2},
            "last": {"type": "POLICY", "value": 0},
            "offset": {"type": "OFFSET", "value": 1},
            "tail": {"type": "TAIL_N", "value": 1},
            "time": {"type": "TIMESTAMP", "value": 1},
        }
        for name, option in options.items():
            client = f"by-{name}"
            lite_topic = f"from {name}"
            self.send(lite_topic, "a", "b", "c")
            self.subscribe(
                f"from {name}", "PARTIAL_ADD", lite_topic, client=client, offsetOption=option
            )
            self.pop(f"popped from {name}", clientId=client)
            self.info(f"from {name}", lite_topic=lite_topic, client=client)
            self.subscribe(f"from {name}, over", "COMPLETE_REMOVE", client=client)
        self.subscribe("over", "COMPLETE_REMOVE")
        self.info("over", lite_topic="t1")

    def _exclusive(self) -> None:
        attributes = {"+lite.bind.topic": PARENT, "+lite.sub.model": "Exclusive"}
        group = "alone"
        self.group("exclusive", group, attributes)
        first, second = Wire(self.address), Wire(self.address)
        for wire, client in ((first, "e-1"), (second, "e-2")):
            entry = {
                "action": "PARTIAL_ADD", "clientId": client, "group": group, "topic": PARENT,
                "liteTopicSet": ["chat"], "version": 1,
            }  # fmt: skip
            body = json.dumps({"subscriptionSet": [entry]}).encode()
            self.found[f"exclusive {client}"] = told(wire.ask(SUBSCRIBE, {}, body))
        notice = first.receive()
        self.found["put out"] = notice.code, dict(notice.fields), notice.remark
        self.ask("exclusive: who", TOPIC_INFO, {"parentTopic": PARENT, "liteTopic": "chat"})
        self.send("chat", "alone")
        self.pop("put out: nothing", clientId="e-1", consumerGroup=group)
        popped = self.pop("put in", clientId="e-2", consumerGroup=group)
        attributes = {"+lite.sub.reset.offset.exclusive": "true"}
        self.group("exclusive, from the first", group, attributes)
        self.subscribe("again", "PARTIAL_ADD", "chat", client="e-1", group=group)
        self.pop("from the first", clientId="e-1", consumerGroup=group)
        changes = {"consumerGroup": group}
        self.ack("too late", popped, "chat", 6, **changes)
        for client in ("e-1", "e-2"):
            self.subscribe(f"{client} over", "COMPLETE_REMOVE", client=client, group=group)
        first.close()
        second.close()

    def _wildcard(self) -> None:
        group, client = "wild", "w-1"
        self.group("wildcard", group, {"+lite.bind.topic": PARENT, "+lite.sub.wildcard": "true"})
        self.subscribe("wildcard one", "PARTIAL_ADD", "chat", client=client, group=group)
        self.subscribe("wildcard all", "COMPLETE_ADD", client=client, group=group)
        self.ask("wildcard: who", TOPIC_INFO, {"parentTopic": PARENT, "liteTopic": "chat"})
        fields = {"parentTopic": PARENT, "group": group, "clientId": client}
        self.ask("wildcard: client", CLIENT_INFO, fields)
        self.send("wild 1", "w")
        popped = self.pop("wildcard: popped", clientId=client, consumerGroup=group)
        self.ack("wildcard: done", popped, "wild 1", 0, consumerGroup=group)
        self.subscribe("wildcard over", "COMPLETE_REMOVE", client=client, group=group)

    def _administration(self) -> None:
        self.ask("broker at the end", BROKER_INFO, {})
        self.ask("parent at the end", PARENT_INFO, {"topic": PARENT})
        self.ask("group deleted", DELETE_GROUP, {"groupName": "alone", "cleanOffset": "false"})
        self.ask("parent deleted", DELETE_TOPIC, {"topic": PARENT})
        self.ask("no parent", PARENT_INFO, {"topic": PARENT})
        self.ask("broker without it", BROKER_INFO, {})


def handle(popped: Answer, lite_topic: str, offset: int) -> dict[str, object]:
    """Return what a client shows to acknowledge a message that it has popped."""
    fields = popped.fields
    words = (
        offset, fields.get("popTime", 0), fields.get("invisibleTime", 0),
        fields.get("reviveQid", 999), 0, "broker-a", 0, offset,
    )  # fmt: skip
    return {
        "consumerGroup": GROUP, "topic": PARENT, "queueId": 0, "offset": offset,
        "extraInfo": " ".join(map(str, words)), "liteTopic": lite_topic,
    }  # fmt: skip


def told(answer: Answer) -> Any:
    """Return what is the same each time: code, remark, fields, and what stands in the body."""
    body: Any = answer.body
    if body.startswith(b"{"):
        body = _sorted(json.loads(body))
    elif body:
        body = list(pulled(body))
    fields = {
        name: _VARYING.sub("*", str(value))
        for name, value in sorted(answer.fields.items())
        if name not in ("msgId", "transactionId")
    }
    return answer.code, _plain(answer), fields, body


def _plain(answer: Answer) -> str | None:
    """Return a remark without what is Java's; none where it says nothing else."""
    if answer.remark is None or (answer.code == SYSTEM_ERROR and _JAVA_ALONE.match(answer.remark)):
        return None
    remark = _PLACE.sub("", _CLASS.sub("", answer.remark))
    return _VARYING.sub("*", remark)


def _sorted(value: Any) -> Any:
    """Return a body with times in place of moments, and sets in order."""
    if isinstance(value, dict):
        # Java's queues are made by looking at them, too
        kept = sorted(name for name in value if name != "cqTableSize")
        return {name: _sorted(value[name]) for name in kept}
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=str)
    return "*" if isinstance(value, int) and value > _WALL_MS else value
