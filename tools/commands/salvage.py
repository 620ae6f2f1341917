"""``logstore salvage``: every good batch of a damaged partition, in a new directory."""

from __future__ import annotations

import os
import sys

import click

from logstore.host import Host
from logstore.os_host import system_host
from logstore.segments.kafka.checkpoints import CLEANER, LOG_START
from logstore.segments.kafka.directory_name import METADATA_DIRECTORY
from logstore.segments.kafka.meta_properties import FILE_NAME as META_PROPERTIES
from logstore.tools.commands.store_settings import store_settings
from logstore.tools.inspection.json_line import json_line
from logstore.tools.inspection.kept_out import kept_out
from logstore.tools.inspection.late_progress import LateProgress
from logstore.tools.inspection.layout import ROCKETMQ, layout_of
from logstore.tools.inspection.rebuilding.index_interval import (
    IndexIntervals,
)
from logstore.tools.inspection.rebuilding.new_directory import is_free, new_directory
from logstore.tools.inspection.rebuilding.partition_rebuild import log_bytes
from logstore.tools.inspection.rebuilding.partition_salvage import (
    Lost,
    PartitionSalvage,
    Salvaged,
    copy_file,
)
from logstore.tools.inspection.rebuilding.work_place import (
    WorkPartition,
    WorkPlace,
    find_work,
)
from logstore.tools.inspection.verification.directory_check import DirectoryCheck

#: files of a data directory that belong to it as a whole and are true of the copy too
_KEPT = (META_PROPERTIES, "bootstrap.checkpoint", LOG_START, CLEANER)
#: files of the metadata log beside its segments
_METADATA_KEPT = ("quorum-state",)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("directory", metavar="DIR")
@click.option("--into", metavar="DIR2", required=True, help="The new directory.")
@store_settings
@click.option("--json", "is_json", is_flag=True, help="Print one loss a line, as JSON.")
def salvage(directory: str, into: str, settings: dict[str, str], is_json: bool) -> None:
    """
    Take every good batch of a damaged partition, data directory or RocketMQ store into a new one.

    Damaged batches are left out, those around them keep their bytes and offsets; indexes, producer
    snapshots and leader epochs are made anew. Says what was lost: file, position, bytes, offsets.
    DIR is only read, and no broker may have it open. In a RocketMQ store messages keep physical
    and queue offsets: where one was lost an empty one stands in for it, with the tag LOST.

    \b
    Examples:
      logstore salvage data/orders-0 --into rescued/orders-0
      logstore salvage /var/lib/rocketmq/store --into /mnt/rescued
      logstore salvage --json /var/lib/kafka --into /mnt/rescued | jq .firstOffset
    """
    host = system_host()
    source, target = os.path.abspath(directory), os.path.abspath(into)
    _check_target(source, target)
    if layout_of(source) == ROCKETMQ:
        from logstore.tools.commands.salvage_rocketmq import salvage_store

        if not salvage_store(source, target, settings, is_json=is_json):
            sys.exit(1)
        return
    work = find_work(host.fs, source)
    total = sum(log_bytes(host.fs, partition.directory) for partition in work.partitions)
    out = kept_out(host.fs, work.data_directory, work.lock_path, only_reads=True)
    intervals = IndexIntervals(host, work.data_directory)
    with out, new_directory(target) as made, LateProgress("salvaging", total) as progress:
        for partition in work.partitions:
            salvaged = _salvage(host, partition, intervals, made).run(progress.advance)
            _say(partition, salvaged, is_json=is_json)
        if work.directory == work.data_directory:
            _copy_files(host, work, made)
    if not _is_sound(host, target, is_json=is_json):
        sys.exit(1)


def _check_target(source: str, target: str) -> None:
    if not is_free(target):
        raise click.UsageError(f"{target} exists and is not empty; name another directory")
    if os.path.commonpath([source, target]) == source:
        raise click.UsageError(f"{target} is inside of {source}; name another directory")


def _salvage(
    host: Host, partition: WorkPartition, intervals: IndexIntervals, target: str
) -> PartitionSalvage:
    return PartitionSalvage(
        host.fs,
        partition.directory,
        f"{target}/{partition.relative}".rstrip("/"),
        intervals.of(partition.directory, partition.place.topic),
        is_compacted=partition.is_cleaned or partition.place.topic.startswith("__"),
        log_start_offset=partition.log_start_offset,
    )


def _copy_files(host: Host, work: WorkPlace, target: str) -> None:
    """Copy what makes the new directory a data directory; a start recovers what it holds."""
    fs = host.fs
    for name in _KEPT:
        if fs.exists(f"{work.directory}/{name}"):
            copy_file(fs, work.directory, target, name)
    metadata = f"{work.directory}/{METADATA_DIRECTORY}"
    if not fs.exists(metadata):
        return
    for entry in fs.list_directory(metadata):
        if entry.name in _METADATA_KEPT or entry.name.endswith(".checkpoint"):
            copy_file(fs, metadata, f"{target}/{METADATA_DIRECTORY}", entry.name)


def _say(partition: WorkPartition, salvaged: Salvaged, *, is_json: bool) -> None:
    prefix = f"{partition.relative}/" if partition.relative else ""
    for lost in salvaged.lost:
        click.echo(_content(prefix, lost) if is_json else _line(prefix, lost))
    if not is_json:
        name = partition.relative or partition.directory
        click.echo(
            f"{name}: kept {salvaged.batch_count} batches, {salvaged.size_bytes} bytes, offsets "
            f"{salvaged.start_offset} to {salvaged.end_offset - 1}"
            + ("" if salvaged.lost else "; nothing was lost")
        )


def _content(prefix: str, lost: Lost) -> str:
    return json_line(
        {
            "file": f"{prefix}{lost.file}",
            "position": lost.position,
            "bytes": lost.size_bytes,
            "firstOffset": lost.first_offset,
            "lastOffset": lost.last_offset,
            "reason": lost.reason,
        }
    )


def _line(prefix: str, lost: Lost) -> str:
    last = "the end" if lost.last_offset is None else str(lost.last_offset)
    return (
        f"{prefix}{lost.file}: position {lost.position}: lost {lost.size_bytes} bytes, offsets "
        f"{lost.first_offset} to {last}: {lost.reason}"
    )


def _is_sound(host: Host, target: str, *, is_json: bool) -> bool:
    """Verify the copy; say what is still worth knowing of it."""
    damage_count = 0
    for finding in DirectoryCheck(host.fs, target).findings():
        damage_count += finding.is_damage
        if finding.is_damage:
            click.echo(f"logstore: {target}: {finding}", err=True)
        elif not is_json and finding.kind != "hole":
            click.echo(f"note: {finding}")
    return not damage_count
