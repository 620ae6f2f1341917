"""``logstore salvage`` of a RocketMQ store."""

from __future__ import annotations

import click

from logstore.os_host import system_host
from logstore.segments.rocketmq.opening.store_lock import LOCK_NAME
from logstore.tools.inspection.json_line import json_line
from logstore.tools.inspection.kept_out import kept_out
from logstore.tools.inspection.late_progress import LateProgress
from logstore.tools.inspection.rebuilding.new_directory import new_directory
from logstore.tools.inspection.rocketmq.rebuilding.store_salvage import Lost, StoreSalvage
from logstore.tools.inspection.rocketmq.stored_store import StoredStore
from logstore.tools.inspection.rocketmq.verification.store_check import StoreCheck

_NAMES_SHOWN = 5


def salvage_store(directory: str, target: str, settings: dict[str, str], *, is_json: bool) -> bool:
    """Print what is lost of a store; tell whether the new one is sound."""
    host = system_host()
    with kept_out(host.fs, directory, f"{directory}/{LOCK_NAME}", only_reads=True):
        store = StoredStore(host.fs, directory, settings)
        total = sum(file.size_bytes for file in store.commit_log.files)
        is_whole = True
        with new_directory(target) as made, LateProgress("salvaging", total) as progress:
            salvage = StoreSalvage(host, store, made)
            for lost in salvage.run(progress.advance):
                is_whole = False
                click.echo(_content(lost) if is_json else _line(lost))
    if not is_json:
        rest = "; nothing was lost" if is_whole else ""
        click.echo(
            f"{directory}: kept {salvage.message_count} messages, {salvage.size_bytes} bytes{rest}"
        )
    return _is_sound(target, settings, store)


def _content(lost: Lost) -> str:
    return json_line(
        {
            "file": lost.file,
            "position": lost.position,
            "bytes": lost.size_bytes,
            "physicalOffset": lost.physical_offset,
            "isCut": lost.is_cut,
            "messages": [
                {
                    "topic": message.topic,
                    "queueId": message.queue_id,
                    "queueOffset": message.queue_offset,
                    "physicalOffset": message.physical_offset,
                }
                for message in lost.messages
            ],
            "reason": lost.reason,
        }
    )


def _line(lost: Lost) -> str:
    names = [f"{m.topic}-{m.queue_id}@{m.queue_offset}" for m in lost.messages]
    shown = ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
    what = f"; by the queues: {shown}" if names else ""
    rest = "the log ends there now" if lost.is_cut else "records marked LOST stand there now"
    return (
        f"{lost.file}: position {lost.position}: lost {lost.size_bytes} bytes from physical offset "
        f"{lost.physical_offset} on: {lost.reason}{what}; {rest}"
    )


def _is_sound(target: str, settings: dict[str, str], source: StoredStore) -> bool:
    """Verify the new store."""
    sizes = source.index_sizes
    told = dict(settings)
    if sizes is not None:
        told["maxHashSlotNum"] = str(sizes.slot_count)
        told["maxIndexNum"] = str(sizes.entry_count)
    check = StoreCheck(system_host().fs, target, told)
    check.store.release = source.release
    damage = [finding for finding in check.findings() if finding.is_damage]
    for finding in damage:
        click.echo(f"logstore: {target}: {finding}", err=True)
    return not damage
