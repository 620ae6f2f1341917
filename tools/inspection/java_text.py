"""Bytes as Java's ``new String(bytes, UTF_8)`` shows them."""

from __future__ import annotations

import codecs

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def java_text(data: bytes) -> str:
    """
    Return the text of `data`, with a U+FFFD where and as often as Java puts one.

    Python replaces each maximal part of a well-formed sequence; Java also takes the bytes of an
    encoded surrogate, or two bytes that only a third one shows to be wrong, as one.

    Source: ``String.decodeUTF8_UTF16``.
    """
    return data.decode(errors="java-replace")


def _replace(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError), "only used to decode"
    return _REPLACEMENT, error.start + _malformed_bytes(error.object[error.start : error.start + 4])


def _malformed_bytes(data: bytes) -> int:
    """Return how many bytes Java takes as one wrong character."""
    first = data[0]
    if 0xE0 <= first <= 0xEF:
        return _malformed_of_three(data[:3])
    if 0xF0 <= first <= 0xF4:
        return _malformed_of_four(data)
    return 1


def _malformed_of_three(data: bytes) -> int:
    if len(data) == 1 or not _continues(data[1]) or (data[0] == 0xE0 and data[1] < 0xA0):
        return 1
    if len(data) == 2 or not _continues(data[2]):
        return 2
    return 3  # a surrogate


def _malformed_of_four(data: bytes) -> int:
    if len(data) == 1 or not _continues(data[1]):
        return 1
    if (data[0] == 0xF0 and data[1] < 0x90) or (data[0] == 0xF4 and data[1] > 0x8F):
        return 1
    if len(data) == 2 or not _continues(data[2]):
        return 2
    return 3


def _continues(byte: int) -> bool:
    return byte & 0xC0 == 0x80


codecs.register_error("java-replace", _replace)
