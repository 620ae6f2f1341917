"""
What the broker counts by topic and group, by the names of Java's statistics (BrokerStatsManager).

Totals are counted up where things happen. Once in ten seconds all are noted down
(:mod:`~logstore.compat.rocketmq.stats_item`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.stats_item import (
    DAY,
    HOUR,
    MINUTE,
    SAMPLE_INTERVAL_MS,
    Snapshot,
    StatsItem,
)
from logstore.compat.rocketmq.topics.names import SCHEDULE_GROUP, SCHEDULE_TOPIC

if TYPE_CHECKING:
    from logstore.host import Clock
    from logstore.segments.rocketmq.upkeep.store_stats import StoreStats

__all__ = ["SAMPLE_INTERVAL_MS", "BrokerStats"]

_DAY_MS = 86_400_000

TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
TOPIC_PUT_SIZE = "TOPIC_PUT_SIZE"
GROUP_GET_NUMS = "GROUP_GET_NUMS"
GROUP_GET_SIZE = "GROUP_GET_SIZE"
BROKER_PUT_NUMS = "BROKER_PUT_NUMS"
BROKER_GET_NUMS = "BROKER_GET_NUMS"
SNDBCK_PUT_NUMS = "SNDBCK_PUT_NUMS"
CONSUMER_REGISTER_TIME = "CONSUMER_REGISTER_TIME"
PRODUCER_REGISTER_TIME = "PRODUCER_REGISTER_TIME"
_PUT_BY_CLIENTS = "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC"
_GET_BY_CLIENTS = "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC"
_CHECKPOINTS = ("BROKER_CK_NUMS", "GROUP_CK_NUMS")
_ACKS = ("BROKER_ACK_NUMS", "GROUP_ACK_NUMS")
_DEAD_LETTERS = "SNDBCK2DLQ_TIMES"
_QUEUE_GET_NUMS = "QUEUE_GET_NUMS"
_QUEUE_GET_SIZE = "QUEUE_GET_SIZE"
_OF_THE_BROKER = (BROKER_PUT_NUMS, BROKER_GET_NUMS, _PUT_BY_CLIENTS, _GET_BY_CLIENTS)
#: what goes with a topic or a group that is deleted
_OF_TOPICS = (TOPIC_PUT_NUMS, TOPIC_PUT_SIZE)
_OF_TOPICS_AND_GROUPS = (
    GROUP_GET_NUMS,
    GROUP_GET_SIZE,
    SNDBCK_PUT_NUMS,
    _CHECKPOINTS[1],
    _ACKS[1],
)


class BrokerStats:
    """All counters of one broker. Puts are counted by the store, which is asked."""

    def __init__(
        self,
        clock: Clock,
        store_stats: StoreStats,
        cluster: str,
        is_system_topic: Callable[[str], bool],
    ) -> None:
        self._clock = clock
        self._is_system_topic = is_system_topic
        self._store_stats = store_stats
        self._cluster = cluster
        self._items: dict[tuple[str, str], StatsItem] = {}
        #: [messages, bytes, pulls] by (topic, group)
        self._pulled: dict[tuple[str, str], list[int]] = {}
        self.pulled_total = 0
        #: how far from the end of the log (topic, group, queue) had last read, where that is noted
        self.behind_bytes: dict[tuple[str, str, int], int] = {}
        #: [messages, bytes] by topic: what the store has counted, and Java's broker does not
        self._left_out: dict[str, list[int]] = {}
        #: messages put and pulled by clients of which nothing else is known any more
        self._forgotten_put = self._forgotten_put_by_clients = self._forgotten_pulled = 0
        self._sample_number = 0
        self._day = -1
        #: put and pulled in all, at the last three midnights, the latest last
        self._midnights: deque[tuple[int, int]] = deque([(0, 0), (0, 0)], maxlen=2)

    def count_pulled(self, group: str, topic: str, count: int, size_bytes: int) -> None:
        """Take note of messages that a group got."""
        self.pulled_total += count
        counts = self._pulled.get((topic, group))
        if counts is None:
            counts = self._pulled[topic, group] = [0, 0, 0]
        counts[0] += count
        counts[1] += size_bytes
        counts[2] += 1

    def leave_out(self, topic: str, size_bytes: int, count: int = 1) -> None:
        """Take note of messages that were put and are in none of Java's counts by topic."""
        left_out = self._left_out.setdefault(topic, [0, 0])
        left_out[0] += count
        left_out[1] += size_bytes

    def count_sent_back(self, group: str, topic: str) -> None:
        """Take note of a message that a group sent back."""
        self._count(SNDBCK_PUT_NUMS, f"{topic}@{group}")

    def count_dead_letter(self, group: str, topic: str, owner: str) -> None:
        """Take note of a message that was given up; who owns it stands in the request."""
        self._count(_DEAD_LETTERS, f"{owner}@{topic}@{group}@SEND_BACK_TO_DLQ")

    def count_checkpoint(self, group: str, topic: str) -> None:
        """Take note of a checkpoint of a pop."""
        self._count_of_pops(_CHECKPOINTS, group, topic, 1)

    def count_acks(self, group: str, topic: str, count: int) -> None:
        """Take note of popped messages that were acknowledged."""
        self._count_of_pops(_ACKS, group, topic, count)

    def count_registration(self, name: str) -> None:
        """Take note of a group that a heart beat brought; it takes no time to speak of."""
        self._item(name, self._cluster).times += 1

    def count_delivered(self, queue_id: int, size_bytes: int) -> None:
        """Take note of a delayed message that was put where it belongs, and its level's queue."""
        queue = f"{SCHEDULE_TOPIC}@{queue_id}@{SCHEDULE_GROUP}"
        group = f"{SCHEDULE_TOPIC}@{SCHEDULE_GROUP}"
        for name, key in ((_QUEUE_GET_NUMS, queue), (GROUP_GET_NUMS, group)):
            self._count(name, key)
        for name, key in ((_QUEUE_GET_SIZE, queue), (GROUP_GET_SIZE, group)):
            self._count(name, key, size_bytes)

    def _count_of_pops(self, names: tuple[str, str], group: str, topic: str, count: int) -> None:
        of_the_broker, of_the_group = names
        self._item(of_the_broker, self._cluster).value += count
        self._count(of_the_group, f"{topic}@{group}", count)

    def _count(self, name: str, key: str, value: int = 1) -> None:
        item = self._item(name, key)
        item.value += value
        item.times += 1

    def forget_topic(self, topic: str) -> None:
        """Begin anew with a topic, which is deleted, and with what groups did with it."""
        left_out, _ = self._left_out.pop(topic, (0, 0))
        counted = self._store_stats.put_times_by_topic.get(topic, 0) - left_out
        self._forgotten_put += counted
        if not self._is_system_topic(topic):
            self._forgotten_put_by_clients += counted
        self._store_stats.forget_topic(topic)
        self._forget_pulled([key for key in self._pulled if key[0] == topic])
        self._drop(
            lambda name, key: (
                (name in _OF_TOPICS and key == topic)
                or (name in _OF_TOPICS_AND_GROUPS and key.startswith(f"{topic}@"))
            )
        )
        for place in [place for place in self.behind_bytes if place[0] == topic]:
            del self.behind_bytes[place]

    def forget_group(self, group: str) -> None:
        """Begin anew with a group, which is deleted."""
        self._forget_pulled([key for key in self._pulled if key[1] == group])
        self._drop(lambda name, key: name in _OF_TOPICS_AND_GROUPS and key.endswith(f"@{group}"))
        for place in [place for place in self.behind_bytes if place[1] == group]:
            del self.behind_bytes[place]

    def _forget_pulled(self, keys: list[tuple[str, str]]) -> None:
        for key in keys:
            count, *_ = self._pulled.pop(key)
            if not self._is_system_topic(key[0]):
                self._forgotten_pulled += count

    def _drop(self, is_gone: Callable[[str, str], bool]) -> None:
        self._items = {place: item for place, item in self._items.items() if not is_gone(*place)}

    def sample(self) -> None:
        """Note down all totals."""
        self._gather()
        now_ms = self._clock.wall_ms()
        self._sample_number += 1
        for item in self._items.values():
            item.sample(now_ms, self._sample_number)
        day = now_ms // _DAY_MS
        if self._day not in (-1, day):
            self._midnights.append(self._of_clients())
        self._day = day

    def _gather(self) -> None:
        """Take over what was counted elsewhere."""
        put = self._forgotten_put
        joined = self._store_stats.joined_by_topic
        for topic, count, size_bytes in self._put_by_topic():
            put += count
            times = count - joined.get(topic, 0)  # a batch is put once
            self._set(TOPIC_PUT_NUMS, topic, count, times)
            self._set(TOPIC_PUT_SIZE, topic, size_bytes, times)
        for (topic, group), (count, size_bytes, times) in self._pulled.items():
            self._set(GROUP_GET_NUMS, f"{topic}@{group}", count, times)
            self._set(GROUP_GET_SIZE, f"{topic}@{group}", size_bytes, times)
        pulled = self.pulled_total
        by_clients = self._of_clients()
        for name, count in zip(_OF_THE_BROKER, (put, pulled, *by_clients), strict=True):
            if count:  # how often is not counted, by Java
                self._set(name, self._cluster, count, 0)

    def _put_by_topic(self) -> Iterator[tuple[str, int, int]]:
        """Yield the messages and bytes of each topic of which anything counts."""
        stats = self._store_stats
        for topic, count in stats.put_times_by_topic.items():
            left_out, size_left_out = self._left_out.get(topic, (0, 0))
            if count > left_out:
                size_bytes = stats.put_size_bytes_by_topic.get(topic, 0)
                yield topic, count - left_out, size_bytes - size_left_out

    def item(self, name: str, key: str) -> tuple[Snapshot, Snapshot, Snapshot] | None:
        """Return a counter over the last minute, hour and day; None if nothing was counted."""
        if (name, key) not in self._items:
            self._gather()  # it may have been counted since the last note
        found = self._items.get((name, key))
        if found is None:
            return None
        return found.over(MINUTE), found.over(HOUR), found.over(DAY)

    def rate(self, name: str, key: str) -> float:
        """Return how many a second there were over the last minute."""
        found = self._items.get((name, key))
        return 0.0 if found is None else found.over(MINUTE).tps

    def daily(self) -> dict[str, str]:
        """Return the totals of now and of the last midnights, as the runtime table has them."""
        before, latest = self._midnights
        put, pulled = self._of_clients()
        return {
            "msgPutTotalYesterdayMorning": str(before[0]),
            "msgPutTotalTodayMorning": str(latest[0]),
            "msgPutTotalTodayNow": str(put),
            "msgGetTotalYesterdayMorning": str(before[1]),
            "msgGetTotalTodayMorning": str(latest[1]),
            "msgGetTotalTodayNow": str(pulled),
        }

    def _of_clients(self) -> tuple[int, int]:
        """Return how many were put and pulled in all, without the topics that are the broker's."""
        put = sum(
            count for topic, count, _ in self._put_by_topic() if not self._is_system_topic(topic)
        )
        pulled = sum(
            counts[0]
            for (topic, _), counts in self._pulled.items()
            if not self._is_system_topic(topic)
        )
        return put + self._forgotten_put_by_clients, pulled + self._forgotten_pulled

    def _item(self, name: str, key: str) -> StatsItem:
        item = self._items.get((name, key))
        if item is None:
            item = self._items[name, key] = StatsItem()
        return item

    def _set(self, name: str, key: str, value: int, times: int) -> None:
        item = self._item(name, key)
        item.value, item.times = value, times
