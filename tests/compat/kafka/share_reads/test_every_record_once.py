"""Whatever members do: every record is delivered, to one at a time, and never after its end."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.share_reads.acknowledgement import AcknowledgementBatch
from tests.compat.kafka.share_reads.stage import (
    ACCEPT,
    GAP,
    LOCK_MS,
    REJECT,
    RELEASE,
    RENEW,
    Stage,
)

LIMIT = 3
MEMBERS = st.sampled_from("AB")


class EveryRecordOnce(RuleBasedStateMachine):
    """A share-partition, and what every single record must be like."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(delivery_count_limit=LIMIT, partition_max_record_locks=100)
        self.now_ms = 0
        #: offset -> (member, when its time is over)
        self.had: dict[int, tuple[str, int]] = {}
        self.counts: dict[int, int] = {}
        self.ended: set[int] = set()

    def _end(self, offset: int, *, is_final: bool) -> None:
        del self.had[offset]
        if is_final or self.counts[offset] >= LIMIT:
            self.ended.add(offset)

    @rule(counts=st.lists(st.integers(1, 9), min_size=1, max_size=4))
    def append(self, counts: list[int]) -> None:
        """Batches come."""
        self.stage.append(*counts)

    @rule(
        member=MEMBERS,
        count_max=st.integers(1, 20),
        batch_size=st.integers(1, 10),
        limit=st.booleans(),
        bytes_max=st.sampled_from([1, 200, 1 << 20]),
    )
    def acquire(
        self, member: str, count_max: int, batch_size: int, limit: bool, bytes_max: int
    ) -> None:
        """A member gets records that nobody has, and whose end has not come."""
        told = self.stage.acquire(
            count_max, member=member, batch_size=batch_size, limit=limit, bytes_max=bytes_max
        )
        got = 0
        for words in told.split() if told not in ("full", "nothing") else ():
            offsets, _, times = words.partition("*")
            first, _, last = offsets.partition("-")
            for offset in range(int(first), int(last or first) + 1):
                assert offset not in self.had
                assert offset not in self.ended
                assert offset < self.stage.log.end_offset
                self.counts[offset] = self.counts.get(offset, 0) + 1
                assert self.counts[offset] == int(times or 1) <= LIMIT
                self.had[offset] = member, self.now_ms + LOCK_MS
                got += 1
        assert not limit or got <= count_max

    @precondition(lambda self: self.had)
    @rule(data=st.data(), is_refused=st.booleans())
    def say(self, data: st.DataObject, is_refused: bool) -> None:
        """A member ends deliveries, or renews its time, unless that cannot be kept."""
        member = data.draw(st.sampled_from(sorted({owner for owner, _ in self.had.values()})))
        mine = sorted(offset for offset, (owner, _) in self.had.items() if owner == member)
        first = data.draw(st.sampled_from(mine))
        last = first
        while last + 1 in mine and data.draw(st.booleans()):
            last += 1
        kinds = st.sampled_from([GAP, ACCEPT, RELEASE, REJECT, RENEW])
        size = data.draw(st.sampled_from([1, last - first + 1]))
        types = tuple(data.draw(st.lists(kinds, min_size=size, max_size=size)))
        said = AcknowledgementBatch(first, last, types)
        self.stage.persister.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE if is_refused else None
        is_kept = True
        try:
            self.stage.partition.acknowledge(member, [said])
        except RefusedRequestError:
            is_kept = False
        self.stage.persister.refusal = None
        assert is_kept or is_refused
        for offset in range(first, last + 1):
            kind = said.type_of(offset)
            if kind == RENEW:  # asks nobody
                self.had[offset] = member, self.now_ms + LOCK_MS
            elif is_kept:
                self._end(offset, is_final=kind != RELEASE)

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        """A member goes."""
        self.stage.partition.release(member)
        for offset in [offset for offset, (owner, _) in self.had.items() if owner == member]:
            self._end(offset, is_final=False)

    @rule(delay_ms=st.sampled_from([1000, LOCK_MS // 2, LOCK_MS]))
    def wait(self, delay_ms: int) -> None:
        """Time passes, and is over for some."""
        self.now_ms += delay_ms
        self.stage.let_pass(delay_ms)
        for offset in [offset for offset, (_, end) in self.had.items() if end <= self.now_ms]:
            self._end(offset, is_final=False)

    @rule()
    def restart(self) -> None:
        """Nobody has anything any more; a delivery that did not come to its end does not count."""
        self.stage.partition.fence()
        self.stage.open()
        for offset in self.had:
            self.counts[offset] -= 1
        self.had.clear()
        kept = self.stage.persister.read(self.stage.key, 0)
        for batch in kept.state_batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                self.counts[offset] = batch.delivery_count

    @invariant()
    def counts_are_right(self) -> None:
        """What waits for others is counted; the start is not behind a record without an end."""
        self.stage.check_count()
        start, _ = self.stage.bounds
        end = self.stage.log.end_offset
        assert start <= next((o for o in range(end) if o not in self.ended), end)

    def teardown(self) -> None:
        """All that has not come to its end is delivered yet, and then there is nothing more."""
        self.leave("A")
        self.leave("B")
        while True:
            before = len(self.had)
            self.acquire("A", 500, 500, False, 1 << 20)
            if len(self.had) == before:
                break
            self.stage.say(min(self.had), min(self.had), ACCEPT)
            self._end(min(self.had), is_final=True)
            self.leave("A")
        end = self.stage.log.end_offset
        assert self.ended == set(range(end))
        assert self.stage.bounds[0] == end


TestEveryRecordOnce = EveryRecordOnce.TestCase
TestEveryRecordOnce.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
