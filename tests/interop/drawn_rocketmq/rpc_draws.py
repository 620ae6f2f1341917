"""What gRPC clients of a session ask, request by request."""

from __future__ import annotations

import time
from typing import Any

from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq.rpcs import (
    KINDS,
    Calls,
    duration,
    moment,
    names_of,
    odd_name,
    resource,
    topic_name,
)

PRODUCER, CONSUMER, FIFO_CONSUMER, STRANGER = "producer", "consumer", "in-order", "stranger"
ENDPOINTS = {"scheme": 1, "addresses": [{"host": "127.0.0.1", "port": 8081}]}
TYPES = {"normal": 1, "fifo": 2, "delay": 3, "transaction": 4, "priority": 6}
HIDDEN_SECONDS = (3_600, 7_200, 10_000)
BORN = {"seconds": 1_700_000_000}
#: a place in a commit log behind all that either has
NOWHERE = 2**50
ODD_HANDLES = (
    "", "x", "1 2 3 4 5 broker-a 7 8", f"1 2 3 4 0 broker-a 0 0 {NOWHERE}",
    f"0 1 2 999 0 broker-a 0 0 {NOWHERE} 0", f"0 {{now}} 3600000 0 0 broker-a 0 0 {NOWHERE}",
    "a b c d e f g h i", " ", f"0 1 2 3 0 nobody 0 0 {NOWHERE}",
    f"0 {{now}} 3600000 0 0 nobody 0 0 {NOWHERE}", f"0 {{now}} 3600000 0 9 broker-a 0 0 {NOWHERE}",
    "0 {now} 3600000 0 0 broker-a 0 0 -1", f"0 {{now}} 3600000 0 0 broker-a 77 0 {NOWHERE}",
)  # fmt: skip
SYSTEM: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("tag", ("", " ", "A", "a|b", "a\x01", "ü", "*", "a||b", "\u00a0", "\u3000", "x" * 2_000)),
    ("keys", ([], ["k"], ["k1", "k2"], [""], [" "], ["a b"], ["\x01"], ["k", ""], ["\u00a0"])),
    ("message_id", ("", " ", "x", "ü", "\u00a0", "a" * 300, "a b")),
    ("body_encoding", (0, 1, 2, 99, -1)),
    ("message_type", (0, 1, 2, 3, 4, 5, 6, 99, -1)),
    ("body_digest", ({"type": 1, "checksum": "x"}, {"type": 99}, {"type": 2, "checksum": ""})),
    ("born_host", ("", " ", "x", "\u00a0", "ü", "a\x01b")),
    ("queue_id", (0, 1, -1, 2**31 - 1)),
    ("queue_offset", (0, -1, 2**62)),
    ("delivery_attempt", (0, 1, -1, 17, 2**31 - 1, -(2**31))),
    ("message_group", ("", " ", "g", "g" * 63, "g" * 64, "\x01", "ü" * 32, "ü" * 31, "\u00a0")),
    ("trace_context", ("", "t", "a\x02b", "ü")),
    ("priority", (0, 1, -1, 2**31 - 1, 5)),
    ("receipt_handle", ("x", "")),
    ("lite_topic", ("", " ", "l", "a b", "l" * 64, "l" * 65)),
    ("dead_letter_queue", ({"topic": "x", "message_id": "y"}, {})),
    ("store_host", ("x",)),
)
PROPERTIES: tuple[dict[str, str], ...] = (
    {}, {"a": "b"}, {"": "x"}, {"x": ""}, {" ": " "}, {"a\x01": "b"}, {"a": "b\x02"}, {"KEYS": "k"},
    {"TAGS": "t"}, {"ü": "ö"}, {"a": "\x7f"}, {"a": "\x85"}, {"a": "\u200b"}, {"UNIQ_KEY": "x"},
    {"__STARTDELIVERTIME": "1"}, {"PGROUP": "x"}, {"__LITE_TOPIC": "x"}, {"a": "\u2028"},
    {"TIMER_DELAY_SEC": "1"}, {"_SYS_MSG_PRIORITY_": "1"}, {"INNER_NUM": "1"}, {"REAL_TOPIC": "x"},
    {"a": "x" * 16_384}, {"a": "x" * 16_383}, {"a": "\n"}, {"a": "\t"}, {"DELAY": "1"},
)  # fmt: skip


