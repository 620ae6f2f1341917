"""
The states of a share group's partitions: ours begin with a heartbeat, a real broker's after it.

The heartbeat that comes next finds them begun, and raises the group's epoch, or finds nothing yet.
"""

from __future__ import annotations

import time
from typing import Any

from tests.interop.drawn.twin import Twin

_API = "DescribeShareGroupOffsets"
#: the real broker may have to make the topic of states first
_SECONDS_MAX = 5.0


def await_states(twin: Twin, group: str) -> None:
    """Give the real broker time to begin what ours has begun."""
    deadline = time.monotonic() + _SECONDS_MAX
    question = {"Groups": [{"GroupId": group, "Topics": None}]}
    while time.monotonic() < deadline:
        answer = twin.exchange(_API, 1, question)
        if not answer.is_told or _counted(answer.ours) == _counted(answer.real):
            return
        time.sleep(0.02)


def _counted(answer: Any) -> int:
    """Return how many partitions an answer tells of."""
    topics = [topic for group in answer["Groups"] for topic in group["Topics"]]
    return sum(len(topic["Partitions"]) for topic in topics)
