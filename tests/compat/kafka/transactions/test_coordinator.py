"""What a coordinator does over several steps: fencing, epochs, timeouts, failures, restarts."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.re2_pattern import compiled
from logstore.compat.kafka.transactions.ending import End
from logstore.compat.kafka.transactions.initialising import Initialising
from logstore.compat.kafka.transactions.markers import MarkerResult
from logstore.compat.kafka.transactions.transactions_log import TransactionRecordError
from logstore.segments.kafka.internal_topics.transaction_log import TransactionStatus
from tests.compat.kafka.transactions.stage import ID, P0, P1, TIMEOUT_MS, Stage

S, E = TransactionStatus, ErrorCode
LAST_EPOCH = 32766


def test_a_transaction_of_version_1() -> None:
    """Empty, open, decided, done: four records; the epoch stays, the markers carry it."""
    stage = Stage()
    first = stage.init()
    assert (first.producer_id, first.producer_epoch) == (100, 0)
    assert stage.add(P0, version=0) is stage.add(P1, version=0) is E.NONE
    assert stage.end(is_commit=True, version=0).error_code is E.NONE
    assert stage.log.states() == [
        "Empty", "Ongoing", "Ongoing", "PrepareCommit", "CompleteCommit"
    ]  # fmt: skip
    assert [partition for partition, _ in stage.markers.written] == [P0, P1]
    assert {(m.producer_epoch, m.transaction_version) for _, m in stage.markers.written} == {(0, 0)}
    assert stage.producer == (100, 0)
    assert stage.transaction.partitions == frozenset()


def test_a_transaction_of_version_2() -> None:
    """The end raises the epoch: the markers carry it, and the producer goes on with it."""
    stage = Stage()
    stage.init()
    stage.add(P0)
    ended = stage.end(is_commit=False)
    assert (ended.error_code, ended.producer_id, ended.producer_epoch) == (E.NONE, 100, 1)
    ((_, marker),) = stage.markers.written
    assert (marker.producer_epoch, marker.is_commit, marker.transaction_version) == (1, False, 2)
    assert stage.add(P0, producer=(100, 0)) is E.PRODUCER_FENCED
    assert stage.add(P0, producer=(100, 1)) is E.NONE


def test_an_id_that_nobody_has_begun_with() -> None:
    """Unknown ids are 49, empty ones 42, and are not found."""
    stage = Stage()
    for transactional_id, code in (("x", E.INVALID_PRODUCER_ID_MAPPING), ("", E.INVALID_REQUEST)):
        assert stage.coordinator.add_partitions(transactional_id, 1, 0, [P0], 2) is code
        assert stage.coordinator.verify(transactional_id, 1, 0, [P0]) == {P0: code}
        for version in (0, 2):
            ended = stage.coordinator.end(End(transactional_id, 1, 0, True, version))
            assert ended.error_code is code
    assert stage.coordinator.describe("x") == (E.TRANSACTIONAL_ID_NOT_FOUND, None)
    assert stage.coordinator.describe("") == (E.INVALID_REQUEST, None)
    assert stage.coordinator.init_producer_id(Initialising("", 1)).error_code is E.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 2])
def test_a_new_producer_shuts_the_old_one_out(version: int) -> None:
    """Its open transaction is aborted (51), then the new one gets an epoch above all others."""
    stage = Stage()
    stage.init()
    stage.add(P0, version=version)
    assert stage.init().error_code is E.CONCURRENT_TRANSACTIONS
    assert stage.state.name == "COMPLETE_ABORT"
    ((_, marker),) = stage.markers.written
    assert (marker.is_commit, marker.producer_epoch) == (False, 1)
    again = stage.init()
    assert (again.error_code, again.producer_id, again.producer_epoch) == (E.NONE, 100, 2)
    for old in ((100, 0), (100, 1)):
        assert stage.add(P0, producer=old) is E.PRODUCER_FENCED
        assert stage.end(is_commit=True, producer=old, version=version).error_code is (
            E.PRODUCER_FENCED
        )


def test_before_version_2_a_fence_that_could_not_be_written_raises_the_epoch_once() -> None:
    """At level 0 of transaction.version the second try uses the epoch of the first."""
    stage = Stage(transaction_version=0)
    stage.init()
    stage.add(P0, version=0)
    stage.log.is_full = True
    for _ in range(3):
        assert stage.init().error_code is E.NOT_COORDINATOR
        assert (stage.state, stage.producer) == (S.ONGOING, (100, 1))
    stage.log.is_full = False
    assert stage.init().error_code is E.CONCURRENT_TRANSACTIONS
    assert (stage.state, stage.producer) == (S.COMPLETE_ABORT, (100, 1))
    assert stage.init().producer_epoch == 2


class TestGoingOnAfterAnError:
    """A producer that says its id and epoch (KIP-360)."""

    def test_it_gets_the_next_epoch(self) -> None:
        """And so does its retry, which was not told of the bump."""
        stage = Stage()
        stage.init()
        for _ in range(3):
            bumped = stage.init(expected=(100, 0))
            assert (bumped.error_code, bumped.producer_epoch) == (E.NONE, 1)
        assert stage.init(expected=(100, 1)).producer_epoch == 2

    def test_a_new_producer_in_between_shuts_it_out(self) -> None:
        """Its retry is not taken for one: nobody remembers the epoch before."""
        stage = Stage()
        stage.init()
        stage.init()
        assert stage.init(expected=(100, 0)).error_code is E.PRODUCER_FENCED

    def test_another_producers_id_is_fenced(self) -> None:
        """Only the current id counts, or the one before without epochs left."""
        stage = Stage()
        stage.init()
        assert stage.init(expected=(99, 0)).error_code is E.PRODUCER_FENCED

    def test_an_id_that_is_new_takes_whatever_it_says(self) -> None:
        """The coordinator has forgotten it, so there is nothing to shut out."""
        given = Stage().init(expected=(55, 9))
        assert (given.error_code, given.producer_id, given.producer_epoch) == (E.NONE, 100, 0)

    def test_the_last_epoch_brings_a_new_id(self) -> None:
        """And the retry, which names the old id, is told the new one again."""
        stage = Stage()
        stage.put(producer_epoch=LAST_EPOCH)
        given = stage.init(expected=(7, LAST_EPOCH))
        assert (given.error_code, given.producer_id, given.producer_epoch) == (E.NONE, 100, 0)
        again = stage.init(expected=(7, LAST_EPOCH))
        assert (again.error_code, again.producer_id, again.producer_epoch) == (E.NONE, 100, 0)


class TestTheLastEpoch:
    """32766 is the last epoch that a client gets; 32767 only shuts it out."""

    def test_beginning_anew_brings_another_id(self) -> None:
        """Epoch 0 of a new producer id."""
        stage = Stage()
        stage.put(producer_epoch=LAST_EPOCH)
        given = stage.init()
        assert (given.producer_id, given.producer_epoch) == (100, 0)

    def test_an_end_of_version_2_brings_another_id(self) -> None:
        """The marker has epoch 32767 of the old id; a retry of the end is told the new id."""
        stage = Stage()
        stage.put(producer_epoch=LAST_EPOCH)
        stage.add(P0)
        ended = stage.end(is_commit=True)
        assert (ended.error_code, ended.producer_id, ended.producer_epoch) == (E.NONE, 100, 0)
        ((_, marker),) = stage.markers.written
        assert (marker.producer_id, marker.producer_epoch) == (7, LAST_EPOCH + 1)
        again = stage.end(is_commit=True, producer=(7, LAST_EPOCH))
        assert (again.error_code, again.producer_id, again.producer_epoch) == (E.NONE, 100, 0)

    def test_the_new_id_survives_a_restart_between_decision_and_end(self) -> None:
        """It stands in the record of the decision, so the producer is not told another one."""
        stage = Stage()
        stage.put(producer_epoch=LAST_EPOCH)
        stage.add(P0)
        stage.markers.results[P0] = MarkerResult.RETRY
        told = stage.end(is_commit=True)
        stage.markers.results.clear()
        stage.restart()
        assert stage.producer == (told.producer_id, told.producer_epoch) == (100, 0)


class TestTimeouts:
    """Transactions that are open for too long."""

    def test_it_is_aborted_by_the_clock(self) -> None:
        """Looked for every ten seconds; the producer is shut out and may begin anew."""
        stage = Stage()
        stage.init()
        stage.add(P0)
        stage.wait(TIMEOUT_MS)
        assert stage.state.name == "ONGOING"
        stage.wait(10_000)
        assert stage.state.name == "COMPLETE_ABORT"
        assert stage.end(is_commit=True, producer=(100, 0)).error_code is E.INVALID_TXN_STATE
        assert stage.end(is_commit=True, producer=(100, 0), version=0).error_code is (
            E.PRODUCER_FENCED
        )
        assert stage.add(P0, producer=(100, 0)) is E.PRODUCER_FENCED
        assert stage.init().error_code is E.NONE

    def test_one_after_a_restart_is_aborted_too(self) -> None:
        """When it began stands in the log."""
        stage = Stage()
        stage.init()
        stage.add(P0)
        stage.wait(TIMEOUT_MS)
        stage.restart()
        stage.wait(10_000)
        assert stage.state.name == "COMPLETE_ABORT"

    @pytest.mark.parametrize("timeout_ms", [0, -5, 900_001])
    def test_a_timeout_out_of_bounds_is_refused(self, timeout_ms: int) -> None:
        """Above transaction.max.timeout.ms, or none at all: 50, and nothing is kept."""
        stage = Stage()
        assert stage.init(timeout_ms=timeout_ms).error_code is E.INVALID_TRANSACTION_TIMEOUT
        assert stage.log.records == []


class TestFailures:
    """What a disk refuses."""

    def test_a_step_that_cannot_be_written_does_not_happen(self) -> None:
        """NOT_COORDINATOR, and the state is the one before; later it goes on from there."""
        stage = Stage()
        stage.log.is_full = True
        assert stage.init().error_code is E.NOT_COORDINATOR
        stage.log.is_full = False
        assert stage.init().error_code is E.NONE
        stage.log.is_full = True
        assert stage.add(P0) is E.NOT_COORDINATOR
        assert stage.state.name == "EMPTY"
        stage.log.is_full = False
        stage.add(P0)
        stage.log.is_full = True
        assert stage.end(is_commit=True).error_code is E.NOT_COORDINATOR
        assert (stage.state, stage.producer) == (S.ONGOING, (100, 0))
        assert stage.markers.written == []
        stage.log.is_full = False
        assert stage.end(is_commit=True).error_code is E.NONE
        assert stage.state.name == "COMPLETE_COMMIT"

    def test_a_marker_that_cannot_be_written_is_tried_again(self) -> None:
        """It is decided: the producer is told so; those that stand are not written twice."""
        stage = Stage()
        stage.init()
        stage.add(P0, P1)
        stage.markers.results[P1] = MarkerResult.RETRY
        assert stage.end(is_commit=True).error_code is E.NONE
        assert (stage.state, stage.transaction.partitions) == (S.PREPARE_COMMIT, frozenset({P1}))
        assert stage.add(P0) is E.CONCURRENT_TRANSACTIONS
        stage.wait(100)
        assert stage.state.name == "PREPARE_COMMIT"
        stage.markers.results.clear()
        stage.wait(200)
        assert stage.state.name == "COMPLETE_COMMIT"
        assert [partition for partition, _ in stage.markers.written] == [P0, P1]

    def test_what_comes_before_a_marker_is_done_in_parts(self) -> None:
        """Time passes between them, in which others are served; then the next partition's turn."""
        stage = Stage()
        stage.init()
        stage.add(P0, P1)
        stage.markers.results[P0] = MarkerResult.GOES_ON
        assert stage.end(is_commit=True).error_code is E.NONE
        for _ in range(3):
            stage.wait(1)
            assert (stage.state, stage.markers.written) == (S.PREPARE_COMMIT, [])
        stage.markers.results.clear()
        stage.wait(1)
        assert stage.state.name == "COMPLETE_COMMIT"
        assert [partition for partition, _ in stage.markers.written] == [P0, P1]

    def test_a_completion_that_cannot_be_written_is_tried_again(self) -> None:
        """The markers stand; only the last record is missing."""
        stage = Stage()
        stage.init()
        stage.add(P0)
        stage.markers.results[P0] = MarkerResult.RETRY
        stage.end(is_commit=False)
        stage.markers.results.clear()
        stage.log.is_full = True
        stage.wait(100)
        assert (stage.state, stage.transaction.partitions) == (S.PREPARE_ABORT, frozenset())
        stage.log.is_full = False
        stage.wait(200)
        assert stage.state.name == "COMPLETE_ABORT"

    def test_a_refused_marker_leaves_it_decided(self) -> None:
        """A newer producer has been there: no marker is tried again before a restart."""
        stage = Stage()
        stage.init()
        stage.add(P0)
        stage.markers.results[P0] = MarkerResult.REFUSED
        assert stage.end(is_commit=True).error_code is E.NONE
        stage.wait(60_000)
        assert stage.state.name == "PREPARE_COMMIT"

    def test_a_tombstone_that_cannot_be_written_is_for_later(self) -> None:
        """The id stays until it is."""
        stage = Stage()
        stage.init()
        stage.clock.advance(stage.config.transactional_id_expiration_ms)
        stage.log.is_full = True
        assert stage.coordinator.remove_expired() == 0
        assert stage.state.name == "EMPTY"
        stage.log.is_full = False
        assert stage.coordinator.remove_expired() == 1


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("is_commit", [True, False])
def test_a_crash_after_any_record_ends_as_decided(version: int, is_commit: bool) -> None:
    """Cut anywhere, the log leads to the decided end if it was decided, else to an abort."""
    whole = Stage()
    whole.init()
    whole.add(P0, version=version)
    whole.add(P1, version=version)
    whole.end(is_commit=is_commit, version=version)
    records = whole.log.records
    for count in range(len(records) + 1):
        stage = Stage()
        stage.log.records = records[:count]
        stage.restart()
        if count >= 4:  # the decision
            expected = S.COMPLETE_COMMIT if is_commit else S.COMPLETE_ABORT
            assert (stage.state, stage.producer) == (expected, whole.producer)
            partitions = {partition for partition, _ in stage.markers.written}
            assert partitions == (set() if count == len(records) else {P0, P1})
        else:
            assert stage.markers.written == []
            stage.init()
            assert all(not marker.is_commit for _, marker in stage.markers.written)
        stage.init()
        assert stage.state.name == "EMPTY"


