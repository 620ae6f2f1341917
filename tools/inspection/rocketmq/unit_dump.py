"""What stands in the files of queues: units, units of batches, their extension, timer units."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from logstore.host import FileSystem, read_file
from logstore.os_host import system_host
from logstore.segments.rocketmq.queues.batch_consume_queue import BATCH_UNIT_BYTES, BatchUnit
from logstore.segments.rocketmq.queues.consume_queue_ext import ConsumeQueueExtUnit, is_ext_address
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT_BYTES, ConsumeQueueUnit
from logstore.segments.rocketmq.timer.timer_unit import (
    BLANK,
    TIMER_UNIT_BYTES,
    TimerUnit,
    is_blank,
)
from logstore.segments.rocketmq.timer.timer_wheel import Slot, TimerWheel
from logstore.tools.inspection.facts import Fact, Finding, Problem, Timestamp, Value
from logstore.tools.inspection.rocketmq.log_dump import Selection

_SCAN_BYTES = 1 << 20
_SIZE_BYTES = 2
_EXT_HEAD_BYTES = 20
_SLOT_BYTES = 32


def _units(
    fs: FileSystem, path: str, unit_bytes: int, first: int, selection: Selection
) -> Iterator[tuple[int, int, bytes]]:
    """Yield (number, position, bytes) of the units up to the last one that is not zeros."""
    data = read_file(fs, path)
    count = -(-len(data.rstrip(b"\0")) // unit_bytes)
    low = max(selection.start - first, 0)
    high = min(selection.end - first, count, len(data) // unit_bytes)
    for index in range(low, high):
        position = index * unit_bytes
        yield first + index, position, data[position : position + unit_bytes]


def dump_consume_queue(
    fs: FileSystem, path: str, base: int, selection: Selection
) -> Iterator[Finding]:
    """Yield every unit of a file of 20-byte units."""
    first = base // UNIT_BYTES
    for number, position, data in _units(fs, path, UNIT_BYTES, first, selection):
        unit = ConsumeQueueUnit.decode(data)
        if not unit.is_pre_blank and (unit.physical_offset < 0 or unit.size_bytes <= 0):
            yield Problem(path, position, f"{data.hex()} is no unit, for queue offset {number}")
            continue
        fields: dict[str, Value] = {
            "position": position,
            "queueOffset": number,
            "physicalOffset": unit.physical_offset,
            "size": unit.size_bytes,
            "tagsCode": unit.tags_code,
        }
        if unit.is_pre_blank:
            fields["isPreBlank"] = True
        elif is_ext_address(unit.tags_code):
            fields["extPosition"] = unit.tags_code + 2**63
        yield Fact("unit", fields)


def dump_batch_consume_queue(
    fs: FileSystem, path: str, base: int, selection: Selection
) -> Iterator[Finding]:
    """Yield every unit of a file of 46-byte units; `selection` is of their numbers."""
    first = base // BATCH_UNIT_BYTES
    for number, position, data in _units(fs, path, BATCH_UNIT_BYTES, first, selection):
        unit = BatchUnit.decode(data)
        if unit.physical_offset < 0 or unit.size_bytes <= 0 or unit.count <= 0:
            yield Problem(path, position, f"{data.hex()} is no unit of a batch")
            continue
        fields: dict[str, Value] = {
            "position": position,
            "unit": number,
            "physicalOffset": unit.physical_offset,
            "size": unit.size_bytes,
            "tagsCode": unit.tags_code,
            "storeTimestamp": Timestamp(unit.store_timestamp_ms),
            "queueOffset": unit.queue_offset,
            "count": unit.count,
            "compactedOffset": int.from_bytes(data[38:42], "big", signed=True),
        }
        yield Fact("unit", fields)


def dump_consume_queue_ext(
    fs: FileSystem, path: str, base: int, selection: Selection
) -> Iterator[Finding]:
    """Yield every unit of an extension; `selection` is of bytes of its log."""
    data = read_file(fs, path)
    end = len(data.rstrip(b"\0"))
    position = 0
    while position < end:
        size_bytes = int.from_bytes(data[position : position + _SIZE_BYTES], "big", signed=True)
        if size_bytes == -1:
            yield Fact("end mark", {"position": position})
            return
        unit = ConsumeQueueExtUnit.decode(data[position : position + max(size_bytes, 0)])
        if unit is None or size_bytes < _EXT_HEAD_BYTES or unit.size_bytes != size_bytes:
            yield Problem(path, position, f"no unit of an extension has {size_bytes} bytes here")
            return
        fields: dict[str, Value] = {
            "position": position,
            "address": base + position - 2**63,
            "size": size_bytes,
            "tagsCode": unit.tags_code,
            "storeTimestamp": Timestamp(unit.store_timestamp_ms),
            "bitMap": unit.bit_map.hex(),
        }
        if selection.start <= base + position < selection.end:
            yield Fact("unit", fields)
        position += size_bytes


def dump_timer_log(fs: FileSystem, path: str, base: int, selection: Selection) -> Iterator[Finding]:
    """Yield every unit of a timer log file; `selection` is of timer offsets."""
    data = read_file(fs, path)
    end = len(data.rstrip(b"\0"))
    for position in range(0, end, TIMER_UNIT_BYTES):
        if is_blank(data, position):
            yield Fact("blank", {"position": position, "size": len(data) - position})
            return
        unit = TimerUnit.decode(data, position)
        if unit is None:
            left = data[position : position + BLANK.size].hex()
            yield Problem(path, position, f"{left} begins no timer unit")
            continue
        if not selection.start <= base + position < selection.end:
            continue
        fields: dict[str, Value] = {
            "position": position,
            "timerOffset": base + position,
            "previous": unit.previous_timer_offset,
            "magic": unit.magic,
            "writeTime": Timestamp(unit.write_time_ms),
            "due": Timestamp(unit.due_ms),
            "physicalOffset": unit.physical_offset,
            "size": unit.size_bytes,
            "topicHash": unit.topic_hash,
        }
        yield Fact("unit", fields)


def wheel_slots(fs: FileSystem, path: str, precision_ms: int) -> Iterator[tuple[int, Slot]]:
    """Yield (index, slot) of every slot of a wheel of any length that was ever used."""
    file = fs.open(path, writable=False)
    try:
        slot_count = file.size() // _SLOT_BYTES // 2
    finally:
        file.close()
    if not slot_count:
        return
    host = attrs.evolve(system_host(), fs=fs)
    wheel = TimerWheel(
        host, path, slot_count=slot_count, precision_ms=precision_ms, is_writable=False
    )
    try:
        yield from wheel.slots()
    finally:
        wheel.close()


def dump_timer_wheel(fs: FileSystem, path: str, precision_ms: int) -> Iterator[Finding]:
    """Yield every slot of the wheel that was ever used."""
    for index, slot in wheel_slots(fs, path, precision_ms):
        fields: dict[str, Value] = {
            "position": _SLOT_BYTES * index,
            "time": Timestamp(slot.time_ms),
            "first": slot.first_timer_offset,
            "last": slot.last_timer_offset,
            "count": slot.count,
            "magic": slot.magic,
        }
        yield Fact("slot", fields)
