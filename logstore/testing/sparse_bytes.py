"""The content of one simulated file."""

from __future__ import annotations

CHUNK_BYTES = 64 * 1024


class SparseBytes:
    """
    A run of `size_bytes` bytes whose never-written stretches read as zeros and cost nothing.

    RocketMQ preallocates files of 1 GiB and 6 MB that stay nearly empty in tests, so the bytes are
    kept in chunks that exist, and reach, only as far as something was written. A write costs what
    it writes.
    """

    __slots__ = ("_chunks", "size_bytes")

    def __init__(self) -> None:
        self.size_bytes = 0
        self._chunks: dict[int, bytearray] = {}

    @property
    def stored_bytes(self) -> int:
        """How much of a disk this takes: holes are free."""
        return sum(map(len, self._chunks.values()))

    def copy(self) -> SparseBytes:
        """Return equal content that changes on its own."""
        twin = SparseBytes()
        twin.size_bytes = self.size_bytes
        twin._chunks = {number: chunk[:] for number, chunk in self._chunks.items()}
        return twin

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return the bytes of ``[position, position + size_bytes)`` that lie before the end."""
        end = min(position + size_bytes, self.size_bytes)
        pieces: list[bytes] = []
        while position < end:
            number, start = divmod(position, CHUNK_BYTES)
            chunk = self._chunks.get(number)
            if chunk is None:
                hole_end = self._hole_end(number, end)
                pieces.append(bytes(hole_end - position))
                position = hole_end
            else:
                stop = min(CHUNK_BYTES, start + end - position)
                piece = bytes(memoryview(chunk)[start:stop])
                pieces.append(piece.ljust(stop - start, b"\0"))
                position += stop - start
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _hole_end(self, number: int, end: int) -> int:
        """Return where what is never written ends that begins in that chunk, `end` at the most."""
        while number not in self._chunks and number * CHUNK_BYTES < end:
            number += 1
        return min(number * CHUNK_BYTES, end)

    def write(self, position: int, data: bytes | memoryview) -> None:
        """Put `data` at `position`, growing if it reaches past the end."""
        done = 0
        while done < len(data):
            number, start = divmod(position + done, CHUNK_BYTES)
            count = min(CHUNK_BYTES - start, len(data) - done)
            chunk = self._chunks.setdefault(number, bytearray())
            if len(chunk) < start:
                chunk.extend(bytes(start - len(chunk)))
            chunk[start : start + count] = data[done : done + count]
            done += count
        if done:
            self.size_bytes = max(self.size_bytes, position + done)

    def resize(self, size_bytes: int) -> None:
        """Cut, or extend with a hole."""
        if size_bytes < self.size_bytes:
            self.erase(size_bytes, self.size_bytes)
        self.size_bytes = size_bytes

    def erase(self, start: int, stop: int) -> None:
        """Make ``[start, stop)`` read as zeros; the size stays."""
        for number in self._numbers(start, stop):
            chunk = self._chunks[number]
            first = max(0, start - number * CHUNK_BYTES)
            last = min(len(chunk), stop - number * CHUNK_BYTES)
            if last < len(chunk):
                chunk[first:last] = bytes(max(0, last - first))
            else:
                del chunk[first:]
            if not chunk:
                del self._chunks[number]

    def pieces(self, start: int, stop: int) -> list[tuple[int, bytes]]:
        """Return what is stored of ``[start, stop)``, as (position, bytes); the rest is zeros."""
        found: list[tuple[int, bytes]] = []
        for number in self._numbers(start, stop):
            base = number * CHUNK_BYTES
            first = max(0, start - base)
            piece = bytes(memoryview(self._chunks[number])[first : stop - base])
            if piece:
                found.append((base + first, piece))
        return found

    def next_stored(self, position: int) -> int | None:
        """Return the first position from there on that is stored; the rest is zeros."""
        for number in self._numbers(position, self.size_bytes):
            base = number * CHUNK_BYTES
            if base + len(self._chunks[number]) > position:
                return max(base, position)
        return None

    def fitting_bytes(self, position: int, size_bytes: int, free_bytes: int) -> int:
        """Return how many leading bytes of a write fit if the disk has `free_bytes` left."""
        done = 0
        while done < size_bytes:
            number, start = divmod(position + done, CHUNK_BYTES)
            count = min(CHUNK_BYTES - start, size_bytes - done)
            stored = len(self._chunks.get(number, b""))
            fitting = min(count, max(0, stored + free_bytes - start))
            free_bytes -= max(0, start + fitting - stored)
            done += fitting
            if fitting < count:
                break
        return done

    def _numbers(self, start: int, stop: int) -> list[int]:
        """Return the stored chunks that touch ``[start, stop)``, in order."""
        if start >= stop:
            return []
        numbers = range(start // CHUNK_BYTES, (stop - 1) // CHUNK_BYTES + 1)
        if len(numbers) <= len(self._chunks):
            return [number for number in numbers if number in self._chunks]
        return sorted(number for number in self._chunks if number in numbers)
