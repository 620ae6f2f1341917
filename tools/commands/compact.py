"""``logstore compact``: compact the logs of a data directory that nobody serves."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

import attrs
import click

from logstore.errors import ForeignDirectoryError, LogStoreError, MissingSegmentError
from logstore.os_host import system_host
from logstore.segments.kafka.compaction import (
    Cleanable,
    CleanerCheckpoint,
    Compaction,
    CompactionLimits,
    compact,
    find_cleanable,
)
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.store import KafkaLayout, KafkaStore, StoreOptions
from logstore.tools.inspection.json_line import json_line
from logstore.tools.inspection.late_progress import LateProgress
from logstore.tools.inspection.layout import ROCKETMQ, layout_of


@click.command("compact", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("directory", metavar="DIR")
@click.option("--topic", metavar="NAME", help="Only this topic.")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Only this partition.")
@click.option("--dry-run", "is_dry", is_flag=True,
              help="Only say what would go; DIR may be in use.")  # fmt: skip
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object a partition.")
def compact_command(
    directory: str, topic: str | None, partition: int | None, is_dry: bool, is_json: bool
) -> None:
    """
    Keep only the last record of each key in the compacted topics of a data directory.

    DIR is an entry of log.dirs. Does what a broker's cleaner does, at once and however little there
    is to gain; topics without cleanup.policy=compact are left alone. The newest segment of a log is
    never compacted, nor what is newer than min.compaction.lag.ms or the last stable offset.
    A directory in use is refused. Exits with 1 if a partition could not be compacted.

    \b
    Examples:
      logstore compact /var/lib/kafka
      logstore compact --dry-run /var/lib/kafka
      logstore compact --topic users --partition 0 /var/lib/kafka
    """
    path = os.path.abspath(directory)
    if not KafkaLayout().recognises(system_host(), path):
        kind = (
            "is a RocketMQ store" if layout_of(path) == ROCKETMQ else "is no Kafka data directory"
        )
        raise ForeignDirectoryError(f"{path}: {kind}; name an entry of Kafka's log.dirs")
    with _opened(path, is_writable=not is_dry) as store:
        chosen = _chosen(store, topic, partition)
        checkpoint = CleanerCheckpoint(store.host.fs, path, store.partitions)
        error_count = 0
        for one in chosen:
            outcome = _compacted(one, checkpoint, is_dry=is_dry)
            click.echo(json_line(outcome.content()) if is_json else outcome.line())
            error_count += bool(outcome.error)
        if not chosen and not is_json:
            click.echo(f"{path}: has no compacted topics")
    if error_count:
        sys.exit(1)


@contextmanager
def _opened(path: str, *, is_writable: bool) -> Generator[KafkaStore]:
    """Open the store, and close it as cleanly as it was opened."""
    store = KafkaStore(system_host(), path, StoreOptions(is_writable=is_writable))
    try:
        yield store
    except BaseException:
        store.abandon()
        raise
    store.close()


def _chosen(store: KafkaStore, topic: str | None, index: int | None) -> list[KafkaPartition]:
    """Return the partitions that are asked for, and compacted."""
    found = [
        partition
        for name in sorted(store.topics_by_name)
        for _, partition in sorted(store.topics_by_name[name].partitions.items())
        if topic in (None, name) and index in (None, partition.index)
    ]
    if not found:
        wanted = topic or "any topic"
        part = "" if index is None else f", partition {index}"
        raise MissingSegmentError(f"{store.directory}: there is no {wanted}{part}")
    chosen = [partition for partition in found if partition.config.is_compacted]
    if topic is not None and not chosen:
        raise MissingSegmentError(f"{topic}: its cleanup.policy is not compact")
    return chosen


@attrs.frozen
class _Outcome:
    """What became of one partition."""

    cleanable: Cleanable
    compaction: Compaction
    size_bytes_before: int
    size_bytes: int
    is_dry: bool
    error: str = ""

    def content(self) -> dict[str, object]:
        """Return it for a program."""
        partition, tally = self.cleanable.partition, self.compaction.tally
        return {
            "topic": partition.topic,
            "partition": partition.index,
            "dryRun": self.is_dry,
            "bytesBefore": self.size_bytes_before,
            "bytes": self.size_bytes,
            "bytesRead": tally.bytes_read,
            "recordsRead": tally.records_read,
            "recordsRemoved": tally.records_read - tally.records_kept,
            "recordsWithoutKey": tally.keyless_records,
            "dirtyRatio": round(self.cleanable.dirty_ratio, 4),
            "firstDirtyOffset": self.cleanable.first_dirty_offset,
            "cleanUpTo": self.compaction.end_offset,
            "error": self.error or None,
        }

    def line(self) -> str:
        """Return it for people."""
        partition, tally = self.cleanable.partition, self.compaction.tally
        name = f"{partition.topic}-{partition.index}"
        if self.error:
            return f"{name}: not compacted: {self.error}"
        if not self.cleanable.cleanable_bytes:
            return f"{name}: nothing to compact ({self.size_bytes:,} bytes)"
        gone = tally.records_read - tally.records_kept
        verb = "would go" if self.is_dry else "removed"
        line = (
            f"{name}: {gone:,} of {tally.records_read:,} records {verb}, "
            f"{self.size_bytes_before:,} -> {self.size_bytes:,} bytes, "
            f"clean up to offset {self.compaction.end_offset}"
        )
        if tally.keyless_records:
            line += f"; {tally.keyless_records:,} of them had no key"
        return line


def _compacted(
    partition: KafkaPartition, checkpoint: CleanerCheckpoint, *, is_dry: bool
) -> _Outcome:
    """Compact one partition, if there is anything dirty in it."""
    now_ms = partition.host.clock.wall_ms()
    cleanable = find_cleanable(partition, checkpoint.get(partition), now_ms)
    before = partition.log.size_bytes
    compaction = Compaction(cleanable, now_ms, CompactionLimits(), is_dry=is_dry, is_fast=True)
    error = ""
    if cleanable.cleanable_bytes:
        try:
            _run(partition, compaction)
            if not is_dry:
                checkpoint.put(partition, compaction.end_offset)
        except (LogStoreError, OSError) as failure:
            error = str(failure)
    after = partition.log.size_bytes
    if is_dry:
        after = before - compaction.tally.bytes_read + compaction.tally.bytes_kept
    return _Outcome(cleanable, compaction, before, after, is_dry, error)


def _run(partition: KafkaPartition, compaction: Compaction) -> None:
    what = f"compacting {partition.topic}-{partition.index}"
    with LateProgress(what, compaction.bytes_in_all) as progress:
        compact(compaction, lambda done, _: progress.move_to(done))
