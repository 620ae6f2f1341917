"""
Messages as columns: arrays of numbers, and bytes with bounds, as Arrow keeps them.

A column of n byte strings is `data`, all of them back to back, and `bounds`, n + 1 positions in
it: string i is ``data[bounds[i]:bounds[i + 1]]``. Nulls take no bytes and are marked beside.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.segments.rocketmq.columns import grouping, kernel
from logstore.segments.rocketmq.columns.kept_property import kept_property
from logstore.segments.rocketmq.columns.record_scan import RecordScan
from logstore.segments.rocketmq.messages.host_address import HostAddress


@attrs.frozen(eq=False)
class BytesColumn:
    """n byte strings or nulls: data uint8, bounds int32 of n + 1, `is_null` bool of n."""

    data: NDArray[np.uint8]
    bounds: NDArray[np.int32]
    is_null: NDArray[np.bool_]
    null_count: int

    def __len__(self) -> int:
        return len(self.is_null)

    def __iter__(self) -> Iterator[bytes | None]:
        whole, bounds = self.data.tobytes(), self.bounds.tolist()
        for index, is_null in enumerate(self.is_null.tolist()):
            yield None if is_null else whole[bounds[index] : bounds[index + 1]]


@attrs.frozen(eq=False)
class NumberedColumn:
    """n texts, of which few differ: `numbers` int32 of n, rows of `texts`."""

    numbers: NDArray[np.int32]
    texts: list[str]

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[str]:
        return map(self.texts.__getitem__, self.numbers.tolist())


@attrs.frozen(eq=False, slots=False)
class MessageColumns:
    """
    Messages, a row each, in the order of the commit log.

    What a column holds is taken from `scan` when it is asked for. `next_position` is where in the
    file the next entry starts; it is the end of the file behind a BLANK.
    """

    scan: RecordScan
    next_position: int

    def __len__(self) -> int:
        return len(self.scan)

    @kept_property
    def physical_offset(self) -> NDArray[np.int64]:
        """Where each record starts, as it says itself."""
        return self.scan.column(kernel.PHYSICAL_OFFSET)

    @kept_property
    def size_bytes(self) -> NDArray[np.int32]:
        """How long each record is."""
        return self._small(kernel.SIZE)

    @kept_property
    def topic(self) -> NumberedColumn:
        """The topics."""
        return NumberedColumn(self.scan.topic_numbers, self.scan.topics)

    @kept_property
    def queue_id(self) -> NDArray[np.int32]:
        """The queues of their topics."""
        return self._small(kernel.QUEUE_ID)

    @kept_property
    def queue_offset(self) -> NDArray[np.int64]:
        """The places in their queues."""
        return self.scan.column(kernel.QUEUE_OFFSET)

    @kept_property
    def flag(self) -> NDArray[np.int32]:
        """The clients' flags."""
        return self._small(kernel.FLAG)

    @kept_property
    def sys_flag(self) -> NDArray[np.int32]:
        """The system flags."""
        return self._small(kernel.SYS_FLAG)

    @kept_property
    def born_timestamp_ms(self) -> NDArray[np.int64]:
        """When clients sent them."""
        return self.scan.column(kernel.BORN_MS)

    @kept_property
    def store_timestamp_ms(self) -> NDArray[np.int64]:
        """When they were stored."""
        return self.scan.column(kernel.STORE_MS)

    @kept_property
    def born_host(self) -> NumberedColumn:
        """The clients' addresses, as ``host:port``."""
        return self._hosts(kernel.BORN_HOST)

    @kept_property
    def store_host(self) -> NumberedColumn:
        """The brokers' addresses, as ``host:port``."""
        return self._hosts(kernel.STORE_HOST)

    @kept_property
    def reconsume_times(self) -> NDArray[np.int32]:
        """How often they were sent back."""
        return self._small(kernel.RECONSUME_TIMES)

    @kept_property
    def prepared_transaction_offset(self) -> NDArray[np.int64]:
        """Physical offsets of the half messages that they come from, 0 without."""
        return self.scan.column(kernel.PREPARED_OFFSET)

    @kept_property
    def body_crc(self) -> NDArray[np.int32]:
        """Checksums of the bodies."""
        return self._small(kernel.BODY_CRC)

    @kept_property
    def tags_code(self) -> NDArray[np.int64]:
        """What consume queue units say of the tags."""
        return self.scan.column(kernel.TAGS_CODE)

    @kept_property
    def body(self) -> BytesColumn:
        """The bodies as they are stored."""
        return self._bytes(kernel.BODY)

    @kept_property
    def properties_text(self) -> BytesColumn:
        """The properties as they are stored."""
        return self._bytes(kernel.TEXT)

    @kept_property
    def tags(self) -> BytesColumn:
        """The values of ``TAGS``."""
        return self._bytes(kernel.TAGS)

    @kept_property
    def keys(self) -> BytesColumn:
        """The values of ``KEYS``."""
        return self._bytes(kernel.KEYS)

    @kept_property
    def unique_key(self) -> BytesColumn:
        """The clients' ids."""
        return self._bytes(kernel.UNIQUE_KEY)

    def _small(self, place: int) -> NDArray[np.int32]:
        found: NDArray[np.int32] = self.scan.table[place].astype(np.int32)
        return found

    def _hosts(self, place: int) -> NumberedColumn:
        numbers, found = self.scan.intern(place)
        return NumberedColumn(numbers, [str(HostAddress.from_packed(packed)) for packed in found])

    def _bytes(self, place: int) -> BytesColumn:
        scan = self.scan
        bounds, is_null = np.empty(len(scan) + 1, np.int32), np.empty(len(scan), np.bool_)
        null_count = int(grouping.find_bounds(scan.table, place, bounds, is_null))
        data = scan.memory.array(int(bounds[-1]), np.uint8)
        grouping.gather(scan.data, scan.table, place, bounds, data)
        return BytesColumn(data, bounds, is_null, null_count)
