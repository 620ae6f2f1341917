"""Writes a response field by field, as :class:`~logstore.compat.kafka.framing.Reader` reads."""

from __future__ import annotations

from collections.abc import Collection

from logstore.compat.kafka.framing import I16, I32, framed, uvarint

_INT64_BYTES = 8


class Writer:
    """Collects the fields of one response, in the compact encoding where it is flexible."""

    __slots__ = ("is_flexible", "pieces")

    def __init__(self, *, is_flexible: bool) -> None:
        self.is_flexible = is_flexible
        self.pieces: list[bytes] = []

    def raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        self.pieces.append(data)

    def boolean(self, value: bool) -> None:
        """Write one byte, 0 or 1."""
        self.pieces.append(b"\x01" if value else b"\x00")

    def i16(self, value: int) -> None:
        """Write a signed 16-bit integer."""
        self.pieces.append(I16.pack(value))

    def i32(self, value: int) -> None:
        """Write a signed 32-bit integer."""
        self.pieces.append(I32.pack(value))

    def i64(self, value: int) -> None:
        """Write a signed 64-bit integer."""
        self.pieces.append(value.to_bytes(_INT64_BYTES, "big", signed=True))

    def i32s(self, values: Collection[int]) -> None:
        """Write an array of signed 32-bit integers."""
        self.count(len(values))
        for value in values:
            self.pieces.append(I32.pack(value))

    def count(self, count: int) -> None:
        """Write the length of an array."""
        self.pieces.append(uvarint(count + 1) if self.is_flexible else I32.pack(count))

    def string(self, value: bytes | None) -> None:
        """Write a nullable string, given as its UTF-8 bytes."""
        if value is None:
            self.pieces.append(b"\x00" if self.is_flexible else b"\xff\xff")
            return
        size_bytes = len(value)
        self.pieces.append(uvarint(size_bytes + 1) if self.is_flexible else I16.pack(size_bytes))
        self.pieces.append(value)

    def data(self, value: bytes) -> None:
        """Write a field of bytes."""
        if self.is_flexible:
            self.count(len(value))
        else:
            self.i32(len(value))
        self.raw(value)

    def tags(self, fields: dict[int, bytes] | None = None) -> None:
        """Write the tagged fields (by ascending tag), if the version has them."""
        if not self.is_flexible:
            return
        tagged = fields or {}
        self.pieces.append(uvarint(len(tagged)))
        for tag, data in sorted(tagged.items()):
            self.pieces += (uvarint(tag), uvarint(len(data)), data)

    def body(self) -> bytes:
        """Return all that was written."""
        return b"".join(self.pieces)

    def frame(self, correlation_id: int) -> bytes:
        """Return the whole response; its header has tags if the version is flexible."""
        return framed(correlation_id, self.body(), has_tags=self.is_flexible)
