"""
What became of a put: Java's ``PutMessageStatus`` and ``PutMessageResult``.

The statuses carry the names of RocketMQ 5.x; 4.9.8 writes two of them differently, see
:attr:`PutMessageStatus.name_in_4x`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.segments.rocketmq.messages.host_address import HostAddress


class PutMessageStatus(enum.Enum):
    """
    Every outcome that RocketMQ knows; the value is its ordinal in 5.x (``PutMessageStatus``).

    The store itself answers with the first eight that are not about flushing or slaves;
    who waits for the disk or for slaves turns a `PUT_OK` into one of those.
    """

    PUT_OK = 0
    FLUSH_DISK_TIMEOUT = 1
    FLUSH_SLAVE_TIMEOUT = 2
    SLAVE_NOT_AVAILABLE = 3
    SERVICE_NOT_AVAILABLE = 4
    CREATE_MAPPED_FILE_FAILED = 5
    MESSAGE_ILLEGAL = 6
    PROPERTIES_SIZE_EXCEEDED = 7
    OS_PAGE_CACHE_BUSY = 8
    UNKNOWN_ERROR = 9
    IN_SYNC_REPLICAS_NOT_ENOUGH = 10
    PUT_TO_REMOTE_BROKER_FAIL = 11
    LMQ_CONSUME_QUEUE_NUM_EXCEEDED = 12
    WHEEL_TIMER_FLOW_CONTROL = 13
    WHEEL_TIMER_MSG_ILLEGAL = 14
    WHEEL_TIMER_NOT_ENABLE = 15

    @property
    def name_in_4x(self) -> str:
        """The name that 4.9.8 gives the status."""
        return _NAMES_IN_4X.get(self, self.name)


_NAMES_IN_4X = {
    PutMessageStatus.CREATE_MAPPED_FILE_FAILED: "CREATE_MAPEDFILE_FAILED",
    PutMessageStatus.OS_PAGE_CACHE_BUSY: "OS_PAGECACHE_BUSY",
}


class PutResult:
    """
    The outcome of a put of one message or of one batch.

    Where `status` is not `PUT_OK` nothing was appended, `reason` says why and what to do, and the
    offsets are -1. `physical_offsets` are those of each record of a batch in its order.
    """

    __slots__ = (
        "count",
        "physical_offset",
        "physical_offsets",
        "queue_offset",
        "reason",
        "size_bytes",
        "status",
        "store_host",
        "store_timestamp_ms",
    )

    def __init__(
        self,
        status: PutMessageStatus,
        physical_offset: int = -1,
        queue_offset: int = -1,
        size_bytes: int = 0,
        count: int = 0,
        store_timestamp_ms: int = 0,
        store_host: HostAddress | None = None,
        physical_offsets: Sequence[int] | None = None,
        reason: str = "",
    ) -> None:
        self.status = status
        self.physical_offset = physical_offset
        self.queue_offset = queue_offset
        self.size_bytes = size_bytes
        self.count = count
        self.store_timestamp_ms = store_timestamp_ms
        self.store_host = store_host
        self.physical_offsets = physical_offsets
        self.reason = reason

    @property
    def is_ok(self) -> bool:
        """Tell whether the message stands in the commit log."""
        return self.status is PutMessageStatus.PUT_OK

    @property
    def next_physical_offset(self) -> int:
        """Where the commit log must be durable up to for this put to be (``nextOffset``)."""
        return self.physical_offset + self.size_bytes

    @property
    def message_ids(self) -> list[str]:
        """The ids that name the broker and the place of each record (``offsetMsgId``)."""
        from logstore.segments.rocketmq.messages.message_id import offset_message_id

        if self.store_host is None:
            return []
        places = self.physical_offsets
        return [
            offset_message_id(self.store_host, place)
            for place in ([self.physical_offset] if places is None else places)
        ]

    def __repr__(self) -> str:
        return (
            f"PutResult({self.status.name}, physical_offset={self.physical_offset}, "
            f"queue_offset={self.queue_offset}, count={self.count}, reason={self.reason!r})"
        )
