"""Records that were messages once, made the messages that they were."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.message_packing import MessageBatch, PackedTexts
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message import Message, decode_message, encode_message


@attrs.frozen(eq=False, slots=False)
class RestoredBatch:
    """
    Records of one partition of which some have kept fields, by offset.

    Works as :class:`MessageBatch` does, message by message; those without fields are made anew.
    """

    fresh: MessageBatch
    fields: dict[int, dict[str, Any]]

    def __len__(self) -> int:
        return len(self.fresh)

    @property
    def texts(self) -> PackedTexts:
        """What no message holds of the records that are made anew."""
        found, offsets = self.fresh.texts, self.fresh.columns.offset
        rests = {
            row: rest for row, rest in found.rests.items() if int(offsets[row]) not in self.fields
        }
        return attrs.evolve(found, rests=rests)

    @cached_property
    def messages(self) -> list[Message]:
        """The messages; physical and queue offsets are still to come."""
        return [self._message(row) for row in range(len(self))]

    def _message(self, row: int) -> Message:
        fresh = self.fresh
        offsets = np.full(len(fresh), 0, dtype=np.int64)
        times = fresh.columns.timestamp_ms
        data = fresh.pack(row, row + 1, offsets, times, 0, offsets.copy())
        message = decode_message(data, verify_crc=False)
        kept = self.fields.get(int(fresh.columns.offset[row]))
        if kept is None:
            return message
        body = message.body if kept["stored_body"] is None else kept["stored_body"]
        return attrs.evolve(
            message,
            body=body,
            properties_text=kept["properties"],
            flag=kept["flag"],
            sys_flag=kept["sys_flag"],
            born_host=_host_of(kept["born_host"]),
            store_timestamp_ms=round(kept["store_timestamp"].timestamp() * 1000),
            store_host=_host_of(kept["store_host"]),
            reconsume_times=kept["reconsume_times"],
            prepared_transaction_offset=kept["prepared_transaction_offset"],
            body_crc=kept["body_crc"],
        )

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many bytes each message has."""
        return np.array([len(encode_message(one)) for one in self.messages], dtype=np.int64)

    def pack(
        self,
        first: int,
        last: int,
        queue_offsets: NDArray[np.int64],
        store_timestamps_ms: NDArray[np.int64],
        physical_offset: int,
        physical_offsets: NDArray[np.int64],
    ) -> bytes:
        """Return the messages of rows ``[first, last)``, as :meth:`MessageBatch.pack` does."""
        offsets = self.fresh.columns.offset
        made: list[bytes] = []
        for row in range(first, last):
            message = self.messages[row]
            is_kept = int(offsets[row]) in self.fields
            stored_ms = message.store_timestamp_ms if is_kept else int(store_timestamps_ms[row])
            physical_offsets[row] = physical_offset
            message = attrs.evolve(
                message,
                queue_offset=int(queue_offsets[row]),
                physical_offset=physical_offset,
                store_timestamp_ms=stored_ms,
                size_bytes=int(self.sizes[row]),
            )
            made.append(encode_message(message))
            physical_offset += len(made[-1])
        return b"".join(made)


def _host_of(text: str) -> HostAddress:
    host, _, port = text.rpartition(":")
    return HostAddress.of(host, int(port))