def test_a_record_that_cannot_be_read_stops_the_start() -> None:
    """Transactions must not vanish silently."""
    stage = Stage()
    stage.init()
    key, value = stage.log.records[0]
    stage.log.records[0] = (key, (value or b"")[:-3])
    with pytest.raises(TransactionRecordError):
        stage.restart()


def test_records_of_the_future_are_passed_over() -> None:
    """Keys and values of versions that nobody knows yet, as left by an upgrade taken back."""
    stage = Stage()
    stage.init()
    key, value = stage.log.records[0]
    stage.log.records += [(b"\0\7" + key[2:], value), (key, b"\0\x63junk")]
    stage.restart()
    assert stage.producer == (100, 0)


def test_a_closed_coordinator_sends_everybody_away() -> None:
    """NOT_COORDINATOR for all that is asked; nothing happens by the clock any more."""
    stage = Stage()
    stage.init()
    stage.add(P0)
    stage.coordinator.close()
    assert stage.init().error_code is E.NOT_COORDINATOR
    assert stage.coordinator.add_partitions(ID, 100, 0, [P0], 2) is E.NOT_COORDINATOR
    assert stage.coordinator.describe(ID) == (E.NOT_COORDINATOR, None)
    assert stage.coordinator.list_transactions() == (E.NOT_COORDINATOR, [])
    written = len(stage.log.records)
    stage.wait(10 * TIMEOUT_MS)
    assert len(stage.log.records) == written


