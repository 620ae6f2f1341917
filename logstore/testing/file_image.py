"""One simulated file: what the process sees of it, and the way back to what the medium holds."""

from __future__ import annotations

import random
from collections.abc import Iterator

import attrs

from logstore.testing.power_loss import Kept, PowerLoss
from logstore.testing.sparse_bytes import SparseBytes

#: What a medium writes whole or not at all.
SECTOR_BYTES = 512


@attrs.frozen
class Change:
    """One unsynced write or truncation of ``[position, end)``, with what it takes to undo it."""

    position: int
    end: int
    #: stored bytes that the change replaced; what is not listed was zeros
    replaced: list[tuple[int, bytes]]
    size_before_bytes: int
    size_after_bytes: int
    is_truncation: bool

    def parts(self, sector_bytes: int) -> Iterator[tuple[int, int]]:
        """Yield what it changed as (start, stop), sector by sector; a cut hole is no change."""
        stretches = [(self.position, self.end)]
        if self.is_truncation:
            stretches = [(position, position + len(piece)) for position, piece in self.replaced]
        for start, end in stretches:
            while start < end:
                stop = min(end, start // sector_bytes * sector_bytes + sector_bytes)
                yield start, stop
                start = stop

    def sectors(self, sector_bytes: int) -> range:
        """Return the numbers of the sectors that it touches."""
        if self.position == self.end:
            return range(0)
        return range(self.position // sector_bytes, -(-self.end // sector_bytes))


class FileImage:
    """
    The live content of a file and an undo log that leads back to the durable content.

    The undo log makes a write cost what it writes, and the usual append costs nothing to undo.
    ``Change`` k of a sector produced version k of it; the medium may hold any one of the versions
    (pages are written back whole, whenever the kernel likes), so a power loss picks one version
    for each sector: it walks the log backwards and, at every sector, undoes until a coin says stop.
    """

    def __init__(self, number: int, modified_ms: int, sector_bytes: int = SECTOR_BYTES) -> None:
        self.number = number
        self._sector_bytes = sector_bytes
        self.modified_ms = modified_ms
        self.content = SparseBytes()
        self._changes: list[Change] = []
        # After a failed sync: what the medium holds in sectors whose page is marked clean although
        # it was never written (sector -> its bytes), and the size that it still has on record.
        self._dropped: dict[int, bytes] = {}
        self._dropped_size_bytes: int | None = None

    def copy(self) -> FileImage:
        """Return an equal file that goes its own way."""
        twin = FileImage(self.number, self.modified_ms, self._sector_bytes)
        twin.content = self.content.copy()
        twin._changes = self._changes[:]
        twin._dropped = self._dropped.copy()
        twin._dropped_size_bytes = self._dropped_size_bytes
        return twin

    @property
    def is_synced(self) -> bool:
        """Tell whether the medium holds exactly what the process sees."""
        return not self._changes and not self._dropped and self._dropped_size_bytes is None

    @property
    def durable_size_bytes(self) -> int:
        """The length that survives every power loss."""
        if self._dropped_size_bytes is not None:
            return self._dropped_size_bytes
        return self._changes[0].size_before_bytes if self._changes else self.content.size_bytes

    def write(self, position: int, data: memoryview) -> None:
        """Put `data` at `position` in the live content."""
        end = position + len(data)
        content = self.content
        size_bytes = content.size_bytes
        replaced = content.pieces(position, end) if position < size_bytes else []
        after = max(end, size_bytes)
        self._changes.append(Change(position, end, replaced, size_bytes, after, False))
        content.write(position, data)

    def truncate(self, size_bytes: int) -> None:
        """Cut or extend the live content."""
        before = self.content.size_bytes
        if size_bytes != before:
            end = max(before, size_bytes)
            replaced = self.content.pieces(size_bytes, before)
            self._changes.append(Change(size_bytes, end, replaced, before, size_bytes, True))
            self.content.resize(size_bytes)

    def sync(self) -> None:
        """Make the live content durable, but for pages that an earlier failed sync dropped."""
        if not self.is_synced:
            for change in self._changes:
                self._redeem(change)
            if self._dropped_size_bytes == self.content.size_bytes:
                self._dropped_size_bytes = None
        self._changes.clear()

    def _redeem(self, change: Change) -> None:
        """Save, with the sectors of a change, what a failed sync had dropped of them."""
        if self._dropped:
            for sector in change.sectors(self._sector_bytes):
                self._dropped.pop(sector, None)
        size_bytes = self._dropped_size_bytes
        if change.size_before_bytes != change.size_after_bytes:
            self._dropped_size_bytes = None
        elif size_bytes is not None and size_bytes < change.end <= self.content.size_bytes:
            self._dropped_size_bytes = change.end  # writing a page back moves the size past it

    def drop_unsynced(self) -> None:
        """Mark dirty pages clean without writing them, as Linux does when fsync fails."""
        if not self._changes:
            return
        size_bytes = self.durable_size_bytes
        durable = SparseBytes()
        durable.size_bytes = self.content.size_bytes
        touched = {n for c in self._changes for n in c.sectors(self._sector_bytes)}
        for sector in touched:
            start = sector * self._sector_bytes
            for position, piece in self.content.pieces(start, start + self._sector_bytes):
                durable.write(position, piece)
        for change in reversed(self._changes):
            undo(durable, change, change.position, change.end)
        for sector in touched:
            # A sector that was dropped before keeps its older, still durable bytes.
            self._dropped.setdefault(
                sector, durable.read(sector * self._sector_bytes, self._sector_bytes)
            )
        self._dropped_size_bytes = size_bytes
        self._changes.clear()

    def lose_power(self, loss: PowerLoss, rng: random.Random) -> None:
        """Become what the medium may hold after this loss."""
        if self.is_synced:
            return
        size_bytes = self._surviving_size(loss.sizes, rng)
        kept = self._roll_back(loss.data, rng)
        last = self._changes[-1] if self._changes else None
        if loss.torn_at_bytes is not None and last is not None and not last.is_truncation:
            cut = min(last.position + loss.torn_at_bytes, last.end)
            undo(self.content, last, cut, last.end)
            size_bytes = max(last.size_before_bytes, cut)
        for sector, data in self._dropped.items():
            if sector not in kept:
                self.content.erase(sector * self._sector_bytes, (sector + 1) * self._sector_bytes)
                self.content.write(sector * self._sector_bytes, data)
        self.content.resize(size_bytes)
        self._changes.clear()
        self._dropped.clear()
        self._dropped_size_bytes = None

    def _surviving_size(self, sizes: Kept, rng: random.Random) -> int:
        durable_bytes = self.durable_size_bytes
        grown = [c for c in self._changes if c.size_before_bytes != c.size_after_bytes]
        if sizes is Kept.NOTHING or not grown:
            return durable_bytes
        if sizes is Kept.EVERYTHING:
            return self.content.size_bytes
        change = rng.choice(grown)
        options = [durable_bytes, change.size_before_bytes, change.size_after_bytes]
        if change.size_after_bytes > change.size_before_bytes:
            # A long write reaches the medium in pieces, and the size follows them.
            between = rng.randrange(change.size_before_bytes, change.size_after_bytes)
            options.append(
                max(change.size_before_bytes, between // self._sector_bytes * self._sector_bytes)
            )
        return rng.choice(options)

    def _roll_back(self, data: Kept, rng: random.Random) -> set[int]:
        """Undo unsynced changes of the content; return the sectors that keep a later version."""
        if data is Kept.EVERYTHING:
            if not self._dropped:
                return set()
            return {n for c in self._changes for n in c.sectors(self._sector_bytes)}
        if data is Kept.NOTHING:
            for change in reversed(self._changes):
                undo(self.content, change, change.position, change.end)
            return set()
        kept: set[int] = set()
        chance = rng.random()
        kept_from = 1 << 62  # from here on, sectors are as a kept truncation left them, or later
        for change in reversed(self._changes):
            if change.is_truncation and rng.random() < chance:
                kept_from = min(kept_from, change.position // self._sector_bytes)
                continue
            for start, stop in change.parts(self._sector_bytes):
                sector = start // self._sector_bytes
                if sector in kept or sector >= kept_from:
                    continue
                if not change.is_truncation and rng.random() < chance:
                    kept.add(sector)
                else:
                    undo(self.content, change, start, stop)
        return kept | {sector for sector in self._dropped if sector >= kept_from}


def undo(content: SparseBytes, change: Change, start: int, stop: int) -> None:
    """Put back what `change` replaced in ``[start, stop)``."""
    content.erase(start, stop)
    for position, piece in change.replaced:
        first = max(start, position)
        last = min(stop, position + len(piece))
        if first < last:
            content.write(first, piece[first - position : last - position])
