"""The bytes of a file that are not zero, in chunks: how files that are mostly holes are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from logstore.host import File
from logstore.os_host import system_host

CHUNK_BYTES = 64 * 1024
_DIGEST_BYTES = 16


def chunks(file: File, position: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield what is not zero in ``[position, end)``, and where: `CHUNK_BYTES` each at most."""
    while position < end:
        found = file.next_data(position)
        if found is None or found >= end:
            return
        start = found - found % CHUNK_BYTES
        position = max(position, start)
        data = file.read(position, min(start + CHUNK_BYTES, end) - position)
        if not data:
            return
        written = data.rstrip(b"\0")
        begins = len(written) - len(written.lstrip(b"\0"))
        if written:
            yield position + begins, written[begins:]
        position += len(data)


def digest_of(path: Path) -> str:
    """Return a digest of a file's size and bytes; holes cost nothing."""
    digest = hashlib.blake2b(str(path.stat().st_size).encode(), digest_size=_DIGEST_BYTES)
    file = system_host().fs.open(str(path), writable=False)
    try:
        for position, data in chunks(file, 0, file.size()):
            digest.update(position.to_bytes(8, "big"))
            digest.update(data)
    finally:
        file.close()
    return digest.hexdigest()
