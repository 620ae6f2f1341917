"""
Which client is to look at which lite topic (LiteEventDispatcher).

An event is the name of a light queue that has something for a group. It goes to one of the clients
that read it, who takes events one by one as it pops. A client takes so many; where there is no
room, all it reads is looked at later. Events of a client that asks for nothing any more go to
another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.lite_names import belongs_to, is_lite
from logstore.compat.rocketmq.lite.subscriptions import Reader

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.lite.lite_queues import LiteQueues
    from logstore.compat.rocketmq.lite.lite_rules import GroupRules
    from logstore.compat.rocketmq.lite.subscriptions import LiteSubscriptions
    from logstore.compat.rocketmq.pop.pop_waits import PopWaits

#: who asks for nothing for so long does not count as there, with events and without
_INACTIVE_MS, _GONE_MS = 10_000, 35_000
_ACTIVE_MS = 5_000
#: so full an event set may be for more to be looked for
_LOW_WATER_MARK = 0.2
#: for so long nobody is given events while others are there
_AVOIDED_MS = 10_000
_SPREAD_MS, _SPREAD_SHORT_MS = 15_000, 10_000
_DELAY_MS_MIN = 50
_NEW_WILDCARD_DELAY_MS = 5_000
#: so many events wake a client that waits once more
_WAKE_EVERY = 10


class ClientEvents:
    """The events of one client, each once, first in, first out."""

    def __init__(self, group: str, size_max: int, now_ms: int) -> None:
        self.group = group
        self.size_max = size_max
        self.last_access_ms = now_ms
        self.queues: dict[str, None] = {}

    def offer(self, queue: str) -> bool:
        """Take an event; False where there is no room."""
        if len(self.queues) >= self.size_max:
            return False
        self.queues[queue] = None
        return True

    def take(self, now_ms: int) -> str | None:
        """Return the next event, None if there is none."""
        self.last_access_ms = now_ms
        queue = next(iter(self.queues), None)
        if queue is not None:
            del self.queues[queue]
        return queue

    def may_be_gone(self, now_ms: int) -> bool:
        """Tell whether the client has asked for nothing for too long."""
        inactive_ms = now_ms - self.last_access_ms
        return inactive_ms > (_INACTIVE_MS if self.queues else _GONE_MS)

    def has_room(self) -> bool:
        """Tell whether there are few enough."""
        return len(self.queues) / self.size_max < _LOW_WATER_MARK


class LiteEvents:
    """The events of all clients of one broker; `waits` are pops that wait, by client."""

    def __init__(
        self,
        broker: Broker,
        queues: LiteQueues,
        rules: GroupRules,
        subscriptions: LiteSubscriptions,
        waits: PopWaits,
    ) -> None:
        self._broker = broker
        self._queues = queues
        self._rules = rules
        self._subscriptions = subscriptions
        self._waits = waits
        self._of_client: dict[str, ClientEvents] = {}
        self._avoided_until_ms: dict[str, int] = {}
        #: when all that a client (or, by no name, a whole group) reads is looked at
        self._due_ms: dict[Reader, int] = {}

    def __len__(self) -> int:
        """Return how many clients have had events."""
        return len(self._of_client)

    def last_access_ms(self, client: str) -> int:
        """Return when a client last asked for an event, -1 if it never was given any."""
        found = self._of_client.get(client)
        return -1 if found is None else found.last_access_ms

    # taken

    def taken_by(self, client: str) -> Iterator[str]:
        """Yield the light queues that a client is to look at, each taken as it is asked for."""
        if not self._broker.settings.has_lite_events:
            subscription = self._subscriptions.of_client(client)
            yield from [] if subscription is None else list(subscription.queues)
            return
        events = self._of_client.get(client)
        while events is not None and events.queues:
            queue = events.take(self._now_ms())
            if queue is not None:
                yield queue

    # given

    def arrived(self, queue: str) -> None:
        """Have one client of each group that reads a light queue look at it."""
        for readers in self._subscriptions.all_readers(queue).values():
            self._give(queue, readers)

    def available(self, group: str, queue: str, *, but_not: str | None = None) -> None:
        """Have one client of a group look at a light queue, another than one if there is any."""
        if is_lite(queue):
            self._give(queue, self._subscriptions.readers(queue, group), but_not=but_not)

    def _give(self, queue: str, readers: Sequence[Reader], *, but_not: str | None = None) -> bool:
        """Give an event to one of these readers; False where none of them takes it."""
        if not self._broker.settings.has_lite_events or not readers:
            return True
        group = readers[0].group
        is_wildcard = self._rules.is_wildcard(group)
        start = self._broker.host.rng.randrange(len(readers))
        last: list[Reader] = []
        first: list[Reader] = []
        for reader in (*readers[start:], *readers[:start]):
            if reader.client == but_not:
                last.append(reader)
            elif not self._is_avoided(reader.client):
                first.append(reader)
            elif not is_wildcard:
                last.append(reader)
        for reader in (*first, *last):
            if self._offer(queue, reader, looks_later=not is_wildcard):
                self._wake(reader.client)
                return True
        if is_wildcard:
            delay_ms = self._broker.settings.lite_wildcard_dispatch_delay_ms
            self._look_later(Reader("", group), delay_ms)
        return False

    def _offer(self, queue: str, reader: Reader, *, looks_later: bool) -> bool:
        if self._events_of(reader).offer(queue):
            return True
        if looks_later:
            is_avoided = self._is_avoided(reader.client)
            self._look_again(reader, self._chance(_SPREAD_MS) if is_avoided else 0)
        return False

    def _events_of(self, reader: Reader) -> ClientEvents:
        found = self._of_client.get(reader.client)
        if found is None:
            size_max = self._rules.events_max(reader.group)
            found = ClientEvents(reader.group, size_max, self._now_ms())
            self._of_client[reader.client] = found
        return found

    def _is_avoided(self, client: str) -> bool:
        return self._avoided_until_ms.get(client, 0) > self._now_ms()

    def _wake(self, client: str) -> None:
        self._waits.wake_soon(client, "", 0)

    # looked for

    def subscribed(self, reader: Reader, queue: str) -> None:
        """Look at once for what a new reader may have."""
        if self._rules.is_wildcard(reader.group):
            self._look_later(Reader("", reader.group), _NEW_WILDCARD_DELAY_MS)
        elif self._queues.exists(queue):
            self.available(reader.group, queue)

    def client_is_gone(self, reader: Reader) -> None:
        """Give what a client has not taken to others."""
        events = self._of_client.pop(reader.client, None)
        for queue in [] if events is None else list(events.queues):
            self.available(reader.group, queue, but_not=reader.client)

    def look_for_group(self, group: str) -> None:
        """Look at all that a group reads."""
        if self._rules.is_wildcard(group):
            self._look_for_wildcard(group)
            return
        for client in self._subscriptions.clients_of(group):
            self.look_for_client(client, group)

    def look_for_client(self, client: str, group: str) -> None:
        """Look at all that a client reads, and give it what it may have; later if it is busy."""
        subscription = self._subscriptions.of_client(client)
        if not self._broker.settings.has_lite_events or not (subscription and subscription.queues):
            return
        reader, now_ms = Reader(client, group), self._now_ms()
        events = self._events_of(reader)
        if events.may_be_gone(now_ms):
            self._look_again(reader, self._chance(_SPREAD_MS))
            return
        is_active = now_ms - events.last_access_ms < _ACTIVE_MS
        if not events.has_room():
            self._look_again(reader, 0 if is_active else self._chance(_SPREAD_SHORT_MS))
            return
        for count, queue in enumerate(self._behind(group, subscription.queues)):
            if not events.offer(queue):
                self._look_again(reader, 0 if is_active else self._chance(_SPREAD_MS))
                break
            if count % _WAKE_EVERY == 0:
                self._wake(client)
        self._wake(client)

    def _look_for_wildcard(self, group: str) -> None:
        parent = self._rules.bind_topic(group)
        if parent is None or not self._rules.is_wildcard(group):
            return
        readers = self._subscriptions.wildcard_readers(parent, group)
        found = (queue for queue in self._queues if belongs_to(queue, parent))
        for queue in self._behind(group, found) if readers else ():
            if not self._give(queue, readers):
                break

    def _behind(self, group: str, queues: Iterable[str]) -> Iterator[str]:
        """Yield the light queues in which there is something that a group has not committed."""
        offsets = self._broker.store.consumer_offsets
        for queue in queues:
            end = self._queues.end(queue)
            if end > 0 and offsets.query(group, queue, 0) < end:
                yield queue

    def _look_again(self, reader: Reader, more_ms: int) -> None:
        delay_ms = self._broker.settings.lite_full_dispatch_delay_ms
        self._look_later(reader, delay_ms + more_ms)

    def _look_later(self, reader: Reader, delay_ms: int) -> None:
        self._due_ms.setdefault(reader, self._now_ms() + max(delay_ms, _DELAY_MS_MIN))

    def scan(self) -> None:
        """Take events from clients that may be gone; look at what is due."""
        now_ms = self._now_ms()
        for client, events in list(self._of_client.items()):
            if events.may_be_gone(now_ms):
                del self._of_client[client]
                self._avoided_until_ms[client] = now_ms + _AVOIDED_MS
                for queue in list(events.queues):
                    self.available(events.group, queue, but_not=client)
        for client in [one for one, until in self._avoided_until_ms.items() if until <= now_ms]:
            del self._avoided_until_ms[client]
        for reader in [one for one, due_ms in self._due_ms.items() if due_ms <= now_ms]:
            del self._due_ms[reader]
            if self._rules.is_wildcard(reader.group):
                self._look_for_wildcard(reader.group)
            else:
                self.look_for_client(reader.client, reader.group)

    def _now_ms(self) -> int:
        return self._broker.host.clock.wall_ms()

    def _chance(self, spread_ms: int) -> int:
        return self._broker.host.rng.randrange(spread_ms)
