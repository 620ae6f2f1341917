"""What no client of the proxy's asks: cut handles, odd headers, kinds that do not fit, places."""

from __future__ import annotations

import base64
from typing import Any

from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq.rpc_draws import (
    BORN,
    CONSUMER,
    FIFO_CONSUMER,
    HIDDEN_SECONDS,
    PRODUCER,
    SYSTEM,
    TYPES,
    message,
    receipt,
)
from tests.interop.drawn_rocketmq.rpcs import (
    KINDS,
    Calls,
    duration,
    moment,
    names_of,
    odd_name,
    topic_name,
)

NAMESPACES = ("", " ", "ns", "ä", "a b", "n" * 300, "%", "MQ_INST_1_2")
#: a proxy in Java tells of its own port, and of no address where it is told of none
HOSTS = ("", "127.0.0.1", "localhost", "::1", "no-such-host", "300.0.0.1", " ", "ä")
PORTS = (8081, 1, 65_536, 2**31 - 1)
#: what stands in the parts of a handle
PARTS = ("", "x", "-1", "0", "99", "999", "1", "2", "3", "4", str(2**31), str(2**63), "+1", "1.5",
         "broker-a", "nobody", "0x1", "1_0")  # fmt: skip
#: since when a message was popped and for how long it is hidden: of another time they have no
#: message, and each broker decides by its own clock
_OF_TIMES, _BROKER, _PLACES = (1, 2), 5, (0, 3, 7, 8)
HEADERS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("x-mq-namespace", "ns"),), (("x-mq-namespace", ""),), (("x-mq-date-time", "x"),),
    (("x-mq-request-id", "r"),), (("x-mq-request-id", ""),), (("x-mq-session-token", "s"),),
    (("authorization", "x"),), (("authorization", "MQv2-HMAC-SHA1 Credential=a, Signature=b"),),
    (("x-mq-language", "JAVA"),), (("x-mq-client-version", ""),),
    (("x-mq-client-id", "twice"),), (("x-mq-protocol", "v1"),),
    (("x-mq-remote-address", "1.2.3.4"),), (("x-mq-channel-id", "c"),),
    (("x-mq-simple-rpc-context", "x"),),
)  # fmt: skip
CLIENT_IDS = ("", " ", "a@b@c", "x" * 300, "%LMQ%", "a b")
#: none so long that its receiver would not take it: when such a one comes again is chance
BODIES = (b"", b"v", b"\0", b"x" * 4_000_000, b"x" * 65_536, b"\x1f\x8b\x08garbage", b"x\x9cbad")


def altered(calls: Calls, handle: str, number: int, part: str, kind: str) -> str:
    """Return a handle of one side with a part that is another one."""
    parts = handle.split(" ")
    if kind == "replaced":
        parts[number % len(parts)] = part
    elif kind == "cut":
        parts = parts[: number % len(parts)]
    elif kind == "longer":
        parts.append(part)
    elif kind == "gap":
        parts.insert(number % len(parts), "")
    return {"spaces": " " + handle, "end": handle + " ", "doubled": f"{handle} {handle}",
            "upper": handle.upper()}.get(kind, " ".join(parts))  # fmt: skip


def handled(calls: Calls) -> dict[str, Any]:
    """Draw what was received, and say of it what is not so."""
    topic, group = names_of(calls)
    number, part = calls.chance.randrange(9), calls.pick(*PARTS)
    kind = calls.pick("replaced", "replaced", "cut", "longer", "gap", "spaces", "end", "upper")
    handle: Any = "x"
    if calls.received:
        known_topic, known_group, pair, _ = calls.chance.choice(calls.received)
        if calls.likely(0.8):
            topic, group = known_topic, known_group
        if (
            kind == "replaced"
            and number in (*_OF_TIMES, *_PLACES)
            and part.lstrip("+-").isdecimal()
        ):
            part = "x"  # a number would be somebody else's message, or none
        handle = Pair(*(altered(calls, one, number, part, kind) for one in pair))
    return {
        "topic": space(calls, topic), "group": space(calls, group), "receipt_handle": handle,
        "message_id": calls.pick("m", "", "ä", " "),
    }  # fmt: skip


def space(calls: Calls, name: str) -> dict[str, Any]:
    """Return a name, now and then in a namespace."""
    found = {"name": name}
    return found | {"resource_namespace": calls.pick(*NAMESPACES)} if calls.likely(0.2) else found


