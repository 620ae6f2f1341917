"""
Kafka's UUIDs: 16 bytes, written as 22 characters of URL-safe base64 without padding.

Ids of topics, directories and clusters. The zero id means "none", the one id is that of the
metadata topic; neither is ever drawn, nor one whose text starts with ``-``, which command lines
would take for an option.

Source: ``org.apache.kafka.common.Uuid``.
"""

from __future__ import annotations

import random
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

from logstore.errors import LogStoreError

ZERO = bytes(16)
METADATA_TOPIC = bytes(15) + b"\1"

_VERSION_MASK = ~(0xF000 << 64 | 0xC000 << 48)
_VERSION_4 = 0x4000 << 64 | 0x8000 << 48
_TEXT = re.compile(r"[A-Za-z0-9_-]{22}(==)?")


class UuidTextError(LogStoreError, ValueError):
    """A text is not the base64 of 16 bytes."""


def uuid_to_text(uuid: bytes) -> str:
    """Return the 22 characters for 16 bytes."""
    assert len(uuid) == 16, f"a UUID of {len(uuid)} bytes"
    return urlsafe_b64encode(uuid)[:22].decode()


def uuid_from_text(text: str) -> bytes:
    """Return the 16 bytes for their characters, padded or not. Raises UuidTextError."""
    if _TEXT.fullmatch(text) is None:
        raise UuidTextError(f"{text[:40]!r} is no UUID in base64")
    return urlsafe_b64decode(text[:22] + "==")


def random_uuid(rng: random.Random) -> bytes:
    """Draw a UUID of version 4 that is not reserved and whose text does not start with ``-``."""
    while True:
        uuid = (rng.getrandbits(128) & _VERSION_MASK | _VERSION_4).to_bytes(16, "big")
        if not uuid_to_text(uuid).startswith("-"):
            return uuid  # version 4: neither of the reserved ones
