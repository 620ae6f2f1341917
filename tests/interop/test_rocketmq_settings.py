"""Settings of a broker that are changed while it runs do what a real one does by them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.tools.dev.rocketmq_peer import CALM, RocketMQPeer
from tests.interop.eventually import eventually
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_sessions import started
from tests.interop.rocketmq_wire import (
    PULL_MESSAGE,
    PULL_NOT_FOUND,
    SEND_MESSAGE_V2,
    SUCCESS,
    Answer,
    Wire,
    pull_fields,
    pulled,
    send_fields,
)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

SETTINGS: dict[str, object] = {
    **CALM,
    "timerWheelEnable": "true",
    "recallMessageEnable": "true",
    "disableConsumeIfConsumerReadSlowly": "true",
    "consumerFallbehindThreshold": 5000,
    "channelExpiredTimeout": 60_000,
    "serverChannelMaxIdleTimeSeconds": 40,
}

_TELLING = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED

Broker = OurRocketMQ | RocketMQPeer


@pytest.fixture(scope="module", params=["real", "ours"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """Start a real broker, and then ours."""
    found = started(request.param, Path(tmp_path_factory.mktemp("settings")), SETTINGS)
    try:
        yield found
    finally:
        found.stop(kill=True)


class Client:
    """A connection to the broker, and what is asked on it, about a topic of its own."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.wire = Wire(broker.broker_address)
        self.topic = topic
        #: how often the broker has told that members of its group came or went
        self.news = 0

    def ask(self, code: int, fields: Mapping[str, object], body: bytes = b"") -> Answer:
        """Ask, and return the answer; what the broker tells in between is counted."""
        opaque = self.wire.send(code, fields, body)
        while (answer := self.wire.receive()).code == _TELLING:
            self.news += 1
        assert answer.opaque == opaque, "an answer to something else"
        return answer

    def configure(self, **settings: object) -> None:
        """Change settings."""
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        answer = self.ask(RequestCode.UPDATE_BROKER_CONFIG, {}, text.encode())
        assert answer.code == SUCCESS, answer

    def send(self, *bodies: bytes, properties: str = "", queue_id: int = 0) -> Answer:
        """Send messages; return the answer to the last one."""
        fields = send_fields(self.topic, queue_id, properties)
        sent = [self.ask(SEND_MESSAGE_V2, fields, body) for body in bodies]
        assert {answer.code for answer in sent} == {SUCCESS}, sent
        return sent[-1]

    def put(self, *bodies: bytes, properties: str = "") -> None:
        """Send messages to the first queue; return when they are in it."""
        end = int(self.send(*bodies, properties=properties).fields["queueOffset"]) + 1
        asked = {"topic": self.topic, "queueId": 0}
        eventually(
            lambda: int(self.ask(RequestCode.GET_MAX_OFFSET, asked).fields["offset"]) >= end,
            what=f"{end} messages in the queue of {self.topic}",
        )

    def pull(self, group: str, queue_offset: int = 0, **more: object) -> Answer:
        """Pull without waiting."""
        fields = pull_fields(self.topic, 0, queue_offset) | {"consumerGroup": group, **more}
        return self.ask(PULL_MESSAGE, fields)

    def bodies(self) -> list[bytes]:
        """Return what stands in the first queue."""
        return [body for _, body in pulled(self.pull("reader").body)]

    def pop_fields(self, **more: object) -> dict[str, object]:
        """Return the fields of a pop."""
        return {
            "consumerGroup": "popper", "topic": self.topic, "queueId": 0, "maxMsgNums": 32,
            "invisibleTime": 60_000, "pollTime": 0, "bornTime": int(time.time() * 1000),
            "initMode": 0, "expType": "TAG", "exp": "*", **more,
        }  # fmt: skip

    def pop(self, **more: object) -> Answer:
        """Pop without waiting."""
        return self.ask(RequestCode.POP_MESSAGE, self.pop_fields(**more))

    def has_messages(self, expression: str) -> str:
        """Ask whether there are messages with tags."""
        fields = self.pop_fields(exp=expression)
        answer = self.ask(RequestCode.NOTIFICATION, fields)
        return str(answer.fields["hasMsg"])

    def beat(self, name: str, *, consumes: bool = True) -> None:
        """Tell the broker of a consumer, or of a producer."""
        consumer = {
            "groupName": f"g-{self.topic}", "consumeType": "CONSUME_PASSIVELY",
            "messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
            "unitMode": False, "subscriptionDataSet": [
                {"topic": self.topic, "subString": "*", "subVersion": 1, "tagsSet": [],
                 "codeSet": [], "classFilterMode": False, "expressionType": "TAG"},
            ],
        }  # fmt: skip
        producer = {"groupName": f"p-{self.topic}"}
        beat = {
            "clientID": name,
            "producerDataSet": [] if consumes else [producer],
            "consumerDataSet": [consumer] if consumes else [],
        }
        assert self.ask(RequestCode.HEART_BEAT, {}, json.dumps(beat).encode()).code == SUCCESS

    def hears(self, count: int, seconds: float) -> bool:
        """Wait until the broker has told so often that members came or went."""
        asked = {"topic": self.topic, "queueId": 0}

        def has_heard() -> bool:
            self.ask(RequestCode.GET_MAX_OFFSET, asked)  # what was told before comes before
            return self.news >= count

        eventually(has_heard, seconds, what=f"{count} times news")
        return self.news == count

    def knows(self, name: str) -> bool:
        """Tell whether the group of this topic has such a member."""
        asked = {"consumerGroup": f"g-{self.topic}"}
        answer = self.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, asked)
        return answer.code == SUCCESS and name in json.loads(answer.body)["consumerIdList"]


