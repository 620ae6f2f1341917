"""
Names of lite topics (LiteUtil): ``%LMQ%$parent$lite`` is the light queue of a lite topic.

No topic may have a dollar in its name; a lite topic that has one is no lite topic of any parent.
"""

from __future__ import annotations

from logstore.segments.rocketmq.messages.properties import (
    INNER_MULTI_DISPATCH,
    find_property,
    property_needle,
)

SEPARATOR = "$"
PREFIX = f"%LMQ%{SEPARATOR}"
#: the property that says which lite topic a message is for
LITE_TOPIC = "__LITE_TOPIC"
_NEEDLE = property_needle(LITE_TOPIC)


def queue_name(parent: str, lite_topic: str) -> str:
    """Return the light queue of a lite topic, which has messages in its queue 0 alone."""
    return f"{PREFIX}{parent}{SEPARATOR}{lite_topic}"


def is_lite(queue: str) -> bool:
    """Tell whether a topic is the light queue of a lite topic, by its first letters."""
    return queue.startswith(PREFIX)


def belongs_to(queue: str, parent: str) -> bool:
    """Tell whether a light queue is one of a parent's, by its first letters."""
    return queue.startswith(f"{PREFIX}{parent}{SEPARATOR}")


def split(queue: str) -> tuple[str, str] | None:
    """Return parent and lite topic of a light queue, None if it is none of a lite topic."""
    if not is_lite(queue):
        return None
    parent, _, lite_topic = queue[len(PREFIX) :].partition(SEPARATOR)
    if not parent or not lite_topic or SEPARATOR in lite_topic:
        return None
    return parent, lite_topic


def parent_of(queue: str) -> str | None:
    """Return the parent of a light queue, None if it is none of a lite topic."""
    found = split(queue)
    return None if found is None else found[0]


def lite_topic_of(queue: str) -> str | None:
    """Return the lite topic of a light queue, None if it is none."""
    found = split(queue)
    return None if found is None else found[1]


def with_light_queue(topic: str, text: str) -> str:
    """
    Return properties of a message that goes to the light queue of the lite topic that it names.

    What is said last counts, so a queue that the sender named itself does not.
    """
    if LITE_TOPIC not in text:
        return text
    found = find_property(text.encode("utf-8", "surrogatepass"), _NEEDLE)
    if not found:
        return text
    if not text.endswith("\x02"):
        text += "\x02"
    queue = queue_name(topic, found.decode("utf-8", "surrogatepass"))
    return f"{text}{INNER_MULTI_DISPATCH}\x01{queue}\x02"