def with_handle(calls: Calls) -> None:
    """Acknowledge, put off or give up what was received, by handles that are not quite its own."""
    fields = handled(calls)
    client = calls.pick(CONSUMER, FIFO_CONSUMER)
    kind = calls.pick("ack", "ack", "change", "bury")
    if kind == "ack":
        entries = [{name: fields[name] for name in ("receipt_handle", "message_id")}]
        entries += [{"receipt_handle": calls.pick("", "x", "1 2 3 4 5 broker-a 7 8 9")}
                    for _ in range(calls.pick(0, 0, 1, 3))]  # fmt: skip
        if calls.likely(0.1):
            entries[0]["lite_topic"] = calls.pick("l", "", " ")
        about = {"topic": fields["topic"], "group": fields["group"], "entries": entries}
        calls.ask(client, "AckMessage", about)
    elif kind == "change":
        more: dict[str, Any] = {"invisible_duration": duration(calls, *HIDDEN_SECONDS)}
        if calls.likely(0.2):
            more["lite_topic"] = calls.pick("l", "", " ")
        calls.ask(client, "ChangeInvisibleDuration", fields | more)
    else:
        more = {"delivery_attempt": calls.pick(0, 1), "max_delivery_attempts": calls.pick(1, 16)}
        calls.ask(client, "ForwardMessageToDeadLetterQueue", fields | more)


def send(calls: Calls) -> None:
    """Send what is of another kind than its topic, due at odd times, or has several odd members."""
    kind, other = calls.pick(*KINDS), calls.pick(*KINDS)
    drawn = message(calls, kind)
    about = drawn["system_properties"]
    drawn["topic"] = space(calls, topic_name(other if calls.likely(0.4) else kind))
    for _ in range(calls.pick(0, 1, 2, 3)):
        name, values = calls.pick(*SYSTEM)
        about[name] = calls.pick(*values)
    if calls.likely(0.3):
        about["delivery_timestamp"] = moment(calls, 7_200, 86_400 * 2, 86_400 * 4, 10**10)
    if calls.likely(0.2):
        about["message_type"] = calls.pick(*TYPES.values(), 5)
    if calls.likely(0.15):
        drawn["body"] = calls.pick(*BODIES)
    if calls.likely(0.15):
        count = calls.pick(1, 127, 128, 129)
        drawn["user_properties"] = {f"p{number}": "v" for number in range(count)}
    elif calls.likely(0.1):
        drawn["user_properties"] = {
            "k" * calls.pick(1, 64, 128, 129, 256): calls.pick("v", "", "|")
        }
    told = calls.ask(calls.pick(PRODUCER, PRODUCER, "odd-producer"), "SendMessage",
                     {"messages": [drawn]})  # fmt: skip
    entries = [one.get("entries", [{}])[0] if isinstance(one, dict) else {} for one in told]
    if all(one.get("recall_handle") for one in entries):
        calls.handles.append(Pair(*(one["recall_handle"] for one in entries)))


def endpoints(calls: Calls) -> dict[str, Any]:
    """Draw where a client says that it has found the proxy."""
    addresses = [{"host": calls.pick(*HOSTS), "port": calls.pick(*PORTS)}
                 for _ in range(calls.pick(1, 1, 2, 3))]  # fmt: skip
    return {"scheme": calls.pick(0, 1, 1, 2, 3, 99, -1), "addresses": addresses}


def route(calls: Calls) -> None:
    """Ask where a topic is, from odd places."""
    topic, group = names_of(calls)
    fields = {"topic": space(calls, topic), "endpoints": endpoints(calls)}
    if calls.likely(0.5):
        calls.ask(CONSUMER, "QueryRoute", fields)
    else:
        calls.ask(CONSUMER, "QueryAssignment", fields | {"group": space(calls, group)})


def with_headers(calls: Calls) -> None:
    """Ask with headers that are not as they are to be, or without a name."""
    client = f"headers-{len(calls.steps)}"
    calls.headers[client] = calls.pick((), *HEADERS, *HEADERS)
    if calls.likely(0.2):
        calls.ids[client] = calls.pick(*CLIENT_IDS)
    topic, group = names_of(calls)
    kind = calls.pick("route", "beat", "send", "leave", "listen")
    if kind == "route":
        place = {"scheme": 1, "addresses": [{"host": "127.0.0.1", "port": 8081}]}
        calls.ask(client, "QueryRoute", {"topic": {"name": topic}, "endpoints": place})
    elif kind == "beat":
        fields = {"client_type": calls.pick(1, 3, 2), "group": {"name": group}}
        calls.ask(client, "Heartbeat", fields)
    elif kind == "send":
        calls.ask(client, "SendMessage", {"messages": [message(calls, "normal")]})
    elif kind == "leave":
        calls.ask(client, "NotifyClientTermination", {"group": {"name": group}})
    else:
        publishing = {"topics": [{"name": topic_name("normal")}]}
        calls.listen(client, {"client_type": 1, "publishing": publishing})
    calls.close(client)


def recall(calls: Calls) -> None:
    """Take a message back by a handle of which a part is another one."""
    number, part = calls.chance.randrange(6), calls.pick(*PARTS, "v1", "v2", topic_name("delay"))
    handle: Any = calls.pick("", " ", "djEg", "=", "a" * 300, "ä")
    kind = calls.pick("replaced", "replaced", "cut", "longer", "gap", "spaces", "end", "upper")
    if calls.handles:
        pair = calls.chance.choice(calls.handles)
        handle = Pair(*(recoded(calls, one, number, part, kind) for one in pair))
    topic = topic_name(calls.pick("delay", "delay", "normal"))
    calls.ask(PRODUCER, "RecallMessage", {"topic": space(calls, topic), "recall_handle": handle})