def test_groups_of_the_broker_are_made_where_others_are_not(broker: Broker) -> None:
    """Those whose name says so, unless that is forbidden; none that is only named in Java."""
    client = Client(broker, "groups")
    client.send(b"a")
    client.configure(autoCreateSubscriptionGroup="false")
    codes = [client.pull(group).code for group in ("CID_RMQ_SYS_one", "DEFAULT_CONSUMER", "mine")]
    client.configure(enableCreateSysGroup="false")
    codes += [client.pull(group).code for group in ("CID_RMQ_SYS_one", "CID_RMQ_SYS_two")]
    client.configure(autoCreateSubscriptionGroup="true", enableCreateSysGroup="true")
    unknown = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert codes == [SUCCESS, unknown, unknown, SUCCESS, unknown]


def test_members_are_told_of_each_other_at_once_or_in_rounds(broker: Broker) -> None:
    """In rounds it takes up to fifteen seconds, or thirty after the start."""
    first, second, third, fourth = (Client(broker, "news") for _ in range(4))
    first.send(b"a")
    first.beat("c1")
    second.beat("c2")
    assert first.hears(2, 30)
    second.configure(realTimeNotifyConsumerChange="false")
    third.beat("c3")
    third.wire.close()
    eventually(lambda: not second.knows("c3"), what="a member that is gone")
    second.beat("c2")
    assert first.hears(3, 35)
    second.configure(realTimeNotifyConsumerChange="true")
    fourth.beat("c4")
    assert first.hears(4, 30)


def test_topics_come_in_pages_as_long_as_settings_say(broker: Broker) -> None:
    """From the beginning again where nobody says which version was read; or all at once."""
    client = Client(broker, "pages")
    client.send(b"a")

    def names(**fields: object) -> list[str]:
        answer = client.ask(RequestCode.GET_ALL_TOPIC_CONFIG, fields)
        return sorted(json.loads(answer.body)["topicConfigTable"])

    whole = json.loads(client.ask(RequestCode.GET_ALL_TOPIC_CONFIG, {}).body)
    client.configure(splitMetadataSize=3)
    version = json.dumps(whole["dataVersion"])
    pages = [
        names(topicSeq=0, maxTopicNum=5),
        names(topicSeq=3, maxTopicNum=2, dataVersion=version),
        names(topicSeq=3, maxTopicNum=2),
        names(topicSeq=1000, maxTopicNum=2, dataVersion=version),
    ]
    client.configure(splitMetadataSize=2000, enableSplitMetadata="false")
    pages += [names(topicSeq=0, maxTopicNum=2)]
    client.configure(enableSplitMetadata="true")
    topics = sorted(whole["topicConfigTable"])
    assert pages == [topics[:3], topics[3:5], topics[:2], [], topics]


