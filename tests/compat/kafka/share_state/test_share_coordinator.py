"""The share coordinator: states begin, change, are fenced, and are read again from the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.share_state import records
from logstore.compat.kafka.share_state.persister import (
    DeliveryState,
    SharePartitionKey,
    SharePartitionState,
    StateBatch,
    StateSummary,
)
from logstore.compat.kafka.share_state.records import ShareStateRecordError, StateRecord
from logstore.compat.kafka.share_state.share_coordinator import (
    ShareCoordinator,
    ShareCoordinatorConfig,
)
from logstore.compat.kafka.share_state.share_partition import SharePartition, StateUpdate
from logstore.compat.kafka.share_state.state_log import ReplayedState, StatePosition
from logstore.compat.waiting import Timers
from logstore.errors import WriteFailedError
from logstore.testing.manual_clock import ManualClock

TOPIC, OTHER_TOPIC = b"t" * 16, b"u" * 16
KEY = SharePartitionKey("g", TOPIC, 0)
NONE = ErrorCode.NONE
FIRST = StateBatch(10, 19, DeliveryState.ACKNOWLEDGED, 1)
COLD_MS = 300_000


@attrs.define
class MemoryStateLog:
    """One partition of the log, in memory."""

    stored: list[StateRecord] = attrs.field(factory=list[StateRecord])
    start: int = 0
    is_broken: bool = False
    is_failing: bool = False

    def append(self, key: SharePartitionKey, record: StateRecord) -> StatePosition:
        """Keep a record."""
        del key
        if self.is_broken:
            raise WriteFailedError("log", "the disk is broken")
        self.stored.append(record)
        return StatePosition(0, len(self.stored) - 1)

    def flush(self) -> None:
        """Keep the promise."""
        if self.is_failing:
            raise WriteFailedError("log", "no flush")

    def replay(self) -> Iterator[ReplayedState]:
        """Yield what is kept."""
        for offset, record in enumerate(self.stored):
            if offset >= self.start:
                yield ReplayedState(record, StatePosition(0, offset))

    def delete_below(self, position: StatePosition) -> None:
        """Forget what stands before."""
        if self.is_broken:
            raise WriteFailedError("log", "the disk is broken")
        self.start = position.offset

    def contents(self) -> list[SharePartition | StateUpdate | None]:
        """Return what the records say."""
        found = [records.decoded(*record) for record in self.stored]
        return [change.content for change in found if change is not None]


class Stage:
    """A coordinator over a log in memory, and topics with two partitions each."""

    def __init__(self, updates_per_snapshot: int = 500) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.log = MemoryStateLog()
        self.topics = {TOPIC: 2, OTHER_TOPIC: 2}
        self.config = ShareCoordinatorConfig(updates_per_snapshot)
        self.coordinator = self.opened()

    def opened(self) -> ShareCoordinator:
        """Return a coordinator that has read the log."""
        coordinator = ShareCoordinator(
            self.config, self.timers, self.log, lambda topic_id: self.topics.get(topic_id, 0)
        )
        coordinator.load()
        return coordinator

    def begin(self, key: SharePartitionKey = KEY, epoch: int = 1, start: int = -1) -> ErrorCode:
        """Begin a state."""
        return self.coordinator.initialize(key, epoch, start).error_code

    def write(self, *batches: StateBatch, key: SharePartitionKey = KEY, **fields: Any) -> ErrorCode:
        """Change a state."""
        told: dict[str, Any] = {
            "state_epoch": 1, "leader_epoch": 0, "start_offset": -1, "delivery_complete_count": 0,
        }  # fmt: skip
        return self.coordinator.write(key, state_batches=batches, **told | fields).error_code

    def pass_time(self, time_ms: int) -> None:
        """Let time pass, and what is due happen."""
        self.clock.advance(time_ms)
        self.timers.run()


def test_a_state_begins_and_changes() -> None:
    """A snapshot, then updates; what is read is all of it together."""
    stage = Stage()
    assert stage.begin(start=10) is NONE
    assert stage.write(FIRST, delivery_complete_count=10) is NONE
    more = StateBatch(20, 24, DeliveryState.AVAILABLE, 2)
    assert stage.write(more, delivery_complete_count=10) is NONE
    assert stage.coordinator.read(KEY, 0) == SharePartitionState(NONE, None, 1, 10, (FIRST, more))
    assert stage.coordinator.read_summary(KEY, 0) == StateSummary(NONE, None, 1, 0, 10, 10)
    assert [type(one) for one in stage.log.contents()] == [SharePartition, StateUpdate, StateUpdate]


def test_what_is_known_before_anybody_has_read() -> None:
    """A state that begins nowhere has no count of what is done; one that is not there, nothing."""
    stage = Stage()
    assert stage.coordinator.read_summary(KEY, 0) == StateSummary(NONE, None, 0, 0, -1, -1)
    stage.begin(epoch=4)
    assert stage.coordinator.read_summary(KEY, 0) == StateSummary(NONE, None, 4, 0, -1, -1)
    stage.begin(epoch=4, start=7)
    assert stage.coordinator.read_summary(KEY, 0) == StateSummary(NONE, None, 4, 0, 7, 0)


def test_a_higher_leader_epoch_is_noted_once() -> None:
    """Reading writes down who leads, unless that is known or not told."""
    stage = Stage()
    stage.begin()
    for epoch, count in ((3, 2), (3, 2), (-1, 2), (4, 3)):
        assert stage.coordinator.read(KEY, epoch).error_code is NONE
        assert len(stage.log.stored) == count
    assert stage.coordinator.read_summary(KEY, -1).leader_epoch == 4
    assert stage.coordinator.read(KEY, 3).error_code is ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"state_epoch": 1, "leader_epoch": 3}, ErrorCode.FENCED_STATE_EPOCH),
        ({"state_epoch": 2, "leader_epoch": 2}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"state_epoch": 1, "leader_epoch": 2}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"state_epoch": -1, "leader_epoch": -1}, NONE),
        ({"state_epoch": 9, "leader_epoch": 9}, NONE),
    ],
)
def test_who_is_behind_is_fenced(fields: dict[str, int], code: ErrorCode) -> None:
    """A write under an epoch that is lower than the known one changes nothing."""
    stage = Stage()
    stage.begin(epoch=2)
    stage.coordinator.read(KEY, 3)
    count = len(stage.log.stored)
    told: dict[str, Any] = dict(fields)
    assert stage.write(FIRST, **told) is code
    assert len(stage.log.stored) == count + (code is NONE)


def test_a_state_begins_anew_under_no_lower_epoch() -> None:
    """What was read is forgotten; the snapshots are counted on, and the leader is still known."""
    stage = Stage()
    stage.begin(epoch=2)
    stage.coordinator.read(KEY, 3)
    stage.write(FIRST, state_epoch=2, leader_epoch=3)
    assert stage.begin(epoch=1) is ErrorCode.FENCED_STATE_EPOCH
    assert stage.begin(epoch=2, start=5) is NONE
    begun = stage.log.contents()[-1]
    assert isinstance(begun, SharePartition)
    assert (begun.snapshot_epoch, begun.leader_epoch, begun.state_batches) == (1, 0, ())
    assert stage.coordinator.read(KEY, 2).error_code is ErrorCode.FENCED_LEADER_EPOCH


def test_what_cannot_be() -> None:
    """Partitions that are not there, or have no state, are refused."""
    stage = Stage()
    missing = SharePartitionKey("g", TOPIC, 2)
    gone = SharePartitionKey("g", b"?" * 16, 0)
    negative = SharePartitionKey("g", TOPIC, -1)
    unknown, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REQUEST
    for key, code in ((missing, unknown), (gone, unknown), (negative, invalid)):
        assert stage.begin(key) is code
        assert stage.coordinator.delete(key).error_code is code
        assert stage.coordinator.read_summary(key, 0).error_code is code
        assert stage.coordinator.read(key, 0).error_code is invalid
        assert stage.write(FIRST, key=key) is invalid
    assert stage.write(FIRST) is invalid
    assert stage.coordinator.read(KEY, 0).error_message == (
        "Read operation on uninitialized share partition not allowed."
    )
    assert stage.log.stored == []
    stage.begin()
    stage.topics.clear()
    assert stage.write(FIRST) is unknown
    assert stage.coordinator.read(KEY, 0).error_code is unknown


def test_so_many_updates_are_followed_by_a_snapshot() -> None:
    """The snapshot has everything merged, a number of its own, and the count starts over."""
    stage = Stage(updates_per_snapshot=2)
    stage.begin(start=0)
    for number in range(4):
        batch = StateBatch(number, number, DeliveryState.ACKNOWLEDGED, 1)
        assert stage.write(batch, delivery_complete_count=number + 1) is NONE
    kinds = [SharePartition, StateUpdate, StateUpdate, SharePartition, StateUpdate]
    assert [type(one) for one in stage.log.contents()] == kinds
    snapshot = stage.log.contents()[3]
    assert isinstance(snapshot, SharePartition)
    assert snapshot.snapshot_epoch == 1
    assert snapshot.state_batches == (StateBatch(0, 2, DeliveryState.ACKNOWLEDGED, 1),)
    assert snapshot.delivery_complete_count == 3
    update = stage.log.contents()[4]
    assert isinstance(update, StateUpdate)
    assert update.snapshot_epoch == 1


def test_without_updates_every_record_is_a_snapshot() -> None:
    """If no update may stand between snapshots, there are none."""
    stage = Stage(updates_per_snapshot=0)
    stage.begin()
    stage.write(FIRST, start_offset=15)
    stage.coordinator.read(KEY, 2)
    assert [type(one) for one in stage.log.contents()] == [SharePartition] * 3
    assert stage.coordinator.read(KEY, 2).state_batches == (FIRST._replace(first_offset=15),)


def test_a_state_is_read_again_as_it_was() -> None:
    """A coordinator that starts on the log knows states, epochs and the number of updates."""
    stage = Stage(updates_per_snapshot=2)
    stage.begin(epoch=3, start=0)
    stage.coordinator.read(KEY, 5)
    stage.write(FIRST, state_epoch=3, leader_epoch=5, delivery_complete_count=10)
    before = stage.coordinator.read(KEY, 5), stage.coordinator.read_summary(KEY, 5)
    stage.coordinator = stage.opened()
    assert (stage.coordinator.read(KEY, 5), stage.coordinator.read_summary(KEY, 5)) == before
    assert stage.write(FIRST, state_epoch=2, leader_epoch=5) is ErrorCode.FENCED_STATE_EPOCH
    assert stage.write(FIRST, state_epoch=3, leader_epoch=4) is ErrorCode.FENCED_LEADER_EPOCH
    assert stage.write(FIRST, state_epoch=3, leader_epoch=5) is NONE
    assert isinstance(stage.log.contents()[-1], SharePartition)


def test_a_deleted_state_is_gone() -> None:
    """A tombstone is all that is left of it; to delete nothing is fine, and writes nothing."""
    stage = Stage()
    stage.begin()
    for _ in range(2):
        assert stage.coordinator.delete(KEY).error_code is NONE
        assert stage.log.contents()[1:] == [None]
    stage.coordinator = stage.opened()
    assert stage.coordinator.read(KEY, 0).error_code is ErrorCode.INVALID_REQUEST
    assert stage.begin(epoch=0) is NONE


def test_states_go_with_their_topic() -> None:
    """Of a topic that is gone nothing is kept, of the others all."""
    stage = Stage()
    other = SharePartitionKey("g", OTHER_TOPIC, 0)
    stage.begin()
    stage.begin(other)
    del stage.topics[TOPIC]
    stage.coordinator.forget_topics({TOPIC})
    assert stage.log.contents()[2:] == [None]
    assert stage.coordinator.read(other, 0).error_code is NONE


def test_what_the_disk_refuses_does_not_hold() -> None:
    """A change that was not written changes nothing; the asker looks for another coordinator."""
    stage = Stage()
    stage.begin()
    stage.log.is_broken = True
    assert stage.write(FIRST) is ErrorCode.NOT_COORDINATOR
    assert stage.coordinator.read(KEY, 5).error_code is ErrorCode.NOT_COORDINATOR
    stage.log.is_broken = False
    assert stage.coordinator.read(KEY, 0).state_batches == ()


def test_what_is_written_and_not_flushed_holds() -> None:
    """The asker is refused; the next coordinator will find the change, and so does this one."""
    stage = Stage()
    stage.begin()
    stage.log.is_failing = True
    assert stage.write(FIRST) is ErrorCode.NOT_COORDINATOR
    stage.log.is_failing = False
    before = stage.coordinator.read(KEY, 0)
    assert before.state_batches == (FIRST,)
    stage.coordinator = stage.opened()
    assert stage.coordinator.read(KEY, 0) == before


def test_an_update_without_its_snapshot_counts_alone() -> None:
    """Whose snapshot is gone is known by what has changed since; any state epoch is let through."""
    stage = Stage()
    update = StateUpdate(3, 2, 7, 1, (FIRST,))
    stage.log.stored.append(records.update(KEY, update))
    stage.coordinator = stage.opened()
    assert stage.coordinator.read(KEY, 2) == SharePartitionState(NONE, None, 0, 7, (FIRST,))
    assert stage.write(FIRST, state_epoch=0, leader_epoch=2) is NONE


def test_what_is_cold_is_written_again_and_what_is_old_goes() -> None:
    """States that nobody writes move to the end of the log, so that its front can be deleted."""
    stage = Stage()
    other = SharePartitionKey("g", TOPIC, 1)
    stage.begin()
    stage.begin(other)
    stage.write(FIRST, key=other)
    stage.pass_time(COLD_MS)
    contents = stage.log.contents()
    assert [type(one) for one in contents[3:]] == [SharePartition, SharePartition]
    snapshot = contents[3]
    assert isinstance(snapshot, SharePartition)
    assert (snapshot.snapshot_epoch, snapshot.is_cold) == (1, True)
    assert snapshot.write_timestamp_ms - snapshot.create_timestamp_ms == COLD_MS
    assert stage.log.start == 3
    stage.pass_time(COLD_MS)
    assert len(stage.log.stored) == 5, "all of them are cold"
    stage.write(FIRST)
    before = stage.coordinator.read(other, 0)
    stage.coordinator = stage.opened()
    assert stage.coordinator.read(other, 0) == before


def test_what_was_not_deleted_is_deleted_the_next_time() -> None:
    """A disk that refuses once is asked again."""
    stage = Stage()
    stage.begin()
    stage.begin(epoch=2)
    stage.log.is_broken = True
    stage.coordinator.prune()
    assert stage.log.start == 0
    stage.log.is_broken = False
    stage.coordinator.prune()
    assert stage.log.start == 1


def test_closed_it_does_nothing_by_itself() -> None:
    """A coordinator that was closed writes nothing any more."""
    stage = Stage()
    stage.begin()
    stage.coordinator.close()
    stage.pass_time(COLD_MS)
    assert len(stage.log.stored) == 1


def test_records_of_others() -> None:
    """Types that nobody knows are passed over, and states that nobody knows kept as numbers."""
    assert records.decoded(b"\0\2", b"\0\0") is None
    assert records.decoded(records.update(KEY, StateUpdate(0, 0, 0, 0, ()))[0], None) is None
    unknown = FIRST._replace(delivery_state=records.delivery_state(3))
    change = records.decoded(*records.update(KEY, StateUpdate(0, 0, 0, 0, (unknown,))))
    assert change is not None
    assert isinstance(change.content, StateUpdate)
    assert change.content.state_batches == (unknown,)
    with pytest.raises(ShareStateRecordError):
        records.decoded(records.tombstone(KEY)[0], b"\0\0\1")
