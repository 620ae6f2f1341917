"""Statistics as text for people, and as a picture."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from logstore.tools.inspection.columns import aligned
from logstore.tools.inspection.stats.partition_stats import PartitionStats
from logstore.tools.inspection.stats.rate import Rate
from logstore.tools.inspection.stats.topic_stats import TopicStats
from logstore.tools.inspection.times import iso_time

_BARS = "▁▂▃▄▅▆▇█"
_COLUMNS_MAX = 60
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_PLOT_BUCKETS = 400


def topic_lines(found: TopicStats, entry: str, *, has_partitions: bool) -> Iterator[str]:
    """Yield the lines about one topic; `entry` is what its layout stores as one."""
    whole = found.whole
    count = len(found.partitions)
    yield f"{found.topic}: {count:,} {'partition' if count == 1 else 'partitions'}"
    for name, text in _facts(whole, entry):
        yield f"  {name:<11}{text}"
    if found.skew is not None and count > 1:
        hot = ", ".join(map(str, found.hot_partitions))
        said = f"; hot: {hot}" if hot else ""
        yield f"  {'spread':<11}the largest partition has {found.skew:.2f} x the mean{said}"
    if has_partitions:
        yield from (f"  {line}" for line in _partition_table(found))


def _facts(stats: PartitionStats, entry: str) -> Iterator[tuple[str, str]]:
    nulls = f", {stats.null_count:,} with a null value" if stats.null_count else ""
    yield "records", f"{stats.record_count:,}{nulls}"
    if stats.record_count:
        yield "keys", _keys(stats)
    yield "bytes", _bytes(stats)
    sizes = stats.entry_sizes
    if sizes.largest is not None:
        said = f"half up to {sizes.quantile(0.5):,}, 99 % up to {sizes.quantile(0.99):,}"
        yield entry, f"{stats.entry_count:,}; bytes: {said}, largest {sizes.largest:,}"
    if stats.control_count:
        yield "markers", f"{stats.control_count:,} of transactions"
    if stats.damaged_count:
        yield "damaged", f"{stats.damaged_count:,} {entry} cannot be read: logstore verify"
    if stats.first_ms is not None and stats.last_ms is not None:
        yield "time", f"{iso_time(stats.first_ms)} to {iso_time(stats.last_ms)}"
        yield "rate", _rate_text(stats.rate)


def _keys(stats: PartitionStats) -> str:
    if not stats.keyed_count:
        return "none"
    return f"about {stats.distinct_key_count:,} different in {stats.keyed_count:,} records"


def _bytes(stats: PartitionStats) -> str:
    size_bytes = stats.size_bytes
    if not size_bytes:
        return "0"
    codecs = ", ".join(
        f"{codec} {packed.size_bytes / size_bytes:.0%}"
        for codec, packed in sorted(stats.codecs.items(), key=lambda one: -one[1].size_bytes)
    )
    ratio = stats.unpacked_bytes / size_bytes
    return f"{size_bytes:,}; uncompressed {stats.unpacked_bytes:,} ({ratio:.2f} x; {codecs})"


def _rate_text(rate: Rate) -> str:
    shown = rate.narrowed_to(_COLUMNS_MAX)
    counts = _filled(shown)
    seconds = shown.width_ms / 1000
    mean = sum(counts) / len(counts) / seconds
    return (
        f"{sparkline(counts)}  a column is {_width_text(shown.width_ms)}; "
        f"{mean:,.1f} records/s, at most {max(counts) / seconds:,.1f}"
    )


def sparkline(counts: Sequence[int]) -> str:
    """Return a bar for each count, the highest one for the largest; nothing for zero."""
    top = max(counts, default=0)
    return "".join(_BARS[(count * 8 - 1) // top] if count else " " for count in counts)


def _filled(rate: Rate) -> list[int]:
    """Return the records of every bucket from the first to the last."""
    first, last = min(rate.records), max(rate.records)
    return [rate.records.get(bucket, 0) for bucket in range(first, last + 1)]


def _width_text(width_ms: int) -> str:
    for unit_ms, name in _UNITS:
        if width_ms % unit_ms == 0:
            return f"{width_ms // unit_ms:,} {name}"
    return f"{width_ms:,} ms"


def _partition_table(found: TopicStats) -> list[str]:
    rows = [
        (
            index,
            f"{stats.record_count:,}",
            f"{stats.size_bytes:,}",
            f"{stats.distinct_key_count:,}",
            "-" if stats.first_offset is None else f"{stats.first_offset:,}",
            "-" if stats.last_offset is None else f"{stats.last_offset:,}",
            "-" if stats.last_ms is None else iso_time(stats.last_ms),
        )
        for index, stats in found.partitions.items()
    ]
    header = ("partition", "records", "bytes", "keys", "first offset", "last offset", "newest")
    return aligned(header, rows)


def plot(topics: Sequence[TopicStats], path: str) -> None:
    """
    Draw records per second over time, a line a topic, into a PNG file.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: the file cannot be written.

    """
    figures: Any = importlib.import_module("matplotlib.figure")
    figure = figures.Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    for found in topics:
        rate = found.whole.rate.narrowed_to(_PLOT_BUCKETS)
        if not rate.records:
            continue
        first = min(rate.records)
        starts = [(first + place) * rate.width_ms for place in range(rate.bucket_count + 1)]
        moments = [datetime.fromtimestamp(start / 1000, UTC) for start in starts]
        heights = [count * 1000 / rate.width_ms for count in _filled(rate)]
        axes.stairs(heights, moments, label=found.topic)
    axes.set_ylabel("records/s")
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, alpha=0.3)
    if topics:
        axes.legend(loc="best")
    figure.savefig(path, format="png", dpi=120)