@pytest.mark.parametrize("setting", ["enableRegisterProducer", "timerStopDequeue"])
def test_what_no_broker_of_this_release_goes_by(broker: Broker, setting: str) -> None:
    """Java has a name and a question for it, and no way from the one to the other."""
    client, topic = Client(broker, setting), setting
    client.send(b"first")
    client.configure(
        enableRegisterProducer="false", rejectTransactionMessage="true", timerStopDequeue="true"
    )
    if setting == "timerStopDequeue":
        client.send(b"later", properties="TIMER_DELAY_MS\x013000\x02UNIQ_KEY\x01T\x02")
        eventually(lambda: len(client.bodies()) > 1, what="the later one")
        assert client.bodies() == [b"first", b"later"]
    else:
        client.beat("c1", consumes=False)
        asked = {"producerGroup": f"p-{topic}"}
        assert client.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, asked).code == SUCCESS
    client.configure(
        enableRegisterProducer="true", rejectTransactionMessage="false", timerStopDequeue="false"
    )


def test_a_broker_that_takes_no_messages_recalls_them_if_it_may(broker: Broker) -> None:
    """By itself it may; before its time nothing is recalled."""
    client = Client(broker, "recalled")
    sent = client.send(b"later", properties="UNIQ_KEY\x01K1\x02TIMER_DELAY_MS\x01600000\x02")
    fields = {
        "producerGroup": "p",
        "topic": "recalled",
        "recallHandle": sent.fields["recallHandle"],
    }

    def recall() -> tuple[int, str | None]:
        answer = client.ask(RequestCode.RECALL_MESSAGE, fields)
        return answer.code, answer.remark

    client.configure(brokerPermission=4, allowRecallWhenBrokerNotWriteable="false")
    found = [recall()]
    client.configure(allowRecallWhenBrokerNotWriteable="true")
    found += [recall()]
    client.configure(brokerPermission=6, startAcceptSendRequestTimeStamp=1 << 60)
    found += [recall()]
    client.configure(startAcceptSendRequestTimeStamp=0)
    closed = (ResponseCode.SERVICE_NOT_AVAILABLE, "recall failed, broker service not available")
    assert found == [closed, (SUCCESS, "not set any response code"), closed]


def test_so_many_wait_for_a_queue(broker: Broker) -> None:
    """One more than is said; of three that come together one finds no place."""
    client = Client(broker, "waits")
    client.put(b"a")
    client.pop()
    client.configure(popPollingSize=1)
    fields = client.pop_fields(pollTime=10_000)
    sent = [client.wire.send(RequestCode.POP_MESSAGE, fields) for _ in range(3)]
    answers = [client.wire.receive() for _ in sent]
    Client(broker, "waits").configure(popPollingSize=1024)
    assert {answer.opaque for answer in answers} == set(sent)
    waited = ResponseCode.POLLING_TIMEOUT
    assert [answer.code for answer in answers] == [ResponseCode.POLLING_FULL, waited, waited]


def test_notices_look_at_tags_as_settings_say(broker: Broker) -> None:
    """Among so few messages, or never."""
    client = Client(broker, "tags")
    client.put(b"a", b"b", properties="TAGS\x01B\x02")
    found = [client.has_messages("A")]
    client.configure(maxMessageFilterNumForNotification=2)
    found += [client.has_messages("A")]
    client.configure(maxMessageFilterNumForNotification=64)
    client.configure(useMessageFilterForNotification="false")
    found += [client.has_messages("A")]
    client.configure(useMessageFilterForNotification="true")
    assert found == ["false", "true", "true"]


