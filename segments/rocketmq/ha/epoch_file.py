"""
``epochFileCheckpoint``: which master's term each part of the commit log comes from.

Written by 5.x in controller mode. Text: the number of entries, the CRC-32 (31 bits) of the lines
that follow, then ``epoch-startPhysicalOffset`` a line. Where it is damaged ``.bak`` is read.
(``EpochFileCache``, ``CheckpointFile``)
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import attrs

from logstore.errors import CorruptFileError
from logstore.host import Host, read_file, write_file

__all__ = ["END_UNKNOWN", "EpochEntry", "EpochFile", "decode_epochs", "encode_epochs"]

#: the last epoch is not over
END_UNKNOWN = (1 << 63) - 1
_EPOCH_MAX = (1 << 31) - 1


@attrs.frozen
class EpochEntry:
    """An epoch: it covers the physical offsets ``[start, end)``."""

    epoch: int
    start_physical_offset: int
    end_physical_offset: int = END_UNKNOWN


def encode_epochs(entries: Iterable[EpochEntry]) -> bytes:
    """Return the file of these epochs."""
    lines = [f"{entry.epoch}-{entry.start_physical_offset}\n" for entry in entries]
    text = "".join(lines).encode()
    return b"%d\n%d\n" % (len(lines), zlib.crc32(text) & 0x7FFFFFFF) + text


def decode_epochs(data: bytes, path: str = "epochFileCheckpoint") -> list[EpochEntry]:
    """
    Return the epochs of a file, each ending where the next one starts.

    Raises:
        CorruptFileError: count, CRC or a line is wrong.

    """
    lines = data.decode("latin-1").splitlines()
    if len(lines) < 2 or not all(_is_number(line) for line in lines[:2]):
        raise CorruptFileError(path, "it does not begin with a count and a CRC")
    count, crc = int(lines[0]), int(lines[1])
    text = "".join(f"{line}\n" for line in lines[2:]).encode("latin-1")
    found: list[EpochEntry] = []
    for number, line in enumerate(lines[2:], 3):
        epoch, _, start = line.partition("-")
        if not _is_number(epoch) or not _is_number(start):
            raise CorruptFileError(path, f"line {number} is no epoch: {line[:40]!r}")
        if int(epoch) > _EPOCH_MAX or int(start) > END_UNKNOWN:
            raise CorruptFileError(path, f"line {number} has too large a number: {line[:60]}")
        found.append(EpochEntry(int(epoch), int(start)))
    if len(found) != count:
        raise CorruptFileError(path, f"it says {count} epochs and has {len(found)}")
    if crc not in (0, zlib.crc32(text) & 0x7FFFFFFF):  # 0 means that there is none
        raise CorruptFileError(path, f"the CRC of its epochs is not {crc}")
    return _linked(found)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 19


def _linked(entries: Iterable[EpochEntry]) -> list[EpochEntry]:
    """Return the entries by epoch, each one's end set to the start of the next."""
    ordered = sorted({entry.epoch: entry for entry in entries}.values(), key=lambda one: one.epoch)
    starts = [entry.start_physical_offset for entry in ordered[1:]]
    ends = [*starts, END_UNKNOWN] if ordered else []
    return [
        attrs.evolve(entry, end_physical_offset=end)
        for entry, end in zip(ordered, ends, strict=True)
    ]


class EpochFile:
    """The epochs of a store, kept in a file; every change is written at once."""

    def __init__(self, host: Host, path: str) -> None:
        """
        Read the file, or its ``.bak`` where it is missing, empty or damaged.

        Raises:
            CorruptFileError: both are damaged.

        """
        self.host = host
        self.path = path
        self.entries: list[EpochEntry] = []
        damage: CorruptFileError | None = None
        for name in (path, f"{path}.bak"):
            if not host.fs.exists(name):
                continue
            try:
                self.entries = decode_epochs(read_file(host.fs, name), name)
            except CorruptFileError as error:
                damage = damage or error
            if self.entries:
                return
        if damage is not None:
            raise damage

    @property
    def last_epoch(self) -> int:
        """The newest epoch, -1 without one."""
        return self.entries[-1].epoch if self.entries else -1

    def append(self, epoch: int, start_physical_offset: int) -> bool:
        """Begin an epoch; False if it is not newer than the last one, or starts before it."""
        if self.entries:
            last = self.entries[-1]
            if last.epoch >= epoch or last.start_physical_offset >= start_physical_offset:
                return False
        self._write([*self.entries, EpochEntry(epoch, start_physical_offset)])
        return True

    def replace(self, entries: Sequence[EpochEntry]) -> None:
        """Take over these epochs, as a slave does those of its master."""
        self._write(entries)

    def epoch_of(self, physical_offset: int) -> EpochEntry | None:
        """Return the epoch that covers a physical offset."""
        for entry in self.entries:
            if entry.start_physical_offset <= physical_offset < entry.end_physical_offset:
                return entry
        return None

    def truncate_above(self, physical_offset: int) -> None:
        """Forget epochs that start at or above (``truncateSuffixByOffset``)."""
        self._write([one for one in self.entries if one.start_physical_offset < physical_offset])

    def truncate_below(self, physical_offset: int) -> None:
        """Forget epochs that end at or below (``truncatePrefixByOffset``)."""
        self._write([one for one in self.entries if one.end_physical_offset > physical_offset])

    def consistent_physical_offset(
        self, others: Sequence[EpochEntry], end_physical_offset: int, others_end: int
    ) -> int:
        """
        Return up to where two logs are the same, -1 if they share no epoch.

        That is in the newest epoch that both have and that starts at the same place in both. The
        ends are those of the two logs (``findConsistentPoint``).
        """
        by_epoch = {entry.epoch: entry for entry in others}
        for entry in reversed(self.entries):
            other = by_epoch.get(entry.epoch)
            if other and other.start_physical_offset == entry.start_physical_offset:
                ends = (entry.end_physical_offset, other.end_physical_offset)
                return min(*ends, end_physical_offset, others_end)
        return -1

    def _write(self, entries: Sequence[EpochEntry]) -> None:
        """Keep the old file as ``.bak`` and write a new one; an empty list is not written."""
        linked = _linked(entries)
        if linked:
            fs = self.host.fs
            if fs.exists(self.path):
                write_file(fs, f"{self.path}.bak", read_file(fs, self.path))
            write_file(fs, self.path, encode_epochs(linked))
        self.entries = linked
