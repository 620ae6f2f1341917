"""
The clients of a proxy: their settings, their way to the broker, and what they are to be told.

Source: ``GrpcChannelManager``, ``GrpcClientChannel``, ``ClientActivity``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import orjson

from logstore.compat.rocketmq.clients.subscriptions import SubscriptionError, subscription_to
from logstore.compat.rocketmq.proxy.broker_link import BrokerLink
from logstore.compat.rocketmq.proxy.checks import group_of, topic_of
from logstore.compat.rocketmq.proxy.client_settings import settings_for
from logstore.compat.rocketmq.proxy.codes import SQL, ClientType, Code
from logstore.compat.rocketmq.proxy.failures import ProxyError
from logstore.compat.rocketmq.wire.codes import RequestCode

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.proxy import Proxy
    from logstore.compat.rocketmq.proxy.receipt_handles import ReceiptHandle
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.compat.waiting import Later

_FULL_EXPRESSION = "*"


class Transaction:
    """Where the half message of a transaction is."""

    __slots__ = ("physical_offset", "queue_offset")

    def __init__(self, queue_offset: int, physical_offset: int) -> None:
        self.queue_offset = queue_offset
        self.physical_offset = physical_offset


class Renewed:
    """A popped message whose time is prolonged until its consumer is through with it."""

    __slots__ = ("count", "group", "handle", "since_ms", "topic")

    def __init__(self, handle: ReceiptHandle, group: str, topic: str, since_ms: int) -> None:
        self.handle = handle
        self.group = group
        self.topic = topic
        self.since_ms = since_ms
        #: how often it was prolonged
        self.count = 0


class ProxyClient:
    """One client, by the id that it gives itself."""

    def __init__(self, proxy: Proxy, client_id: str, host: str, port: int) -> None:
        self.proxy = proxy
        self.client_id = client_id
        self.address = f"{host}:{port}"
        self._origin = host, port
        self.link = BrokerLink(proxy.broker, proxy.handlers_for(self), host, port)
        #: as the client sent them; None before
        self.asked_settings: Any = None
        #: sends a command to the client, while it listens
        self.tell: Callable[[Any], None] | None = None
        self.used_ms = proxy.now_ms()
        #: by what the client has first seen of the handle
        self.renewed: dict[str, Renewed] = {}

    def open_link(self) -> BrokerLink:
        """Return a way to the broker also where it has hung up on a client that is silent."""
        if self.link.is_open:
            return self.link
        return BrokerLink(self.proxy.broker, {}, *self._origin)

    @property
    def settings(self) -> Any:
        """What the client is told to do; None if it has not said what it is."""
        asked = self.asked_settings
        if asked is None:
            return None
        group = None
        if asked.HasField("subscription"):
            group = self.proxy.broker.groups.find(asked.subscription.group.name)
        return settings_for(asked, group, self.proxy.settings)

    def take_settings(self, asked: Any) -> None:
        """Let the broker know what the client is. Raises ProxyError."""
        if asked.HasField("publishing"):
            for topic in asked.publishing.topics:
                topic_of(topic)
        else:
            group_of(asked.subscription.group)
            _subscriptions(asked.subscription.subscriptions)
        self.asked_settings = asked
        self.beat()

    def beat(self) -> Later[Command]:
        """Tell the broker that the client lives."""
        asked = self.asked_settings
        producers = [{"groupName": topic.name} for topic in asked.publishing.topics]
        consumers: list[dict[str, Any]] = []
        if asked.HasField("subscription"):
            is_push = asked.client_type == ClientType.PUSH_CONSUMER
            consumers.append(
                {
                    "groupName": asked.subscription.group.name,
                    "consumeType": "CONSUME_PASSIVELY" if is_push else "CONSUME_ACTIVELY",
                    "messageModel": "CLUSTERING",
                    "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                    "subscriptionDataSet": _subscriptions(asked.subscription.subscriptions),
                    "unitMode": False,
                }
            )
        body = {
            "clientID": self.client_id,
            "producerDataSet": producers,
            "consumerDataSet": consumers,
        }
        return self.link.ask(RequestCode.HEART_BEAT, {}, orjson.dumps(body))

    def leave(self) -> None:
        """Take the client out of its groups, and forget it."""
        asked = self.asked_settings
        groups: list[dict[str, str]] = []
        if asked is not None:
            groups += [{"producerGroup": topic.name} for topic in asked.publishing.topics]
            if asked.HasField("subscription"):
                groups.append({"consumerGroup": asked.subscription.group.name})
        for fields in groups:
            self.link.tell(RequestCode.UNREGISTER_CLIENT, {"clientID": self.client_id, **fields})
        self.link.close()


def _subscriptions(entries: Iterable[Any]) -> list[dict[str, Any]]:
    """Return subscriptions as a heart beat has them. Raises ProxyError."""
    found: list[dict[str, Any]] = []
    for entry in entries:
        try:
            found.append(subscription_of(entry.topic.name, entry.expression).to_json())
        except SubscriptionError:
            text = "expression format is not correct"
            raise ProxyError(Code.ILLEGAL_FILTER_EXPRESSION, text) from None
    return found


def subscription_of(topic: str, expression: Any) -> Any:
    """Return a subscription by tags or SQL. Raises SubscriptionError."""
    kind = "SQL92" if expression.type == SQL else "TAG"
    return subscription_to(topic, expression.expression or _FULL_EXPRESSION, kind)
