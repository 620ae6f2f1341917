"""Requests that end where they say: the library takes a text that is cut short for a whole one."""

from __future__ import annotations

from typing import Any


def decode_whole(kind: Any, body: bytes, version: int) -> Any:
    """
    Return a request of a library's class.

    Raises:
        ValueError: its last text or bytes are not all there; the library raises other errors, too.

    """
    is_flexible: bool = kind.flexible_version_q(version)
    decode = kind._struct.compiled_decode_from(
        version, compact=is_flexible, tagged=is_flexible, data_class=kind[None]
    )
    request, end = decode(memoryview(body), 0)
    if end > len(body):
        raise ValueError(f"{end - len(body)} bytes are missing at its end")
    return request
