"""Bytes as Java's ``new String(bytes, UTF_8)`` shows them."""

from __future__ import annotations

import re

#: an encoded surrogate, or what begins as one; no other sequence has its first byte in it
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_WRONG = b"\xff"


def java_text(data: bytes) -> str:
    """
    Return the text of `data`, with a U+FFFD where and as often as Java puts one.

    That is one for each maximal part of a well-formed sequence, as Python has it, but that Java
    also takes the bytes of an encoded surrogate as one.

    Source: ``String.decodeUTF8_UTF16``.
    """
    if 0xED in data:
        data = _SURROGATE.sub(_WRONG, data)
    return data.decode(errors="replace")