def test_no_more_is_popped_of_a_queue_with_too_much_under_way(broker: Broker) -> None:
    """What was popped before that was said counts, too; a lower limit holds at once."""
    client = Client(broker, "limited")
    client.put(*[b"%d" % number for number in range(9)])
    counts = [len(list(pulled(client.pop(maxMsgNums=3).body)))]
    client.configure(enablePopMessageThreshold="true", popInflightMessageThreshold=3)
    counts += [len(list(pulled(client.pop(maxMsgNums=2).body)))]
    answer = client.pop(maxMsgNums=2)
    client.configure(enablePopMessageThreshold="false", popInflightMessageThreshold=10_000)
    counts += [len(list(pulled(client.pop(maxMsgNums=32).body)))]
    assert counts == [3, 2, 4]
    assert (answer.code, answer.body) == (ResponseCode.POLLING_TIMEOUT, b"")


def test_new_groups_begin_at_the_end_where_it_is_said(broker: Broker) -> None:
    """At the first message while it is near, unless nobody is to look at that."""
    client = Client(broker, "begun")
    client.put(b"a", b"b", b"c")
    found = [len(list(pulled(client.pop(consumerGroup="one", initMode=1).body)))]
    client.configure(initPopOffsetByCheckMsgInMem="false")
    found += [len(list(pulled(client.pop(consumerGroup="two", initMode=1).body)))]
    client.configure(initPopOffsetByCheckMsgInMem="true")
    assert found == [3, 1]


def test_keys_are_found_as_settings_say(broker: Broker) -> None:
    """What is sent while the index is not written is not found; nothing is while it is not read."""
    client = Client(broker, "keyed")

    def found() -> list[bytes]:
        fields = {"topic": "keyed", "key": "k", "maxNum": 32, "beginTimestamp": 0}
        answer = client.ask(RequestCode.QUERY_MESSAGE, {**fields, "endTimestamp": 1 << 60})
        return [body for _, body in pulled(answer.body)]

    seen: list[list[bytes]] = []
    for setting in ("messageIndexEnable", "indexFileWriteEnable"):
        for body, value in ((b"1", "false"), (b"2", "true")):
            client.put(body, properties="KEYS\x01k\x02")
            client.put(b"and the one before it is through with the index")
            client.configure(**{setting: value})
    seen += [found()]
    client.configure(indexFileReadEnable="false")
    seen += [found()]
    client.configure(indexFileReadEnable="true")
    assert seen == [[b"1", b"1"], []]


@pytest.mark.slow
def test_groups_that_read_slowly_are_switched_off(broker: Broker) -> None:
    """Every three minutes, those that were too far behind when they last read."""
    client = Client(broker, "slow")
    client.put(*[bytes(2000)] * 4)

    def is_off() -> bool:
        assert client.pull("quick", 4).code == PULL_NOT_FOUND
        return client.pull("slow", 0, maxMsgNums=1).code != SUCCESS

    eventually(is_off, 200, what="a group that is switched off")
    answer = client.pull("slow", 0, maxMsgNums=1)
    assert (answer.code, answer.remark) == (
        ResponseCode.NO_PERMISSION,
        "subscription group no permission, slow",
    )
    assert client.pull("quick", 4).code == PULL_NOT_FOUND


@pytest.mark.slow
def test_who_is_silent_is_gone(broker: Broker) -> None:
    """A consumer without heart beats after a minute, a connection without anything before."""
    client, watcher, idle = (Client(broker, "silent") for _ in range(3))
    watcher.send(b"a")
    client.beat("c1")
    since = time.monotonic()

    def is_gone() -> bool:
        try:
            client.pull("reader")
        except ConnectionError:  # with its last group its connection goes
            return True
        return not watcher.knows("c1")

    eventually(is_gone, 85, what="a member that is silent")
    assert time.monotonic() - since >= 55
    with pytest.raises(ConnectionError):
        idle.wire.receive()
