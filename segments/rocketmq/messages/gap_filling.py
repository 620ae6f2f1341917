"""
What stands in a commit log where records were lost, so that all behind keeps its place.

Physical offsets are in every record and in every message id, queue offsets are dense: neither may
move. So a lost message whose unit survived is stood in for by an empty one of the same queue offset
and size, with the tag ``LOST``; other bytes are covered by records that are rolled back, which get
no unit and no index entry.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import attrs

from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message import Message, encode_message
from logstore.segments.rocketmq.messages.message_layout import (
    TOPIC_LENGTH_V1_MAX,
    MessageVersion,
)
from logstore.segments.rocketmq.messages.system_flags import TRANSACTION_ROLLBACK

LOST = "LOST"
_TAGGED = b"TAGS\x01LOST\x02"
_NOBODY = HostAddress.of("0.0.0.0", 0)  # noqa: S104 - nobody's address, not one to listen at
_FIXED_BYTES = 91
#: a record that covers bytes has a topic of one character
FILLER_BYTES_MIN = _FIXED_BYTES + 1


@attrs.frozen(order=True)
class LostMessage:
    """A message that was lost, as its unit tells of it."""

    physical_offset: int
    size_bytes: int
    topic: str
    queue_id: int
    queue_offset: int


@attrs.define
class _Piece:
    physical_offset: int
    size_bytes: int
    message: LostMessage | None


def fill_gap(
    start: int, end: int, known: Sequence[LostMessage], store_timestamp_ms: int
) -> Iterator[bytes]:
    """
    Yield the records that take the place of ``[start, end)``, at least `FILLER_BYTES_MIN` bytes.

    `known` are messages whose units lead there.
    """
    for piece in _pieces(start, end, known):
        yield _record(piece, store_timestamp_ms)


def _pieces(start: int, end: int, known: Sequence[LostMessage]) -> list[_Piece]:
    """Cut the gap at the messages that are known; what is too short for a record joins another."""
    pieces: list[_Piece] = []
    at = start
    for message in sorted(known):
        place, size_bytes = message.physical_offset, message.size_bytes
        if place < at or place + size_bytes > end or size_bytes < _size_min(message):
            continue
        if place > at:
            pieces.append(_Piece(at, place - at, None))
        pieces.append(_Piece(place, size_bytes, message))
        at = place + size_bytes
    if at < end:
        pieces.append(_Piece(at, end - at, None))
    return _joined(pieces)


def _joined(pieces: list[_Piece]) -> list[_Piece]:
    kept: list[_Piece] = []
    short = 0
    for piece in pieces:
        if piece.message is None and piece.size_bytes < FILLER_BYTES_MIN:
            if kept:
                kept[-1].size_bytes += piece.size_bytes
            else:
                short = piece.size_bytes
            continue
        if short:
            piece.physical_offset -= short
            piece.size_bytes += short
            short = 0
        kept.append(piece)
    return kept


def _size_min(message: LostMessage) -> int:
    topic = len(message.topic.encode())
    return _FIXED_BYTES + topic + (topic > TOPIC_LENGTH_V1_MAX)


def _record(piece: _Piece, store_timestamp_ms: int) -> bytes:
    lost = piece.message
    topic = "-" if lost is None else lost.topic
    is_long = len(topic.encode()) > TOPIC_LENGTH_V1_MAX
    room = piece.size_bytes - _FIXED_BYTES - len(topic.encode()) - is_long
    text = _TAGGED if lost is not None and room >= len(_TAGGED) else b""
    body = bytes(room - len(text))
    return encode_message(
        Message(
            topic=topic,
            body=body,
            queue_id=0 if lost is None else lost.queue_id,
            properties_text=text,
            flag=0,
            sys_flag=TRANSACTION_ROLLBACK if lost is None else 0,
            born_timestamp_ms=store_timestamp_ms,
            born_host=_NOBODY,
            store_timestamp_ms=store_timestamp_ms,
            store_host=_NOBODY,
            reconsume_times=0,
            prepared_transaction_offset=0,
            queue_offset=0 if lost is None else lost.queue_offset,
            physical_offset=piece.physical_offset,
            size_bytes=piece.size_bytes,
            body_crc=zlib.crc32(body) & 0x7FFF_FFFF,
            version=MessageVersion.V2 if is_long else MessageVersion.V1,
        )
    )
