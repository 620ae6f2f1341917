"""Share sessions: epochs, partitions, and whose they are."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.share_reads.share_sessions import (
    PartitionKey,
    SessionKey,
    ShareSession,
    ShareSessions,
)

A, B = SessionKey("g", "A", 1), SessionKey("g", "B", 1)
ZERO, ONE, TWO = (PartitionKey(bytes(16), index) for index in range(3))


def code_of(call: object, *arguments: object) -> ErrorCode:
    """Return why a call is refused."""
    with pytest.raises(RefusedRequestError) as refusal:
        call(*arguments)  # type: ignore[operator]
    return refusal.value.code


def test_epochs_count_requests() -> None:
    """The first request that goes on has epoch 1, and each one more."""
    sessions = ShareSessions(10)
    session = sessions.open(A, [ZERO], "connection")
    assert [sessions.go_on(A, epoch) is session for epoch in (1, 2, 3)] == [True] * 3
    for wrong in (3, 5, 0, -1):
        assert code_of(sessions.go_on, A, wrong) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.go_on(A, 4) is session


def test_epochs_wrap() -> None:
    """Behind the largest comes 1: 0 would open another session."""
    sessions = ShareSessions(10)
    session = sessions.open(A, [], "connection")
    session.next_epoch = 2**31 - 1
    assert [sessions.go_on(A, epoch) is session for epoch in (2**31 - 1, 1)] == [True] * 2


def test_who_has_no_session_is_told() -> None:
    """Sessions are by group and member."""
    sessions = ShareSessions(10)
    sessions.open(A, [], "connection")
    assert code_of(sessions.get, B) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert code_of(sessions.go_on, SessionKey("h", "A", 1), 1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    sessions.close(A)
    assert code_of(sessions.get, A) is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_new_session_takes_the_place_of_the_old_one() -> None:
    """Also where there is no room for one more."""
    sessions = ShareSessions(1)
    old = sessions.open(A, [ZERO], "connection")
    new = sessions.open(A, [ONE], "another")
    assert (sessions.is_open(old), sessions.is_open(new), len(sessions)) == (False, True, 1)
    assert sessions.get(A) is new


def test_who_begins_with_a_partition_twice_is_refused() -> None:
    """And has no session any more, as in Kafka; later that does no harm."""
    sessions = ShareSessions(2)
    sessions.open(A, [ONE], "connection")
    assert code_of(sessions.open, A, [ONE, ONE], "c") is ErrorCode.UNKNOWN_SERVER_ERROR
    assert sessions.find(A) is None
    session = sessions.open(A, [], "connection")
    session.update([ONE, ONE], [])
    assert list(session.partitions) == [ONE]


def test_there_are_only_so_many() -> None:
    """One more is refused, and nobody is driven out."""
    sessions = ShareSessions(1)
    sessions.open(A, [], "connection")
    assert code_of(sessions.open, B, [], "other") is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    sessions.close(A)
    sessions.open(B, [], "other")


def test_a_connection_has_the_last_session_that_it_opened() -> None:
    """It is told once which; somebody else may have opened that member's since."""
    sessions = ShareSessions(10)
    old = sessions.open(A, [], "connection")
    sessions.open(A, [], "another")
    assert sessions.of_connection("connection") is old
    assert sessions.of_connection("connection") is None
    assert not sessions.is_open(old)


def test_partitions_come_and_go() -> None:
    """A new one must be named once, even with nothing in it; known ones stay as they are."""
    session = ShareSession(A, None, {ZERO: False})
    session.update([ZERO, ONE], [TWO])
    assert list(session.partitions) == [ZERO, ONE]
    assert [session.must_name(key, 0, has_records=False) for key in (ZERO, ONE, ONE)] == [
        False,
        True,
        False,
    ]
    session.update([], [ZERO])
    assert list(session.partitions) == [ONE]


def test_who_had_records_is_served_last() -> None:
    """And who had an error is named once more."""
    session = ShareSession(A, None, dict.fromkeys((ZERO, ONE, TWO), False))
    assert session.must_name(ZERO, 0, has_records=True)
    assert list(session.partitions) == [ONE, TWO, ZERO]
    assert session.must_name(ONE, 3, has_records=False)
    assert session.must_name(ONE, 0, has_records=False)
    assert not session.must_name(ONE, 0, has_records=False)


def test_groups_are_known_by_their_members() -> None:
    """As long as one has a session."""
    sessions = ShareSessions(10)
    sessions.open(A, [], "connection")
    assert (sessions.has_members_of("g"), sessions.has_members_of("h")) == (True, False)
    sessions.close(A)
    assert not sessions.has_members_of("g")
