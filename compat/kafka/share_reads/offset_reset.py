"""Where a share group starts that has read nothing of a partition (``share.auto.offset.reset``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError

if TYPE_CHECKING:
    from logstore.segments.kafka.partition import KafkaPartition

LATEST, EARLIEST = "latest", "earliest"
_BY_DURATION = re.compile(
    r"by_duration:P(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_UNIT_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}


def reset_offset(strategy: str, log: KafkaPartition, now_ms: int) -> int:
    """
    Return the offset of the first record that the group is to get.

    Raises:
        RefusedRequestError: 78, as in Kafka where no record is as young as the duration wants it.

    """
    if strategy == EARLIEST:
        return log.start_offset
    duration = _BY_DURATION.fullmatch(strategy)
    if duration is None:
        return log.end_offset
    age_ms = sum(float(duration[unit] or 0) * size for unit, size in _UNIT_MS.items())
    timestamp_ms = now_ms - int(age_ms)
    offset = log.offset_for_timestamp(timestamp_ms)
    if offset is None:
        raise RefusedRequestError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"Offset for timestamp {timestamp_ms} not found for topic partition: "
            f"{log.topic}-{log.index}",
        )
    return offset
