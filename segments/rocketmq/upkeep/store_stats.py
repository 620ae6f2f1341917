"""
Counts and times of one store, and what Java's runtime table says of them (``StoreStatsService``).

Puts are counted by topic, their times put into thirteen classes; totals are sampled every second
for the rates over 10, 60 and 600 seconds. Every minute the classes start anew, and the table shows
those of the minute before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from logstore.host import Clock
from logstore.segments.rocketmq.reading.get_message import GetMessageStatus

if TYPE_CHECKING:
    from logstore.segments.rocketmq.messages.message_run import StoredMessage
    from logstore.segments.rocketmq.reading.get_message import GetMessageResult

SAMPLING_INTERVAL_MS = 1000
#: ten minutes of samples and the one before them
SAMPLE_COUNT_MAX = 601
_TURN_INTERVAL_MS = 60_000
_CLASS_NAMES = (
    "[<=0ms]",
    "[0~10ms]",
    "[10~50ms]",
    "[50~100ms]",
    "[100~200ms]",
    "[200~500ms]",
    "[500ms~1s]",
    "[1~2s]",
    "[2~3s]",
    "[3~4s]",
    "[4~5s]",
    "[5~10s]",
    "[10s~]",
)
#: a put belongs to the class whose number is how many of these are not above its ms
_CLASS_BOUNDS_MS = (1, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10000)
_RATE_SECONDS = (10, 60, 600)


def _bucket_bounds() -> tuple[int, ...]:
    """Return the upper bounds, in ms, of the finer buckets from which percentiles are taken."""
    bounds: list[int] = []
    at = 0
    for width_ms, count in ((1, 20), (2, 15), (5, 10), (10, 10), (50, 6), (100, 5), (1000, 9)):
        bounds.extend(range(at + width_ms, at + width_ms * count + 1, width_ms))
        at = bounds[-1]
    return (*bounds, 2**63 - 1)


_BUCKET_BOUNDS_MS = _bucket_bounds()


@attrs.frozen
class _Sample:
    """The totals at one moment."""

    at_ms: int
    put: int
    found: int
    missed: int
    transferred: int


def _per_second(name: str, earlier: _Sample, later: _Sample) -> float:
    elapsed_ms = max(later.at_ms - earlier.at_ms, 1)
    count: int = getattr(later, name) - getattr(earlier, name)
    return count / elapsed_ms * 1000


class StoreStats:
    """What a store counts. The plain attributes are counted up by whoever does the thing."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.boot_timestamp_ms = clock.wall_ms()
        self.put_failed_times = 0
        self.put_times_by_topic: dict[str, int] = {}
        self.put_size_bytes_by_topic: dict[str, int] = {}
        #: how many of these came with others, in batches: all but the first of each
        self.joined_by_topic: dict[str, int] = {}
        #: the same of topics that were deleted, together
        self._put_times_forgotten = 0
        self._put_size_bytes_forgotten = 0
        self.get_found_times = 0
        self.get_missed_times = 0
        self.get_transferred_count = 0
        self.put_entire_time_ms_max = 0
        self.get_entire_time_ms_max = 0
        self.dispatch_buffer_max = 0
        self._classes = [0] * len(_CLASS_NAMES)
        self._last_classes = self._classes
        self._buckets = [0] * len(_BUCKET_BOUNDS_MS)
        self._last_buckets = self._buckets
        #: puts of this minute that took less than a millisecond
        self._instant_count = 0
        self._samples: deque[_Sample] = deque(maxlen=SAMPLE_COUNT_MAX)
        self._next_sample_ms = clock.monotonic_ms()
        self._next_turn_ms = self._next_sample_ms + _TURN_INTERVAL_MS
        self._turn()

    @property
    def put_times_total(self) -> int:
        """Messages that were put."""
        return self._put_times_forgotten + sum(self.put_times_by_topic.values())

    @property
    def put_size_bytes_total(self) -> int:
        """Bytes of commit log that they took."""
        return self._put_size_bytes_forgotten + sum(self.put_size_bytes_by_topic.values())

    def forget_topic(self, topic: str) -> None:
        """Begin anew with a topic; what was put stays counted in all."""
        self._put_times_forgotten += self.put_times_by_topic.pop(topic, 0)
        self._put_size_bytes_forgotten += self.put_size_bytes_by_topic.pop(topic, 0)
        self.joined_by_topic.pop(topic, None)

    def count_get(self, result: GetMessageResult) -> None:
        """Take note of what a pull got."""
        if result.status is GetMessageStatus.FOUND:
            self.get_found_times += 1
            self.get_transferred_count += result.count
        else:
            self.get_missed_times += 1

    def count_put(self, topic: str, count: int, size_bytes: int) -> None:
        """Take note of `count` messages of `topic` that stand in the commit log now."""
        times, sizes = self.put_times_by_topic, self.put_size_bytes_by_topic
        if topic in times:
            times[topic] += count
            sizes[topic] += size_bytes
        else:
            times[topic] = count
            sizes[topic] = size_bytes

    def count_batch(self, topic: str, count: int, size_bytes: int) -> None:
        """Take note of the same, where they were put together."""
        self.count_put(topic, count, size_bytes)
        if count > 1:
            self.joined_by_topic[topic] = self.joined_by_topic.get(topic, 0) + count - 1

    def count_single(self, topic: str, size_bytes: int, elapsed_ms: int) -> None:
        """Count and time a put of one message: the hot path of both."""
        try:
            self.put_times_by_topic[topic] += 1
            self.put_size_bytes_by_topic[topic] += size_bytes
        except KeyError:
            self.count_put(topic, 1, size_bytes)
        if elapsed_ms > 0:
            self.time_put(elapsed_ms)
        else:
            self._instant_count += 1

    def count_run(self, stored: Sequence[StoredMessage], elapsed_ms: int) -> None:
        """Count messages that were put together, and time each as all took."""
        times, sizes = self.put_times_by_topic, self.put_size_bytes_by_topic
        for kind, _, size_bytes, _, _ in stored:
            topic = kind.topic
            times[topic] = times.get(topic, 0) + 1
            sizes[topic] = sizes.get(topic, 0) + size_bytes
        if elapsed_ms <= 0:
            self._instant_count += len(stored)
        else:
            for _ in stored:
                self.time_put(elapsed_ms)

    def time_put(self, elapsed_ms: int) -> None:
        """Take note of how long one put took (``setPutMessageEntireTimeMax``)."""
        if elapsed_ms <= 0:  # by far the most
            self._instant_count += 1
            return
        self._classes[bisect_right(_CLASS_BOUNDS_MS, elapsed_ms)] += 1
        self._buckets[bisect_left(_BUCKET_BOUNDS_MS, elapsed_ms)] += 1
        self.put_entire_time_ms_max = max(self.put_entire_time_ms_max, elapsed_ms)

    def time_get(self, elapsed_ms: int) -> None:
        """Take note of how long one pull took (``setGetMessageEntireTimeMax``)."""
        self.get_entire_time_ms_max = max(self.get_entire_time_ms_max, elapsed_ms)

    def tick(self) -> None:
        """Sample the totals, and start the classes anew, where that is due."""
        now_ms = self.clock.monotonic_ms()
        if now_ms >= self._next_sample_ms:
            self._next_sample_ms = now_ms + SAMPLING_INTERVAL_MS
            self._sample()
        if now_ms >= self._next_turn_ms:
            self._next_turn_ms = now_ms + _TURN_INTERVAL_MS
            self._turn()

    def _sample(self) -> None:
        self._samples.append(
            _Sample(
                self.clock.wall_ms(),
                self.put_times_total,
                self.get_found_times,
                self.get_missed_times,
                self.get_transferred_count,
            )
        )

    def _turn(self) -> None:
        self._classes[0] += self._instant_count
        self._buckets[0] += self._instant_count
        self._instant_count = 0
        self._last_classes, self._classes = self._classes, [0] * len(_CLASS_NAMES)
        self._last_buckets, self._buckets = self._buckets, [0] * len(_BUCKET_BOUNDS_MS)

    def rate(self, name: str, seconds: int) -> float | None:
        """
        Return how many a second there were over the last so many samples, None while too young.

        `name` is put, found, missed or transferred.
        """
        if len(self._samples) <= seconds:
            return None
        return _per_second(name, self._samples[-seconds - 1], self._samples[-1])

    def _rates(self, name: str) -> str:
        found = (self.rate(name, seconds) for seconds in _RATE_SECONDS)
        return " ".join("" if rate is None else _double(rate) for rate in found)

    def _total_rates(self) -> str:
        return " ".join(
            _double((self.rate("found", seconds) or 0.0) + (self.rate("missed", seconds) or 0.0))
            for seconds in _RATE_SECONDS
        )

    def put_percentile_ms(self, part: float) -> float:
        """Return the time that so large a part of the puts of the last minute did not exceed."""
        wanted = int(sum(self._last_buckets) * part)
        passed, lower_ms = 0, 0
        for bound_ms, count in zip(_BUCKET_BOUNDS_MS, self._last_buckets, strict=True):
            if wanted <= passed + count:
                if not count:
                    return float(lower_ms)
                return lower_ms + (bound_ms - lower_ms) * (wanted - passed) / count
            passed += count
            lower_ms = bound_ms
        return 0.0

    def runtime(self) -> dict[str, str]:
        """Return Java's table, by its keys."""
        times, size_bytes = self.put_times_total or 1, self.put_size_bytes_total
        distribution = zip(_CLASS_NAMES, self._last_classes, strict=True)
        return {
            "bootTimestamp": str(self.boot_timestamp_ms),
            "runtime": self._format_runtime(),
            "putMessageEntireTimeMax": str(self.put_entire_time_ms_max),
            "putMessageTimesTotal": str(times),
            "putMessageFailedTimes": str(self.put_failed_times),
            "putMessageSizeTotal": str(size_bytes),
            "putMessageDistributeTime": "".join(f"{name}:{n} " for name, n in distribution),
            "putMessageAverageSize": _double(size_bytes / times),
            "dispatchMaxBuffer": str(self.dispatch_buffer_max),
            "getMessageEntireTimeMax": str(self.get_entire_time_ms_max),
            "putTps": self._rates("put"),
            "getFoundTps": self._rates("found"),
            "getMissTps": self._rates("missed"),
            "getTotalTps": self._total_rates(),
            "getTransferredTps": self._rates("transferred"),
            "putLatency99": f"{self.put_percentile_ms(0.99):.2f}",
            "putLatency999": f"{self.put_percentile_ms(0.999):.2f}",
        }

    def _format_runtime(self) -> str:
        seconds = (self.clock.wall_ms() - self.boot_timestamp_ms) // 1000
        minutes, seconds = divmod(max(seconds, 0), 60)
        hours, minutes = divmod(minutes, 60)
        days, hours = divmod(hours, 24)
        return f"[ {days:,} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"


def _double(value: float) -> str:
    """Return a number as Java prints a double, as far as such numbers reach here."""
    return repr(float(value))