def test_lists_are_narrowed_down() -> None:
    """By state, producer id, how long they last at least, and a pattern for the whole id."""
    stage = Stage()
    for name in ("pay-1", "pay-2", "ship-1"):
        stage.coordinator.init_producer_id(Initialising(name, TIMEOUT_MS))
    stage.coordinator.add_partitions("pay-1", 100, 0, [P0], 2)
    stage.clock.advance(500)
    stage.coordinator.add_partitions("pay-2", 101, 0, [P0], 2)

    def names(**filters: object) -> list[str]:
        error, found = stage.coordinator.list_transactions(**filters)  # type: ignore[arg-type]
        assert error is E.NONE
        return [one.transactional_id for one in found]

    assert names() == ["pay-1", "pay-2", "ship-1"]
    assert names(states={S.ONGOING}) == ["pay-1", "pay-2"]
    assert names(states=frozenset[TransactionStatus]()) == []
    assert names(producer_ids={101, 102}) == ["pay-2", "ship-1"]
    assert names(pattern=compiled("pay.*")) == ["pay-1", "pay-2"]
    assert names(pattern=compiled("pay")) == []
    assert names(duration_ms=499, states={S.ONGOING}) == ["pay-1"]
    assert names(duration_ms=500, states={S.ONGOING}) == []
