"""Checksums that both formats use: CRC-32C (Castagnoli) and CRC-32 (IEEE)."""

from __future__ import annotations

from zlib import crc32

from crc32c import crc32c

__all__ = ["crc32", "crc32c"]
