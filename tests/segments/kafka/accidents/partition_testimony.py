"""What a witness knows of one partition: what was offered, what was promised, what was decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import attrs

from logstore.segments.kafka.control_record import ControlType, decode_marker
from logstore.segments.kafka.leader_epochs import NO_EPOCH
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record, decode_records
from logstore.segments.kafka.record_batch import RecordBatch
from tests.segments.kafka.accidents.consumer import fetched, fetched_committed


@attrs.frozen
class Fact:
    """One record as it was offered, with what its batch says of it."""

    record: Record
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    is_transactional: bool
    #: of a marker: what it says
    control: ControlType | None = None


@lru_cache(maxsize=4096)
def _facts_in(data: bytes) -> tuple[Fact, ...]:
    batch = RecordBatch(data, len(data))
    found: list[Fact] = []
    for record in decode_records(data):
        marker = decode_marker(record) if batch.is_control else None
        found.append(
            Fact(
                record,
                batch.leader_epoch,
                batch.producer_id,
                batch.producer_epoch,
                batch.is_transactional,
                None if marker is None else marker.type,
            )
        )
    return tuple(found)


def facts_of(batches: Iterable[RecordBatch]) -> list[Fact]:
    """Return the records of these batches."""
    return [fact for batch in batches for fact in _facts_in(bytes(batch.data))]


@attrs.frozen
class Decisions:
    """What markers decided: offsets of data that counts, and where the first open one starts."""

    committed: list[int]
    aborted: list[int]
    first_open: int | None

    @staticmethod
    def by(facts: Iterable[Fact]) -> Decisions:
        """Follow the markers among `facts`, which are in the order of their offsets."""
        committed: list[int] = []
        aborted: list[int] = []
        is_open: dict[int, list[int]] = {}
        for fact in facts:
            if fact.control is not None:
                side = committed if fact.control is ControlType.COMMIT else aborted
                side += is_open.pop(fact.producer_id, [])
            elif fact.is_transactional:
                is_open.setdefault(fact.producer_id, []).append(fact.record.offset)
            else:
                committed.append(fact.record.offset)
        first_open = min((offsets[0] for offsets in is_open.values()), default=None)
        return Decisions(sorted(committed), sorted(aborted), first_open)


@attrs.define
class PartitionTestimony:
    """
    Holds one partition to its promises.

    Promised is what was below the log end when a flush returned, and is not below the log start.
    What a compaction may take away is not.
    """

    #: all that was offered and not cut off again, by offset
    facts: dict[int, Fact] = attrs.field(factory=dict[int, Fact])
    promised_end: int = 0
    #: what is below may be given up
    start_max: int = 0
    #: a checkpoint holds that it does not start below
    start_min: int = 0
    #: a compaction may have run: offsets that it may take away
    dispensable: frozenset[int] | None = None

    def copy(self) -> PartitionTestimony:
        """Return one that goes on on its own."""
        return attrs.evolve(self, facts=dict(self.facts))

    def offer(self, batch: RecordBatch) -> None:
        """Take note of a batch, stamped, that is about to be appended."""
        for fact in facts_of([batch]):
            self.facts[fact.record.offset] = fact

    def promise(self, end_offset: int) -> None:
        """A flush has returned."""
        self.promised_end = end_offset

    def adopt(self, partition: KafkaPartition) -> None:
        """Go on from what a recovery left."""
        self.facts = {fact.record.offset: fact for fact in facts_of(partition.batches())}
        self.promised_end = min(self.promised_end, partition.end_offset)

    def in_order(self) -> list[Fact]:
        """Return what was offered, by offset."""
        return [self.facts[offset] for offset in sorted(self.facts)]

    def superseded(self) -> frozenset[int]:
        """Return what a compaction may take away: old values, aborted data, markers."""
        facts = self.in_order()
        decided = Decisions.by(facts)
        newest: dict[bytes | None, int] = {}
        for offset in decided.committed:
            newest[self.facts[offset].record.key] = offset
        old = set(decided.committed) - set(newest.values())
        markers = {fact.record.offset for fact in facts if fact.control is not None}
        return frozenset(old | set(decided.aborted) | markers)

    # what is found

    def check(self, partition: KafkaPartition) -> None:
        """Compare what the partition serves with what it was given."""
        end, start = partition.end_offset, partition.start_offset
        assert end >= self.promised_end, f"ends at {end}, flushed up to {self.promised_end}"
        assert self.start_min <= start <= end, f"starts at {start}, ends at {end}"
        found = self.check_records(partition)
        kept = {fact.record.offset for fact in found}
        lost = [at for at in self.promised() if at not in kept or at < start]
        assert not lost, f"flushed and lost: {lost}"
        self.check_committed(partition, found)
        self.check_producers(partition, found)
        for fact in found:
            offset = fact.record.offset
            if offset >= max(start, self.start_max):  # those below may be back without epochs
                epoch = partition.leader_epochs.epoch_for(offset)
                # A segment that lost its index is recovered before those in front of it, and an
                # epoch begins where it is seen first: so it is with Kafka (LogLoader).
                if epoch == NO_EPOCH and offset >= self.promised_end:
                    continue
                assert epoch == fact.leader_epoch, f"epoch {epoch} at {offset}"

    def promised(self) -> Iterator[int]:
        """Yield the offsets that must be there."""
        dispensable = self.dispensable or frozenset()
        for offset in self.facts:
            if self.start_max <= offset < self.promised_end and offset not in dispensable:
                yield offset

    def check_records(self, partition: KafkaPartition) -> list[Fact]:
        """Compare all that is read, in both ways of reading; return it."""
        found = [f for f in facts_of(partition.batches()) if f.record.offset < partition.end_offset]
        offsets = [fact.record.offset for fact in found]
        assert offsets == sorted(set(offsets)), f"out of order: {offsets}"
        for fact in found:
            offered = self.facts.get(fact.record.offset)
            assert fact == offered, f"{fact} is served, {offered} was appended"
        assert facts_of(fetched(partition)) == found, "a fetch gives something else"
        start = partition.start_offset
        data = [f.record for f in found if f.control is None and f.record.offset >= start]
        plain = partition.read_records(start, len(found) + 1)
        assert [(r.offset, r.key, r.value) for r in plain] == [
            (r.offset, r.key, r.value) for r in data
        ], "read_records gives something else"
        return found

    def check_producers(self, partition: KafkaPartition, found: list[Fact]) -> None:
        """A producer that goes on where it was must not be refused, nor written twice."""
        last = {f.producer_id: f.record.sequence for f in found if f.record.sequence >= 0}
        for producer_id, sequence in last.items():
            entry = partition.producers.get(producer_id)
            assert entry is not None, f"producer {producer_id} is forgotten"
            assert entry.last_sequence == sequence, f"producer {producer_id}: {entry}"

    def check_committed(self, partition: KafkaPartition, found: list[Fact]) -> None:
        """Compare what a read_committed reader gets with what was decided."""
        start = partition.start_offset
        served = facts_of(fetched_committed(partition))
        offsets = [fact.record.offset for fact in served]
        wrong = set(offsets) - set(Decisions.by(self.in_order()).committed)
        assert not wrong, f"aborted or not decided, and served as committed: {sorted(wrong)}"
        plain = partition.read_records(start, len(found) + 1, is_committed_only=True)
        assert [r.offset for r in plain] == [offset for offset in offsets if offset >= start]
        flushed = [fact for fact in self.in_order() if fact.record.offset < self.promised_end]
        decided = Decisions.by(flushed)
        limit = self.promised_end if decided.first_open is None else decided.first_open
        must = set(self.promised()) & {offset for offset in decided.committed if offset < limit}
        lost = must - set(offsets)
        assert not lost, f"committed, flushed, and not served: {sorted(lost)}"
        if self.dispensable is None:
            by_found = Decisions.by(found)
            stop = partition.end_offset if by_found.first_open is None else by_found.first_open
            expected = [offset for offset in by_found.committed if offset < stop]
            assert offsets == expected, "not what the markers in the log say"
