"""A broker on a simulated host, and clients that speak to it in frames."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.frames import Answer, answers, framed, joined, request

DIRECTORY = "/store"
#: files that cost a test nothing
SMALL: Mapping[str, str] = {
    "mappedFileSizeCommitLog": "1048576",
    "mappedFileSizeConsumeQueue": "20000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "400",
    "brokerName": "broker-a",
    "timerWheelEnable": "false",
}
TOPIC = "orders"
ONEWAY = 2


def a_broker(
    host: SimulatedHost | None = None, settings: Mapping[str, str] | None = None
) -> Broker:
    """Return a broker over an empty store (or the one on `host`), at 127.0.0.1:10911."""
    host = SimulatedHost(clock=ManualClock()) if host is None else host
    broker = Broker.open(host, DIRECTORY, {**SMALL, **(settings or {})})
    broker.advertised_host, broker.advertised_port = "127.0.0.1", 10911
    return broker


class Peer:
    """One client: asks, and collects what the broker says unasked."""

    def __init__(
        self, broker: Broker, port: int = 40001, *, version: int = 513, language: str = "JAVA"
    ) -> None:
        self.broker = broker
        self.version = version
        self.language = language
        self.connection = broker.connect("127.0.0.1", port)
        self.connection.on_output = self._take
        self.heard: list[Answer] = []
        self._opaque = 0

    def _take(self) -> None:
        output, self.connection.output[:] = list(self.connection.output), []
        self.heard += answers(joined(output))

    def send(
        self,
        code: int,
        fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        *,
        flag: int = 0,
        serializer: int = 0,
    ) -> int:
        """Send a request; return its opaque number."""
        self._opaque += 1
        data = request(
            code,
            fields,
            body,
            opaque=self._opaque,
            flag=flag,
            version=self.version,
            language=self.language,
            serializer=serializer,
        )
        self.heard += answers(joined(self.connection.feed(data)))
        return self._opaque

    def answer_to(self, opaque: int) -> Answer | None:
        """Take the answer to a request, None if it has not come."""
        for answer in self.heard:
            if answer.opaque == opaque and answer.flag & 1:
                self.heard.remove(answer)
                return answer
        return None

    def ask(
        self,
        code: int,
        fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        *,
        serializer: int = 0,
    ) -> Answer:
        """Send a request and return its answer, which must come at once."""
        answer = self.answer_to(self.send(code, fields, body, serializer=serializer))
        assert answer is not None, f"request {code} is not answered at once"
        return answer

    def told(self, code: int) -> list[Answer]:
        """Take the requests of the broker with this code."""
        found = [one for one in self.heard if one.code == code and not one.flag & 1]
        self.heard = [one for one in self.heard if one not in found]
        return found

    def reply(self, question: Answer, body: bytes = b"", code: int = 0) -> None:
        """Answer what the broker has asked."""
        header = orjson.dumps({"code": code, "flag": 1, "opaque": question.opaque, "version": 1})
        self.heard += answers(joined(self.connection.feed(framed(header, body))))

    def hang_up(self) -> None:
        """Close the connection."""
        self.connection.lost()

    # what clients do all the time

    def produce(
        self,
        body: bytes = b"hello",
        topic: str = TOPIC,
        queue_id: int = 0,
        properties: str = "",
        **fields: object,
    ) -> Answer:
        """Send one message by SEND_MESSAGE_V2."""
        return self.ask(
            RequestCode.SEND_MESSAGE_V2, sent_fields(topic, queue_id, properties, **fields), body
        )

    def pull_fields(
        self, topic: str, queue_id: int, queue_offset: int, group: str, **fields: object
    ) -> dict[str, object]:
        """Return the fields of a pull that brings its subscription and may wait."""
        return {
            "consumerGroup": group,
            "topic": topic,
            "queueId": queue_id,
            "queueOffset": queue_offset,
            "maxMsgNums": 32,
            "sysFlag": 6,
            "commitOffset": 0,
            "suspendTimeoutMillis": 15000,
            "subscription": "*",
            "subVersion": 1,
            **fields,
        }

    def pull(
        self,
        topic: str = TOPIC,
        queue_id: int = 0,
        queue_offset: int = 0,
        group: str = "g",
        **fields: object,
    ) -> Answer:
        """Pull without waiting."""
        asked = self.pull_fields(topic, queue_id, queue_offset, group, sysFlag=4, **fields)
        return self.ask(RequestCode.PULL_MESSAGE, asked)

    def messages(self, topic: str = TOPIC, queue_id: int = 0) -> list[Message]:
        """Pull all messages of a queue."""
        found: list[Message] = []
        position = 0
        while True:
            answer = self.pull(topic, queue_id, position, "reader")
            if answer.code != ResponseCode.SUCCESS:
                return found
            found += decoded(answer.body)
            position = int((answer.fields or {})["nextBeginOffset"])


def sent_fields(
    topic: str, queue_id: int, properties: str = "", **fields: object
) -> dict[str, object]:
    """Return the fields of SEND_MESSAGE_V2."""
    return {
        "a": "producers",
        "b": topic,
        "c": "TBW102",
        "d": 4,
        "e": queue_id,
        "f": 0,
        "g": 1_700_000_000_000,
        "h": 0,
        "i": properties,
        "j": 0,
        "k": "false",
        "m": "false",
        **fields,
    }


def decoded(body: bytes) -> list[Message]:
    """Return the messages that follow each other in a body."""
    found: list[Message] = []
    position = 0
    while position < len(body):
        found.append(decode_message(body, position))
        position += found[-1].size_bytes
    return found
