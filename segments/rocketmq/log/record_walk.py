"""
One pass over the records of a commit log file: the way of recovery and of every scan.

Java's recovery believes a record when its magic is known, the lengths in it add up and the CRC of
its body is right (``CommitLog.checkMessageAndReturnSize``). Here its physical offset must be its
place, too: a misdirected write, or what an older life of the file left, is not taken for a record.

But no CRC covers that field. Where nothing else is wrong and the log goes on behind the record, its
place counts for those who want it so: a recovery must not lose all that follows by one bit. A write
that was torn leaves more wrong than that; one that went to a wrong place may be the last of all.
"""

from __future__ import annotations

import logging
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, cast

import attrs

from logstore.errors import CorruptEntryError
from logstore.segments.rocketmq.messages.message_layout import (
    BLANK_BYTES,
    BLANK_MAGIC,
    FIXED_BYTES,
    PHYSICAL_OFFSET_POSITION,
    PREFIX,
    VERSIONS,
)
from logstore.segments.rocketmq.messages.properties import CRC32_BYTES, crc32_property

if TYPE_CHECKING:
    from logstore.host import File

_log = logging.getLogger(__name__)

#: how much of the file one step reads; a longer record is read whole
STEP_BYTES = 1024 * 1024
#: from how much on the vectorised check is worth its import
SLOW_BYTES_MAX = 64 * 1024 * 1024
#: size, magic, body CRC, (queue id, flag, queue offset,) physical offset, system flag
_unpack_head = struct.Struct(">i4si16xqi").unpack_from
_HEAD_BYTES = 40
#: how many records that do not say where they stand may be neighbours
_NEIGHBOURS_MAX = 4
_pack_offset = struct.Struct(">q").pack_into
_unpack_length = struct.Struct(">i").unpack_from
_unpack_short = struct.Struct(">h").unpack_from
#: magic codes of messages, and how many bytes the length of their topic takes
_TOPIC_LENGTH_BYTES = {magic: version.topic_length_bytes for magic, version in VERSIONS.items()}
_crc32 = zlib.crc32


class Mending(Enum):
    """Which records count though they say that they stand elsewhere, and nothing else is wrong."""

    NONE = "none"
    #: those behind which the log goes on
    FOLLOWED = "followed"
    #: also the last one
    ANY = "any"


@attrs.frozen
class RecordChecks:
    """What a walk verifies: ``checkCRCOnRecover`` and ``forceVerifyPropCRC``."""

    has_body_crc: bool = True
    has_property_crc: bool = False


#: (bytes of whole valid records from the start on, why the next one is not valid: None if it is
#: only cut short by the end of the data)
Checked = tuple[int, str | None]
#: checks a run of records: data, its physical offset, what to check
RunChecker = Callable[[memoryview, int, RecordChecks], Checked]


def check_run(data: memoryview, physical_offset: int, checks: RecordChecks) -> Checked:
    """
    Tell how many of these bytes are whole, valid records, and what is wrong with the next one.

    The loop is one function because recovery is as fast as it is.
    """
    position: int = 0
    end = len(data)
    has_body_crc = checks.has_body_crc and not checks.has_property_crc
    while end - position >= _HEAD_BYTES:
        size_bytes, magic, crc, found_offset, sys_flag = _unpack_head(data, position)
        topic_length_bytes = _TOPIC_LENGTH_BYTES.get(magic)
        if topic_length_bytes is None:
            return position, f"magic {magic.hex()} is that of no message"
        kinds_of_host: int = sys_flag >> 4 & 3
        fixed_bytes = FIXED_BYTES[kinds_of_host]
        if size_bytes < fixed_bytes + topic_length_bytes + 2:
            return position, f"a record of {size_bytes} bytes is too short"
        record_end: int = position + size_bytes
        if record_end > end:
            return position, None
        if found_offset != physical_offset + position:
            place = physical_offset + position
            return position, f"physical offset {found_offset} does not belong here, at {place}"
        start: int = position + fixed_bytes
        body_bytes: int = _unpack_length(data, start - 4)[0]
        topic_position: int = start + body_bytes
        properties_position: int
        if body_bytes < 0 or topic_position + topic_length_bytes + 2 > record_end:
            return position, f"a body of {body_bytes} bytes does not fit into the record"
        if topic_length_bytes == 1:
            properties_position = topic_position + 1 + data[topic_position]
        else:
            properties_position = topic_position + 2 + _unpack_short(data, topic_position)[0]
        if properties_position + 2 > record_end or (
            properties_position + 2 + _unpack_short(data, properties_position)[0] != record_end
        ):
            return position, "the lengths of its parts do not add up"
        if has_body_crc and body_bytes:
            found_crc = _crc32(data[start:topic_position]) & 0x7FFF_FFFF
            if found_crc != crc:
                return (
                    position,
                    f"CRC of the body is {found_crc:#010x}, the record says {crc:#010x}",
                )
        elif checks.has_property_crc and not _has_right_property_crc(data[position:record_end]):
            return position, "the CRC in its properties is missing or wrong"
        position = record_end
    return position, None


def _has_right_property_crc(record: memoryview) -> bool:
    """Tell whether the record ends with the CRC of all before it (``__CRC32#``)."""
    cut = len(record) - CRC32_BYTES
    return bytes(record[cut:]) == crc32_property(_crc32(record[:cut]) & 0x7FFF_FFFF)


