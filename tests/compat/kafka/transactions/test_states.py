"""Every state of a transaction and every request."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.transactions.markers import MarkerResult
from logstore.compat.kafka.transactions.states import IDLE, PREVIOUS_STATES
from logstore.compat.kafka.transactions.transaction import Transaction
from logstore.segments.kafka.internal_topics.transaction_log import TransactionStatus
from tests.compat.kafka.transactions.stage import ID, P0, P1, TIMEOUT_MS, Stage

S, E = TransactionStatus, ErrorCode
EMPTY, ONGOING = S.EMPTY, S.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = S.PREPARE_COMMIT, S.PREPARE_ABORT
COMMITTED, ABORTED = S.COMPLETE_COMMIT, S.COMPLETE_ABORT
STATES = (EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMMITTED, ABORTED)
ME, BEFORE_ME, AFTER_ME, SOMEBODY = (7, 5), (7, 4), (7, 6), (8, 5)


def in_state(state: TransactionStatus, version: int = 2) -> Stage:
    """Return a stage whose producer has id 7 and epoch 5; what is prepared cannot be completed."""
    stage = Stage()
    is_open = state not in IDLE
    if is_open:
        stage.markers.results[P0] = MarkerResult.RETRY
    stage.put(
        state=state,
        partitions=frozenset({P0} if is_open else ()),
        start_ms=-1 if state is EMPTY else stage.clock.wall_ms(),
        client_transaction_version=version,
    )
    return stage


def test_a_state_is_reached_from_nowhere_else() -> None:
    """The table is Kafka's: for each of the eight states those before it."""
    expected = {
        "EMPTY": "EMPTY COMPLETE_COMMIT COMPLETE_ABORT",
        "ONGOING": "EMPTY ONGOING COMPLETE_COMMIT COMPLETE_ABORT",
        "PREPARE_COMMIT": "ONGOING",
        "PREPARE_ABORT": "EMPTY ONGOING COMPLETE_COMMIT COMPLETE_ABORT PREPARE_EPOCH_FENCE",
        "COMPLETE_COMMIT": "PREPARE_COMMIT",
        "COMPLETE_ABORT": "PREPARE_ABORT",
        "DEAD": "EMPTY COMPLETE_COMMIT COMPLETE_ABORT",
        "PREPARE_EPOCH_FENCE": "ONGOING",
    }
    found = {state.name: {one.name for one in before} for state, before in PREVIOUS_STATES.items()}
    assert found == {name: set(before.split()) for name, before in expected.items()}


@pytest.mark.parametrize("state", STATES)
def test_a_transition_that_the_table_does_not_have_is_a_programmers_error(
    state: TransactionStatus,
) -> None:
    """Whatever a transaction is asked to become, it becomes only from the states of the table."""
    transaction = Transaction(
        transactional_id=ID, producer_id=7, producer_epoch=5, timeout_ms=1, last_update_ms=0,
        state=state, start_ms=0,
    )  # fmt: skip
    steps: dict[TransactionStatus, Callable[[], Transaction | None]] = {
        EMPTY: lambda: transaction.with_next_epoch(TIMEOUT_MS, None, 1),
        ONGOING: lambda: transaction.with_partitions([P0], 1, 2),
        PREPARE_COMMIT: lambda: transaction.decided(1, is_commit=True, transaction_version=2),
        PREPARE_ABORT: lambda: transaction.decided(1, is_commit=False, transaction_version=2),
    }
    for target, step in steps.items():
        if state in PREVIOUS_STATES[target]:
            moved = step()
            assert moved is not None
            assert moved.state is target
        else:
            with pytest.raises(AssertionError):
                step()
    if state in (PREPARE_COMMIT, PREPARE_ABORT):
        assert transaction.completed(1).state is (COMMITTED if state is PREPARE_COMMIT else ABORTED)
    else:
        with pytest.raises(AssertionError):
            transaction.completed(1)


@pytest.mark.parametrize("state", STATES)
def test_init_producer_id(state: TransactionStatus) -> None:
    """Idle: the next epoch. Open: aborted, 51. Decided: 51."""
    stage = in_state(state)
    given = stage.init()
    if state in IDLE:
        assert (given.error_code, given.producer_id, given.producer_epoch) == (E.NONE, 7, 6)
        assert stage.state is EMPTY
    else:
        assert (given.error_code, given.producer_id) == (E.CONCURRENT_TRANSACTIONS, -1)
        assert stage.state is (PREPARE_ABORT if state is ONGOING else state)


