"""By what a client takes a message back that is to come later (``RecallMessageHandle``)."""

from __future__ import annotations

import base64
import re
from binascii import b2a_base64

from logstore.compat.rocketmq.topics.names import RETRY_PREFIX
from logstore.segments.rocketmq.messages.properties import (
    REAL_TOPIC,
    TIMER_OUT_MS,
    UNIQUE_KEY,
    find_property,
    parse_properties,
    property_needle,
)

#: version, topic, broker, time, unique key
HANDLE_PARTS = 5
#: what Java's decoder takes: fours of letters, and a rest whose padding is whole or not there
_ENCODED = re.compile("(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}(?:==)?|[A-Za-z0-9_-]{3}=?)?")
_UNIQUE_KEY = property_needle(UNIQUE_KEY)
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_TIME = re.compile("[+-]?[0-9]{1,18}")


def recall_handle(broker_name: str, properties_text: bytes) -> str | None:
    """
    Return what a client can take a message with these properties back with.

    Who has said himself when it is due, and of which topic it is, gets one, too, as by Java; if
    that is no time there is none (and no answer at all by Java).
    """
    start = handle_start(broker_name, properties_text)
    if start is None:
        return None
    unique_key = find_property(properties_text, _UNIQUE_KEY) or b""
    return encoded_handle(start, unique_key.decode("utf-8", "replace").encode()).decode()


def handle_start(broker_name: str, properties_text: bytes) -> bytes | None:
    """Return all of a handle but the unique key at its end; None where there is no handle."""
    found = parse_properties(properties_text)
    due, topic = found.get(TIMER_OUT_MS), found.get(REAL_TOPIC)
    if due is None or topic is None or topic.startswith(RETRY_PREFIX) or not _TIME.fullmatch(due):
        return None
    return f"v1 {topic} {broker_name} {int(due) + 1} ".encode()


def encoded_handle(start: bytes, unique_key: bytes) -> bytes:
    """Return a handle as a client is told it."""
    return b2a_base64(start + unique_key, newline=False).translate(_URL_SAFE)


def handle_parts(text: str) -> list[str]:
    """Return version, topic, broker, time and unique key of a handle; nothing of what is none."""
    if not _ENCODED.fullmatch(text):
        return []
    decoded = base64.urlsafe_b64decode(text.rstrip("=") + "==").decode(errors="replace")
    parts = decoded.rstrip(" ").split(" ")  # Java's lists do not end with texts of no length
    return parts if len(parts) >= HANDLE_PARTS and parts[0] == "v1" else []
