"""Answers to those who send: the header that Java writes, put together from a few pieces."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

import orjson

from logstore.compat.rocketmq.sending.put_answers import STORED_CODES
from logstore.compat.rocketmq.sending.recall_handles import encoded_handle
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import VERSION, Response, Serializer, encode_response
from logstore.segments.rocketmq.messages.message_id import joined_message_ids
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.rocketmq.sending.send_kind import SendKind
    from logstore.compat.rocketmq.wire.refusals import RefusedError
    from logstore.compat.rocketmq.wire.remoting import Answer, Command
    from logstore.segments.rocketmq.messages.host_address import HostAddress
    from logstore.segments.rocketmq.messages.message_run import MessageRun
    from logstore.segments.rocketmq.putting.put_result import PutResult

_PUT_OK = PutMessageStatus.PUT_OK
_pack_head = struct.Struct(">iI").pack
_JSON, _WITHIN = Serializer.JSON, Serializer.WITHIN


class SendAnswers:
    """Writes the answers of one broker; every one of them tells region and trace switch."""

    def __init__(self, store_host: HostAddress, region: str, *, is_trace_on: bool) -> None:
        trace = "true" if is_trace_on else "false"
        self._extra_fields = {"MSG_REGION": region, "TRACE_ON": trace}
        self._store_host = store_host
        self._host_digits = store_host.packed.hex().upper()
        self._can_be_quoted = region.isascii() and region.replace("-", "").isalnum()
        # In the order of Java's hash map.
        self._middle = f'","TRACE_ON":"{trace}","MSG_REGION":"{region}","'
        begin = '{"code":0,"extFields":{"queueId":"%d","transactionId":"%b","msgId":"'
        about = f'","TRACE_ON":"{trace}","MSG_REGION":{_quoted(region)},'
        end = (
            '"queueOffset":"%d"},"flag":1,"language":"JAVA","opaque":%d,'
            f'"serializeTypeCurrentRPC":"JSON","version":{VERSION}}}'
        )
        message_id = f"{self._host_digits}%016X"
        self._line = f"{begin}{message_id}{about}{end}".encode()
        self._handle_line = f'{begin}{message_id}{about}"recallHandle":"%b",{end}'.encode()
        self._batch_line = f"{begin}%b{about}{end}".encode()

    def stored(
        self,
        request: Command,
        result: PutResult,
        queue_id: int,
        unique_key: str | None,
        recall_handle: str | None = None,
        batch_key: str | None = None,
    ) -> Answer:
        """Return what says where the message stands: a frame, if frames are asked for."""
        if (
            request.serializer == _JSON
            and result.status is _PUT_OK
            and batch_key is None
            and unique_key is not None
            and unique_key.isalnum()
            and unique_key.isascii()
            and self._can_be_quoted
        ):
            places = result.physical_offsets
            message_id = (
                f"{self._host_digits}{result.physical_offset:016X}"
                if places is None
                else joined_message_ids(self._store_host, places)
            )
            handle = "" if recall_handle is None else f'recallHandle":"{recall_handle}","'
            header = (
                f'{{"code":0,"extFields":{{"queueId":"{queue_id}","transactionId":"{unique_key}",'
                f'"msgId":"{message_id}{self._middle}{handle}'
                f'queueOffset":"{result.queue_offset}"}},"flag":1,"language":"JAVA","opaque":{request.opaque},'
                f'"serializeTypeCurrentRPC":"JSON","version":{VERSION}}}'
            ).encode()
            return [_pack_head(4 + len(header), len(header)) + header]
        fields = _places(result, queue_id)
        if unique_key is not None:
            fields["transactionId"] = unique_key
        if recall_handle is not None:
            fields["recallHandle"] = recall_handle
        if batch_key is not None:
            fields["batchUniqId"] = batch_key
        response = Response(
            STORED_CODES[result.status], None, fields, extra_fields=self._extra_fields
        )
        return response if request.serializer == _WITHIN else encode_response(request, response)

    def stored_run(self, run: MessageRun, asked: Sequence[tuple[SendKind, int]]) -> bytes:
        """
        Return the frames that say where the messages of a run stand.

        Their requests had JSON headers and these numbers, the unique keys need no quoting.
        """
        line, pack = self._line, _pack_head
        frames: list[bytes] = []
        for (kind, physical_offset, _, queue_offset, key), (known, opaque) in zip(
            run.stored, asked, strict=True
        ):
            if kind.unique_key_at is not None:
                key = key[kind.unique_key_at]
            if known.handle_start is None:
                header = line % (known.queue_id, key, physical_offset, queue_offset, opaque)
            else:
                handle = encoded_handle(known.handle_start, key)
                places = known.queue_id, key, physical_offset, handle, queue_offset, opaque
                header = self._handle_line % places
            size_bytes = len(header)
            frames += (pack(4 + size_bytes, size_bytes), header)
        return b"".join(frames)

    def stored_batch(self, queue_id: int, unique_key: str, result: PutResult, opaque: int) -> bytes:
        """Return the frame for a batch whose places `result` tells; as :meth:`stored_run`."""
        ids = joined_message_ids(self._store_host, result.physical_offsets or ())
        header = self._batch_line % (
            queue_id,
            unique_key.encode(),
            ids.encode(),
            result.queue_offset,
            opaque,
        )
        return _pack_head(4 + len(header), len(header)) + header

    def pushed(self, request: Command, result: PutResult | None, queue_id: int) -> list[Chunk]:
        """Return the frame that says that a reply has reached its client, stored or not."""
        is_stored = result is not None and result.is_ok
        fields = {"msgId": "0", "queueId": str(queue_id), "queueOffset": "0"}
        if is_stored and result is not None:
            fields = _places(result, queue_id)
        response = Response(ResponseCode.SUCCESS, None, fields, extra_fields=self._extra_fields)
        return encode_response(request, response)

    def refused(
        self,
        request: Command,
        refusal: RefusedError,
        stored: PutResult | None = None,
        queue_id: int = 0,
    ) -> list[Chunk]:
        """Return the frame that says what went wrong; a reply may be `stored` all the same."""
        fields = {} if stored is None else _places(stored, queue_id)
        response = Response(refusal.code, refusal.remark, fields, extra_fields=self._extra_fields)
        return encode_response(request, response)


def _quoted(text: str) -> str:
    """Return a text as it stands in JSON, to be the part of a format."""
    return orjson.dumps(text).decode().replace("%", "%%")


def _places(result: PutResult, queue_id: int) -> dict[str, str]:
    return {
        "msgId": ",".join(result.message_ids),
        "queueId": str(queue_id),
        "queueOffset": str(result.queue_offset),
    }