#: who asks: (producer, epoch), and the answer in an idle or open state; after it in a decided one
STRANGERS = [
    (BEFORE_ME, E.PRODUCER_FENCED),
    (AFTER_ME, E.PRODUCER_FENCED),
    (SOMEBODY, E.INVALID_PRODUCER_ID_MAPPING),
]


@pytest.mark.parametrize("state", STATES)
def test_add_partitions(state: TransactionStatus) -> None:
    """Idle or open: the transaction has them; decided: 51, whoever asks."""
    is_decided = state in (PREPARE_COMMIT, PREPARE_ABORT)
    for producer, error in STRANGERS:
        stage = in_state(state)
        expected = E.CONCURRENT_TRANSACTIONS if is_decided else error
        assert stage.add(P1, producer=producer) is expected
        assert stage.state is state
    stage = in_state(state)
    if is_decided:
        assert stage.add(P1) is E.CONCURRENT_TRANSACTIONS
        return
    stage.clock.advance(5)
    assert stage.add(P1) is E.NONE
    assert stage.state is ONGOING
    assert stage.transaction.partitions == ({P0, P1} if state is ONGOING else {P1})
    began_ms = stage.clock.wall_ms() - (5 if state is ONGOING else 0)
    assert stage.transaction.start_ms == began_ms
    written = len(stage.log.records)
    assert stage.add(P1) is E.NONE
    assert len(stage.log.records) == written, "what is known already is not written again"


@pytest.mark.parametrize("state", STATES)
def test_verify(state: TransactionStatus) -> None:
    """NONE for what the transaction has, 120 for what it has not; 51 once it is decided."""
    for producer, error in STRANGERS:
        assert in_state(state).coordinator.verify(ID, *producer, [P0]) == {P0: error}
    found = in_state(state).coordinator.verify(ID, *ME, [P0, P1])
    if state in (PREPARE_COMMIT, PREPARE_ABORT):
        assert set(found.values()) == {E.CONCURRENT_TRANSACTIONS}
    else:
        has_p0 = state is ONGOING
        assert found == {
            P0: E.NONE if has_p0 else E.TRANSACTION_ABORTABLE,
            P1: E.TRANSACTION_ABORTABLE,
        }


