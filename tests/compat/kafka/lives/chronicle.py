"""What clients were told, kept by somebody who does not look at the broker: the truth of a life."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

import attrs

from tests.compat.kafka.lives.reader import Seen

Place = tuple[str, int]


class Outcome(enum.Enum):
    """What became of a transaction, as its producer knows it."""

    OPEN = enum.auto()
    COMMITTED = enum.auto()
    ABORTED = enum.auto()
    #: its end was asked for, and nobody answered
    UNKNOWN = enum.auto()


@attrs.define
class OffsetTruth:
    """
    What a group may have committed for a partition.

    Of two transactions the offset that was sent later wins, whichever was committed first
    (``CommitRecordMetadataAndOffset.olderThan``); `number` says when the last one was sent.
    """

    offset: int = -1
    number: int = 0
    #: sent later, and nobody knows what became of them: number -> offset
    others: dict[int, int] = attrs.field(factory=dict[int, int])

    def ask(self, number: int, offset: int) -> None:
        """Take note that it may be there from now on."""
        self.others[number] = offset

    def tell(self, number: int, offset: int) -> None:
        """Take note that it is committed."""
        if number > self.number:
            self.number, self.offset = number, offset
        self.others = {n: one for n, one in self.others.items() if n > self.number}

    @property
    def allowed(self) -> set[int]:
        """All that may be found."""
        return {self.offset, *self.others.values()}


@attrs.define(eq=False)
class Told:
    """A transaction: what it wrote where, and how it ended."""

    written: dict[bytes, Place] = attrs.field(factory=dict[bytes, Place])
    #: group offsets that go with it: (when they were sent, partition) -> offset
    offsets: dict[tuple[int, Place], int] = attrs.field(factory=dict[tuple[int, Place], int])
    outcome: Outcome = Outcome.OPEN
    wants_commit: bool = False


@attrs.define
class PartitionTruth:
    """What is known of one partition."""

    #: whether retention or compaction may take records
    may_shrink: bool = False
    #: values by offset, as far as they were acknowledged
    told: dict[int, bytes] = attrs.field(factory=dict[int, bytes])
    #: values whose producer was told nothing, or of an error
    asked: set[bytes] = attrs.field(factory=set[bytes])
    #: the newest offset of each key in a compacted topic
    newest: dict[bytes, int] = attrs.field(factory=dict[bytes, int])
    is_compacted: bool = False
    #: what is below was deleted by somebody
    start: int = 0


@attrs.define
class Chronicle:
    """All partitions, transactions and committed group offsets of a life."""

    partitions: dict[Place, PartitionTruth] = attrs.field(factory=dict[Place, PartitionTruth])
    transactions: dict[bytes, Told] = attrs.field(factory=dict[bytes, Told])
    #: by (group, topic, partition)
    offsets: dict[tuple[str, str, int], OffsetTruth] = attrs.field(
        factory=dict[tuple[str, str, int], OffsetTruth]
    )
    #: topics of which nobody knows whether they are there
    uncertain_topics: set[str] = attrs.field(factory=set[str])

    def topics(self) -> list[str]:
        """Return the topics that must be there, sorted."""
        return sorted({topic for topic, _ in self.partitions})

    def places(self) -> list[Place]:
        """Return all partitions that must be there, sorted."""
        return sorted(self.partitions)

    def add_topic(self, topic: str, partition_count: int, settings: dict[str, str]) -> None:
        """Take note of a topic that was made."""
        is_compacted = settings.get("cleanup.policy") == "compact"
        may_shrink = is_compacted or "retention.ms" in settings
        for index in range(partition_count):
            self.partitions[topic, index] = PartitionTruth(may_shrink, is_compacted=is_compacted)

    def drop_topic(self, topic: str) -> None:
        """Forget a topic that is gone."""
        self.partitions = {place: one for place, one in self.partitions.items()
                           if place[0] != topic}  # fmt: skip
        self.offsets = {key: one for key, one in self.offsets.items() if key[1] != topic}

    def ask(self, place: Place, values: Iterable[bytes], transaction: Told | None = None) -> None:
        """Take note of values that are sent: from now on they may be there."""
        self.partitions[place].asked.update(values)
        if transaction is not None:
            for value in values:
                self.transactions[value] = transaction

    def tell(
        self, place: Place, base_offset: int, values: Sequence[bytes], key: bytes | None
    ) -> None:
        """Take note of an acknowledgement: they are there, from this offset on."""
        truth = self.partitions[place]
        for offset, value in enumerate(values, base_offset):
            assert truth.told.get(offset, value) == value, f"{place}: offset {offset} twice"
            truth.told[offset] = value
            truth.asked.discard(value)
            if value in self.transactions:
                self.transactions[value].written[value] = place
            elif key is not None:
                truth.newest[key] = max(offset, truth.newest.get(key, -1))

    # what must hold

    def check(self, place: Place, earliest: int, seen: Sequence[Seen]) -> None:
        """Hold what a read_uncommitted consumer sees against what producers were told."""
        truth = self.partitions[place]
        if not truth.may_shrink:
            assert earliest <= truth.start, f"{place}: begins at {earliest}, not {truth.start}"
        offsets = [one.offset for one in seen]
        assert offsets == sorted(set(offsets)), f"{place}: offsets out of order: {offsets}"
        values = [one.value for one in seen]
        assert len(values) == len(set(values)), f"{place}: a record stands there twice"
        by_offset = {one.offset: one.value for one in seen}
        for offset, value in truth.told.items():
            found = by_offset.get(offset)
            assert found in (None, value), f"{place}: offset {offset} has {found!r}, not {value!r}"
            must_be = offset >= max(earliest, truth.start) and not truth.is_compacted
            assert found is not None or not must_be, f"{place}: offset {offset}, {value!r}, is lost"
        known = truth.asked | set(truth.told.values())
        strange = [value for value in values if value not in known]
        assert not strange, f"{place}: nobody wrote {strange}"
        for key, offset in truth.newest.items():
            is_there = offset in by_offset or any(
                one.key == key and one.offset > offset for one in seen
            )
            assert (
                is_there or offset < earliest or offset < truth.start or not truth.is_compacted
            ), f"{place}: the newest record of {key!r} is lost"

    def check_committed(
        self, place: Place, stable: int, all_seen: Sequence[Seen], seen: Sequence[Seen]
    ) -> None:
        """Hold what a read_committed consumer sees against the ends that were told."""
        committed = {one.offset: one.value for one in seen}
        for one in all_seen:
            transaction = self.transactions.get(one.value or b"")
            is_seen = one.offset in committed
            if transaction is None or transaction.outcome is Outcome.COMMITTED:
                must = one.offset < stable
                assert is_seen or not must, f"{place}: {one} is committed and not seen"
            elif transaction.outcome in (Outcome.ABORTED, Outcome.OPEN):
                assert not is_seen, f"{place}: {one} is {transaction.outcome.name} and seen"
        extra = set(committed) - {one.offset for one in all_seen}
        assert not extra, f"{place}: offsets {sorted(extra)} are seen by read_committed alone"

    def settle(self, seen: Iterable[bytes]) -> None:
        """All transactions have ended: those of unknown outcome must have ended as one."""
        visible = set(seen)
        for transaction in set(self.transactions.values()):
            if transaction.outcome is not Outcome.UNKNOWN:
                continue
            there = {
                value for value, place in transaction.written.items()
                if value in visible and self._is_kept(place, value)
            }  # fmt: skip
            kept = {value for value, place in transaction.written.items()
                    if self._is_kept(place, value)}  # fmt: skip
            if not kept:
                continue
            assert there in (set(), kept), f"half of a transaction is seen: {there} of {kept}"
            transaction.outcome = Outcome.COMMITTED if there else Outcome.ABORTED

    def is_aborted(self, value: bytes) -> bool:
        """Tell whether a record is of a transaction that did not come to be."""
        transaction = self.transactions.get(value)
        return transaction is not None and transaction.outcome is not Outcome.COMMITTED

    def _is_kept(self, place: Place, value: bytes) -> bool:
        """Tell whether nobody may have taken a record away."""
        truth = self.partitions.get(place)
        if truth is None or truth.may_shrink:
            return False
        return any(v == value and o >= truth.start for o, v in truth.told.items())
