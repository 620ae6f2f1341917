"""
The time that a request gives the controller.

What waits for it in its queue is told after that time that it was in vain (7), and is not done.
Here nothing waits; but what is given no time at all has never any chance there.

Source: ``KafkaEventQueue``, ``ControllerRequestContext.requestTimeoutMsToDeadlineNs``.
"""

from __future__ import annotations


def is_none_given(timeout_ms: int) -> bool:
    """Tell whether the time is over before anything can be done."""
    return timeout_ms <= 0