def first(calls: Calls) -> None:
    """Have those come who are there from the start, and the groups begin where the queues end."""
    publishing = {"topics": [{"name": topic_name(kind)} for kind in KINDS]}
    calls.listen(PRODUCER, {"client_type": 1, "publishing": publishing})
    for name, is_fifo in ((CONSUMER, False), (FIFO_CONSUMER, True)):
        calls.listen(name, consumer_settings(f"{calls.prefix}-g", is_fifo=is_fifo))
    for kind in ("normal", "priority"):
        calls.receive(CONSUMER, receipt(calls, topic_name(kind), f"{calls.prefix}-g"))


def consumer_settings(group: str, *, is_fifo: bool = False) -> dict[str, Any]:
    """Return what a consumer says of itself."""
    entry = {"topic": {"name": topic_name("normal")},
             "expression": {"type": 1, "expression": "*"}}  # fmt: skip
    return {
        "client_type": 3, "request_timeout": {"seconds": 3},
        "subscription": {"group": {"name": group}, "subscriptions": [entry], "fifo": is_fifo,
                         "long_polling_timeout": {"seconds": 5}},
    }  # fmt: skip


def message(calls: Calls, kind: str) -> dict[str, Any]:
    """Draw a message of a kind."""
    about: dict[str, Any] = {
        "message_id": calls.next_id(), "message_type": TYPES[kind], "body_encoding": 1,
        "born_timestamp": BORN, "born_host": "client",
    }  # fmt: skip
    if kind == "fifo":
        about["message_group"] = calls.pick("a", "b")
    elif kind == "delay":
        about["delivery_timestamp"] = moment(calls, 7_200, 3_600, 90_000, 80_000)
    elif kind == "priority":
        about["priority"] = calls.pick(0, 1, 9)
    elif kind == "transaction" and calls.likely(0.5):
        about["orphaned_transaction_recovery_duration"] = duration(calls, 60, 0, 3_600, 100_000)
    if calls.likely(0.45):
        name, values = calls.pick(*SYSTEM)
        about[name] = calls.pick(*values)
    if calls.likely(0.05):
        about["born_timestamp"] = moment(calls, 0)
    if calls.likely(0.04):
        del about[calls.pick(*about)]
    body = (
        calls.pick(b"v", b"v", b"body", b"x\x9c", b"") if calls.likely(0.97) else b"x" * 4_194_305
    )
    return {
        "topic": resource(calls, topic_name(kind)), "body": body, "system_properties": about,
        "user_properties": calls.pick(*PROPERTIES) if calls.likely(0.4) else {},
    }  # fmt: skip


def send(calls: Calls) -> None:
    """Send a message, or some."""
    kind = calls.pick("normal", "normal", *KINDS)
    messages = [message(calls, kind)]
    while calls.likely(0.15):
        messages.append(message(calls, kind if calls.likely(0.9) else calls.pick(*KINDS)))
    if calls.likely(0.05):
        messages[0]["topic"] = {"name": odd_name(calls)}
    told = calls.ask(PRODUCER, "SendMessage", {"messages": [] if calls.likely(0.01) else messages})
    entries = [one.get("entries", [{}])[0] if isinstance(one, dict) else {} for one in told]
    for name, known in (("transaction_id", calls.transactions), ("recall_handle", calls.handles)):
        if all(one.get(name) for one in entries):
            known.append(Pair(*(one[name] for one in entries)))


def receipt(calls: Calls, topic: str, group: str) -> dict[str, Any]:
    """Draw a request for messages."""
    return {
        "group": {"name": group}, "message_queue": {"topic": {"name": topic}, "id": -1},
        "filter_expression": {"type": 1, "expression": "*"}, "batch_size": 5,
        "invisible_duration": {"seconds": calls.pick(*HIDDEN_SECONDS)},
        "long_polling_timeout": {"seconds": 5},
    }  # fmt: skip


