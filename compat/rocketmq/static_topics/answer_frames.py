"""Answers that were written as frames, read again and written with other fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.remoting import decode_command, encode_head, size_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.connection import Chunk
    from logstore.compat.rocketmq.wire.remoting import Command

_LENGTH_BYTES = 4


def read_answer(frame: list[Chunk]) -> Command:
    """Return the answer in a frame, whose first chunk holds the header; `body` may follow it."""
    head = frame[0]
    assert isinstance(head, (bytes, bytearray, memoryview)), "headers are no runs of files"
    return decode_command(memoryview(head)[_LENGTH_BYTES:])


def with_fields(
    request: Command,
    frame: list[Chunk],
    answer: Command,
    fields: Mapping[str, str],
    *,
    has_extra_fields: bool = False,
) -> list[Chunk]:
    """Return the frame with other fields; with `has_extra_fields` they stand as such do."""
    body = frame[1:]
    extra_fields: Mapping[str, str] | None = {} if has_extra_fields else None
    size_bytes = sum(map(size_of, body))
    head = encode_head(request, answer.code, answer.remark, fields, extra_fields, size_bytes)
    return [head, *body]