def recoded(calls: Calls, handle: str, number: int, part: str, kind: str) -> str:
    """Return a handle for recalls of one side that is altered inside."""
    inside = base64.urlsafe_b64decode(handle + "=" * (-len(handle) % 4)).decode()
    return base64.urlsafe_b64encode(altered(calls, inside, number, part, kind).encode()).decode()


def sync_lite(calls: Calls) -> None:
    """Say which lite topics a client reads, of a topic that has none."""
    topic, group = names_of(calls)
    fields: dict[str, Any] = {
        "action": calls.pick(0, 0, 1, 2, 3, 4, -1, 99), "topic": space(calls, topic),
        "group": space(calls, group), "version": calls.pick(0, 1, -1, 2**62),
        "lite_topic_set": calls.pick([], ["l"], ["l", "l"], ["a b"], [""], ["l" * 64], ["l" * 65],
                                     ["ü"], [" "], ["a$b"], ["a,b"], [f"l{n}" for n in range(400)]),
    }  # fmt: skip
    if calls.likely(0.3):
        fields["offset_option"] = calls.pick({}, {"policy": 0}, {"policy": 99}, {"offset": -1},
                                             {"tail_n": 3}, {"timestamp": -1})  # fmt: skip
    calls.ask(calls.pick(CONSUMER, "lite-stranger"), "SyncLiteSubscription", fields)


def end_transaction(calls: Calls) -> None:
    """Decide about half a message by an id of which a part is another one."""
    if not calls.transactions:
        return
    pair, number = calls.chance.choice(calls.transactions), calls.chance.randrange(64)
    kind = calls.pick("cut", "lower", "longer", "letter", "other")
    changed = {
        "cut": lambda one: one[: number % len(one)], "lower": lambda one: one.lower(),
        "longer": lambda one: one + "0", "letter": lambda one: one[:number] + "G" + one[number:],
        "other": lambda one: one[::-1],
    }[kind]  # fmt: skip
    fields = {
        "topic": space(calls, topic_name(calls.pick("transaction", "normal", "fifo"))),
        "message_id": calls.pick(calls.next_id(), "", " "), "resolution": calls.pick(1, 2, 0, 3),
        "transaction_id": Pair(*(changed(one) for one in pair)), "source": calls.pick(0, 1, 2, -1),
    }  # fmt: skip
    calls.ask(PRODUCER, "EndTransaction", fields)


def receive(calls: Calls) -> None:
    """Receive from queues and by filters that are none."""
    fields = receipt(calls, topic_name(calls.pick("normal", "priority")), f"{calls.prefix}-g")
    queue = fields["message_queue"]
    fields |= calls.pick(
        {"message_queue": queue | {"permission": calls.pick(0, 1, 2, 3, 99)}},
        {"message_queue": queue | {"accept_message_types": [calls.pick(0, 1, 99)]}},
        {"message_queue": queue | {"broker": {"name": "broker-a", "id": calls.pick(0, 1, -1),
                                              "endpoints": endpoints(calls)}}},
        {"message_queue": queue | {"topic": space(calls, odd_name(calls))}},
        {"group": space(calls, f"{calls.prefix}-g")},
        {"filter_expression": {"type": calls.pick(1, 2), "expression": calls.pick(
            "A|B", "A | B", "A||", "|| ||", "a||b||a", "ü", "*||A", "x" * 300, "a = ", "a in ()",
            "a = 1 OR", "TRUE", "((a = 1))", "a BETWEEN 1", "\u00a0")}},
        {"invisible_duration": None},
        {"long_polling_timeout": duration(calls, 5, 6)},
    )  # fmt: skip
    calls.receive(calls.pick(CONSUMER, CONSUMER, FIFO_CONSUMER), fields)


def born(calls: Calls) -> None:
    """Send what was born at odd times, or has nearly nothing."""
    about: dict[str, Any] = {"message_id": calls.next_id(), "message_type": 1, "body_encoding": 1}
    about["born_timestamp"] = calls.pick(BORN, {"seconds": -1}, {"seconds": 2**40}, {"nanos": 5})
    about |= calls.pick({}, {"born_host": ""}, {"keys": ["a b", " "]}, {"tag": "a|b"},
                        {"tag": " a"}, {"tag": "a\tb"}, {"keys": ["k"] * 70}, {"keys": ["k" * 65]},
                        {"message_group": "a\tb"}, {"message_id": "a" * 1_000})  # fmt: skip
    sent = {"topic": {"name": topic_name("normal")}, "body": b"born", "system_properties": about}
    calls.ask(PRODUCER, "SendMessage", {"messages": [sent]})
