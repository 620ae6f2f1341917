"""What clients of the proxy ask about lite topics, request by request, and the answers."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import grpc

from tests.interop.grpc_wire import GrpcWire

PARENT, PLAIN, GROUP, OTHERS, QUOTA = "parent", "normal", "lite_readers", "others", "few"
_PRODUCER, _PUSH, _LITE = 1, 2, 5
_ADD, _REMOVE, _ALL, _NONE = range(4)
_MASKED = re.compile(
    r'"(message_id|receipt_handle|store_host|store_timestamp|delivery_timestamp|born_timestamp)": '
    r'("[^"]*"|\d+)'
)
_JAVA = re.compile(r"org\.apache\.rocketmq\.\S+Exception: |\. \w+Exception\. org\.apache[^\"]*")
_ENDPOINTS = {"scheme": 1, "addresses": [{"host": "127.0.0.1", "port": 8081}]}


class LiteSession:
    """One run against the proxy at `address`; `answers` by what was asked."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.answers: dict[str, str] = {}
        self._ids = itertools.count(1)

    def run(self) -> dict[str, str]:
        """Ask everything."""
        producer = GrpcWire(self.address, "lite@producer")
        self._send(producer)
        reader = GrpcWire(self.address, "lite@reader")
        self._subscribe(reader)
        self._receive(producer, reader)
        self._refuse()
        self._put_out(producer)
        producer.close()
        reader.close()
        return self.answers

    def note(self, name: str, answer: object) -> None:
        """Keep an answer."""
        text = json.dumps(answer, indent=1, sort_keys=True, ensure_ascii=False)
        text = re.sub(r'"port": \d+', '"port": PORT', text)
        text = _MASKED.sub(lambda found: f'"{found[1]}": ...', text)
        self.answers[name] = _JAVA.sub("", text)

    def send(self, name: str, producer: GrpcWire, lite_topic: str, **more: Any) -> None:
        """Send a message to a lite topic."""
        about = {
            "message_id": f"0102FC0000000110B30B17{next(self._ids):010X}",
            "message_type": 5,
            "body_encoding": 1,
            "born_timestamp": {"seconds": 1_700_000_000},
            "born_host": "client",
            "lite_topic": lite_topic,
            **more,
        }
        topic = about.pop("topic", PARENT)
        message = {"topic": {"name": topic}, "body": name.encode(), "system_properties": about}
        self.note(name, producer.ask("SendMessage", {"messages": [message]}))

    def sync(
        self, name: str, client: GrpcWire, action: int, *lite_topics: str, **more: Any
    ) -> None:
        """Say what a client reads."""
        fields = {
            "action": action,
            "topic": {"name": PARENT},
            "group": {"name": GROUP},
            "lite_topic_set": lite_topics,
            "version": 1,
            **more,
        }
        self.note(name, client.ask("SyncLiteSubscription", fields))

    def settings(
        self, group: str = GROUP, topic: str = PARENT, kind: int = _LITE
    ) -> dict[str, Any]:
        """Return what a consumer says of itself."""
        entry = {"topic": {"name": topic}, "expression": {"type": 1, "expression": "*"}}
        return {
            "client_type": kind,
            "subscription": {"group": {"name": group}, "subscriptions": [entry]},
            "request_timeout": {"seconds": 3},
            "user_agent": {"language": 6, "version": "5.1.0", "platform": "p", "hostname": "h"},
            "access_point": _ENDPOINTS,
        }

    def receive(self, name: str, client: GrpcWire, **more: Any) -> list[dict[str, Any]]:
        """Receive; return the messages."""
        found = client.receive(self.receive_fields(**more))
        self.note(name, found)
        return [one["message"] for one in found if "message" in one]

    def receive_fields(self, group: str = GROUP, **more: Any) -> dict[str, Any]:
        """Return the fields of a ReceiveMessage."""
        return {
            "group": {"name": group},
            "message_queue": {"topic": {"name": PARENT}, "id": -1},
            "filter_expression": {"type": 1, "expression": "*"},
            "batch_size": 16,
            "invisible_duration": {"seconds": 15},
            "long_polling_timeout": {"seconds": 5},
            **more,
        }

    def handle_fields(self, message: dict[str, Any], group: str = GROUP) -> dict[str, Any]:
        """Return what is said of a message that was received."""
        about = message["system_properties"]
        return {
            "group": {"name": group},
            "topic": {"name": PARENT},
            "receipt_handle": about["receipt_handle"],
            "message_id": about["message_id"],
            "lite_topic": about["lite_topic"],
        }

    def ack(self, name: str, client: GrpcWire, message: dict[str, Any], **more: Any) -> None:
        """Acknowledge a message."""
        entry = {**self.handle_fields(message), **more}
        fields = {name: entry.pop(name) for name in ("group", "topic")}
        self.note(name, client.ask("AckMessage", {**fields, "entries": [entry]}))

    # the sections

    def _send(self, producer: GrpcWire) -> None:
        settings = {
            "client_type": _PRODUCER,
            "publishing": {"topics": [{"name": PARENT}]},
            "request_timeout": {"seconds": 3},
            "user_agent": {"language": 6, "version": "5.1.0", "platform": "p", "hostname": "h"},
            "access_point": _ENDPOINTS,
        }
        self.note("producer", producer.listen(settings))
        asked = {"topic": {"name": PARENT}, "endpoints": _ENDPOINTS}
        self.note("route", producer.ask("QueryRoute", asked))
        for lite_topic in ("chat", "news", "t-1", "t_2"):
            self.send(f"sent to {lite_topic}", producer, lite_topic)
        for name, lite_topic in (
            ("blank", " "),
            ("too long", "x" * 65),
            ("long", "x" * 64),
            ("a dollar", "a$b"),
            ("a letter", "\u00c4"),
        ):
            self.send(f"{name} lite topic", producer, lite_topic)
        self.send("no lite topic", producer, "", message_type=1)
        self.send("in a group", producer, "chat", message_group="g", message_type=2)
        self.send("to a plain topic", producer, "chat", topic=PLAIN)

    def _subscribe(self, reader: GrpcWire) -> None:
        self.note("settings", reader.listen(self.settings()))
        beat = {"client_type": _LITE, "group": {"name": GROUP}}
        self.note("heart beat", reader.ask("Heartbeat", beat))
        asked = {"topic": {"name": PARENT}, "group": {"name": GROUP}, "endpoints": _ENDPOINTS}
        self.note("assignment", reader.ask("QueryAssignment", asked))
        first = {"offset_option": {"policy": 1}}
        self.sync("subscribed", reader, _ADD, "chat", **first)
        self.sync("subscribed to two", reader, _ADD, "news", "gone")
        self.sync("unsubscribed", reader, _REMOVE, "gone")
        for name, lite_topic in (("blank", " "), ("long", "x" * 65), ("odd", "a$b")):
            self.sync(f"{name} subscription", reader, _ADD, lite_topic)
        self.sync("another topic", reader, _ADD, "chat", topic={"name": PLAIN})
        self.sync("another group", reader, _ADD, "chat", group={"name": OTHERS})
        many = [f"m{number}" for number in range(302)]
        self.sync("too many", reader, _ALL, *many, group={"name": QUOTA})
        for name, option in (
            ("an offset", {"offset": 1}),
            ("a tail", {"tail_n": 1}),
            ("a time", {"timestamp": 1}),
        ):
            self.sync(f"{name} option", reader, _ADD, "other", offset_option=option)

    def _receive(self, producer: GrpcWire, reader: GrpcWire) -> None:
        chat, news = sorted(
            self.receive("received", reader),
            key=lambda message: message["system_properties"]["lite_topic"],
        )
        self.receive("nothing more", reader)
        self.ack("without its lite topic", reader, news, lite_topic="none")
        self.ack("acknowledged", reader, news)
        change = {
            **self.handle_fields(chat), "invisible_duration": {"seconds": 11}, "suspend": False,
        }  # fmt: skip
        changed = reader.ask("ChangeInvisibleDuration", change)
        self.note("changed", changed)
        soon = {
            **change, "receipt_handle": changed["receipt_handle"], "suspend": True,
            "invisible_duration": {"seconds": 1},
        }  # fmt: skip
        self.note("suspended", reader.ask("ChangeInvisibleDuration", soon))
        (chat,) = self.receive("again", reader)
        self.send("one more", producer, "chat")
        self.ack("done", reader, chat)
        (chat,) = self.receive("the next", reader, auto_renew=True)
        forward = {
            **self.handle_fields(chat), "delivery_attempt": 17, "max_delivery_attempts": 17,
        }  # fmt: skip
        self.note("buried", reader.ask("ForwardMessageToDeadLetterQueue", forward))

    def _refuse(self) -> None:
        for name, settings in (
            ("a push consumer of a lite group", self.settings(kind=_PUSH)),
            ("a lite consumer of a plain group", self.settings(OTHERS)),
            ("a lite consumer of another topic", self.settings(topic=PLAIN)),
        ):
            client = GrpcWire(self.address, f"lite@{len(name)}")
            try:
                self.note(name, client.listen(settings))
            except grpc.RpcError as error:
                self.note(name, str(error.details()))
            client.close()
        stranger = GrpcWire(self.address, "lite@stranger")
        self.sync("by a stranger", stranger, _ADD, "chat")
        stranger.close()

    def _put_out(self, producer: GrpcWire) -> None:
        group = {"group": {"name": "alone"}}
        first, second = GrpcWire(self.address, "lite@1"), GrpcWire(self.address, "lite@2")
        for client in (first, second):
            self.note(f"{client.client_id}: settings", client.listen(self.settings("alone")))
            self.sync(f"{client.client_id}: subscribed", client, _ADD, "solo", **group)
        self.note("put out", first.told())
        self.send("solo", producer, "solo")
        (message,) = self.receive("received alone", second, group="alone")
        self.ack("acknowledged alone", second, message, **group)
        ended = {"group": {"name": "alone"}}
        self.note("ended", second.ask("NotifyClientTermination", ended))
        first.close()
        second.close()
