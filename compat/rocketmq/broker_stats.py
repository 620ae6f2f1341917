"""
What the broker counts by topic and group, by the names of Java's statistics (BrokerStatsManager).

Totals are counted up where things happen. Once in ten seconds they are noted down; sums and rates
over a minute, an hour and a day are differences of such notes: of the newest and of one that is as
old as that. As in Java few are kept (every ten seconds for a minute, every ten minutes for an hour,
every hour for a day), for there are some of each topic and each group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from logstore.host import Clock
    from logstore.segments.rocketmq.upkeep.store_stats import StoreStats

SAMPLE_INTERVAL_MS = 10_000
_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
#: how far apart notes are, and how many are kept: those of a minute, an hour and a day
_NOTES = ((SAMPLE_INTERVAL_MS, 7), (600_000, 7), (_HOUR, 25))

TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
TOPIC_PUT_SIZE = "TOPIC_PUT_SIZE"
GROUP_GET_NUMS = "GROUP_GET_NUMS"
GROUP_GET_SIZE = "GROUP_GET_SIZE"
BROKER_PUT_NUMS = "BROKER_PUT_NUMS"
BROKER_GET_NUMS = "BROKER_GET_NUMS"
SNDBCK_PUT_NUMS = "SNDBCK_PUT_NUMS"
_OF_THE_CLUSTER = (BROKER_PUT_NUMS, BROKER_GET_NUMS)


@attrs.frozen
class Snapshot:
    """A sum over a span of time, how many a second that is, and how much each time."""

    sum: int
    tps: float
    average: float

    def to_json(self) -> dict[str, float]:
        """Return it as Java prints it."""
        return {"avgpt": self.average, "sum": self.sum, "tps": self.tps}


class _Item:
    """One counter: value and times now, and what they were at earlier moments."""

    __slots__ = ("notes", "times", "value")

    def __init__(self) -> None:
        self.value = 0
        self.times = 0
        #: (when, value, times), for each entry of :data:`_NOTES`, the oldest first
        self.notes = tuple(deque[tuple[int, int, int]](maxlen=count) for _, count in _NOTES)

    def sample(self, now_ms: int) -> None:
        entry = now_ms, self.value, self.times
        for notes, (interval_ms, _) in zip(self.notes, _NOTES, strict=True):
            if not notes:  # it has all been counted since the last note, when there was nothing
                notes.append((now_ms - SAMPLE_INTERVAL_MS, 0, 0))
            if interval_ms == SAMPLE_INTERVAL_MS or now_ms - notes[-1][0] >= interval_ms:
                notes.append(entry)

    def over(self, span_ms: int) -> Snapshot:
        newest = self.notes[0]
        if not newest:
            return Snapshot(0, 0.0, 0.0)
        last = newest[-1]
        entries = self.notes[(span_ms > _MINUTE) + (span_ms > _HOUR)]
        first = next((entry for entry in entries if last[0] - entry[0] <= span_ms), last)
        total, times = last[1] - first[1], last[2] - first[2]
        elapsed_ms = last[0] - first[0]
        rate = total * 1000 / elapsed_ms if elapsed_ms > 0 else 0.0  # clocks are set back, too
        return Snapshot(total, round(rate, 2), round(total / times, 2) if times else 0.0)


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
        self._items: dict[tuple[str, str], _Item] = {}
        #: [messages, bytes, pulls] by (topic, group)
        self._pulled: dict[tuple[str, str], list[int]] = {}
        self.pulled_total = 0
        #: how far from the end of the log (topic, group, queue) had last read, where that is noted
        self.behind_bytes: dict[tuple[str, str, int], int] = {}
        #: [messages, bytes] by topic: what the store has counted, and Java's broker does not
        self._left_out: dict[str, list[int]] = {}
        #: messages put and pulled by clients of which nothing else is known any more
        self._forgotten_put = self._forgotten_put_by_clients = self._forgotten_pulled = 0
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

    def leave_out(self, topic: str, size_bytes: int) -> None:
        """Take note of a message that was put and is in none of Java's counts by topic."""
        left_out = self._left_out.setdefault(topic, [0, 0])
        left_out[0] += 1
        left_out[1] += size_bytes

    def count_sent_back(self, group: str, topic: str) -> None:
        """Take note of a message that a group sent back."""
        item = self._item(SNDBCK_PUT_NUMS, f"{topic}@{group}")
        item.value += 1
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
        self._drop(lambda key: key == topic or key.startswith(f"{topic}@"))
        for place in [place for place in self.behind_bytes if place[0] == topic]:
            del self.behind_bytes[place]

    def forget_group(self, group: str) -> None:
        """Begin anew with a group, which is deleted."""
        self._forget_pulled([key for key in self._pulled if key[1] == group])
        self._drop(lambda key: key.endswith(f"@{group}"))
        for place in [place for place in self.behind_bytes if place[1] == group]:
            del self.behind_bytes[place]

    def _forget_pulled(self, keys: list[tuple[str, str]]) -> None:
        for key in keys:
            count, *_ = self._pulled.pop(key)
            if not self._is_system_topic(key[0]):
                self._forgotten_pulled += count

    def _drop(self, is_gone: Callable[[str], bool]) -> None:
        self._items = {
            (name, key): item
            for (name, key), item in self._items.items()
            if name in _OF_THE_CLUSTER or not is_gone(key)
        }

    def sample(self) -> None:
        """Note down all totals."""
        self._gather()
        now_ms = self._clock.wall_ms()
        for item in self._items.values():
            item.sample(now_ms)
        day = now_ms // _DAY
        if self._day not in (-1, day):
            self._midnights.append(self._of_clients())
        self._day = day

    def _gather(self) -> None:
        """Take over what was counted elsewhere."""
        put = self._forgotten_put
        for topic, count, size_bytes in self._put_by_topic():
            put += count
            self._set(TOPIC_PUT_NUMS, topic, count, count)
            self._set(TOPIC_PUT_SIZE, topic, size_bytes, count)
        for (topic, group), (count, size_bytes, times) in self._pulled.items():
            self._set(GROUP_GET_NUMS, f"{topic}@{group}", count, times)
            self._set(GROUP_GET_SIZE, f"{topic}@{group}", size_bytes, times)
        pulled = self.pulled_total
        if put:
            self._set(BROKER_PUT_NUMS, self._cluster, put, put)
        if pulled:
            self._set(BROKER_GET_NUMS, self._cluster, pulled, pulled)

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
        return found.over(_MINUTE), found.over(_HOUR), found.over(_DAY)

    def rate(self, name: str, key: str) -> float:
        """Return how many a second there were over the last minute."""
        found = self._items.get((name, key))
        return 0.0 if found is None else found.over(_MINUTE).tps

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

    def _item(self, name: str, key: str) -> _Item:
        item = self._items.get((name, key))
        if item is None:
            item = self._items[name, key] = _Item()
        return item

    def _set(self, name: str, key: str, value: int, times: int) -> None:
        item = self._item(name, key)
        item.value, item.times = value, times
