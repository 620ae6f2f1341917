"""Durations and times of requests, as Java's library reads them (``Durations``, ``Timestamps``)."""

from __future__ import annotations

from typing import Any

from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError

_DURATION_SECONDS_MAX = 315_576_000_000
_TIME_SECONDS = range(-62_135_596_800, 253_402_300_800)
_NANOS = 1_000_000_000
_NANOS_A_MILLISECOND = 1_000_000
_SEE = "See proto definition for valid values."


def seconds_of(duration: Any) -> int:
    """Return the whole seconds of a duration. Raises ProxyError: it is none."""
    seconds, nanos = duration.seconds, duration.nanos
    is_long = abs(seconds) > _DURATION_SECONDS_MAX or abs(nanos) >= _NANOS
    if is_long or seconds * nanos < 0:
        text = (
            f"Duration is not valid. {_SEE} Seconds ({seconds}) must be in range "
            f"[-315,576,000,000, +315,576,000,000]. Nanos ({nanos}) must be in range "
            "[-999,999,999, +999,999,999]. Nanos must have the same sign as seconds"
        )
        raise ProxyError(Code.INTERNAL_SERVER_ERROR, text)
    return int(seconds)


def milliseconds_of(duration: Any) -> int:
    """Return the whole milliseconds of a duration, towards 0. Raises ProxyError: it is none."""
    nanos: int = duration.nanos
    part = abs(nanos) // _NANOS_A_MILLISECOND
    return seconds_of(duration) * 1000 + (part if nanos > 0 else -part)


def is_time(timestamp: Any) -> bool:
    """Tell whether there is such a time, from the year 1 to 9999."""
    return timestamp.seconds in _TIME_SECONDS and 0 <= timestamp.nanos < _NANOS


def time_ms_of(timestamp: Any) -> int:
    """Return a time in milliseconds since 1970. Raises ProxyError: there is no such time."""
    if not is_time(timestamp):
        text = (
            f"Timestamp is not valid. {_SEE} Seconds ({timestamp.seconds}) must be in range "
            f"[-62,135,596,800, +253,402,300,799]. Nanos ({timestamp.nanos}) must be in range "
            "[0, +999,999,999]."
        )
        raise ProxyError(Code.INTERNAL_SERVER_ERROR, text)
    return int(timestamp.seconds) * 1000 + int(timestamp.nanos) // _NANOS_A_MILLISECOND
