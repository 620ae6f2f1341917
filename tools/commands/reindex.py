"""``logstore reindex``: every file beside the logs made anew from them."""

from __future__ import annotations

import os
import sys

import click

from logstore.errors import StorageError
from logstore.host import Host
from logstore.os_host import system_host
from logstore.tools.commands.store_settings import store_settings
from logstore.tools.inspection.json_line import json_line
from logstore.tools.inspection.kept_out import kept_out
from logstore.tools.inspection.late_progress import LateProgress
from logstore.tools.inspection.layout import ROCKETMQ, layout_of
from logstore.tools.inspection.rebuilding.index_interval import (
    IndexIntervals,
)
from logstore.tools.inspection.rebuilding.new_directory import is_free, new_directory
from logstore.tools.inspection.rebuilding.outcome import Outcome, Rebuilt
from logstore.tools.inspection.rebuilding.partition_rebuild import (
    PartitionRebuild,
    files_to_keep,
    log_bytes,
)
from logstore.tools.inspection.rebuilding.sparse_copy import copy_tree
from logstore.tools.inspection.rebuilding.work_place import (
    WorkPartition,
    find_work,
)
from logstore.tools.inspection.verification.partition_check import (
    PartitionCheck,
    PartitionContext,
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("directory", metavar="DIR")
@click.option("--into", metavar="COPY", help="Copy DIR to here first and work on the copy.")
@click.option("--index-interval-bytes", "interval_bytes", metavar="N", type=click.IntRange(0),
              help="Bytes between two index entries, if the cluster's metadata does not tell and "
              "the indexes that are there must not.")  # fmt: skip
@store_settings
@click.option("--dry-run", "is_dry", is_flag=True, help="Only say what would be written.")
@click.option("--json", "is_json", is_flag=True, help="Print one file a line, as JSON.")
def reindex(
    directory: str,
    into: str | None,
    interval_bytes: int | None,
    settings: dict[str, str],
    is_dry: bool,
    is_json: bool,
) -> None:
    """
    Make every file beside the logs anew: indexes, aborted transactions, producers, leader epochs.

    DIR is an entry of log.dirs, one partition's directory, or a RocketMQ store (whose consume
    queues and index are made anew), that no broker has open. A .log or a commit log is never
    written to; a derived file that is right stays, another one is replaced at once. Exits
    with 1 if a log is damaged: what is behind the damage is not known then (see logstore salvage).

    \b
    Examples:
      logstore reindex /var/lib/kafka/orders-0
      logstore reindex --dry-run /var/lib/kafka
      logstore reindex --into /tmp/copy /var/lib/kafka
      logstore reindex /var/lib/rocketmq/store
    """
    host = system_host()
    path = os.path.abspath(directory)
    if into is not None:
        path = _copied(path, os.path.abspath(into))
    if layout_of(path) == ROCKETMQ:
        from logstore.tools.commands.reindex_rocketmq import rebuilt_files

        for rebuilt in rebuilt_files(path, settings, is_changing=not is_dry):
            _say(rebuilt.name, rebuilt, is_json=is_json, is_dry=is_dry)
        return
    work = find_work(host.fs, path)
    is_failed = False
    intervals = interval_bytes or IndexIntervals(host, work.data_directory)
    total = sum(log_bytes(host.fs, partition.directory) for partition in work.partitions)
    out = kept_out(host.fs, work.data_directory, work.lock_path, only_reads=is_dry)
    with out, LateProgress("reindexing", total) as progress:
        for partition in work.partitions:
            try:
                rebuild = _rebuild(host, partition, intervals, is_changing=not is_dry)
                for rebuilt in rebuild.run(progress.advance):
                    name = f"{partition.relative}/{rebuilt.name}".lstrip("/")
                    _say(name, rebuilt, is_json=is_json, is_dry=is_dry)
            except StorageError as error:
                is_failed = True
                click.echo(f"logstore: {error}", err=True)
    if is_failed:
        sys.exit(1)


def _rebuild(
    host: Host,
    partition: WorkPartition,
    intervals: IndexIntervals | int,
    *,
    is_changing: bool,
) -> PartitionRebuild:
    """Return the rebuild of a partition. Raises CorruptEntryError if its log is damaged."""
    context = PartitionContext(partition.log_start_offset, is_cleaned=partition.is_cleaned)
    check = PartitionCheck(host.fs, partition.directory, partition.place, context)
    kept = files_to_keep(check)
    interval_bytes = (
        intervals
        if isinstance(intervals, int)
        else intervals.of(partition.directory, partition.place.topic)
    )
    return PartitionRebuild(
        host, partition.directory, interval_bytes, partition.log_start_offset, is_changing, kept,
        partition.is_cleaned,
    )  # fmt: skip


def _copied(source: str, target: str) -> str:
    if not is_free(target):
        raise click.UsageError(f"{target} exists; name a directory that does not")
    if os.path.commonpath([source, target]) == source:
        raise click.UsageError(f"{target} is inside of {source}; name another directory")
    with new_directory(target) as made:
        try:
            copy_tree(source, made, (".lock", "lock"))
        except StorageError as error:
            raise StorageError(f"{source}: cannot be copied to {target}: {error}") from error
    return target


def _say(name: str, rebuilt: Rebuilt, *, is_json: bool, is_dry: bool) -> None:
    if is_json:
        content = {
            "file": name,
            "outcome": rebuilt.outcome.value,
            "beforeBytes": rebuilt.before_bytes,
            "bytes": rebuilt.after_bytes,
        }
        click.echo(json_line(content))
    elif rebuilt.outcome is not Outcome.UNCHANGED:
        before = (
            "was missing" if rebuilt.before_bytes is None else f"had {rebuilt.before_bytes} bytes"
        )
        verb = "would be" if is_dry else ""
        said = " ".join(filter(None, (verb, rebuilt.outcome.value)))
        click.echo(f"{name}: {said}: {before}, now {rebuilt.after_bytes}")
