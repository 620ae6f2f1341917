"""Checksums that both formats use."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import crc32c as _crc32c

if TYPE_CHECKING:
    from typing_extensions import Buffer


def crc32c(data: Buffer, value: int = 0) -> int:
    """Return the CRC-32C (Castagnoli) of `data`, continued from `value`."""
    return _crc32c.crc32c(data, value)


def crc32(data: Buffer, value: int = 0) -> int:
    """Return the CRC-32 (IEEE) of `data`, continued from `value`."""
    return zlib.crc32(data, value)
