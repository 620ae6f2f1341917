"""
Which client reads which lite topics (LiteSubscriptionRegistryImpl).

A client says so by name, topic by topic or all at once, and says it again now and then: who is
silent for too long is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import attrs

from logstore.compat.rocketmq.lite.lite_names import parent_of, split
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.lite.lite_orders import LiteOrders
    from logstore.compat.rocketmq.lite.lite_queues import LiteQueues
    from logstore.compat.rocketmq.lite.lite_rules import GroupRules
    from logstore.compat.rocketmq.lite.start_options import StartOption

_QUOTA = "org.apache.rocketmq.broker.lite.LiteQuotaException: lite subscription quota exceeded"
_ILLEGAL = "java.lang.IllegalStateException:"


class Reader(NamedTuple):
    """One client of a group."""

    client: str
    group: str


@attrs.define(eq=False)
class LiteSubscription:
    """What one client reads; `queues` are names of light queues, in the order they came in."""

    group: str
    topic: str
    updated_ms: int
    queues: dict[str, None] = attrs.field(factory=dict[str, None])


class LiteSubscriptions:
    """All clients and their subscriptions. `on_new` and `on_gone` are told of them."""

    def __init__(
        self, broker: Broker, queues: LiteQueues, rules: GroupRules, orders: LiteOrders
    ) -> None:
        self._broker = broker
        self._queues = queues
        self._rules = rules
        self._orders = orders
        self._channels: dict[str, Channel] = {}
        self._of_client: dict[str, LiteSubscription] = {}
        self._readers: dict[str, dict[Reader, None]] = {}
        #: groups that read all lite topics, by parent
        self._wildcard_groups: dict[str, dict[str, None]] = {}
        #: how many pairs of a client and a lite topic there are
        self.count = 0
        self.on_new: Callable[[Reader, str], None] = _nobody_cares
        self.on_gone: Callable[[Reader], None] = _nobody_minds

    # asked

    def of_client(self, client: str) -> LiteSubscription | None:
        """Return what a client reads, None if it never said so."""
        return self._of_client.get(client)

    def clients_of(self, group: str) -> list[str]:
        """Return the clients of a group."""
        return [name for name, found in self._of_client.items() if found.group == group]

    def readers(self, queue: str, group: str) -> list[Reader]:
        """Return the clients of a group that read a light queue."""
        if self._rules.is_wildcard(group):
            parent = parent_of(queue)
            return [] if parent is None else self.wildcard_readers(parent, group)
        return [reader for reader in self._readers.get(queue, ()) if reader.group == group]

    def wildcard_readers(self, parent: str, group: str) -> list[Reader]:
        """Return the clients of a group that read all lite topics of a parent."""
        return list(self._readers.get(_stand_in(parent, group), ()))

    def all_readers(self, queue: str) -> dict[str, list[Reader]]:
        """Return who reads a light queue, group by group."""
        found: dict[str, list[Reader]] = {}
        for reader in self._readers.get(queue, ()):
            found.setdefault(reader.group, []).append(reader)
        parent = parent_of(queue)
        for group in () if parent is None else self._wildcard_groups.get(parent, ()):
            readers = self.wildcard_readers(parent or "", group)
            if readers:
                found.setdefault(group, readers)
        return found

    @property
    def is_empty(self) -> bool:
        """Tell whether nobody reads anything."""
        return not self._readers

    # changed

    def heard_from(self, client: str, channel: Channel) -> None:
        """Remember where a client is told that it reads something no longer."""
        self._channels[client] = channel

    def add(
        self, reader: Reader, topic: str, queues: Sequence[str], option: StartOption | None
    ) -> None:
        """
        Have a client read more lite topics, beginning where `option` says.

        Raises:
            RefusedError: there are too many subscriptions, or its group reads all there are.

        """
        limit = self._broker.settings.lite_subscriptions_max
        if self.count >= limit:
            raise RefusedError(ResponseCode.LITE_SUBSCRIPTION_QUOTA_EXCEEDED, f"{_QUOTA} {limit}")
        if self._rules.is_wildcard(reader.group):
            raise RefusedError(
                ResponseCode.ILLEGAL_OPERATION,
                f"{_ILLEGAL} subscribe lite operation is not supported for this group",
            )
        found = self._find(reader, topic)
        known = Reader(reader.client, found.group)
        for queue in queues:
            if not self._queues.takes_subscriptions(topic, queue):
                continue
            self._note(found, queue)
            if self._rules.is_exclusive(reader.group):
                self._put_others_out(reader.group, queue)
            self._begin(queue, reader.group, option)
            self._add_reader(known, queue)

    def remove(self, reader: Reader, topic: str, queues: Iterable[str]) -> None:
        """Have a client read some lite topics no longer."""
        found = self._find(reader, topic)
        known = Reader(reader.client, found.group)
        begins_anew = self._rules.begins_anew_after_unsubscribing(reader.group)
        for queue in queues:
            found.queues.pop(queue, None)
            found.updated_ms = self._now_ms()
            self._remove_reader(known, queue, begins_anew=begins_anew)

    def replace(self, reader: Reader, topic: str, queues: Iterable[str]) -> None:
        """Have a client read these lite topics alone, or all where its group reads all."""
        if self._rules.is_wildcard(reader.group):
            wanted = [_stand_in(topic, reader.group)]
            self._wildcard_groups.setdefault(topic, {})[reader.group] = None
        else:
            wanted = [one for one in queues if self._queues.takes_subscriptions(topic, one)]
        found = self._find(reader, topic)
        known = Reader(reader.client, found.group)
        for queue in [one for one in found.queues if one not in wanted]:
            del found.queues[queue]
            found.updated_ms = self._now_ms()
            self._remove_reader(known, queue, begins_anew=False)
        for queue in wanted:
            self._note(found, queue)
            self._add_reader(known, queue)

    def forget(self, client: str) -> None:
        """Have a client read nothing any more."""
        self._channels.pop(client, None)
        found = self._of_client.pop(client, None)
        if found is None:
            return
        reader = Reader(client, found.group)
        for queue in list(found.queues):
            self._remove_reader(reader, queue, begins_anew=False)
        self.on_gone(reader)

    def forget_silent(self) -> None:
        """Forget clients that have said nothing for too long."""
        oldest_ms = self._now_ms() - self._broker.settings.lite_subscription_timeout_ms
        for client in [one for one, sub in self._of_client.items() if sub.updated_ms < oldest_ms]:
            self.forget(client)

    def queue_is_gone(self, queue: str) -> None:
        """Forget who reads a light queue that is deleted."""
        for reader in self._readers.pop(queue, ()):
            found = self._of_client.get(reader.client)
            if found is not None and queue in found.queues:
                del found.queues[queue]
                found.updated_ms = self._now_ms()
                self.count -= 1

    # how

    def _now_ms(self) -> int:
        return self._broker.host.clock.wall_ms()

    def _find(self, reader: Reader, topic: str) -> LiteSubscription:
        found = self._of_client.get(reader.client)
        if found is None:
            found = LiteSubscription(reader.group, topic, self._now_ms())
            self._of_client[reader.client] = found
        return found

    def _note(self, subscription: LiteSubscription, queue: str) -> None:
        subscription.queues[queue] = None
        subscription.updated_ms = self._now_ms()

    def _add_reader(self, reader: Reader, queue: str) -> None:
        readers = self._readers.setdefault(queue, {})
        if reader not in readers:
            readers[reader] = None
            self.count += 1
            self.on_new(reader, queue)

    def _remove_reader(self, reader: Reader, queue: str, *, begins_anew: bool) -> None:
        readers = self._readers.get(queue)
        if readers is None:
            return
        if reader in readers:
            del readers[reader]
            self.count -= 1
            if begins_anew:
                self._reset(queue, reader.group, 0)
        if not readers:
            del self._readers[queue]

    def _put_others_out(self, group: str, queue: str) -> None:
        """Have nobody of a group read a light queue, as the next one is to read it alone."""
        begins_anew = self._rules.begins_anew_when_taken_over(group)
        for reader in [one for one in self._readers.get(queue, ()) if one.group == group]:
            found = self._of_client.get(reader.client)
            if found is not None:
                found.queues.pop(queue, None)
                found.updated_ms = self._now_ms()
                if not found.queues:
                    del self._of_client[reader.client]
            self._tell_unsubscribed(reader, queue)
            self._remove_reader(reader, queue, begins_anew=begins_anew)

    def _tell_unsubscribed(self, reader: Reader, queue: str) -> None:
        channel, names = self._channels.get(reader.client), split(queue)
        if channel is None or names is None:
            return
        fields = {
            "clientId": reader.client,
            "liteTopic": names[1],
            "consumerGroup": reader.group,
        }
        channel.tell(RequestCode.NOTIFY_UNSUBSCRIBE_LITE, fields)

    def _begin(self, queue: str, group: str, option: StartOption | None) -> None:
        if option is None:
            return
        committed = self._broker.store.consumer_offsets.query(group, queue, 0)
        start = option.start(committed, lambda: self._queues.end(queue))
        if start is not None and start != committed:
            self._reset(queue, group, start)

    def _reset(self, queue: str, group: str, start: int) -> None:
        offsets = self._broker.store.consumer_offsets
        if offsets.query(group, queue, 0) != start:
            offsets.assign_reset(queue, group, 0, start)
            self._orders.forget(queue, group)


def _stand_in(parent: str, group: str) -> str:
    """Return what stands for all lite topics among those that clients of a group read."""
    return f"{parent}@{group}"


def _nobody_cares(reader: Reader, queue: str) -> None:
    del reader, queue


def _nobody_minds(reader: Reader) -> None:
    del reader
