"""Units held against the messages that they stand for, while the commit log is walked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.dispatch_request import (
    SCHEDULE_TOPIC,
    Blank,
    DispatchRequest,
    read_dispatch_request,
)
from logstore.segments.rocketmq.queues.batch_consume_queue import BatchUnit
from logstore.segments.rocketmq.queues.consume_queue_ext import (
    ConsumeQueueExtUnit,
    is_ext_address,
)
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT, ConsumeQueueUnit
from logstore.segments.rocketmq.queues.consume_queues import batch_unit
from logstore.tools.inspection.rocketmq.log_scan import last_set_byte
from logstore.tools.inspection.rocketmq.queue_span import Unit, decoded, is_unit
from logstore.tools.inspection.rocketmq.stored_store import StoredQueue, StoredStore
from logstore.tools.inspection.rocketmq.verification.log_range import MessagePlace
from logstore.tools.inspection.verification.finding import Finding, Severity

if TYPE_CHECKING:
    from logstore.tools.inspection.rocketmq.verification.followed_log import FollowedLog

_BLOCK_UNITS = 256
_EXT_UNIT_BYTES_MAX = 2**15
_REMEDY = "logstore reindex mends it"


class QueueCheck:
    """
    The check of one queue: :meth:`take` each of its messages, then :meth:`findings`.

    Units are numbered; `first` and `end` bound those that files hold and that are not zeros.
    """

    def __init__(self, store: StoredStore, queue: StoredQueue) -> None:
        self.store = store
        self.queue = queue
        self.size = queue.unit_bytes
        self.first = queue.files.start // self.size
        self.end = self._find_end()
        self._seen = bytearray(max(self.end - self.first, 0))
        #: number -> the message whose unit is not there, or another one
        self.missing: dict[int, MessagePlace] = {}
        self.wrong: dict[int, MessagePlace] = {}
        self._block = b""
        self._block_first = -1
        self._by_place: dict[int, int] | None = None

    def _find_end(self) -> int:
        for file in reversed(self.queue.files.files):
            handle = self.queue.files.open(file)
            end = last_set_byte(handle, 0, file.size_bytes)
            if end:
                return (file.base + end + self.size - 1) // self.size
        return self.first

    def unit(self, number: int) -> bytes:
        """Return the bytes of a unit, none where no file holds it."""
        if not self.first <= number < self.end:
            return b""
        if not self._block_first <= number < self._block_first + len(self._block) // self.size:
            self._block_first = number
            self._block = self.queue.files.read(number * self.size, self.size * _BLOCK_UNITS)
        start = (number - self._block_first) * self.size
        return self._block[start : start + self.size]

    @property
    def max_physical_offset(self) -> int:
        """Where the last unit leads, -1 without any."""
        unit = self._decoded(self.end - 1)
        return unit.physical_offset if unit is not None and is_unit(unit) else -1

    def _decoded(self, number: int) -> Unit | None:
        data = self.unit(number)
        return decoded(self.queue, data) if len(data) == self.size else None

    # the messages

    def take(self, request: DispatchRequest, queue_offset: int) -> None:
        """Hold the unit of a message against it."""
        if self.queue.is_batch:
            self._take_batch(request)
            return
        data = self.unit(queue_offset)
        if len(data) < self.size or not any(data):  # short where the file was cut
            self.missing[queue_offset] = MessagePlace.of(request)
        elif self._is_right(data, request):
            self.see(queue_offset, queue_offset + 1)
        else:
            self.wrong[queue_offset] = MessagePlace.of(request)

    def see(self, start: int, end: int) -> None:
        """Note that these units are those of messages: numbers [start, end)."""
        self._seen[start - self.first : end - self.first] = b"\1" * (end - start)

    def take_run(self, units: memoryview, queue_offset: int) -> bool:
        """
        Hold the units of messages that follow one another, as they must be, against the files.

        False where anything is different or odd, and nothing was done: take each by itself.
        """
        count = len(units) // self.size
        if self.queue.is_batch or queue_offset < self.first or queue_offset + count > self.end:
            return False
        done, byte = 0, queue_offset * self.size
        while done < len(units):
            stored = self.queue.files.read(byte + done, len(units) - done)
            if not stored or stored != bytes(units[done : done + len(stored)]):
                return False
            done += len(stored)
        self.see(queue_offset, queue_offset + count)
        return True

    def _is_right(self, data: bytes, request: DispatchRequest) -> bool:
        physical_offset, size_bytes, tags_code = UNIT.unpack(data)
        if (physical_offset, size_bytes) != (request.physical_offset, request.size_bytes):
            return False
        if tags_code == request.tags_code:
            return True
        ext = self.queue.ext
        if ext is not None and is_ext_address(tags_code):
            unit = ConsumeQueueExtUnit.decode(ext.read(tags_code + 2**63, _EXT_UNIT_BYTES_MAX))
            if unit is None or unit.store_timestamp_ms != request.store_timestamp_ms:
                return False
            tags_code = unit.tags_code
        if request.topic == SCHEDULE_TOPIC:  # by levels that may have been changed since
            return bool(tags_code >= request.store_timestamp_ms)
        return bool(tags_code == request.tags_code)

    def _take_batch(self, request: DispatchRequest) -> None:
        expected = batch_unit(request)
        if expected.queue_offset < 0 or expected.count < 0:
            return
        if self._by_place is None:
            units = ((number, self._decoded(number)) for number in range(self.first, self.end))
            self._by_place = {u.physical_offset: n for n, u in units if u is not None}
        number = self._by_place.get(request.physical_offset)
        if number is None:
            self.missing[expected.queue_offset] = MessagePlace.of(request)
        elif self._decoded(number) == expected:
            self.see(number, number + 1)
        else:
            self.wrong[number] = MessagePlace.of(request)

    # what is wrong

    def findings(self, log: FollowedLog) -> Iterator[Finding]:
        """Yield what is wrong with the queue, once the whole log was walked."""
        for oddity in self.queue.files.oddities:
            yield Finding(oddity.kind, oddity.relative, oddity.reason)
        yield from self._missing_units()
        wrong = {n: place for n, place in self.wrong.items() if not self._is_seen(n)}
        for number, place in sorted(wrong.items()):
            yield self._finding("unit", number, self._said(number, place))
        ahead: list[int] = []
        number = self._seen.find(0)
        while number >= 0:
            yield from self._unclaimed(self.first + number, log, wrong, ahead)
            number = self._seen.find(0, number + 1)
        if ahead:
            yield self._ahead(ahead, log)
        self.close()

    def close(self) -> None:
        """Give the handles back; what is asked for later opens them again."""
        self.queue.files.close()
        if self.queue.ext is not None:
            self.queue.ext.close()

    def _is_seen(self, number: int) -> bool:
        index = number - self.first
        return 0 <= index < len(self._seen) and bool(self._seen[index])

    def _missing_units(self) -> Iterator[Finding]:
        numbers = sorted(n for n in self.missing if self.queue.is_batch or not self._is_seen(n))
        if not numbers:
            return
        starts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(numbers)) if b != a + 1)]
        for start, end in pairwise([*starts, len(numbers)]):
            first, last = numbers[start], numbers[end - 1]
            message = self.missing[first]
            is_late = not self.queue.is_batch and first >= self.end and not self.store.was_clean
            said = (
                f"no unit for queue offset{_range(first, last)}: the message is at physical offset "
                f"{message.physical_offset}; "
            )
            is_fine, remedy = is_late, _REMEDY
            if is_late:
                remedy = "the next start dispatches it"
            elif self._is_of_former_topic(first, message):
                is_fine, remedy = True, "its topic was deleted, and made anew"
            severity = Severity.NOTE if is_fine else Severity.DAMAGE
            yield self._finding("unit-missing", first, said + remedy, severity)

    def _is_of_former_topic(self, queue_offset: int, message: MessagePlace) -> bool:
        """Tell whether a message stands before the first one in the log, and not in the queue."""
        first = self._decoded(self.first) if self.first < self.end else None
        if first is None or first.physical_offset <= message.physical_offset:
            return False
        return queue_offset >= (first.queue_offset if isinstance(first, BatchUnit) else self.first)

    def _said(self, number: int, message: MessagePlace) -> str:
        unit = self._decoded(number)
        assert unit is not None, "it was compared"
        what = "batch" if isinstance(unit, BatchUnit) else f"queue offset {number}"
        return (
            f"the unit of {what} says physical offset {unit.physical_offset}, {unit.size_bytes} "
            f"bytes, tags code {unit.tags_code}; the message has {message.physical_offset}, "
            f"{message.size_bytes}, {message.tags_code}; {_REMEDY}"
        )

    def _unclaimed(
        self,
        number: int,
        log: FollowedLog,
        wrong: dict[int, MessagePlace],
        ahead: list[int],
    ) -> Iterator[Finding]:
        """Judge a unit that no message of the log asked for."""
        unit = self._decoded(number)
        if number in wrong or unit is None or not is_unit(unit):
            if number not in wrong and number not in self.missing:
                yield self._finding("unit", number, f"these bytes are no unit; {_REMEDY}")
            return
        if isinstance(unit, ConsumeQueueUnit) and unit.is_pre_blank:
            return
        if unit.physical_offset < self.store.commit_log.start:
            return  # its message was deleted
        if unit.physical_offset >= log.end:
            ahead.append(number)
            return
        if any(start <= unit.physical_offset < end for start, end in log.lost):
            said = (
                f"the unit leads to physical offset {unit.physical_offset}, where no record can "
                "be read: that message is lost"
            )
        else:
            said = self._stranger(unit)
        if said:
            yield self._finding("unit-dangling", number, said)

    def _stranger(self, unit: Unit) -> str:
        """Say what stands where a unit leads that no message of this queue asked for."""
        data = self.store.commit_log.read(unit.physical_offset, unit.size_bytes)
        try:
            found = read_dispatch_request(data)
        except CorruptMessageError as error:
            return f"leads to physical offset {unit.physical_offset}: {error.reason}; {_REMEDY}"
        if isinstance(found, Blank):
            return f"leads to a BLANK, at physical offset {unit.physical_offset}; {_REMEDY}"
        return (
            f"leads to the message of {found.topic}-{found.queue_id} at queue offset "
            f"{found.queue_offset}, physical offset {unit.physical_offset}; {_REMEDY}"
        )

    def _ahead(self, ahead: list[int], log: FollowedLog) -> Finding:
        return self._finding(
            "unit-ahead",
            ahead[0],
            f"{len(ahead)} units lead behind the end of the commit log, {log.end}: remains of a "
            "recovery, or the log has lost its end; the next start cuts them off",
            Severity.NOTE,
        )

    def _finding(
        self, kind: str, number: int, text: str, severity: Severity = Severity.DAMAGE
    ) -> Finding:
        unit = self._decoded(number)
        if severity is Severity.DAMAGE and self.store.is_deleted(self.queue.topic):
            # Its queue went; what was delivered there later knows nothing of what was before.
            severity, text = Severity.NOTE, text.replace(_REMEDY, "the topic was deleted")
        is_batch = self.queue.is_batch and kind == "unit-missing"
        file, position = (self.queue.relative, None) if is_batch else self.queue.place(number)
        return Finding(
            kind,
            file,
            text,
            position,
            number,
            severity,
            None if unit is None else unit.physical_offset,
        )


def _range(first: int, last: int) -> str:
    return f" {first}" if first == last else f"s {first} to {last}"