def receive(calls: Calls) -> None:
    """Receive; nothing is waited for longer than it takes."""
    topic, group = topic_name(calls.pick("normal", "normal", "priority")), f"{calls.prefix}-g"
    fields = receipt(calls, topic, group)
    for _ in range(calls.pick(0, 1, 1, 2)):
        fields |= calls.pick(
            {"batch_size": calls.pick(0, 31, 1, 32, 33, 2**31 - 1)},
            {"invisible_duration": duration(calls, 9, 10, 43_200, 43_201)},
            {"filter_expression": {"type": calls.pick(0, 1, 2, 99), "expression": calls.pick(
                "", "*", "A", "A || B", "||", "a = 1", "a =", "a IS NULL", " ")}},
            {"filter_expression": None}, {"attempt_id": calls.pick("", "x")},
            {"group": resource(calls, odd_name(calls))},
            {"message_queue": {"topic": {"name": odd_name(calls)}, "id": -1}},
            {"message_queue": {"topic": {"name": topic}, "id": calls.pick(0, 1, -2, 99)}},
            {"message_queue": {"topic": {"name": topic}, "broker": {"name": calls.pick(
                "broker-a", "nobody")}}},
            {"message_queue": None}, {"auto_renew": True},
        )  # fmt: skip
    # Of one that has not said what it is ours says so, and Java stumbles (SKIPPED.md).
    client = CONSUMER if calls.likely(0.9) else calls.pick(PRODUCER, "")
    learn(calls, calls.receive(client, fields), topic, group)


def learn(calls: Calls, told: Pair, topic: str, group: str) -> None:
    """Keep the handles of what both got."""
    found = [
        [one["message"]["system_properties"] for one in side if "message" in one]
        if isinstance(side, list) else [] for side in told
    ]  # fmt: skip
    for ours, real in zip(*found, strict=False):
        handles = Pair(ours["receipt_handle"], real["receipt_handle"])
        calls.received.append((topic, group, handles, str(real["message_id"])))


def handled(calls: Calls) -> dict[str, Any]:
    """Draw what was received, or was not."""
    topic, group = names_of(calls)
    handle: Any = calls.pick(*ODD_HANDLES).format(now=int(time.time() * 1000))
    name = "m"
    if calls.received and calls.likely(0.7):
        topic, group, handle, name = calls.chance.choice(calls.received)
        if calls.likely(0.15):
            topic, group = names_of(calls)
    return {
        "topic": resource(calls, topic), "group": resource(calls, group),
        "receipt_handle": handle, "message_id": name if calls.likely(0.95) else "",
    }  # fmt: skip


def ack(calls: Calls) -> None:
    """Acknowledge one message or some."""
    fields = handled(calls)
    entries = [{"receipt_handle": fields["receipt_handle"], "message_id": fields["message_id"]}]
    while calls.likely(0.25):
        more = handled(calls)
        entries.append({name: more[name] for name in ("receipt_handle", "message_id")})
    if calls.likely(0.05):
        entries = []
    asked = {"topic": fields["topic"], "group": fields["group"], "entries": entries}
    calls.ask(CONSUMER, "AckMessage", asked)


def change(calls: Calls) -> None:
    """Put a message off."""
    fields = handled(calls)
    hidden = duration(calls, *HIDDEN_SECONDS, 43_200, 43_201)
    more = {"invisible_duration": hidden, "suspend": calls.pick(None, True, False)}
    told = calls.ask(CONSUMER, "ChangeInvisibleDuration", fields | more)
    handles = [one.get("receipt_handle") if isinstance(one, dict) else None for one in told]
    if all(handles):
        calls.received.append(
            (fields["topic"]["name"], fields["group"]["name"], Pair(*handles), fields["message_id"])
        )


def bury(calls: Calls) -> None:
    """Give a message up."""
    more = {
        "delivery_attempt": calls.pick(0, 1, -1, 17),
        "max_delivery_attempts": calls.pick(0, 1, 16, -1),
    }
    calls.ask(CONSUMER, "ForwardMessageToDeadLetterQueue", handled(calls) | more)


def end_transaction(calls: Calls) -> None:
    """Decide about a half message."""
    name: Any = calls.pick("", " ", "x", calls.next_id(), "\u00a0")
    if calls.transactions and calls.likely(0.8):
        name = calls.chance.choice(calls.transactions)
    topic = topic_name("transaction") if calls.likely(0.9) else odd_name(calls)
    asked = {
        "topic": resource(calls, topic), "message_id": calls.pick(calls.next_id(), "", "x"),
        "transaction_id": name, "resolution": calls.pick(1, 1, 2, 0, 99, -1),
        "source": calls.pick(0, 1, 2, 99), "trace_context": calls.pick("", "t"),
    }  # fmt: skip
    calls.ask(PRODUCER, "EndTransaction", asked)


