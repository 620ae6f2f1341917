"""What a client is told of a put that did not simply succeed: code and remark for each status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker

#: the message stands in the log; how safely, the code says
STORED_CODES = {
    PutMessageStatus.PUT_OK: ResponseCode.SUCCESS,
    PutMessageStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutMessageStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutMessageStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
}

_REMARKS = {
    PutMessageStatus.IN_SYNC_REPLICAS_NOT_ENOUGH: (
        ResponseCode.SYSTEM_ERROR,
        "in-sync replicas not enough",
    ),
    PutMessageStatus.CREATE_MAPPED_FILE_FAILED: (
        ResponseCode.SYSTEM_ERROR,
        "create mapped file failed, server is busy or broken.",
    ),
    PutMessageStatus.OS_PAGE_CACHE_BUSY: (
        ResponseCode.SYSTEM_BUSY,
        "[PC_SYNCHRONIZED]broker busy, start flow control for a while",
    ),
    PutMessageStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED: (
        ResponseCode.LMQ_QUOTA_EXCEEDED,
        "[LMQ_CONSUME_QUEUE_NUM_EXCEEDED]lmq consume queue num exceeded.",
    ),
    PutMessageStatus.UNKNOWN_ERROR: (ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR"),
}


def refusal_of(broker: Broker, status: PutMessageStatus) -> tuple[ResponseCode, str]:
    """Return the code and the remark for a message that was not stored."""
    if status in (PutMessageStatus.MESSAGE_ILLEGAL, PutMessageStatus.PROPERTIES_SIZE_EXCEEDED):
        limit = broker.settings.message_bytes_max
        return ResponseCode.MESSAGE_ILLEGAL, (
            "the message is illegal, maybe msg body or properties length not matched. msg body "
            f"length limit {limit}B, msg properties length limit 32KB."
        )
    if status is PutMessageStatus.SERVICE_NOT_AVAILABLE:
        return ResponseCode.SERVICE_NOT_AVAILABLE, (
            "service not available now. It may be caused by one of the following reasons: the "
            f"broker's disk is full [{broker.disk_use_text()}], messages are put to the slave, "
            "message store has been shut down, etc."
        )
    if status is PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL:
        limit = broker.settings.timer_delay_seconds_max * 1000
        return ResponseCode.MESSAGE_ILLEGAL, (
            "timer message illegal, the delay time should not be bigger than the max delay "
            f"{limit}ms; or if set del msg, the delay time should be bigger than the current time"
        )
    if status is PutMessageStatus.WHEEL_TIMER_NOT_ENABLE:
        return ResponseCode.SYSTEM_ERROR, (
            "accurate timer message is not enabled, timerWheelEnable is false"
        )
    if status is PutMessageStatus.WHEEL_TIMER_FLOW_CONTROL:
        limit = broker.settings.timer_slot_count_max
        return ResponseCode.SYSTEM_ERROR, (
            f"timer message is under flow control, max num limit is {2 * limit} or the current "
            f"value is greater than {limit} and less than {2 * limit}, trigger random flow control"
        )
    return _REMARKS.get(status, (ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR DEFAULT"))
