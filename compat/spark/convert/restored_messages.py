"""Records that were messages once, made the messages that they were, many at a time."""

from __future__ import annotations

import importlib
from functools import cached_property
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert import restored_kernel
from logstore.compat.spark.convert.message_packing import RecordsOfPartition, message_version
from logstore.segments.kafka.columns import to_arrow
from logstore.segments.rocketmq.messages.host_address import HostAddress

#: all of a message but both hosts, body, topic with its length, and properties
_FIXED_BYTES = 48 + 8 + 16 + 2
_HOST_BYTES_MAX = 20
_NUMBERS = (
    "flag",
    "sys_flag",
    "body_crc",
    "born_timestamp",
    "store_timestamp",
    "reconsume_times",
    "prepared_transaction_offset",
)


@attrs.frozen(eq=False, slots=False)
class RestoredBatch(RecordsOfPartition):
    """
    Records for each of which `table` has a row of kept fields, in order.

    Works as :class:`~logstore.compat.spark.convert.message_packing.MessageBatch` does.
    """

    table: Any

    @property
    def rests(self) -> dict[int, bytes]:
        """What no message holds of the records, by row: nothing, as they were messages."""
        return {}

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many bytes each message has."""
        _, host_sizes = self._hosts
        born, store = self._numbers[7], self._numbers[8]
        fixed = _FIXED_BYTES + message_version(self.topic).topic_length_bytes + len(self.topic)
        sizes: NDArray[np.int64] = (
            fixed
            + host_sizes[born]
            + host_sizes[store]
            + self._body_sizes
            + np.diff(self._texts[1])
        )
        return sizes

    def pack(
        self,
        first: int,
        last: int,
        queue_offsets: NDArray[np.int64],
        store_timestamps_ms: NDArray[np.int64],
        physical_offset: int,
        physical_offsets: NDArray[np.int64],
    ) -> NDArray[np.uint8]:
        """
        Return the messages of rows ``[first, last)``, the first of which stands there.

        They are stored at their old times. `physical_offsets` of these rows are set.
        """
        del store_timestamps_ms
        hosts, host_sizes = self._hosts
        target = np.empty(int(self.sizes[first:last].sum()), dtype=np.uint8)
        restored_kernel.pack_restored(
            first,
            last,
            int.from_bytes(message_version(self.topic).magic, "big"),
            self.queue_id,
            np.frombuffer(self.topic.encode(), dtype=np.uint8),
            message_version(self.topic).topic_length_bytes,
            self._numbers,
            hosts,
            host_sizes,
            *self._bodies,
            *self._texts,
            queue_offsets,
            self.sizes,
            physical_offset,
            physical_offsets,
            target,
        )
        return target

    @cached_property
    def _host_codes(self) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
        """All hosts, and which of them each message was born and is stored at."""
        pa: Any = importlib.import_module("pyarrow")
        both = pa.concat_arrays(
            [self.table.column(name).combine_chunks() for name in ("born_host", "store_host")]
        )
        found = both.cast(pa.string()).dictionary_encode()
        codes = found.indices.to_numpy().astype(np.int64)
        return found.dictionary.to_pylist(), codes[: len(self)], codes[len(self) :]

    @cached_property
    def _hosts(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The bytes of every host, a row each, and how many there are of them."""
        texts, _, _ = self._host_codes
        packed = [_host_of(text).packed for text in texts]
        table = np.zeros((len(packed), _HOST_BYTES_MAX), dtype=np.uint8)
        for row, host in enumerate(packed):
            table[row, : len(host)] = np.frombuffer(host, dtype=np.uint8)
        return table, np.array([len(host) for host in packed], dtype=np.int64)

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        """What the compiled loop wants to know of every message."""
        pa: Any = importlib.import_module("pyarrow")
        numbers = np.empty((len(_NUMBERS) + 2, len(self)), dtype=np.int64)
        for row, name in enumerate(_NUMBERS):
            if name == "born_timestamp":
                numbers[row] = self.columns.timestamp_ms
                continue
            column = self.table.column(name).combine_chunks()
            if name == "store_timestamp":
                column = column.cast(pa.timestamp("ms", tz="UTC"))
            numbers[row] = column.cast(pa.int64()).to_numpy()
        _, numbers[len(_NUMBERS)], numbers[len(_NUMBERS) + 1] = self._host_codes
        return numbers

    @property
    def _body_sizes(self) -> NDArray[np.int64]:
        """How long each body is; the values need not be there for it."""
        value = self.columns.value
        assert value is not None
        plain = np.diff(value.bounds).astype(np.int64)
        stored = self.table.column("stored_body").combine_chunks()
        if stored.null_count == len(stored):
            return plain
        compute: Any = importlib.import_module("pyarrow.compute")
        sizes = compute.fill_null(compute.binary_length(stored), -1).to_numpy().astype(np.int64)
        return np.where(sizes < 0, plain, sizes)

    @cached_property
    def _bodies(self) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        """The bodies: as they were stored, where they were compressed."""
        value = self.columns.value
        assert value is not None
        stored = self.table.column("stored_body")
        if stored.null_count == len(stored):
            return value.data, value.bounds
        compute: Any = importlib.import_module("pyarrow.compute")
        plain = to_arrow(self.columns, ["value"]).column(0)
        return bytes_of(compute.coalesce(stored.combine_chunks(), plain))

    @cached_property
    def _texts(self) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        """The properties as they stood."""
        return bytes_of(self.table.column("properties").combine_chunks())


def bytes_of(array: Any) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Return the bytes of a binary array, and its bounds; a null has none."""
    pa: Any = importlib.import_module("pyarrow")
    array = array.cast(pa.binary())
    _, bounds, data = array.buffers()
    starts = np.frombuffer(bounds, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    whole = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, np.uint8)
    return whole, starts


def _host_of(text: str) -> HostAddress:
    host, _, port = text.rpartition(":")
    return HostAddress.of(host, int(port))
