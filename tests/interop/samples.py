"""Records that go wrong easily: nulls, empties, repeated headers, every byte, a megabyte."""

from __future__ import annotations

import hashlib

import attrs

FIRST_TIMESTAMP_MS = 1_700_000_000_000


@attrs.frozen
class Sample:
    """What a producer sends and a consumer must return, unchanged."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = FIRST_TIMESTAMP_MS

    def __repr__(self) -> str:
        """Stay readable in a failed assertion."""
        value = self.value
        if value is not None and len(value) > 40:
            value = value[:8] + b"..%d bytes.." % len(value) + hashlib.sha256(value).digest()[:4]
        return f"Sample({self.key!r}, {value!r}, {self.headers!r}, {self.timestamp_ms})"


def noise(seed: str, size_bytes: int) -> bytes:
    """Return bytes that no codec can shrink, the same ones for the same seed."""
    return hashlib.shake_256(seed.encode()).digest(size_bytes)


def samples(*, null_record: bool = True, null_header: bool = True) -> list[Sample]:
    """
    Return the records that every client must be able to carry.

    Some clients refuse to send a record with neither key nor value (`null_record=False` leaves it
    out), some a null header value (`null_header=False`).
    """
    every_byte = bytes(range(256))
    plain = [
        Sample(b"key", b"value"),
        Sample(b"", b""),
        Sample(None, b"no key"),
        Sample(b"tombstone", None),
        Sample(every_byte, every_byte * 3),
        Sample(b"one header", b"v", (("h", b"x"),)),
        Sample(b"repeated header", b"v", (("h", b"1"), ("g", b""), ("h", b"2"), ("h", b"1"))),
        Sample(b"header name", b"v", (("größe-尺寸", every_byte), ("", b"empty name"))),
        Sample(b"compressible", b"ab" * 50_000),
        Sample(b"megabyte", noise("megabyte", 1_000_000)),
        Sample(b"after the megabyte", b"v"),
    ]
    if null_record:
        plain.append(Sample(None, None))
    if null_header:
        plain.append(Sample(b"null header", b"v", (("n", None), ("n", b""))))
    return [
        attrs.evolve(sample, timestamp_ms=FIRST_TIMESTAMP_MS + number * 1000)
        for number, sample in enumerate(plain)
    ]


def numbered(count: int, prefix: str = "v", size_bytes: int = 0) -> list[Sample]:
    """Return `count` small records whose values say their number."""
    return [
        Sample(
            b"%d" % number,
            f"{prefix}-{number}".encode().ljust(size_bytes, b"."),
            timestamp_ms=FIRST_TIMESTAMP_MS + number * 1000,
        )
        for number in range(count)
    ]
