"""
What clients of RocketMQ's proxy ask, request by request, and the answers as they came.

What differs from run to run is replaced by its name: ids, handles, times and ports.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable
from typing import Any

import grpc

from tests.interop.grpc_wire import GrpcWire, timestamp

TOPICS = ("normal", "fifo", "delay", "transaction", "priority")
GROUP = "wire_readers"
ENDPOINTS = {"scheme": 1, "addresses": [{"host": "127.0.0.1", "port": 8081}]}
_MASKED = re.compile(
    r'"(message_id|transaction_id|recall_handle|receipt_handle|store_host|store_timestamp|'
    r'delivery_timestamp)": "[^"]*"'
)
#: Java's proxy shows which of its classes an error comes from
_JAVA = re.compile(r"org\.apache\.rocketmq\.\S+Exception: |\. \w+Exception\. org\.apache[^\"]*")
Answers = dict[str, str]


class Session:
    """One run against the proxy at `address`; `answers` by what was asked."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.answers: Answers = {}
        self._ids = itertools.count(int(time.time() * 1000) % 10**9)

    def note(self, name: str, answer: object) -> None:
        """Keep an answer."""
        text = json.dumps(answer, indent=1, sort_keys=True, ensure_ascii=False)
        text = re.sub(r'"port": \d+', '"port": PORT', text)
        text = _MASKED.sub(lambda found: f'"{found[1]}": ...', text)
        self.answers[name] = _JAVA.sub("", text)

    def message(
        self, topic: str, body: bytes = b"v", properties: dict[str, str] | None = None,
        **about: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Return a message as clients make it."""
        known = {
            "message_id": f"0102FC0000000110B30B17{next(self._ids):010X}",
            "message_type": 1,
            "body_encoding": 1,
            "born_timestamp": {"seconds": 1_700_000_000},
            "born_host": "client",
        }
        return {
            "topic": {"name": topic},
            "body": body,
            "user_properties": properties or {},
            "system_properties": {**known, **about},
        }

    def run(self) -> Answers:
        """Ask everything."""
        producer = GrpcWire(self.address, "wire@producer")
        self._meet(producer)
        self._say_what_is_nothing()
        self._send(producer)
        self._send_what_is_refused(producer)
        self._receive(producer)
        self._end_transactions()
        producer.close()
        return self.answers

    def _meet(self, producer: GrpcWire) -> None:
        endpoints = ENDPOINTS
        for topic in (*TOPICS, "none", "a b", "", "TBW102", "t" * 128):
            asked = {"topic": {"name": topic}, "endpoints": endpoints}
            self.note(f"route of {topic}", producer.ask("QueryRoute", asked))
        self.note("unknown", producer.ask("Heartbeat", {"client_type": 1}))
        self.note("nobody", GrpcWire(self.address, "").ask("Heartbeat", {"client_type": 1}))
        settings = {
            "client_type": 1,
            "publishing": {"topics": [{"name": topic} for topic in TOPICS]},
            "request_timeout": {"seconds": 3},
            "user_agent": {"language": 6, "version": "5.0.0", "platform": "p", "hostname": "h"},
            "access_point": endpoints,
        }
        self.note("settings", producer.listen(settings))
        self.note("heart beat", producer.ask("Heartbeat", {"client_type": 1}))

    def _say_what_is_nothing(self) -> None:
        topics = {"topics": [{"name": TOPICS[0]}]}
        group = {"group": {"name": GROUP}}
        for kind in (0, 1, 4, 6, 99):
            client = GrpcWire(self.address, f"wire@{kind}")
            try:
                told: object = client.listen({"client_type": kind, "subscription": group})
            except grpc.RpcError as error:
                told = f"{error.code()} {error.details()}"
            self.note(f"reader of kind {kind}", told)
            self.note(f"its heart beat {kind}", client.ask("Heartbeat", {"client_type": kind}))
            client.close()
        for settings in ({"client_type": 1}, {"client_type": 99, "publishing": topics}):
            client = GrpcWire(self.address, "wire@none")
            try:
                told = client.listen(settings)
            except grpc.RpcError as error:
                told = f"{error.code()} {error.details()}"
            self.note(f"settings {settings}", told)
            client.close()
        client = GrpcWire(self.address, "wire@other")
        self.note("sender of kind 6", client.listen({"client_type": 6, "publishing": topics}))
        self.note("its heart beat", client.ask("Heartbeat", {"client_type": 6}))
        client.close()

    def _send(self, producer: GrpcWire) -> None:
        def send(name: str, *messages: dict[str, Any]) -> None:
            self.note(name, producer.ask("SendMessage", {"messages": list(messages)}))

        made = self.message
        send("sent", made("normal", tag="A", keys=["k1", "k2"], properties={"x": "y"}))
        send("sent together", made("normal"), made("normal"))
        for group in ("a", "b", "user-17", "\u00c4"):
            send(f"sent to {group}", made("fifo", message_type=2, message_group=group))
        for priority in (0, 2, 9):
            send(
                f"sent with priority {priority}",
                made("priority", message_type=6, priority=priority),
            )
        send("sent for later", made("delay", message_type=3, delivery_timestamp=timestamp(3)))

    def _send_what_is_refused(self, producer: GrpcWire) -> None:
        made = self.message
        far, big = timestamp(90_000), b"x" * (4 * 1024 * 1024 + 1)
        refused: dict[str, list[dict[str, Any]]] = {
            "nothing": [],
            "two topics": [made("normal"), made("fifo", message_group="a")],
            "no body": [made("normal", b"")],
            "large body": [made("normal", big)],
            "no group": [made("fifo")],
            "a group": [made("normal", message_group="g")],
            "a priority": [made("normal", priority=1)],
            "no priority": [made("priority")],
            "priority as a property": [made("normal", properties={"_SYS_MSG_PRIORITY_": "1"})],
            "no topic": [made("none")],
            "tag with |": [made("normal", tag="a|b")],
            "blank tag": [made("normal", tag=" ")],
            "control in tag": [made("normal", tag="a\x01")],
            "blank key": [made("normal", keys=[" "])],
            "system property": [made("normal", properties={"KEYS": "1"})],
            "control in property": [made("normal", properties={"a": "\x01"})],
            "no id": [made("normal", message_id="")],
            "long group": [made("fifo", message_group="g" * 64)],
            "far time": [made("delay", message_type=3, delivery_timestamp=far)],
            "many properties": [made("normal", properties={str(n): "" for n in range(129)})],
            "large properties": [made("normal", properties={"a": "x" * 20_000})],
        }
        for name, messages in refused.items():
            self.note(f"refused: {name}", producer.ask("SendMessage", {"messages": messages}))
        for topic in ("delay", "normal"):
            asked = {"topic": {"name": topic}, "recall_handle": "zzz"}
            self.note(
                f"recalled of {topic}", producer.ask("RecallMessage", asked)["status"]["code"]
            )

    def _receive(self, producer: GrpcWire) -> None:
        consumer = GrpcWire(self.address, "wire@consumer")
        entry = {"topic": {"name": "normal"}, "expression": {"type": 1, "expression": "*"}}
        subscription = {
            "group": {"name": GROUP},
            "subscriptions": [entry],
            "long_polling_timeout": {"seconds": 5},
        }
        settings = {
            "client_type": 3,
            "subscription": subscription,
            "request_timeout": {"seconds": 3},
        }
        self.note("consumer's settings", consumer.listen(settings))
        about = {"group": {"name": GROUP}, "topic": {"name": "normal"}}

        def receive(**changes: Any) -> list[dict[str, Any]]:
            return consumer.receive(
                {
                    "group": {"name": GROUP},
                    "message_queue": {"topic": {"name": "normal"}, "id": -1},
                    "filter_expression": {"type": 1, "expression": "*"},
                    "batch_size": 5,
                    "invisible_duration": {"seconds": 15},
                    "long_polling_timeout": {"seconds": 10},
                    **changes,
                }
            )

        def acknowledge(name: str, handle: str) -> None:
            entries = [{"message_id": "m", "receipt_handle": handle}]
            self.note(name, consumer.ask("AckMessage", {**about, "entries": entries}))

        for name in ("the last of each queue", "nothing more"):
            self.note(name, _without_queue(receive(long_polling_timeout={"seconds": 5})))
        made = self.message("normal", b"one", {"x": "y"}, tag="A", keys=["k1"], trace_context="tc")
        producer.ask("SendMessage", {"messages": [made]})
        first = receive()
        self.note("received", _without_queue(first))
        self._put_off(consumer, about, receive, acknowledge, first)
        self._receive_by_priority(producer, receive)
        self._receive_what_is_refused(consumer, about, receive, acknowledge)
        self._leave(producer, consumer, about, receive)

    def _receive_by_priority(
        self, producer: GrpcWire, receive: Callable[..., list[dict[str, Any]]]
    ) -> None:
        queue = {"topic": {"name": "priority"}, "id": -1}
        receive(message_queue=queue, long_polling_timeout={"seconds": 5})  # the group begins here
        for priority in (1, 3, 0, 2):
            made = self.message("priority", b"%d" % priority, message_type=6, priority=priority)
            producer.ask("SendMessage", {"messages": [made]})
        for name in ("first", "second", "third", "fourth"):
            found = receive(message_queue=queue, batch_size=1)
            self.note(f"{name} by priority", _without_queue(found))

    def _receive_what_is_refused(
        self, consumer: GrpcWire, about: dict[str, Any],
        receive: Callable[..., list[dict[str, Any]]], acknowledge: Callable[[str, str], None],
    ) -> None:  # fmt: skip
        for name, handle in (("no handle", "x"), ("expired", "1 2 3 4 5 broker-a 7 8")):
            acknowledge(name, handle)
        self.note("none acknowledged", consumer.ask("AckMessage", {**about, "entries": []}))
        wrong: dict[str, dict[str, Any]] = {
            "short time": {"invisible_duration": {"seconds": 5}},
            "long time": {"invisible_duration": {"seconds": 50_000}},
            "of no topic": {"message_queue": {"topic": {"name": "none"}}},
            "with no group": {"group": {"name": ""}},
            "with a strange group": {"group": {"name": "a b"}},
        }
        for name, changes in wrong.items():
            self.note(f"received {name}", receive(**changes))

    def _put_off(
        self, consumer: GrpcWire, about: dict[str, Any],
        receive: Callable[..., list[dict[str, Any]]], acknowledge: Callable[[str, str], None],
        first: list[dict[str, Any]],
    ) -> None:  # fmt: skip
        known = _properties(first)
        change = {
            **about,
            "receipt_handle": known["receipt_handle"],
            "message_id": known["message_id"],
            "invisible_duration": {"seconds": 3},
        }
        changed = consumer.ask("ChangeInvisibleDuration", change)
        self.note("put off", changed)
        time.sleep(4)
        again = receive()
        self.note("received again", _without_queue(again))
        acknowledge("old handle", changed["receipt_handle"])
        acknowledge("acknowledged", _properties(again)["receipt_handle"])
        acknowledge("acknowledged twice", _properties(again)["receipt_handle"])

    def _leave(
        self, producer: GrpcWire, consumer: GrpcWire, about: dict[str, Any],
        receive: Callable[..., list[dict[str, Any]]],
    ) -> None:  # fmt: skip
        for topic in ("normal", "none"):
            asked = {**about, "topic": {"name": topic}, "endpoints": ENDPOINTS}
            self.note(f"assigned of {topic}", consumer.ask("QueryAssignment", asked))
        beat = {"client_type": 3, "group": {"name": GROUP}}
        self.note("consumer's heart beat", consumer.ask("Heartbeat", beat))
        producer.ask("SendMessage", {"messages": [self.message("normal", b"dead")]})
        known = _properties(receive())
        buried = {
            **about,
            "receipt_handle": known["receipt_handle"],
            "message_id": known["message_id"],
            "delivery_attempt": 1,
            "max_delivery_attempts": 1,
        }
        self.note(
            "buried", consumer.ask("ForwardMessageToDeadLetterQueue", buried)["status"]["code"]
        )
        end = {"group": {"name": GROUP}}
        self.note("left", consumer.ask("NotifyClientTermination", end))
        self.note("left twice", consumer.ask("NotifyClientTermination", end))
        consumer.close()

    def _end_transactions(self) -> None:
        producer = GrpcWire(self.address, "wire@transactions")
        topic = {"topic": {"name": "transaction"}}
        producer.listen({"client_type": 1, "publishing": {"topics": [topic["topic"]]}})
        for name, resolution in (("committed", 1), ("rolled back", 2)):
            made = self.message("transaction", name.encode(), message_type=4)
            told = producer.ask("SendMessage", {"messages": [made]})
            self.note(f"{name}: sent", told)
            known = told["entries"][0]
            end = {
                **topic,
                "message_id": known["message_id"],
                "transaction_id": known["transaction_id"],
                "resolution": resolution,
                "source": 1,
            }
            self.note(name, producer.ask("EndTransaction", end))
            self.note(f"{name} twice", producer.ask("EndTransaction", end))
            self.note(
                f"{name}: no id", producer.ask("EndTransaction", {**end, "transaction_id": ""})
            )
        producer.close()


def _properties(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the system says of the one message in an answer."""
    (known,) = [one["message"]["system_properties"] for one in answers if "message" in one]
    found: dict[str, Any] = known
    return found


def _without_queue(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out where messages were put, and so their order: each of both takes turns."""
    for one in answers:
        known = one.get("message", {}).get("system_properties", {})
        for name in ("queue_id", "queue_offset"):
            known.pop(name, None)
    return sorted(answers, key=lambda one: str(one.get("message", "")))
