"""
One pass over a ``.log``: every batch's place, size, CRC and offsets, and what its indexes need.

The pass trusts nothing. Behind a batch with a wrong CRC it goes on at the next one, where no next
one can be seen it hunts for it (:mod:`.batch_hunt`). It notes what must be known of the segment
later, never the batches themselves, so its memory does not grow with the log.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import attrs

from logstore.checksum import crc32c
from logstore.errors import LogStoreError
from logstore.host import File
from logstore.segments.kafka.control_record import ControlType, control_type, decode_marker
from logstore.segments.kafka.legacy.message import (
    MESSAGE_BYTES_MIN,
    LegacyMessage,
    is_legacy_magic,
)
from logstore.segments.kafka.record import CorruptRecordError, decode_records
from logstore.segments.kafka.record_batch import (
    CONTROL_BIT,
    HEADER_BYTES,
    MAGIC,
    PREFIX_BYTES,
    TRANSACTIONAL_BIT,
    RecordBatch,
)
from logstore.tools.inspection.verification.batch_hunt import (
    Bounds,
    find_good_batch,
    is_plausible,
)
from logstore.tools.inspection.verification.index_watch import IndexWatch
from logstore.tools.inspection.verification.producer_fold import (
    Begun,
    Ended,
    ProducerChange,
    Reached,
)
from logstore.tools.inspection.verification.segment_scan import (
    Hole,
    LostStretch,
    ScanRequest,
    SegmentScan,
)

#: a step stays in the processor's cache from the read to the CRC
STEP_BYTES = 512 * 1024
_HEADER = struct.Struct(">qiibIhiqqqhii")
_unpack = _HEADER.unpack_from
_CRC_START = 21
_COMMON_BYTES = 17
_MAGIC_POSITION = 16
_OFFSETS_MAX = 2**31 - 1
_SEQUENCE_MODULUS = 1 << 31
_FAR = 2**63 - 1


def _ignore(size_bytes: int) -> None:
    del size_bytes


def scan_segment(
    file: File, request: ScanRequest, note: Callable[[int], None] = _ignore
) -> SegmentScan:
    """Make the pass; `note` is told how many more bytes are done."""
    return _Pass(file, request, note).run()


class _Pass:
    def __init__(self, file: File, request: ScanRequest, note: Callable[[int], None]) -> None:
        self.file = file
        self.request = request
        self.note = note
        self.end = file.size()
        base = request.base_offset
        self.scan = SegmentScan(base, self.end, next_offset=base)
        self.watch = IndexWatch(request, self.scan)
        self.snapshots = iter((*request.snapshots, _FAR))
        self.next_snapshot = next(self.snapshots)
        self.epoch = -2  # of no batch
        self.open: set[int] = set()  # producers with a Begun since their last marker
        self.bounds_end = min(base + _OFFSETS_MAX + 1, request.limit_offset)
        self.is_behind_loss = False
        self.buffer = memoryview(bytearray(min(STEP_BYTES, self.end)))
        #: of the last batch: where it had to start, where it says so, how many offsets, position
        self.previous: tuple[int, int, int, int] | None = None

    def run(self) -> SegmentScan:
        position, start, window = 0, 0, memoryview(b"")
        while position < self.end:
            is_fresh = False
            if len(window) - (position - start) < min(HEADER_BYTES, self.end - position):
                start, window, is_fresh = position, self._read(position), True
            done, is_short = self._walk(window[position - start :], position)
            if not done and is_short and not is_fresh:
                start, window = position, self._read(position)
                done, _ = self._walk(window, position)
            done = done or self._step(position)
            position += done
            self.note(done)
        for offset in (self.next_snapshot, *self.snapshots):
            if offset != _FAR:
                self.scan.events.append(Reached(offset, _copied(self.scan.changes)))
        return self.scan

    def _read(self, position: int) -> memoryview:
        target = self.buffer[: self.end - position]
        return target[: self.file.read_into(position, target)]

    def _walk(self, window: memoryview, start: int) -> tuple[int, bool]:
        """Take good batches; return how many bytes, and whether the window ends inside of one."""
        index, available = self._take_usual(window, 0, start), len(window)
        while available - index >= HEADER_BYTES:
            fields = _HEADER.unpack_from(window, index)
            size_bytes = PREFIX_BYTES + fields[1]
            if fields[3] != MAGIC or size_bytes < HEADER_BYTES:
                return index, False
            if size_bytes > available - index:
                return index, True
            view = window[index : index + size_bytes]
            if not self.scan.next_offset <= fields[0] < self.bounds_end - fields[6]:
                return index, False
            if crc32c(view[_CRC_START:]) != fields[4]:
                return index, False
            self._take(fields, start + index, size_bytes, view)
            index = self._take_usual(window, index + size_bytes, start)
        return index, True

    def _take_usual(self, window: memoryview, index: int, start: int) -> int:
        """
        Take the batches from `index` on about which nothing is special; return where they end.

        They go on where the one before ended, in its epoch, with all their records. It is one loop
        that makes no objects, because a log has a million of them.
        """
        scan, available, position = self.scan, len(window), -1
        next_offset, newest_ms, base, delta = scan.next_offset, scan.max_timestamp_ms, 0, 0
        limit = -1 if self.request.has_records else min(self.bounds_end, self.next_snapshot)
        epoch, watch = self.epoch, self.watch
        next_position, next_time_offset = watch.next_position, watch.next_offset
        while available - index >= HEADER_BYTES:
            (
                base_offset, length, leader_epoch, magic, crc, attributes, last_delta, _, time_ms,
                producer_id, producer_epoch, sequence, count,
            ) = _unpack(window, index)  # fmt: skip
            end, following = index + PREFIX_BYTES + length, base_offset + count
            if (
                base_offset != next_offset
                or magic != MAGIC
                or leader_epoch != epoch
                or count != last_delta + 1
                or not base_offset < following <= limit
                or not index + HEADER_BYTES <= end <= available
                or crc32c(window[index + _CRC_START : end]) != crc
            ):
                break
            if producer_id >= 0 and not self._goes_on(
                producer_id, producer_epoch, attributes, sequence, base_offset, last_delta, time_ms
            ):
                break
            base, delta, position, next_offset = base_offset, last_delta, start + index, following
            scan.batch_count += 1
            if time_ms > newest_ms:
                scan.max_timestamp_ms = newest_ms = time_ms
            if position >= next_position or following > next_time_offset:
                watch.meet(position, base_offset, following - 1, time_ms)
                next_position, next_time_offset = watch.next_position, watch.next_offset
            index = end
        if position >= 0:
            self.previous = (base, base, delta + 1, position)
            scan.last_position, scan.end_position = position, start + index
            scan.next_offset = next_offset
            self.is_behind_loss = scan.is_newest_legacy = False
        return index

    def _goes_on(
        self,
        producer_id: int,
        epoch: int,
        attributes: int,
        sequence: int,
        base_offset: int,
        last_delta: int,
        timestamp_ms: int,
    ) -> bool:
        """Take note of a producer's batch, unless it is the first one, or of a transaction."""
        change = self.scan.changes.get(producer_id)
        if change is None or change.epoch != epoch or attributes & CONTROL_BIT:
            return False
        if attributes & TRANSACTIONAL_BIT and producer_id not in self.open:
            return False
        change.last_sequence = -1 if sequence < 0 else (sequence + last_delta) % _SEQUENCE_MODULUS
        change.last_offset = base_offset + last_delta
        change.offset_delta = last_delta
        change.timestamp_ms = timestamp_ms
        return True

    def _step(self, position: int) -> int:
        """Get over what :meth:`_walk` did not take: a long batch, an old message, a bad place."""
        head = self.file.read(position, min(HEADER_BYTES, self.end - position))
        rest = self.end - position
        if len(head) < _COMMON_BYTES:
            return self._lose(position, "tail", f"{rest} bytes are less than a batch header")
        size_bytes = PREFIX_BYTES + int.from_bytes(head[8:12], "big", signed=True)
        magic = head[_MAGIC_POSITION]
        if is_legacy_magic(magic) and size_bytes >= MESSAGE_BYTES_MIN[magic]:
            return self._step_message(position, size_bytes)
        if not any(head):
            return self._lose(position, "zeros", "zeros that nobody wrote")
        if size_bytes < HEADER_BYTES:
            return self._lose(
                position, "length", f"a batch cannot have the length {size_bytes - PREFIX_BYTES}"
            )
        if magic != MAGIC:
            return self._lose(position, "magic", f"magic {magic} is unknown")
        if size_bytes > rest:
            reason = f"a batch of {size_bytes} bytes is cut short after {rest}"
            return self._lose(position, "cut", reason)
        data = memoryview(self.file.read(position, size_bytes))
        fields = _HEADER.unpack_from(data)
        crc = crc32c(data[21:])
        if crc != fields[4]:
            reason = f"the CRC is {crc:#010x}, the header says {fields[4]:#010x}"
            return self._lose(position, "crc", reason, size_bytes)
        if fields[0] < self.scan.next_offset and not self._blames_previous(fields[0]):
            reason = f"offset {fields[0]} goes back: the batch before ends below "
            return self._lose(
                position, "offset-order", f"{reason}{self.scan.next_offset}", size_bytes
            )
        if fields[0] + fields[6] >= self.bounds_end:
            reason = (
                f"the offsets {fields[0]} to {fields[0] + fields[6]} are not those of this segment"
            )
            return self._lose(position, "offset-order", reason, size_bytes)
        self._take(fields, position, size_bytes, data)
        return size_bytes

    def _step_message(self, position: int, size_bytes: int) -> int:
        rest = self.end - position
        if size_bytes > rest:
            reason = f"a message of {size_bytes} bytes is cut short after {rest}"
            return self._lose(position, "cut", reason)
        message = LegacyMessage(memoryview(self.file.read(position, size_bytes)), size_bytes)
        crc = message.computed_crc()
        if crc != message.crc:
            reason = f"the CRC is {crc:#010x}, the header says {message.crc:#010x}"
            return self._lose(position, "crc", reason, size_bytes)
        if message.last_offset < self.scan.next_offset:
            reason = f"offset {message.last_offset} goes back below {self.scan.next_offset}"
            return self._lose(position, "offset-order", reason, size_bytes)
        self._note_batch(position, message, is_wrapper=bool(message.codec))
        self.scan.is_newest_legacy = True
        return size_bytes

    def _blames_previous(self, offset: int) -> bool:
        """
        Take back the previous batch if its base offset was the wrong one of the two.

        A base offset lies outside of the CRC. If it were what the batch before demands, this one
        would follow.
        """
        scan = self.scan
        if self.previous is None or offset != self.previous[0] + self.previous[2]:
            return False
        start, base_offset, count, position = self.previous
        reason = f"base offset {base_offset} is wrong: {start} would fit what stands around"
        next_position = scan.end_position
        scan.lost.append(
            LostStretch(position, next_position, "base-offset", reason, start, start + count)
        )
        scan.holes = [hole for hole in scan.holes if hole.position != position]
        scan.next_offset = offset
        self.watch.correct(position, start, offset - 1)
        self.previous = None
        return True

    # bad places

    def _lose(self, position: int, kind: str, reason: str, size_bytes: int = 0) -> int:
        """Note bytes without a good batch; return how many."""
        bounds = Bounds(self.scan.next_offset, self.bounds_end)
        following = position + size_bytes
        if not size_bytes or not self._goes_on_at(following):
            found = find_good_batch(self.file, position + 1, self.end, bounds)
            following = self.end if found is None else found
        next_offset = None
        if following < self.end:
            next_offset = int.from_bytes(self.file.read(following, 8), "big", signed=True)
        self.scan.lost.append(
            LostStretch(position, following, kind, reason, self.scan.next_offset, next_offset)
        )
        self.is_behind_loss = True
        return following - position

    def _goes_on_at(self, position: int) -> bool:
        """Tell whether a header that makes sense stands at `position`, or the file ends there."""
        if position == self.end:
            return True
        head = self.file.read(position, HEADER_BYTES)
        if len(head) >= _COMMON_BYTES and is_legacy_magic(head[_MAGIC_POSITION]):
            return True
        bounds = Bounds(0, self.bounds_end)
        rest = self.end - position
        return len(head) == HEADER_BYTES and is_plausible(head, 0, rest, bounds)

    # good batches

    def _take(
        self, fields: tuple[int, ...], position: int, size_bytes: int, data: memoryview
    ) -> None:
        batch = RecordBatch(data, size_bytes)
        delta, count = fields[6], fields[12]
        if count != delta + 1:
            if delta < 0 or count > delta + 1 or count < 0:
                self._note_odd(position, size_bytes, batch)
                return
            self.scan.is_thinned = True
        self._note_batch(position, batch)
        scan = self.scan
        scan.has_epochs, scan.is_newest_legacy = True, False
        if fields[2] != self.epoch:
            self.epoch = fields[2]
            scan.epochs.append((fields[2], fields[0], position))
        if fields[9] >= 0:
            self._note_producer(batch, position)
        if self.request.has_records:
            self._check_records(batch, position)

    def _note_odd(self, position: int, size_bytes: int, batch: RecordBatch) -> None:
        reason = (
            f"{batch.record_count} records cannot have the offsets {batch.base_offset} to "
            f"{batch.last_offset}"
        )
        end = position + size_bytes
        self.scan.lost.append(
            LostStretch(position, end, "count", reason, self.scan.next_offset, None)
        )
        self.is_behind_loss = True

    def _note_batch(self, position: int, batch: RecordBatch, *, is_wrapper: bool = False) -> None:
        scan, base, last = self.scan, batch.base_offset, batch.last_offset
        if scan.first_offset is None:
            scan.first_offset = base
        if base != scan.next_offset and not self.is_behind_loss and not is_wrapper:
            scan.holes.append(Hole(position, scan.next_offset, base))
        self.is_behind_loss = False
        while base >= self.next_snapshot:
            scan.events.append(Reached(self.next_snapshot, _copied(scan.changes)))
            self.next_snapshot = next(self.snapshots)
        newest_ms = batch.max_timestamp_ms
        if newest_ms > scan.max_timestamp_ms:
            scan.max_timestamp_ms = newest_ms
        if position >= self.watch.next_position or last >= self.watch.next_offset:
            self.watch.meet(position, base, last, newest_ms)
        self.previous = (scan.next_offset, base, last - base + 1, position)
        scan.batch_count += 1
        scan.last_position = position
        scan.end_position = position + batch.size_bytes
        scan.next_offset = last + 1

    # producers

    def _note_producer(self, batch: RecordBatch, position: int) -> None:
        scan, producer_id = self.scan, batch.producer_id
        scan.has_producers = True
        change = scan.changes.get(producer_id)
        if change is None:
            change = ProducerChange(batch.producer_epoch, batch.producer_epoch)
            scan.changes[producer_id] = change
        change.move_to(batch.producer_epoch)
        if batch.attributes & CONTROL_BIT:
            self._note_markers(batch, position, change)
            return
        change.last_sequence = batch.last_sequence
        change.last_offset = batch.last_offset
        change.offset_delta = batch.last_offset_delta
        change.timestamp_ms = batch.max_timestamp_ms
        if batch.attributes & TRANSACTIONAL_BIT and producer_id not in self.open:
            self.open.add(producer_id)
            scan.events.append(
                Begun(
                    batch.base_offset, position, producer_id, batch.producer_epoch,
                    batch.max_timestamp_ms,
                )
            )  # fmt: skip

    def _note_markers(self, batch: RecordBatch, position: int, change: ProducerChange) -> None:
        try:
            for record in decode_records(batch.data):
                marker = decode_marker(record)
                if marker is None:
                    continue
                change.timestamp_ms = record.timestamp_ms
                change.coordinator_epoch = marker.coordinator_epoch
                self.open.discard(batch.producer_id)
                is_abort = control_type(record) is ControlType.ABORT
                self.scan.events.append(
                    Ended(
                        record.offset, position, batch.producer_id, batch.producer_epoch, is_abort
                    )
                )
        except CorruptRecordError as error:
            self._note_unreadable(batch, position, error)

    def _check_records(self, batch: RecordBatch, position: int) -> None:
        try:
            decode_records(batch.data)
        except CorruptRecordError as error:
            self._note_unreadable(batch, position, error)

    def _note_unreadable(self, batch: RecordBatch, position: int, error: LogStoreError) -> None:
        end, reason = position + batch.size_bytes, f"its records cannot be read: {error}"
        self.scan.lost.append(
            LostStretch(position, end, "records", reason, batch.base_offset, batch.next_offset)
        )


def _copied(changes: dict[int, ProducerChange]) -> dict[int, ProducerChange]:
    return {producer_id: attrs.evolve(change) for producer_id, change in changes.items()}