def recall(calls: Calls) -> None:
    """Take a message back that is to come later."""
    handle: Any = calls.pick("", "x", "####", "djE=", "djEgYSBiIDEgYw==", "\u00a0", "ü")
    if calls.handles and calls.likely(0.6):
        handle = calls.chance.choice(calls.handles)
    topic = topic_name("delay") if calls.likely(0.8) else names_of(calls)[0]
    calls.ask(PRODUCER, "RecallMessage", {"topic": resource(calls, topic), "recall_handle": handle})


def route(calls: Calls) -> None:
    """Ask where a topic is, or who reads it."""
    topic, group = names_of(calls)
    fields = {"topic": resource(calls, topic), "endpoints": ENDPOINTS}
    if calls.likely(0.5):
        calls.ask(calls.pick(PRODUCER, CONSUMER, STRANGER, ""), "QueryRoute", fields)
        return
    asked = {**fields, "group": resource(calls, group)}
    calls.ask(calls.pick(CONSUMER, STRANGER), "QueryAssignment", asked)


def beat(calls: Calls) -> None:
    """Say that a client is there, or goes."""
    _, group = names_of(calls)
    client = calls.pick(PRODUCER, CONSUMER, STRANGER, "")
    if calls.likely(0.25):
        asked = {"group": resource(calls, group)} if calls.likely(0.8) else {}
        calls.ask(STRANGER, "NotifyClientTermination", asked)
        return
    kind = {PRODUCER: 1, CONSUMER: 3}.get(client, 0) if calls.likely(0.6) else None
    kind = calls.pick(0, 1, 2, 3, 4, 5, 6, 99, -1) if kind is None else kind
    fields: dict[str, Any] = {"client_type": kind}
    if calls.likely(0.7):
        fields["group"] = resource(calls, group)
    calls.ask(client, "Heartbeat", fields)


def settle(calls: Calls) -> None:
    """Say what a client is, in odd words too."""
    kind, client = (
        calls.pick(1, 2, 3, 3, 4, 5, 6, 0),
        f"settings{calls.chance.randrange(3)}-{len(calls.steps)}",
    )
    _, group = names_of(calls)
    settings = consumer_settings(group) | {"client_type": kind}
    if calls.likely(0.4):
        topics = [resource(calls, names_of(calls)[0]) or {} for _ in range(calls.pick(1, 2))]
        more = {"topics": topics, "max_body_size": calls.pick(0, 1, -1),
                "validate_message_type": calls.pick(True, False)}  # fmt: skip
        settings = {"client_type": kind, "publishing": more}
    for _ in range(calls.pick(0, 0, 1, 2)):
        settings |= calls.pick(
            {"request_timeout": {"seconds": calls.pick(0, 1, 60, -1)}},
            {"user_agent": {"language": 99}},
            {"metric": {"on": True}}, {"access_point": {}}, {"client_type": None},
            {"backoff_policy": {"max_attempts": calls.pick(0, -1, 5, 2**31 - 1)}},
            {"backoff_policy": {"customized_backoff": {"next": [{"seconds": 1}]}}},
            {"backoff_policy": {"exponential_backoff": {"multiplier": -1.0}}},
            {"client_properties": {"a": "b"}},
        )  # fmt: skip
    if "subscription" in settings and calls.likely(0.4):
        settings["subscription"] |= calls.pick(
            {"receive_batch_size": calls.pick(0, -1, 99)}, {"group": None}, {"subscriptions": []},
            {"fifo": True}, {"long_polling_timeout": {"seconds": calls.pick(0, 30, 60, -1)}},
            {"subscriptions": [{}]}, {"lite_subscription_quota": 5}, {"max_lite_topic_size": -1},
            {"subscriptions": [{"topic": {"name": odd_name(calls)},
                                "expression": {"type": 99, "expression": "||"}}]},
        )  # fmt: skip
    calls.listen(client, settings)
    if calls.likely(0.5):
        fields = {"client_type": calls.pick(kind, 3), "group": resource(calls, group)}
        calls.ask(client, "Heartbeat", fields)
