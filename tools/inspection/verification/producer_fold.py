"""
What a stretch of log does to its producers, in a form that stretches can be joined in.

Segments are scanned side by side, so a scan does not know what was before it: it notes changes,
and :class:`ProducerFold` takes them in the order of the log. Of each producer only the last batch
counts, and where its transactions begin and end.

Source: ``ProducerStateManager``, ``ProducerAppendInfo``.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

from logstore.segments.kafka.producer_snapshot import ProducerSnapshotEntry

_NONE = -1


@attrs.define
class ProducerChange:
    """What a stretch made of one producer; `last_offset` is -1 if it has only markers."""

    first_epoch: int
    epoch: int
    last_sequence: int = _NONE
    last_offset: int = _NONE
    offset_delta: int = 0
    timestamp_ms: int = _NONE
    coordinator_epoch: int | None = None
    #: the stretch began a new epoch: batches of before do not count
    is_renewed: bool = False

    def move_to(self, epoch: int) -> None:
        """Take note of the epoch of a batch or marker."""
        if epoch != self.epoch:
            self.epoch, self.is_renewed = epoch, True
            self.last_sequence, self.last_offset, self.offset_delta = _NONE, _NONE, 0


@attrs.frozen
class Begun:
    """A batch of a transaction, the first one since the producer's last marker in the stretch."""

    offset: int
    position: int
    producer_id: int
    epoch: int
    timestamp_ms: int


@attrs.frozen
class Ended:
    """A transaction marker."""

    offset: int
    position: int
    producer_id: int
    epoch: int
    is_abort: bool


@attrs.frozen
class Reached:
    """A snapshot's offset; `changes` are those of the stretch so far."""

    offset: int
    changes: dict[int, ProducerChange]


Event: TypeAlias = Begun | Ended | Reached


@attrs.define
class Producer:
    """A producer as the log up to here makes it; an `open_since` of -1: no transaction."""

    epoch: int
    last_sequence: int = _NONE
    last_offset: int = _NONE
    offset_delta: int = 0
    timestamp_ms: int = _NONE
    coordinator_epoch: int = _NONE

    def changed(self, change: ProducerChange) -> Producer:
        """Return the producer after a stretch."""
        is_continued = not change.is_renewed and change.first_epoch == self.epoch
        keeps = is_continued and change.last_offset < 0
        coordinator_epoch = change.coordinator_epoch
        return Producer(
            epoch=change.epoch,
            last_sequence=self.last_sequence if keeps else change.last_sequence,
            last_offset=self.last_offset if keeps else change.last_offset,
            offset_delta=self.offset_delta if keeps else change.offset_delta,
            timestamp_ms=change.timestamp_ms,
            coordinator_epoch=(
                self.coordinator_epoch if coordinator_epoch is None else coordinator_epoch
            ),
        )


@attrs.frozen
class Aborted:
    """A transaction that a marker aborted, as the transaction index must have it."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    position: int


@attrs.define
class ProducerFold:
    """The producers at the end of all stretches taken so far."""

    producers: dict[int, Producer] = attrs.field(factory=dict[int, Producer])
    #: by producer id: the first batch of its transaction that has no marker yet
    open: dict[int, Begun] = attrs.field(factory=dict[int, Begun])

    @classmethod
    def from_snapshot(cls, entries: list[ProducerSnapshotEntry]) -> ProducerFold:
        """Start where a snapshot was taken."""
        fold = cls()
        for entry in entries:
            fold.producers[entry.producer_id] = Producer(
                entry.epoch,
                entry.last_sequence,
                entry.last_offset,
                entry.offset_delta,
                entry.timestamp_ms,
                entry.coordinator_epoch,
            )
            first = entry.transaction_first_offset
            if first >= 0:
                fold.open[entry.producer_id] = Begun(
                    first, _NONE, entry.producer_id, entry.epoch, entry.timestamp_ms
                )
        return fold

    def begin(self, event: Begun) -> None:
        """Take the beginning of a transaction, unless it has begun in an earlier stretch."""
        self.open.setdefault(event.producer_id, event)

    def end(self, event: Ended) -> Aborted | None:
        """Take a marker; return the transaction if it had data and is aborted."""
        begun = self.open.pop(event.producer_id, None)
        if begun is None or not event.is_abort:
            return None
        others = [other.offset for other in self.open.values()]
        stable = min(others) if others else event.offset + 1
        return Aborted(event.producer_id, begun.offset, event.offset, stable, event.position)

    def take(self, changes: dict[int, ProducerChange]) -> None:
        """Take what a stretch made of its producers."""
        self.producers = self.after(changes)

    def after(self, changes: dict[int, ProducerChange]) -> dict[int, Producer]:
        """Return the producers as they are after more changes."""
        found = dict(self.producers)
        for producer_id, change in changes.items():
            before = found.get(producer_id, Producer(change.first_epoch))
            found[producer_id] = before.changed(change)
        return found
