"""
The clients of a proxy: their settings, their way to the broker, and what they are to be told.

Source: ``GrpcChannelManager``, ``GrpcClientChannel``, ``ClientActivity``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from logstore.compat.rocketmq.clients.subscriptions import SubscriptionError, subscription_to
from logstore.compat.rocketmq.proxy import lite_consumers
from logstore.compat.rocketmq.proxy.broker_link import BrokerLink
from logstore.compat.rocketmq.proxy.checks import group_of, topic_of
from logstore.compat.rocketmq.proxy.client_settings import settings_for
from logstore.compat.rocketmq.proxy.codes import (
    CONSUMERS,
    SQL,
    UNKNOWN_CLIENT,
    ClientType,
    Code,
    client_type_name,
)
from logstore.compat.rocketmq.proxy.failures import ProxyError
from logstore.compat.rocketmq.proxy.far_link import FarLink
from logstore.compat.rocketmq.steps import begin
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.proxy import Proxy
    from logstore.compat.rocketmq.proxy.receipt_handles import ReceiptHandle
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.compat.waiting import Later

_log = logging.getLogger(__name__)

_FULL_EXPRESSION = "*"
#: a way to a broker
Link: TypeAlias = "BrokerLink | FarLink"


class Transaction:
    """Where the half message of a transaction is."""

    __slots__ = ("broker_name", "physical_offset", "queue_offset")

    def __init__(self, broker_name: str, queue_offset: int, physical_offset: int) -> None:
        self.broker_name = broker_name
        self.queue_offset = queue_offset
        self.physical_offset = physical_offset


class Renewed:
    """A popped message whose time is prolonged until its consumer is through with it."""

    __slots__ = ("count", "group", "handle", "lite_topic", "since_ms", "topic")

    def __init__(
        self, handle: ReceiptHandle, group: str, topic: str, since_ms: int, lite_topic: str = ""
    ) -> None:
        self.handle = handle
        self.group = group
        self.topic = topic
        self.since_ms = since_ms
        self.lite_topic = lite_topic
        #: how often it was prolonged
        self.count = 0


class ProxyClient:
    """One client, by the id that it gives itself."""

    def __init__(self, proxy: Proxy, client_id: str, host: str, port: int) -> None:
        self.proxy = proxy
        self.client_id = client_id
        self.address = f"{host}:{port}"
        self._origin = host, port
        self.own_name = proxy.broker.settings.broker_name
        handlers = proxy.handlers_for(self, self.own_name)
        self.link = BrokerLink(proxy.broker, handlers, host, port)
        #: another way to the same broker, once that has hung up
        self._spare: BrokerLink | None = None
        #: ways to other brokers, by their names
        self.far_links: dict[str, FarLink] = {}
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
        if self._spare is None or not self._spare.is_open:
            self._spare = BrokerLink(self.proxy.broker, {}, *self._origin)
        return self._spare

    async def link_named(self, broker_name: str, code: Code) -> Link:
        """Return a way to a broker that a handle names. Raises ProxyError with `code`."""
        try:
            return await self.link_of(broker_name)
        except ProxyError as error:
            raise ProxyError(code, f"cannot find broker {broker_name}") from error

    async def link_of(self, broker_name: str) -> Link:
        """
        Return a way to the broker of that name.

        Raises:
            ProxyError: there is none.
            LogStoreError: nobody can be asked where it is.

        """
        cluster = self.proxy.routes.cluster
        if cluster is None or broker_name == self.own_name:
            return self.link
        address = await self.proxy.routes.address_of(broker_name)
        known = self.far_links.get(broker_name)
        if known is not None and known.address == address:
            return known
        if known is not None:
            known.close()
        handlers = self.proxy.handlers_for(self, broker_name)
        link = FarLink(self.proxy.broker, cluster, broker_name, address, handlers)
        self.far_links[broker_name] = link
        return link

    def link_to(self, broker_name: str) -> Link:
        """Return a way to a broker that the client has been served by before."""
        return self.far_links.get(broker_name) or self.open_link()

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
            if client_type_name(asked.client_type) == UNKNOWN_CLIENT:
                text = "Can't get the number of an unknown enum value."
                raise ProxyError(Code.INTERNAL_SERVER_ERROR, text)
        else:
            group_of(asked.subscription.group)
            if asked.client_type not in CONSUMERS:
                name = client_type_name(asked.client_type)
                text = f"Client type is not consumer, type: {name}"
                raise ProxyError(Code.INTERNAL_SERVER_ERROR, text)
            _subscriptions(asked.subscription.subscriptions)
        lite_consumers.check_mode(self, asked)
        self.asked_settings = asked
        self.beat()

    def beat(self, group: str | None = None) -> Later[Command]:
        """
        Tell the brokers that the client lives; return what the one here says to that.

        The client may name the `group` that it is in, where it consumes.

        Raises:
            ProxyError: it is in a group for other clients.

        """
        lite_consumers.check_mode(self, self.asked_settings, group)
        body = self._heart_beat(group)
        if self.proxy.routes.cluster is not None:
            begin(self._beat_afar(body)).then(_ignore, _ignore)
        return self.link.ask(RequestCode.HEART_BEAT, {}, body)

    async def _beat_afar(self, body: bytes) -> bool:
        """Tell the other brokers of the client's topics."""
        asked, names = self.asked_settings, set[str]()
        topics = [topic.name for topic in asked.publishing.topics]
        topics += [entry.topic.name for entry in asked.subscription.subscriptions]
        for topic in topics:
            try:
                names |= {data.broker_name for data in (await self.proxy.routes.of(topic)).queues}
            except LogStoreError as error:  # it may be made later
                _log.info("%s: %s", topic, error)
        for name in names - {self.own_name}:
            try:
                link = await self.link_of(name)
                link.ask(RequestCode.HEART_BEAT, {}, body).then(_ignore, partial(_missed, name))
            except LogStoreError as error:
                _missed(name, error)
        return True

    def _heart_beat(self, group: str | None) -> bytes:
        asked = self.asked_settings
        producers = [{"groupName": topic.name} for topic in asked.publishing.topics]
        consumers: list[dict[str, Any]] = []
        if group is not None or asked.HasField("subscription"):
            is_lite = asked.client_type == ClientType.LITE_PUSH_CONSUMER
            is_push = is_lite or asked.client_type == ClientType.PUSH_CONSUMER
            consumers.append(
                {
                    "groupName": group or asked.subscription.group.name,
                    "consumeType": "CONSUME_PASSIVELY" if is_push else "CONSUME_ACTIVELY",
                    "messageModel": "LITE_SELECTIVE" if is_lite else "CLUSTERING",
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
        return orjson.dumps(body)

    def leave(self) -> None:
        """Take the client out of its groups, and forget it."""
        lite_consumers.leave(self)
        asked = self.asked_settings
        groups: list[dict[str, str]] = []
        if asked is not None:
            groups += [{"producerGroup": topic.name} for topic in asked.publishing.topics]
            if asked.HasField("subscription"):
                groups.append({"consumerGroup": asked.subscription.group.name})
        for link in self.links():
            for fields in groups:
                link.tell(RequestCode.UNREGISTER_CLIENT, {"clientID": self.client_id, **fields})
        self.close()

    def links(self) -> list[Link]:
        """Return the ways to all brokers that the client has used."""
        return [self.link, *self.far_links.values()]

    def close(self) -> None:
        """Hang up everywhere."""
        for link in self.links():
            link.close()
        self.close_spare()

    def close_spare(self) -> None:
        """Hang up where only a client was spoken for that was silent."""
        if self._spare is not None:
            self._spare.close()


def _ignore(answer: object) -> None:
    """Do nothing: it is enough that it was said."""


def _missed(broker_name: str, error: Exception) -> None:
    _log.info("%s does not hear that a client lives: %s", broker_name, error)


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
