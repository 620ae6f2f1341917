"""
The bits of a message's system flag.

====  =====  ==============================================================
bits  mask   meaning
====  =====  ==============================================================
0     0x001  the body is compressed
1     0x002  the topic filters by several tags (a note, nothing reads it)
2-3   0x00C  transaction: 0 none, 4 prepared, 8 commit, 12 rollback
4     0x010  the born host is IPv6
5     0x020  the store host is IPv6
6     0x040  a client must unwrap the body into the messages of a batch (5.x)
7     0x080  the message is an inner batch: its body holds messages (5.x)
8-10  0x700  how the body is compressed: 0 and 3 zlib, 1 LZ4, 2 zstd
====  =====  ==============================================================

Source: ``org.apache.rocketmq.common.sysflag.MessageSysFlag``.
"""

from __future__ import annotations

COMPRESSED = 0x1
MULTI_TAGS = 0x2
TRANSACTION_MASK = 0xC
TRANSACTION_NONE = 0x0
TRANSACTION_PREPARED = 0x4
TRANSACTION_COMMIT = 0x8
TRANSACTION_ROLLBACK = 0xC
BORN_HOST_IPV6 = 0x10
STORE_HOST_IPV6 = 0x20
NEED_UNWRAP = 0x40
INNER_BATCH = 0x80
COMPRESSION_MASK = 0x700
COMPRESSION_SHIFT = 8


def transaction_type(sys_flag: int) -> int:
    """Return the transaction bits: one of the ``TRANSACTION_`` values."""
    return sys_flag & TRANSACTION_MASK


def with_transaction_type(sys_flag: int, transaction_type: int) -> int:
    """Return the flag with other transaction bits, all else kept."""
    return sys_flag & ~TRANSACTION_MASK | transaction_type


def is_queued(sys_flag: int) -> bool:
    """Tell whether a message gets a unit in its consume queue: not if prepared or rolled back."""
    return sys_flag & TRANSACTION_MASK in (TRANSACTION_NONE, TRANSACTION_COMMIT)


def compression_type(sys_flag: int) -> int:
    """Return the number of the compression: 0 and 3 zlib, 1 LZ4, 2 zstd, others mean nothing."""
    return (sys_flag & COMPRESSION_MASK) >> COMPRESSION_SHIFT
