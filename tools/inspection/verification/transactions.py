"""
Transactions of a partition: what the transaction indexes must hold, and what is still open.

An open transaction is no damage, but it holds the last stable offset: consumers that read only what
is committed see nothing behind it. Its coordinator's log, where it is at hand, tells whether anyone
will ever end it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from logstore.errors import CorruptFileError
from logstore.host import FileSystem
from logstore.segments.kafka.internal_topics.transaction_log import (
    TransactionLogValue,
    TransactionStatus,
)
from logstore.segments.kafka.transaction_index import AbortedTransaction, TransactionIndex
from logstore.tools.inspection.times import iso_time
from logstore.tools.inspection.verification.finding import Finding, Severity
from logstore.tools.inspection.verification.producer_fold import Aborted, Begun

_UNFINISHED = (
    TransactionStatus.ONGOING,
    TransactionStatus.PREPARE_COMMIT,
    TransactionStatus.PREPARE_ABORT,
    TransactionStatus.PREPARE_EPOCH_FENCE,
)


@attrs.frozen
class Coordinated:
    """
    What coordinators wrote last of each producer, by its id: the transactional id, and that.

    `is_all` says that every partition of their topic is here. Where some are in other directories
    or on other nodes, one that is not known here may be known there.
    """

    by_producer: Mapping[int, tuple[str, TransactionLogValue]]
    is_all: bool = True


@attrs.frozen
class TransactionFile:
    """The transaction index of one segment, there or not; its markers are below `limit_offset`."""

    path: str
    name: str
    base_offset: int
    limit_offset: int
    is_there: bool


def transaction_index_findings(
    fs: FileSystem,
    file: TransactionFile,
    expected: list[Aborted],
    *,
    known_from: int,
    is_told: bool,
) -> Iterator[Finding]:
    """
    Yield where the index and the markers in the log differ.

    Of transactions that began before `known_from` the log does not tell, nor, without `is_told`,
    of any: batches are lost, or compaction has taken them out.
    """
    try:
        entries = list(TransactionIndex(fs, file.path, file.base_offset).entries())
    except CorruptFileError as error:
        yield Finding("transaction-index", file.name, error.reason)
        return
    yield from _shape(fs, file, entries)
    wanted = {aborted.last_offset: aborted for aborted in expected}
    previous = file.base_offset - 1
    for slot, entry in enumerate(entries):
        place = slot * TransactionIndex.ENTRY_BYTES
        marked = wanted.pop(entry.last_offset, None)
        reason = _wrong(entry, marked, file, previous)
        told = (entry,) if marked is None else (entry, marked)
        # What was open below makes the last stable offset, too.
        is_known = is_told and all(
            min(one.first_offset, one.last_stable_offset) >= known_from for one in told
        )
        if reason is not None and (is_known or reason.startswith("entry")):
            yield Finding("transaction-index", file.name, reason, place, entry.last_offset)
        previous = max(previous, entry.last_offset)
    if not is_told:
        return
    for aborted in wanted.values():
        if aborted.first_offset < known_from:
            continue
        yield Finding(
            "transaction-index-misses",
            file.name,
            f"misses the aborted transaction of producer {aborted.producer_id}, offsets "
            f"{aborted.first_offset} to {aborted.last_offset}: consumers that read only what is "
            "committed get its records",
            offset=aborted.first_offset,
        )


def _shape(
    fs: FileSystem, file: TransactionFile, entries: list[AbortedTransaction]
) -> Iterator[Finding]:
    if not file.is_there:
        return
    log = fs.open(file.path, writable=False)
    try:
        rest_bytes = log.size() % TransactionIndex.ENTRY_BYTES
    finally:
        log.close()
    if rest_bytes:
        yield Finding(
            "transaction-index",
            file.name,
            f"ends with {rest_bytes} bytes that are no whole entry",
            len(entries) * TransactionIndex.ENTRY_BYTES,
        )


def _wrong(
    entry: AbortedTransaction, wanted: Aborted | None, file: TransactionFile, previous: int
) -> str | None:
    shown = (
        f"entry of producer {entry.producer_id}, offsets {entry.first_offset} to "
        f"{entry.last_offset}, last stable offset {entry.last_stable_offset}"
    )
    if not file.base_offset <= entry.last_offset < file.limit_offset:
        return f"{shown}: ends outside of its segment"
    if not 0 <= entry.first_offset <= entry.last_offset:
        return f"{shown}: starts at an impossible offset"
    if entry.last_offset <= previous:
        return f"{shown}: does not come after the one before"
    if wanted is None:
        return f"has an {shown}, but the log has no such abort marker"
    found = (entry.producer_id, entry.first_offset, entry.last_stable_offset)
    told = (wanted.producer_id, wanted.first_offset, wanted.last_stable_offset)
    if found == told:
        return None
    return (
        f"has an {shown}; the log says producer {told[0]}, first offset {told[1]}, last stable "
        f"offset {told[2]}"
    )


def open_transaction_notes(
    open_by_producer: Mapping[int, Begun],
    *,
    file_of: Mapping[int, str],
    topic: str,
    partition: int,
    end_offset: int,
    coordinated: Coordinated | None,
) -> Iterator[Finding]:
    """Yield a note for every open transaction, the one that holds the last stable offset first."""
    ordered = sorted(open_by_producer.values(), key=lambda begun: begun.offset)
    for place, begun in enumerate(ordered):
        who = (
            f"producer {begun.producer_id} (epoch {begun.epoch}) has a transaction open since "
            f"offset {begun.offset}, {iso_time(begun.timestamp_ms)}"
        )
        if place == 0:
            who += (
                f": the last stable offset stays at {begun.offset}, and consumers that read only "
                f"what is committed wait for {end_offset - begun.offset} offsets behind it"
            )
        fate, is_hanging = _fate(begun, topic, partition, coordinated)
        yield Finding(
            "hanging-transaction" if is_hanging else "open-transaction",
            file_of.get(begun.offset, ""),
            f"{who}; {fate}",
            begun.position if begun.position >= 0 else None,
            begun.offset,
            Severity.NOTE,
        )


def _fate(
    begun: Begun, topic: str, partition: int, coordinated: Coordinated | None
) -> tuple[str, bool]:
    """Return what will become of a transaction, and whether nobody will ever end it."""
    if coordinated is None:
        return (
            (
                "whether its coordinator still knows of it stands in __transaction_state, which is "
                "not here"
            ),
            False,
        )
    known = coordinated.by_producer.get(begun.producer_id)
    remedy = (
        "it hangs and must be aborted by hand: kafka-transactions.sh abort --topic "
        f"{topic} --partition {partition} --start-offset {begun.offset}"
    )
    if known is None and not coordinated.is_all:
        return (
            (
                "no coordinator here knows that producer, but only a part of __transaction_state "
                "is here: look where the rest is, in the node's other log.dirs or on other nodes"
            ),
            False,
        )
    if known is None:
        return f"no coordinator knows that producer: {remedy}", True
    name, value = known
    status = TransactionStatus(value.transaction_status)
    is_in_it = any(
        topic == found.topic and partition in found.partition_ids
        for found in value.transaction_partitions or ()
    )
    if status in _UNFINISHED and is_in_it and value.producer_epoch >= begun.epoch:
        ending = {
            TransactionStatus.PREPARE_COMMIT: "is committing it: the marker is on its way",
            TransactionStatus.PREPARE_ABORT: "is aborting it: the marker is on its way",
        }.get(
            status,
            f"has it as open since {iso_time(value.transaction_start_timestamp_ms)} and aborts it "
            f"{value.transaction_timeout_ms} ms later",
        )
        return f"the coordinator of {name!r} {ending}", False
    return (
        (
            f"the coordinator of {name!r} is at {status.java_name}, epoch {value.producer_epoch}, "
            f"and does not have this partition in a transaction: {remedy}"
        ),
        True,
    )
