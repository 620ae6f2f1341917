"""The 20 bytes in a consume queue that lead to one message of the commit log."""

from __future__ import annotations

import struct

import attrs

#: physical offset, size of the record, tags code
UNIT = struct.Struct(">qiq")
UNIT_BYTES = 20
#: fills the first file of a queue that does not begin at queue offset 0
PRE_BLANK = UNIT.pack(0, 0x7FFF_FFFF, 0)


@attrs.frozen
class ConsumeQueueUnit:
    """
    One unit, decoded.

    `tags_code` is the hash of the message's tags, an address in the consume queue extension, or
    in the schedule topic the time of delivery.
    """

    physical_offset: int
    size_bytes: int
    tags_code: int

    @staticmethod
    def decode(data: bytes | memoryview, position: int = 0) -> ConsumeQueueUnit:
        """Decode the 20 bytes at `position`."""
        return ConsumeQueueUnit(*UNIT.unpack_from(data, position))

    def encode(self) -> bytes:
        """Return the 20 bytes."""
        return UNIT.pack(self.physical_offset, self.size_bytes, self.tags_code)

    @property
    def is_pre_blank(self) -> bool:
        """Tell whether it only fills a queue's first file."""
        return self.size_bytes == 0x7FFF_FFFF and self.physical_offset == 0
