"""
What many messages' properties have in common: all of the text but the unique key.

Looking a text through for a name costs as much as a system call in the end, and one client's
messages differ in their unique keys alone. So a text is cut around that key once, and what the
rest of it says is remembered.
"""

from __future__ import annotations

from logstore.segments.rocketmq.messages.properties import (
    DELAY,
    KEYS,
    TAGS,
    UNIQUE_KEY,
    find_property,
    property_needle,
    tags_code,
)

_UNIQUE_KEY = property_needle(UNIQUE_KEY)
_KEYS = property_needle(KEYS)
_TAGS = property_needle(TAGS)
_DELAY = property_needle(DELAY)
#: shapes by the text before and behind the unique key; None where the key is not what it seems
_shapes: dict[tuple[bytes, bytes], PropertiesShape | None] = {}
_SHAPES_MAX = 4096
#: longer texts are looked through each time
_TEXT_BYTES_MAX = 2048


class PropertiesShape:
    """
    What properties say beside their unique key.

    `is_plain` tells that nothing in them asks for a delay, a timer or more than one queue. `keys`
    and `tags` are the values of ``KEYS`` and ``TAGS``, None without.
    """

    __slots__ = ("is_plain", "keys", "tags", "tags_code")

    def __init__(self, text: bytes) -> None:
        self.is_plain = is_plain(text)
        self.keys = find_property(text, _KEYS)
        self.tags = find_property(text, _TAGS)
        self.tags_code = 0 if self.tags is None else tags_code(self.tags)


def is_plain(text: bytes) -> bool:
    """Tell whether nothing in properties asks for a delay, a timer or more than one queue."""
    return not (_DELAY in text or b"TIMER_" in text or b"INNER_" in text)


def take_apart(text: bytes) -> tuple[PropertiesShape | None, bytes]:
    """
    Return the shape of properties, and their unique key.

    None, and no key, where there is none, or none that can be cut out.
    """
    before, needle, rest = text.rpartition(_UNIQUE_KEY)
    unique_key, _, behind = rest.partition(b"\x02")
    if not needle or not unique_key:
        return None, b""
    around = before, behind
    shape = _shapes.get(around)
    if shape is None and around not in _shapes:
        shape = _learn(around, text)
    return (None, b"") if shape is None else (shape, unique_key)


def _learn(around: tuple[bytes, bytes], text: bytes) -> PropertiesShape | None:
    """Remember the shape of a text, unless it will hardly come again."""
    before, _ = around
    shape = PropertiesShape(text) if not before or before.endswith(b"\x02") else None
    if len(text) <= _TEXT_BYTES_MAX and (shape is None or shape.keys is None):
        if len(_shapes) >= _SHAPES_MAX:
            _shapes.clear()
        _shapes[around] = shape
    return shape
