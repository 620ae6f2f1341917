"""Connected consumer groups: their members and what they subscribe to (ConsumerManager)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.clients.clients import CLIENT_EXPIRY_MS, Client
from logstore.compat.rocketmq.clients.heartbeat import BROADCASTING, ConsumerData
from logstore.compat.rocketmq.clients.subscriptions import Subscription

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel

#: so long what a pull brought with it is remembered at least
PULLED_EXPIRY_MS = 600_000


class ConsumerGroup:
    """One group: members by channel, subscriptions by topic (ConsumerGroupInfo)."""

    def __init__(self, data: ConsumerData) -> None:
        self.name = data.group
        self.members: dict[Channel, Client] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.consume_type = data.consume_type
        self.message_model = data.message_model
        self.consume_from_where = data.consume_from_where

    @property
    def is_broadcast(self) -> bool:
        """Tell whether every member gets every message."""
        return self.message_model == BROADCASTING

    def client_ids(self) -> list[str]:
        """Return the ids of all members, in the order in which they came."""
        return [client.client_id for client in self.members.values()]

    def member(self, client_id: str) -> Client | None:
        """Return the member with that id."""
        for client in self.members.values():
            if client.client_id == client_id:
                return client
        return None

    def join(self, client: Client, data: ConsumerData, now_ms: int) -> bool:
        """Take note of a heart beat; tell whether the channel is new here."""
        self.consume_type = data.consume_type
        self.message_model = data.message_model
        self.consume_from_where = data.consume_from_where
        known = self.members.get(client.channel)
        if known is None or known.client_id != client.client_id:
            self.members[client.channel] = client
        self.members[client.channel].last_seen_ms = now_ms
        return known is None

    def subscribe(self, wanted: tuple[Subscription, ...]) -> bool:
        """Take over what the group subscribes to now; tell whether topics came or went."""
        has_changed = False
        for subscription in wanted:
            known = self.subscriptions.get(subscription.topic)
            if known is None:
                has_changed = True
            elif subscription.sub_version <= known.sub_version:
                continue
            self.subscriptions[subscription.topic] = subscription
        topics = {subscription.topic for subscription in wanted}
        for topic in [topic for topic in self.subscriptions if topic not in topics]:
            del self.subscriptions[topic]
            has_changed = True
        return has_changed


class Consumers:
    """
    Every connected group.

    `on_change` is called with a group whose members or topics have changed, so that they can be
    told; `on_register` after each heart beat, `on_end` when the last member has left. Who has been
    silent for `expiry_ms` is gone; what pulls brought is known for `pulled_expiry_ms` at least.
    """

    def __init__(
        self, expiry_ms: int = CLIENT_EXPIRY_MS, pulled_expiry_ms: int = PULLED_EXPIRY_MS
    ) -> None:
        self._expiry_ms = expiry_ms
        self._pulled_expiry_ms = pulled_expiry_ms
        self._groups: dict[str, ConsumerGroup] = {}
        #: what pulls brought with them and when, by group and topic: such consumers send no heart
        #: beats
        self._pulled: dict[tuple[str, str], tuple[Subscription, int]] = {}
        #: what they brought earlier, to be forgotten soon
        self._pulled_before: dict[tuple[str, str], tuple[Subscription, int]] = {}
        self._forgot_ms = 0
        self.on_change: Callable[[ConsumerGroup], None] | None = None
        self.on_register: Callable[[ConsumerGroup, tuple[Subscription, ...]], None] | None = None
        self.on_end: Callable[[str], None] | None = None

    def __iter__(self) -> Iterator[ConsumerGroup]:
        """Yield every group."""
        return iter(list(self._groups.values()))

    def group(self, name: str) -> ConsumerGroup | None:
        """Return a group; None if no member of it is connected."""
        return self._groups.get(name)

    def register(
        self,
        client: Client,
        data: ConsumerData,
        now_ms: int,
        *,
        notifies: bool,
        keeps_subscriptions: bool = False,
    ) -> bool:
        """Take note of one group of a heart beat; tell whether anything is new."""
        group = self._groups.get(data.group)
        if group is None:
            group = self._groups[data.group] = ConsumerGroup(data)
        is_new = group.join(client, data, now_ms)
        has_changed = False
        if not keeps_subscriptions:
            has_changed = group.subscribe(data.subscriptions)
        if (is_new or has_changed) and notifies:
            self._tell(group)
        if not keeps_subscriptions and self.on_register is not None:
            self.on_register(group, data.subscriptions)
        return is_new or has_changed

    def unregister(self, name: str, channel: Channel, *, notifies: bool) -> None:
        """Let one member of a group go; unknown ones are fine."""
        group = self._groups.get(name)
        if group is None:
            return
        group.members.pop(channel, None)
        if not group.members:
            self._end(name)
        if notifies:
            self._tell(group)

    def lost(self, channel: Channel) -> None:
        """Forget a channel that was closed, in every group."""
        for group in [group for group in self._groups.values() if channel in group.members]:
            self.unregister(group.name, channel, notifies=True)

    def expire(self, now_ms: int) -> list[Channel]:
        """Forget who has been silent for too long; return their channels."""
        if now_ms - self._forgot_ms >= self._pulled_expiry_ms:
            self._forgot_ms = now_ms
            self._pulled_before, self._pulled = self._pulled, {}
        silent: list[Channel] = []
        for group in list(self._groups.values()):
            for channel, client in list(group.members.items()):
                if now_ms - client.last_seen_ms > self._expiry_ms:
                    self.unregister(group.name, channel, notifies=True)
                    silent.append(channel)
        return silent

    def note_pulled(self, group: str, subscription: Subscription, now_ms: int) -> None:
        """Remember the subscription that came with a pull."""
        self._pulled[group, subscription.topic] = subscription, now_ms

    def subscription(self, group: str, topic: str) -> Subscription | None:
        """
        Return a group's subscription to a topic, from heart beats or else from pulls.

        The version of one that came with a pull is the time of that, whatever the pull said.
        """
        connected = self._groups.get(group)
        found = None if connected is None else connected.subscriptions.get(topic)
        if found is not None:
            return found
        key = group, topic
        pulled, when_ms = self._pulled.get(key) or self._pulled_before.get(key) or (None, 0)
        return None if pulled is None else attrs.evolve(pulled, sub_version=when_ms)

    def groups_of_topic(self, topic: str) -> list[str]:
        """Return the names of the groups that subscribe to `topic`."""
        return [group.name for group in self._groups.values() if topic in group.subscriptions]

    def _end(self, name: str) -> None:
        if self._groups.pop(name, None) is not None and self.on_end is not None:
            self.on_end(name)

    def _tell(self, group: ConsumerGroup) -> None:
        if self.on_change is not None and not group.is_broadcast:
            self.on_change(group)