#: state: (answer to commit, answer to abort); a state where it goes on to that
ENDS_V1 = {
    EMPTY: (E.INVALID_TXN_STATE, E.INVALID_TXN_STATE),
    ONGOING: (PREPARE_COMMIT, PREPARE_ABORT),
    PREPARE_COMMIT: (E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
    PREPARE_ABORT: (E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
    COMMITTED: (E.NONE, E.INVALID_TXN_STATE),
    ABORTED: (E.INVALID_TXN_STATE, E.NONE),
}


@pytest.mark.parametrize(("state", "is_commit"), list(itertools.product(STATES, (True, False))))
def test_end_in_version_1(state: TransactionStatus, is_commit: bool) -> None:
    """Epochs must be the same; an end that is repeated is fine, the other one 48."""
    for producer, error in STRANGERS:
        stage = in_state(state, version=0)
        ended = stage.end(is_commit=is_commit, producer=producer, version=0)
        assert (ended.error_code, stage.state) == (error, state)
    stage = in_state(state, version=0)
    expected = ENDS_V1[state][0 if is_commit else 1]
    ended = stage.end(is_commit=is_commit, version=0)
    assert (ended.producer_id, ended.producer_epoch) == (-1, -1)
    if isinstance(expected, ErrorCode):
        assert (ended.error_code, stage.state) == (expected, state)
    else:
        assert (ended.error_code, stage.state) == (E.NONE, expected)
        assert stage.producer == ME


#: as above, for the current epoch and for one below it, which asks for the last end again
ENDS_V2 = {
    EMPTY: (E.INVALID_TXN_STATE, ABORTED),
    ONGOING: (PREPARE_COMMIT, PREPARE_ABORT),
    PREPARE_COMMIT: (E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
    PREPARE_ABORT: (E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
    COMMITTED: (E.INVALID_TXN_STATE, ABORTED),
    ABORTED: (E.INVALID_TXN_STATE, ABORTED),
}
RETRIES_V2 = {
    EMPTY: (E.PRODUCER_FENCED, E.PRODUCER_FENCED),
    ONGOING: (E.PRODUCER_FENCED, E.PRODUCER_FENCED),
    PREPARE_COMMIT: (E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
    PREPARE_ABORT: (E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
    COMMITTED: (E.NONE, E.INVALID_TXN_STATE),
    ABORTED: (E.INVALID_TXN_STATE, E.NONE),
}


@pytest.mark.parametrize(("state", "is_commit"), list(itertools.product(STATES, (True, False))))
def test_end_in_version_2(state: TransactionStatus, is_commit: bool) -> None:
    """The current epoch asks for a new end, one below it for the last one again."""
    column = 0 if is_commit else 1
    is_decided = state in (PREPARE_COMMIT, PREPARE_ABORT)
    for producer, error in ((AFTER_ME, E.PRODUCER_FENCED), (SOMEBODY, STRANGERS[2][1])):
        stage = in_state(state)
        ended = stage.end(is_commit=is_commit, producer=producer)
        expected_error = E.CONCURRENT_TRANSACTIONS if is_decided else error
        assert (ended.error_code, stage.state) == (expected_error, state)
    for producer, table in ((ME, ENDS_V2), (BEFORE_ME, RETRIES_V2)):
        stage = in_state(state)
        expected = table[state][column]
        ended = stage.end(is_commit=is_commit, producer=producer)
        if not isinstance(expected, ErrorCode):
            assert (ended.error_code, stage.state) == (E.NONE, expected)
            assert stage.producer == AFTER_ME
            assert (ended.producer_id, ended.producer_epoch) == AFTER_ME
        elif expected is E.NONE:
            assert (ended.error_code, ended.producer_id, ended.producer_epoch) == (E.NONE, *ME)
            assert stage.state is state
        else:
            assert (ended.error_code, ended.producer_id) == (expected, -1)
            assert stage.state is state


@pytest.mark.parametrize("state", STATES)
def test_timeout(state: TransactionStatus) -> None:
    """Only what is open is aborted, once its time has passed, in an epoch that nobody has."""
    stage = in_state(state)
    stage.clock.advance(TIMEOUT_MS)
    assert stage.coordinator.abort_timed_out() == 0
    stage.clock.advance(1)
    assert stage.coordinator.abort_timed_out() == (1 if state is ONGOING else 0)
    assert stage.state is (PREPARE_ABORT if state is ONGOING else state)


@pytest.mark.parametrize("state", STATES)
def test_expiry(state: TransactionStatus) -> None:
    """Only an id without an open transaction is forgotten, with a tombstone, after its time."""
    stage = in_state(state)
    stage.clock.advance(stage.config.transactional_id_expiration_ms - 1)
    assert stage.coordinator.remove_expired() == 0
    stage.clock.advance(1)
    is_idle = state in IDLE
    assert stage.coordinator.remove_expired() == (1 if is_idle else 0)
    error, _ = stage.coordinator.describe(ID)
    assert error is (E.TRANSACTIONAL_ID_NOT_FOUND if is_idle else E.NONE)
    assert (stage.log.states()[-1] == "-") is is_idle
    stage.restart()
    assert stage.coordinator.describe(ID)[0] is error


@pytest.mark.parametrize("state", STATES)
def test_a_restart_keeps_the_state(state: TransactionStatus) -> None:
    """What is written is what the next coordinator knows; what was decided it carries out."""
    stage = in_state(state)
    stage.markers.results.clear()
    before = stage.transaction
    stage.restart()
    done = {PREPARE_COMMIT: COMMITTED, PREPARE_ABORT: ABORTED}.get(state, state)
    assert (stage.state, stage.producer) == (done, ME)
    if done is not state:
        ((partition, marker),) = stage.markers.written
        assert (partition, marker.is_commit) == (P0, done is COMMITTED)
        assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (7, 5, 3)
    else:
        assert stage.transaction == before
        assert stage.markers.written == []
