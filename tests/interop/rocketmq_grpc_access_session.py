"""What clients of RocketMQ's proxy are told where they must sign, and may not do everything."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from typing import Any

from tests.interop.grpc_wire import GrpcWire, Headers, timestamp

_TIME = "20260101T000000Z"
_MASKED = re.compile(r'"(message_id|transaction_id|recall_handle)": "[^"]*"')


def signed(user: tuple[str, str], item: str = "SignedHeaders=x-mq-date-time") -> Headers:
    """Return the headers of a client who signs."""
    signature = hmac.new(user[1].encode(), _TIME.encode(), hashlib.sha1).hexdigest().upper()
    text = f"MQv2-HMAC-SHA1 Credential={user[0]}/region/service, {item}, Signature={signature}"
    return (("authorization", text), ("x-mq-date-time", _TIME))


def _topic(name: str) -> dict[str, Any]:
    return {"topic": {"name": name}}


def _route(topic: str) -> dict[str, Any]:
    addresses = [{"host": "127.0.0.1", "port": 8081}]
    return {**_topic(topic), "endpoints": {"scheme": 1, "addresses": addresses}}


def _message(topic: str) -> dict[str, Any]:
    about = {"message_id": "0102FC0000000110B30B170000000001", "message_type": 1,
             "body_encoding": 1, "born_timestamp": timestamp(), "born_host": "client"}  # fmt: skip
    return {"topic": {"name": topic}, "body": b"v", "system_properties": about}


def _requests() -> list[tuple[str, dict[str, Any]]]:
    group = {"group": {"name": "readers"}}
    other = {"group": {"name": "others"}}
    queue = {"message_queue": {"topic": {"name": "orders"}}, "invisible_duration": {"seconds": 30},
             "filter_expression": {"type": 1, "expression": "*"}}  # fmt: skip
    return [
        *(("QueryRoute", _route(name)) for name in ("orders", "secrets", "")),
        *(("SendMessage", {"messages": [_message(name)]}) for name in ("orders", "secrets")),
        ("SendMessage", {}),
        ("RecallMessage", {**_topic("secrets"), "recall_handle": "x"}),
        ("EndTransaction", {**_topic("secrets"), "transaction_id": "x"}),
        ("Heartbeat", {"client_type": 1}),
        *(("Heartbeat", {"client_type": kind, **other}) for kind in (2, 3, 4)),
        ("QueryAssignment", {**other, **_topic("orders")}),
        ("QueryAssignment", {**group, **_topic("secrets")}),
        ("QueryAssignment", group),
        ("AckMessage", {**other, **_topic("orders")}),
        ("ForwardMessageToDeadLetterQueue", {**other, **_topic("orders")}),
        ("ChangeInvisibleDuration", {**other, **_topic("orders")}),
        ("NotifyClientTermination", other),
        ("ReceiveMessage", {**other, **queue}),
        ("ReceiveMessage", group),
    ]


def grpc_session(address: str) -> list[str]:
    """Return what is answered, one line a request; "writer" and "reader" are there already."""
    lines: list[str] = []

    def note(name: str, answer: object) -> None:
        text = re.sub(r'"port": \d+', '"port": PORT', json.dumps(answer, sort_keys=True))
        lines.append(f"{name}: {_MASKED.sub('...', text)}")

    def ask(who: str, headers: Headers, name: str, fields: dict[str, Any]) -> None:
        wire = GrpcWire(address, f"wire@{who}", headers)
        answer = wire.receive(fields) if name == "ReceiveMessage" else wire.ask(name, fields)
        wire.close()
        note(f"{name} by {who}", answer)

    writer, reader = ("writer", "pw"), ("reader", "pw")
    signature = signed(writer)[0][1].rpartition("=")[2]
    forged: dict[str, Headers] = {
        "nobody": (),
        "wrong": signed(("writer", "wrong")),
        "unknown": signed(("stranger", "pw")),
        "no time": signed(writer)[:1],
        "one word": (("authorization", "MQv2"), ("x-mq-date-time", _TIME)),
        "no value": signed(writer, "SignedHeaders"),
        "no name": (("authorization", "MQv2 Credential=/, Signature=00"),
                    ("x-mq-date-time", _TIME)),
        "no hex": (("authorization", "MQv2 Credential=writer, Signature=xyz"),
                   ("x-mq-date-time", _TIME)),
        "no signature": (("authorization", "MQv2 Credential=writer"), ("x-mq-date-time", _TIME)),
        "other time": (signed(writer)[0], ("x-mq-date-time", "20260101T000001Z")),
        "lower case": (("authorization", f"x Credential=writer, Signature={signature.lower()}"),
                       ("x-mq-date-time", _TIME)),
    }  # fmt: skip
    for who, headers in forged.items():
        ask(who, headers, "QueryRoute", _route("orders"))
    for who, headers in (("writer", signed(writer)), ("reader", signed(reader))):
        for name, fields in _requests():
            ask(who, headers, name, fields)
        lines += _streams(address, who, headers)
    return lines


def _streams(address: str, who: str, headers: Headers) -> list[str]:
    """Return what telemetry streams of producers and consumers end with."""
    found: list[str] = []
    entry = {"topic": {"name": "orders"}, "expression": {"type": 1, "expression": "*"}}
    for name, settings in (
        ("secrets", {"client_type": 1, "publishing": {"topics": [{"name": "secrets"}]}}),
        ("others", {"client_type": 3, "subscription": {"group": {"name": "others"},
                                                       "subscriptions": [entry]}}),
    ):  # fmt: skip
        wire = GrpcWire(address, f"stream@{who}", headers)
        told = wire.listen(settings)
        try:
            wire.told()
            end = "goes on"
        except StopIteration:
            end = "is over"
        wire.close()
        found.append(f"telemetry of {name} by {who}: {json.dumps(told, sort_keys=True)}; {end}")
    return found