def _is_blank(head: bytes) -> bool:
    return head[4 : PREFIX.size] == BLANK_MAGIC


class FastChecker:
    """
    :func:`check_run`, vectorised as soon as it pays and where its libraries are installed.

    Importing them takes as long as it takes to check some ten MiB without.
    """

    def __init__(self, slow_bytes_max: int = SLOW_BYTES_MAX) -> None:
        self._slow_bytes_max = slow_bytes_max
        self._checked_bytes = 0
        self._check: RunChecker = check_run

    def __call__(self, data: memoryview, physical_offset: int, checks: RecordChecks) -> Checked:
        """Check one run."""
        self._checked_bytes += len(data)
        if self._checked_bytes > self._slow_bytes_max:
            self._slow_bytes_max = sys.maxsize
            self._check = _find_vectorised()
        return self._check(data, physical_offset, checks)


def _find_vectorised() -> RunChecker:
    try:
        module = import_module("logstore.segments.rocketmq.columns.run_check")
    except ImportError:
        return check_run
    return cast("RunChecker", module.check_run) if module.is_fast() else check_run


class RecordWalk:
    """
    The valid records of one file from `position` on, in runs, up to `end_position` or its end.

    Iterating gives (position, whole records) and raises CorruptEntryError where a bad one stands.
    One of which `mending` believes that nothing but its physical offset is wrong comes as a run of
    its own, with the right one in it. Afterwards `position` is where the records end, `is_padded`
    tells whether a BLANK stands there.
    """

    def __init__(
        self,
        file: File,
        path: str,
        base_offset: int,
        position: int,
        checks: RecordChecks,
        *,
        end_position: int | None = None,
        check: RunChecker = check_run,
        step_bytes: int = STEP_BYTES,
        mending: Mending = Mending.NONE,
    ) -> None:
        self._mending = mending
        self._file = file
        self._path = path
        self._base_offset = base_offset
        self.position = position
        self._end_position = end_position
        self._checks = checks
        self._check = check
        self._step_bytes = step_bytes
        self.is_padded = False

    def runs(self) -> Iterator[tuple[int, memoryview]]:
        """Yield each run of whole valid records with its position in the file."""
        size_bytes = self._file.size() if self._end_position is None else self._end_position
        while self.position < size_bytes:
            data = memoryview(self._read_step(size_bytes))
            if not data:
                return
            start = self.position
            done, reason = self._check(data, self._base_offset + start, self._checks)
            if done:
                yield start, data[:done]
            self.position = start + done
            if reason is not None or not done:
                if reason is not None and (mended := self._mended(data[done:])) is not None:
                    start, self.position = self.position, self.position + len(mended)
                    yield start, mended
                    continue
                if not self._ends_well(data[done : done + PREFIX.size]):
                    raise CorruptEntryError(
                        self._path, self.position, reason or "a record is cut short"
                    )
                return

    def _mended(self, data: memoryview) -> memoryview | None:
        """Return the record in front with its place in it, if that alone is wrong; else None."""
        if self._mending is Mending.NONE or len(data) < _HEAD_BYTES:
            return None
        size_bytes, _, _, found_offset, _ = _unpack_head(data)
        place = self._base_offset + self.position
        if found_offset == place or not _HEAD_BYTES < size_bytes <= len(data):
            return None
        if not found_offset and self._mending is Mending.FOLLOWED:
            return None  # never written, by a disk that tears even there
        record = bytearray(data[:size_bytes])
        _pack_offset(record, PHYSICAL_OFFSET_POSITION, place)
        mended = memoryview(record)
        if self._check(mended, place, self._checks) != (size_bytes, None):
            return None
        if not self._goes_on_at(self.position + size_bytes):
            return None
        _log.warning(
            "%s: position %d: the record there says physical offset %d; taken for %d, its place",
            self._path, self.position, found_offset, place,
        )  # fmt: skip
        return mended

    def _goes_on_at(self, position: int) -> bool:
        """
        Tell whether the log goes on there, or ends where it may.

        One of the next few records must say where it stands, if there are so many.
        """
        for _ in range(_NEIGHBOURS_MAX):
            head = self._file.read(position, _HEAD_BYTES)
            if len(head) < _HEAD_BYTES or head[4 : PREFIX.size] not in _TOPIC_LENGTH_BYTES:
                is_end = not any(head)
                return (is_end and self._mending is Mending.ANY) or _is_blank(head)
            size_bytes, _, _, found_offset, _ = _unpack_head(head)
            if found_offset == self._base_offset + position:
                return True
            position += max(size_bytes, _HEAD_BYTES)
        return False

    def _read_step(self, end_position: int) -> bytes:
        """Return the next piece: at least one whole record, if there is one."""
        left_bytes = end_position - self.position
        head = self._file.read(self.position, min(_HEAD_BYTES, left_bytes))
        magic = head[4 : PREFIX.size]
        if magic not in _TOPIC_LENGTH_BYTES:
            return head
        size_bytes = max(self._step_bytes, _unpack_length(head)[0])
        return self._file.read(self.position, min(size_bytes, left_bytes))

    def _ends_well(self, prefix: memoryview) -> bool:
        """Tell whether what stands at the end is no entry at all: nothing, or a BLANK."""
        found = bytes(prefix)
        if found == bytes(len(found)):
            return True
        if len(found) == BLANK_BYTES and found[4:] == BLANK_MAGIC:
            self.is_padded = True
            return True
        return False
