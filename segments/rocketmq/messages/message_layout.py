"""
Where the fields of a stored message stand; every integer is big-endian.

::

     0  TOTALSIZE i32        20  QUEUEOFFSET i64      48  BORNHOST 8 or 20 bytes
     4  MAGICCODE i32        28  PHYSICALOFFSET i64       STORETIMESTAMP i64
     8  BODYCRC i32          36  SYSFLAG i32              STOREHOST 8 or 20 bytes
    12  QUEUEID i32          40  BORNTIMESTAMP i64        RECONSUMETIMES i32
    16  FLAG i32                                          PREPARED_TRANSACTION_OFFSET i64
                                                          BODY i32 + bytes
                                                          TOPIC i8 (V2: i16) + bytes
                                                          PROPERTIES i16 + bytes

Source: ``org.apache.rocketmq.store.CommitLog``, ``org.apache.rocketmq.common.message.
MessageVersion``.
"""

from __future__ import annotations

import struct
from enum import Enum

#: topics of more characters than this need a record of version 2
TOPIC_LENGTH_V1_MAX = 127

QUEUE_OFFSET_POSITION = 20
PHYSICAL_OFFSET_POSITION = 28
SYS_FLAG_POSITION = 36
BORN_HOST_POSITION = 48

BLANK_MAGIC = bytes.fromhex("cbd43194")
#: a BLANK: how many bytes of the file are left, and the magic
BLANK = struct.Struct(">i4s")
BLANK_BYTES = 8

PROPERTIES_SIZE = struct.Struct(">h")
#: ``(total size, magic)``: what every entry of a commit log begins with
PREFIX = struct.Struct(">i4s")

#: everything up to the length of the body, by bits 4 and 5 of the system flag: born host and
#: store host may be IPv6
FIXED_FIELDS = tuple(
    struct.Struct(f">i4siiiqqiq{born}sq{store}siqi")
    for born, store in ((8, 8), (20, 8), (8, 20), (20, 20))
)
#: of these, what dispatch wants to know: body CRC, queue id, queue offset, physical offset, system
#: flag, store timestamp, prepared transaction offset, size of the body
DISPATCHED_FIELDS = tuple(
    struct.Struct(f">8xii4xqqi8x{born}xq{store}x4xqi")
    for born, store in ((8, 8), (20, 8), (8, 20), (20, 20))
)
FIXED_BYTES = tuple(fields.size for fields in FIXED_FIELDS)


class MessageVersion(Enum):
    """The two kinds of record; the value is the magic code."""

    V1 = bytes.fromhex("daa320a7")
    #: since 5.1: the topic's length takes two bytes
    V2 = bytes.fromhex("daa320ab")

    def __init__(self, magic: bytes) -> None:
        self.magic = magic
        self.topic_length_bytes = 1 if magic[-1] == 0xA7 else 2


#: versions by their magic
VERSIONS = {version.magic: version for version in MessageVersion}
