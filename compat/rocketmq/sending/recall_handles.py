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

#: version, topic, broker, time, unique key
HANDLE_PARTS = 5
#: what Java's decoder takes: fours of letters, and a rest whose padding is whole or not there
_ENCODED = re.compile("(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}(?:==)?|[A-Za-z0-9_-]{3}=?)?")
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


def handle_parts(text: str) -> list[str]:
    """Return version, topic, broker, time and unique key of a handle; nothing of what is none."""
    if not _ENCODED.fullmatch(text):
        return []
    decoded = base64.urlsafe_b64decode(text.rstrip("=") + "==").decode(errors="replace")
    parts = decoded.rstrip(" ").split(" ")  # Java's lists do not end with texts of no length
    return parts if len(parts) >= HANDLE_PARTS and parts[0] == "v1" else []
