"""What the transaction coordinators of a data directory wrote last of each producer."""

from __future__ import annotations

from logstore.errors import LogStoreError
from logstore.host import FileSystem
from logstore.segments.kafka.internal_topics.codec import MessageError
from logstore.segments.kafka.internal_topics.record_types import (
    TRANSACTION_RECORDS,
    decode_internal_record,
)
from logstore.segments.kafka.internal_topics.transaction_log import (
    TransactionLogKey,
    TransactionLogValue,
)
from logstore.segments.kafka.record import CorruptRecordError, decode_records
from logstore.segments.kafka.segment_files import LOG
from logstore.tools.inspection.batch_walk import walk_batches
from logstore.tools.inspection.verification.transactions import Coordinated


def read_coordinators(fs: FileSystem, directories: list[str], *, is_all: bool) -> Coordinated:
    """
    Return what stands in these partitions of the topic; `is_all` says that there are no others.

    What cannot be read is passed over: that it is damaged is said where it is verified.
    """
    by_name: dict[str, TransactionLogValue] = {}
    for directory in directories:
        for entry in fs.list_directory(directory):
            if not entry.is_directory and entry.name.endswith(LOG):
                try:
                    _read_log(fs, f"{directory}/{entry.name}", by_name)
                except LogStoreError:
                    continue
    found = {value.producer_id: (name, value) for name, value in by_name.items()}
    return Coordinated(found, is_all)


def _read_log(fs: FileSystem, path: str, by_name: dict[str, TransactionLogValue]) -> None:
    file = fs.open(path, writable=False)
    try:
        for found in walk_batches(file, is_whole=True):
            if found.batch.is_control:
                continue
            for record in decode_records(found.batch.data):
                _note(record.key, record.value, by_name)
    finally:
        file.close()


def _note(key: bytes | None, value: bytes | None, by_name: dict[str, TransactionLogValue]) -> None:
    try:
        found = decode_internal_record(TRANSACTION_RECORDS, key or b"", value)
    except (MessageError, CorruptRecordError):
        return
    if not isinstance(found.key, TransactionLogKey):
        return
    name = found.key.transactional_id
    if isinstance(found.value, TransactionLogValue):
        by_name[name] = found.value
    else:
        by_name.pop(name, None)
