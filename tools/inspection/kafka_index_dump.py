"""Indexes as ``DumpLogSegments`` prints and checks them, each entry against the log beside it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import attrs

from logstore.host import File, FileSystem
from logstore.segments.kafka.record import CorruptRecordError
from logstore.tools.inspection.complaints import Complaints
from logstore.tools.inspection.java_indexes import (
    JavaError,
    check_offset_index,
    check_time_index,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)
from logstore.tools.inspection.java_log import java_batches
from logstore.tools.inspection.kafka_lines import (
    absolute_path,
    base_offset_of,
    readable_records,
)

INT_MAX = 2**31 - 1


@attrs.frozen
class IndexChecks:
    """What of an index is asked for."""

    #: say only what is wrong
    is_verify_only: bool = False
    #: make only the check that a starting broker makes
    is_sanity_only: bool = False
    message_size_max: int = 5 * 1024 * 1024


class KafkaIndexDump:
    """Prints indexes and notes what is wrong with them."""

    def __init__(
        self,
        fs: FileSystem,
        checks: IndexChecks,
        print_line: Callable[[str], None],
        complaints: Complaints,
    ) -> None:
        self._fs = fs
        self._checks = checks
        self._print = print_line
        self._complaints = complaints

    def dump_offset_index(self, path: str) -> None:
        """Print an ``.index``. Raises JavaError where the tool ends."""
        base_offset = base_offset_of(path.rpartition("/")[2])
        with self._log_beside(path) as log:
            index = read_offset_index(self._fs, path, base_offset)
            if not index.entries:
                self._print(f"{path} is empty.")
                return
            if self._checks.is_sanity_only:
                check_offset_index(index, absolute_path(path))
                self._print(f"{path} passed sanity check.")
                return
            for slot, (offset, position) in enumerate(index.entries):
                if slot and offset == base_offset:
                    return  # zeros behind the last entry
                self._check_offset_entry(path, log, offset, position)
                if not self._checks.is_verify_only:
                    self._print(f"offset: {offset} position: {position}")

    def _check_offset_entry(self, path: str, log: File, offset: int, position: int) -> None:
        end = _slice_end(log, position, self._checks.message_size_max)
        found = next(
            java_batches(log, absolute_path(log.path), position, end, is_whole=False), None
        )
        if found is None:
            raise JavaError("java.util.NoSuchElementException", None)
        last_offset = found[1].last_offset
        if last_offset != offset:
            self._complaints.index_mismatch(absolute_path(path), offset, last_offset)

    def dump_time_index(self, path: str) -> None:
        """Print a ``.timeindex``. Raises JavaError where the tool ends."""
        base_offset = base_offset_of(path.rpartition("/")[2])
        with self._log_beside(path) as log:
            offsets = read_offset_index(self._fs, _beside(path, ".index"), base_offset)
            index = read_time_index(self._fs, path, base_offset)
            if self._checks.is_sanity_only:
                check_time_index(index, absolute_path(path))
                self._print(f"{path} passed sanity check.")
                return
            previous_ms = -1
            for slot, (timestamp_ms, offset) in enumerate(index.entries):
                if slot and offset == base_offset:
                    return  # zeros behind the last entry
                position = offsets.position_of(offset)
                self._check_time_entry(path, log, position, (timestamp_ms, offset), previous_ms)
                if not self._checks.is_verify_only:
                    self._print(f"timestamp: {timestamp_ms} offset: {offset}")
                previous_ms = timestamp_ms

    def _check_time_entry(
        self, path: str, log: File, position: int, entry: tuple[int, int], previous_ms: int
    ) -> None:
        timestamp_ms, offset = entry
        absolute = absolute_path(path)
        end = _slice_end(log, position, INT_MAX)
        batches = java_batches(log, absolute_path(log.path), position, end)
        batch = next((batch for _, batch in batches if batch.last_offset >= offset), None)
        if batch is None or batch.last_offset != offset:
            found = -1 if batch is None else batch.last_offset
            self._complaints.offset_not_found(absolute, offset, found)
            return
        try:
            largest_ms = max((one.timestamp_ms for one in readable_records(batch)), default=-1)
        except CorruptRecordError as error:
            raise invalid_record(error) from error
        if largest_ms != timestamp_ms:
            self._complaints.time_mismatch(absolute, timestamp_ms, largest_ms)
        if previous_ms >= timestamp_ms:
            self._complaints.time_order(absolute, timestamp_ms, previous_ms)

    def dump_transaction_index(self, path: str) -> None:
        """Print a ``.txnindex``. Raises JavaError where the tool ends."""
        for entry in read_transaction_index(self._fs, path, absolute_path(path)):
            version, producer_id, first, last, stable = entry
            self._print(
                f"version: {version} producerId: {producer_id} firstOffset: {first} "
                f"lastOffset: {last} lastStableOffset: {stable}"
            )

    @contextmanager
    def _log_beside(self, path: str) -> Generator[File]:
        log_path = _beside(path, ".log")
        if not self._fs.exists(log_path):
            raise JavaError("java.nio.file.NoSuchFileException", absolute_path(log_path))
        log = self._fs.open(log_path, writable=False)
        try:
            yield log
        finally:
            log.close()


def invalid_record(error: CorruptRecordError) -> JavaError:
    """Return the exception for records that cannot be read; its message has our words."""
    return JavaError("org.apache.kafka.common.InvalidRecordException", str(error))


def _beside(path: str, suffix: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{name.split('.')[0]}{suffix}"


def _slice_end(log: File, position: int, size_bytes: int) -> int:
    """Return where a slice of the log ends. Raises JavaError for an impossible position."""
    size = log.size()
    shown = f"FileRecords(size={size}, file={absolute_path(log.path)}, start=0, end={INT_MAX})"
    java_class = "java.lang.IllegalArgumentException"
    if position < 0:
        raise JavaError(java_class, f"Invalid position: {position} in read from {shown}")
    if position > size:
        raise JavaError(
            java_class, f"Slice from position {position} exceeds end position of {shown}"
        )
    return min(position + size_bytes, size)
