"""
Where the keys of a message stand in its properties: all else is the same in many messages.

The unique key is another one in each message; ``KEYS``, which the sender's program chooses, mostly
is, too.
"""

from __future__ import annotations

import attrs

from logstore.segments.rocketmq.messages.properties import KEYS, UNIQUE_KEY

UNIQUE_KEY_NEEDLE = f"{UNIQUE_KEY}\x01"
KEYS_NEEDLE = f"{KEYS}\x01"
_SEPARATOR = "\x02"
Span = tuple[int, int]


def without_keys(text: str, start: int, end: int) -> tuple[tuple[str | int, ...], str | None]:
    """
    Return what stands around the keys in a text with ``KEYS``, and their value.

    The unique key stands in ``text[start:end]``. None where only another property's name ends so:
    then that belongs to what stands around.
    """
    at = text.find(KEYS_NEEDLE)
    first = at + len(KEYS_NEEDLE)
    last = text.find(_SEPARATOR, first)
    if last < 0 or (at and text[at - 1] != _SEPARATOR):
        return (text[:start], text[end:]), None
    keys = text[first:last]
    if first < start:
        return (text[:first], text[last:start], text[end:], len(keys)), keys
    return (text[:start], text[end:first], text[last:], len(keys)), keys


@attrs.frozen
class KeyPlaces:
    """Properties as they are stored, and where the values of the keys stand in them."""

    text: bytes
    unique_key: Span
    keys: Span | None

    @classmethod
    def find(cls, text: bytes, unique_key: str, keys: str | None) -> KeyPlaces | None:
        """Return where they stand; None where they do not, or where it cannot be told."""
        unique_key_at = _place(text, UNIQUE_KEY_NEEDLE, unique_key)
        keys_at = None if keys is None else _place(text, KEYS_NEEDLE, keys)
        if unique_key_at is None or (keys is not None and keys_at is None):
            return None
        return cls(text, unique_key_at, keys_at)

    @property
    def varying(self) -> Span:
        """From the first of them to the end of the last."""
        spans = [self.unique_key, self.keys or self.unique_key]
        return min(spans)[0], max(spans)[1]

    @property
    def between(self) -> bytes:
        """What stands between them."""
        spans = [self.unique_key, self.keys or self.unique_key]
        return self.text[min(spans)[1] : max(spans)[0]]

    def within(self, span: Span) -> slice:
        """Return a place as one of that which varies."""
        begin, _ = self.varying
        return slice(span[0] - begin, span[1] - begin)


def _place(text: bytes, needle: str, value: str) -> Span | None:
    """Return where the value of the one property that is named so stands."""
    whole = f"{needle}{value}{_SEPARATOR}".encode()
    at = text.find(whole)
    is_name = at == 0 or text[at - 1 : at] == _SEPARATOR.encode()
    if at < 0 or not is_name or text.count(needle.encode()) != 1:
        return None
    return at + len(needle), at + len(whole) - 1
