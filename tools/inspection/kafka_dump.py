"""
``DumpLogSegments`` line for line: what ``logstore dump --format kafka`` prints.

Unlike the dump for people this one follows Kafka's tool step by step, so that programs that read
its text can read ours: paths as given, complaints at the end on stderr, and where the tool ends
with an exception the same exception's message. It never writes; the tool makes an empty ``.index``
where one is missing.

Source: ``org.apache.kafka.tools.DumpLogSegments`` (4.3.1), ``kafka.tools.DumpLogSegments`` (3.9.2).
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from logstore.errors import CorruptFileError
from logstore.host import FileSystem
from logstore.segments.kafka.internal_topics.codec import MessageError
from logstore.segments.kafka.record import CorruptRecordError, Record
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.varint import wrapped_long
from logstore.tools.inspection.complaints import Complaints
from logstore.tools.inspection.control_text import CONTROL_KEY_BYTES, control_fault, control_text
from logstore.tools.inspection.java_indexes import JavaError
from logstore.tools.inspection.java_log import java_batches
from logstore.tools.inspection.java_text import java_text
from logstore.tools.inspection.kafka_index_dump import (
    INT_MAX,
    IndexChecks,
    KafkaIndexDump,
    invalid_record,
)
from logstore.tools.inspection.kafka_lines import (
    absolute_path,
    batch_line,
    decoded_records,
    java_path,
    log_heading,
    record_text,
    snapshot_complaint,
    snapshot_lines,
)
from logstore.tools.inspection.log_dump import LogSelection
from logstore.tools.inspection.writer_release import ToolRelease

_SUFFIXES = (".log", ".checkpoint", ".index", ".timeindex", ".snapshot", ".txnindex")


def _ignore(size_bytes: int) -> None:
    del size_bytes


@attrs.frozen
class KafkaDumpOptions:
    """What the tool was asked for."""

    release: ToolRelease = ToolRelease.V4_3
    #: which batches and records; Kafka's tool knows only all
    selection: LogSelection = attrs.field(factory=LogSelection)
    skips_record_metadata: bool = False
    bytes_max: int = INT_MAX
    checks: IndexChecks = attrs.field(factory=IndexChecks)


def _unreadable(error: MessageError, begun: str = "") -> JavaError:
    if error.reason is None:
        return JavaError("java.nio.BufferUnderflowException", None, begun)
    return JavaError("java.lang.RuntimeException", error.reason, begun)


class KafkaDump:
    """
    One run of the tool. `print_line` and `complain` take a line each, for stdout and stderr.

    `note` is told how many more bytes of a log have been looked at.
    """

    def __init__(
        self,
        fs: FileSystem,
        options: KafkaDumpOptions,
        print_line: Callable[[str], None],
        complain: Callable[[str], None],
        note: Callable[[int], None] = _ignore,
    ) -> None:
        self._fs = fs
        self._options = options
        self._print = print_line
        self._complain = complain
        self._note = note
        self._complaints = Complaints(options.release)
        self._indexes = KafkaIndexDump(fs, options.checks, print_line, self._complaints)

    def run(self, paths: list[str]) -> int:
        """Dump the files; return the tool's exit status."""
        try:
            for path in paths:
                self._dump(java_path(path))
        except JavaError as error:
            if error.begun:
                self._print(error.begun)
            self._complain(f'Exception in thread "main" {error}')
            return 1
        for line in self._complaints.lines():
            self._complain(line)
        return 0

    def _dump(self, path: str) -> None:
        self._print(f"Dumping {path}")
        name = path.rpartition("/")[2]
        suffix = name[name.rfind(".") :] if "." in name else ""
        if suffix not in _SUFFIXES:
            self._complain(f"Ignoring unknown file {path}")
            return
        is_there = self._fs.exists(path)
        if suffix == ".txnindex":
            if is_there:
                self._indexes.dump_transaction_index(path)
        elif not is_there:
            raise JavaError("java.nio.file.NoSuchFileException", path)
        elif suffix in (".log", ".checkpoint"):
            self._dump_log(path, name)
        elif suffix == ".index":
            self._indexes.dump_offset_index(path)
        elif suffix == ".timeindex":
            self._indexes.dump_time_index(path)
        else:
            self._dump_snapshot(path)

    def _dump_log(self, path: str, name: str) -> None:
        self._print(log_heading(name))
        options = self._options
        file = self._fs.open(path, writable=False)
        try:
            end = min(file.size(), options.bytes_max)
            valid_bytes, last_offset = 0, -1
            for position, batch in java_batches(file, path, 0, end):
                if options.selection.takes(batch):
                    self._print(batch_line(batch, position))
                    if options.selection.has_records:
                        last_offset = self._dump_records(batch, path, last_offset)
                valid_bytes += batch.size_bytes
                self._note(batch.size_bytes)
            if end > valid_bytes and options.bytes_max == INT_MAX:
                self._print(f"Found {end - valid_bytes} invalid bytes at the end of {name}")
        finally:
            file.close()

    def _dump_records(self, batch: RecordBatch, path: str, last_offset: int) -> int:
        """Print the records; return the offset of the last one."""
        is_old = self._options.release is ToolRelease.V3_9
        selection = self._options.selection
        try:
            for record, legacy_text in decoded_records(batch, is_old=is_old):
                if not selection.start_offset <= record.offset < selection.end_offset:
                    continue
                is_gap = record.offset != wrapped_long(last_offset + 1)
                if is_gap and not (is_old and last_offset == -1):
                    self._complaints.gap(absolute_path(path), last_offset, record.offset)
                last_offset = record.offset
                self._print(self._record_line(batch, record, legacy_text))
        except CorruptRecordError as error:
            raise invalid_record(error) from error
        except MessageError as error:
            raise _unreadable(error) from error
        return last_offset

    def _record_line(self, batch: RecordBatch, record: Record, legacy_text: str) -> str:
        line, prefix = "", "| "
        if not self._options.skips_record_metadata:
            line, prefix = f"| {record_text(batch, record)}{legacy_text}", " "
            if batch.is_control:
                line += f" {self._control_text(record, begun=line)}"
        if not self._options.selection.has_payload or batch.is_control:
            return line
        key, payload = self._decoded(record)
        if key is not None:
            line, prefix = f"{line}{prefix}key: {key}", " "
        if payload is not None:
            if self._options.release is ToolRelease.V3_9:
                prefix = " "  # also where nothing stands in front
            line += f"{prefix}payload: {payload}"
        return line

    def _control_text(self, record: Record, begun: str) -> str:
        size = len(record.key or b"")
        if size < CONTROL_KEY_BYTES:
            said = (
                "Invalid value size found for control record key. "
                f"Must have at least {CONTROL_KEY_BYTES} bytes, but found only {size}"
            )
            raise JavaError("org.apache.kafka.common.InvalidRecordException", said, begun)
        try:
            return control_text(record, self._options.release)
        except CorruptRecordError as error:
            said = control_fault(record) or str(error)
            raise JavaError(
                "org.apache.kafka.common.InvalidRecordException", said, begun
            ) from error
        except MessageError as error:
            raise _unreadable(error, begun) from error

    def _decoded(self, record: Record) -> tuple[str | None, str | None]:
        decoder = self._options.selection.decoder
        if decoder is not None:
            return decoder(record)
        key, value = record.key, record.value
        return None if key is None else java_text(key), None if value is None else java_text(value)

    def _dump_snapshot(self, path: str) -> None:
        try:
            is_old = self._options.release is ToolRelease.V3_9
            for line in snapshot_lines(self._fs, path, is_old=is_old):
                self._print(line)
        except CorruptFileError as error:
            self._complain(snapshot_complaint(self._fs, path, error))
