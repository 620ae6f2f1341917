"""
The body of a client's batch, taken apart: what differs between its messages, a column for each.

Half of the cost of a batch is spent here, so items that have all lengths in common, as a client's
usually have, are taken apart together.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from logstore.errors import RejectedAppendError
from logstore.segments.rocketmq.messages.equal_rows import unpack_rows
from logstore.segments.rocketmq.messages.properties import PROPERTIES_SIZE_BYTES_MAX

#: what stands in an item in front of its body
ITEM_HEAD_BYTES = 20
_FLAG_AND_BODY = struct.Struct(">12xii")
_SHORT = struct.Struct(">h")
_crc32 = zlib.crc32


class MalformedBatchError(RejectedAppendError):
    """The body of a batch is not a run of whole items."""


class BatchColumns(NamedTuple):
    """What differs between the messages of a batch; an element of each column for a message."""

    #: of the records that they become
    sizes: Sequence[int]
    crcs: Sequence[int]
    flags: Sequence[int]
    bodies: Sequence[bytes]
    #: with their lengths in front
    texts: Sequence[bytes]


NO_COLUMNS = BatchColumns((), (), (), (), ())


def split_batch_body(data: bytes, fixed_bytes: int) -> tuple[BatchColumns, int]:
    """
    Return the messages in a batch body, and the size of every record if they are all alike.

    A record takes `fixed_bytes` beside body and properties. Records are alike if all lengths and
    flags are the same; the size is 0 where they are not.

    Raises:
        MalformedBatchError: `data` is not a run of whole items.

    """
    columns = _split_alike(data, fixed_bytes)
    if columns is None:
        return _split(data, fixed_bytes), 0
    flags = columns.flags
    return columns, columns.sizes[0] if flags.count(flags[0]) == len(flags) else 0


def lengthened(columns: BatchColumns, shared: bytes, crc_bytes: int) -> BatchColumns:
    """Return the columns of messages that have properties that all share, and a CRC, too."""
    texts = [_longer_text(before[2:], shared, crc_bytes) for before in columns.texts]
    sizes = [
        size_bytes + len(text) - len(before)
        for size_bytes, text, before in zip(columns.sizes, texts, columns.texts, strict=True)
    ]
    return columns._replace(sizes=sizes, texts=texts)


def _split_alike(data: bytes, fixed_bytes: int) -> BatchColumns | None:
    """As :func:`_split` where all items have the sizes of the first; None where they have not."""
    if len(data) < ITEM_HEAD_BYTES:
        return None
    body_bytes = _FLAG_AND_BODY.unpack_from(data)[1]
    text_at = ITEM_HEAD_BYTES + body_bytes
    if body_bytes < 0 or len(data) < text_at + 2:
        return None
    text_bytes = _SHORT.unpack_from(data, text_at)[0]
    item_bytes = text_at + 2 + text_bytes
    if text_bytes < 0 or len(data) % item_bytes:
        return None
    count = len(data) // item_bytes
    for place in (16, 17, 18, 19, text_at, text_at + 1):  # every byte of both sizes
        if data[place::item_bytes].count(data[place]) != count:
            return None
    values = unpack_rows(f"12xi4x{body_bytes}s{2 + text_bytes}s", data, count)
    flags, bodies, texts = values[::3], values[1::3], values[2::3]
    crcs = [_crc32(body) & 0x7FFF_FFFF for body in bodies]
    return BatchColumns([fixed_bytes - 16 + item_bytes] * count, crcs, flags, bodies, texts)


def _split(data: bytes, fixed_bytes: int) -> BatchColumns:
    """
    Take the items of a batch body apart; a record takes `fixed_bytes` beside body and properties.

    The loop is that of the codec and what is made of each item.
    """
    position, end = 0, len(data)
    unpack_item, unpack_short = _FLAG_AND_BODY.unpack_from, _SHORT.unpack_from
    sizes: list[int] = []
    crcs: list[int] = []
    flags: list[int] = []
    bodies: list[bytes] = []
    texts: list[bytes] = []
    fixed_bytes -= 16
    while position < end:
        try:
            flag, body_bytes = unpack_item(data, position)
            text_at = position + 20 + body_bytes
            (text_bytes,) = unpack_short(data, text_at)
        except struct.error:
            raise MalformedBatchError(f"batch: the item at {position} is cut short") from None
        next_at = text_at + 2 + text_bytes
        if body_bytes < 0 or text_bytes < 0 or next_at > end:
            raise MalformedBatchError(f"batch: a size in the item at {position} cannot be")
        sizes.append(fixed_bytes + next_at - position)
        body = data[position + 20 : text_at]
        crcs.append(_crc32(body) & 0x7FFF_FFFF)
        flags.append(flag)
        bodies.append(body)
        texts.append(data[text_at:next_at])
        position = next_at
    return BatchColumns(sizes, crcs, flags, bodies, texts)


def _longer_text(text: bytes, shared: bytes, crc_bytes: int) -> bytes:
    """Return properties with their length in front, those that all share behind them."""
    if text and shared and not text.endswith(b"\x02"):
        text += b"\x02"
    text += shared
    size_bytes = min(len(text) + crc_bytes, PROPERTIES_SIZE_BYTES_MAX)  # told before it is stamped
    return _SHORT.pack(size_bytes) + text
