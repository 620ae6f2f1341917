"""By what a client takes a message back that is to come later (``RecallMessageHandle``)."""

from __future__ import annotations

import base64
import re

from logstore.compat.rocketmq.topics.names import RETRY_PREFIX
from logstore.segments.rocketmq.messages.properties import (
    REAL_TOPIC,
    TIMER_OUT_MS,
    UNIQUE_KEY,
    parse_properties,
)

_TIME = re.compile("[+-]?[0-9]{1,18}")


def recall_handle(broker_name: str, properties_text: bytes) -> str | None:
    """
    Return what a client can take a message with these properties back with.

    Who has said himself when it is due, and of which topic it is, gets one, too, as by Java; if
    that is no time there is none (and no answer at all by Java).
    """
    found = parse_properties(properties_text)
    due, topic = found.get(TIMER_OUT_MS), found.get(REAL_TOPIC)
    if due is None or topic is None or topic.startswith(RETRY_PREFIX) or not _TIME.fullmatch(due):
        return None
    parts = ("v1", topic, broker_name, str(int(due) + 1), found.get(UNIQUE_KEY, ""))
    return base64.urlsafe_b64encode(" ".join(parts).encode()).decode()
