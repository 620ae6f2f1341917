"""Consumers of lite topics: which groups they may be in, what they pop, and how they leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from logstore.compat.rocketmq.lite.lite_names import LITE_TOPIC
from logstore.compat.rocketmq.lite.lite_rules import bind_topic
from logstore.compat.rocketmq.pop.handles import handle_text
from logstore.compat.rocketmq.proxy.codes import ClientType, Code
from logstore.compat.rocketmq.proxy.failures import ProxyError
from logstore.compat.rocketmq.proxy.popped import Popped, decoded
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.segments.rocketmq.messages.properties import INNER_MULTI_QUEUE_OFFSET

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.wire.remoting import Command


def is_lite(asked: Any) -> bool:
    """Tell whether a client that says this of itself reads lite topics."""
    return asked is not None and asked.client_type == ClientType.LITE_PUSH_CONSUMER


def check_mode(client: ProxyClient, asked: Any, group: str | None = None) -> None:
    """
    Raise ProxyError where who says this of himself is none of those that his group is for.

    A heart beat names the group; otherwise it is that of the settings.
    """
    if group is None:
        if not asked.HasField("subscription"):
            return
        group = str(asked.subscription.group.name)
    found = client.proxy.broker.groups.find(group)
    if found is None:
        raise ProxyError(Code.ILLEGAL_CONSUMER_GROUP, f"group not found: {group}")
    bound = bind_topic(found)
    if bool(bound) != is_lite(asked):
        text = f"lite group must use LITE mode: {group}"
        if not bound:
            text = f"regular group cannot use LITE mode: {group}"
        raise ProxyError(Code.ILLEGAL_CONSUMER_GROUP, text)
    if bound and asked.subscription.subscriptions:
        topic = asked.subscription.subscriptions[0].topic.name
        check_bound(group, bound, topic)


def check_bound(group: str, bound: str | None, topic: str) -> None:
    """Raise ProxyError where a group does not read lite topics of a topic."""
    if bound != topic:
        expected = "null" if bound is None else bound
        text = f"lite group {group} is expected to bind topic {expected}, but actual is {topic}"
        raise ProxyError(Code.ILLEGAL_TOPIC, text)


def check_work(client: ProxyClient, group: str) -> None:
    """Raise ProxyError where a consumer has so much to work at that it is given no more."""
    count = sum(renewed.group == group for renewed in client.renewed.values())
    if count > client.proxy.settings.lite_renewed_max:
        text = f"The client [{client.client_id}] has too many unacked messages."
        raise ProxyError(Code.FORBIDDEN, f"{text} Unacked count: {count}")


def popped_lite(answer: Command, topic: str, broker_name: str) -> list[Popped]:
    """Return what a broker has found; each message says its place in the light queue itself."""
    fields = answer.ext_fields
    counts = fields.get("orderCountInfo", "").split(";")
    messages = list(decoded(answer.body))
    if len(counts) != len(messages):
        counts = ["0"] * len(messages)
    found: list[Popped] = []
    for message, count in zip(messages, counts, strict=True):
        queue_offset = int(message.properties.get(INNER_MULTI_QUEUE_OFFSET, "-1"))
        handle = handle_text(
            0, int(fields["popTime"]), int(fields["invisibleTime"]), int(fields["reviveQid"]),
            topic, broker_name, 0, queue_offset,
        )  # fmt: skip
        times = count.rpartition(" ")[2]
        delivered = int(times) if times.isdecimal() else 0
        whole = f"{handle} {message.physical_offset}"
        lite_topic = message.properties.get(LITE_TOPIC, "")
        found.append(Popped(message, whole, delivered, lite_topic, queue_offset))
    return found


def leave(client: ProxyClient) -> None:
    """Have brokers forget what a consumer read that is gone."""
    asked = client.asked_settings
    if not is_lite(asked) or not asked.subscription.subscriptions:
        return
    entry = {
        "action": "COMPLETE_REMOVE",
        "clientId": client.client_id,
        "group": asked.subscription.group.name,
        "topic": asked.subscription.subscriptions[0].topic.name,
    }
    body = orjson.dumps({"subscriptionSet": [entry]})
    for link in client.links():
        link.tell(RequestCode.LITE_SUBSCRIPTION_CTL, {}, body)
