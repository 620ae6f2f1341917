"""
Where the keys of a message stand in its properties: all else is the same in many messages.

The unique key is another one in each message; ``KEYS``, which the sender's program chooses, mostly
is, too.
"""

from __future__ import annotations

import attrs

from logstore.segments.rocketmq.messages.properties import KEYS, TRANSACTION_ID, UNIQUE_KEY

UNIQUE_KEY_NEEDLE = f"{UNIQUE_KEY}\x01"
KEYS_NEEDLE = f"{KEYS}\x01"
_TRANSACTION_NEEDLE = f"{TRANSACTION_ID}\x01"
_UNIQUE_KEY, _KEYS = UNIQUE_KEY.encode(), KEYS.encode()
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
    #: of the unique key itself, and then of a half message's transaction, which bears its name
    unique_keys: tuple[Span, ...]
    keys: Span | None

    @classmethod
    def find(
        cls, text: bytes, unique_key: str, keys: str | None, *, is_half: bool = False
    ) -> KeyPlaces | None:
        """
        Return where they stand; None where they do not, or where it cannot be told.

        In what `is_half` a broker has named the transaction by the unique key.
        """
        unique_key_at = _place(text, UNIQUE_KEY_NEEDLE, unique_key)
        keys_at = None if keys is None else _place(text, KEYS_NEEDLE, keys)
        if unique_key_at is None or (keys is not None and keys_at is None):
            return None
        if not is_half:
            return cls(text, (unique_key_at,), keys_at)
        transaction_at = _place(text, _TRANSACTION_NEEDLE, unique_key)
        if transaction_at is None:
            return None
        return cls(text, (unique_key_at, transaction_at), keys_at)

    @property
    def _spans(self) -> list[tuple[Span, bytes]]:
        """Every place with the name of what stands there, in the order of the text."""
        found = [(span, _UNIQUE_KEY) for span in self.unique_keys]
        return sorted(found if self.keys is None else [*found, (self.keys, _KEYS)])

    @property
    def varying(self) -> Span:
        """From the first of them to the end of the last."""
        spans = self._spans
        return spans[0][0][0], spans[-1][0][1]

    @property
    def arrangement(self) -> bytes | None:
        """What :func:`arranged` makes all that varies of; None if that is the unique key alone."""
        spans = self._spans
        if len(spans) == 1:
            return None
        end, _ = self.varying
        pieces: list[bytes] = []
        for (begin, next_end), name in spans:
            pieces += (self.text[end:begin].replace(b"%", b"%%"), b"%(", name, b")b")
            end = next_end
        return b"".join(pieces)

    def within(self, span: Span) -> slice:
        """Return a place as one of that which varies."""
        begin, _ = self.varying
        return slice(span[0] - begin, span[1] - begin)


def arranged(arrangement: bytes, unique_key: bytes, keys: str | None) -> bytes:
    """Return what varies in a message with these keys."""
    return arrangement % {_UNIQUE_KEY: unique_key, _KEYS: b"" if keys is None else keys.encode()}


def _place(text: bytes, needle: str, value: str) -> Span | None:
    """Return where the value of the one property that is named so stands."""
    whole = f"{needle}{value}{_SEPARATOR}".encode()
    at = text.find(whole)
    is_name = at == 0 or text[at - 1 : at] == _SEPARATOR.encode()
    if at < 0 or not is_name or text.count(needle.encode()) != 1:
        return None
    return at + len(needle), at + len(whole) - 1
