"""Fetches without a session that repeat the one before: read in part, answered in full."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.fetch import repeats
from logstore.compat.kafka.fetch.repeats import Repeats
from tests.compat.kafka.batches import NOW_MS, batch
from tests.compat.kafka.peer import Peer, a_broker, fetch_fields

ONE = batch(bytes(100))
COUNT = 20
VERSIONS = (4, 5, 9, 11, 12)
Told = list[tuple[int, int, int | None]]


@pytest.fixture
def broker() -> Broker:
    """Return a broker whose topic "t" has one record in each partition."""
    broker = a_broker()
    broker.create_topic("t", COUNT)
    for index in range(COUNT):
        append(broker, index)
    return broker


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests for one or two partitions be repeats, too."""
    monkeypatch.setattr(repeats, "_COUNT_MIN", 1)


def append(broker: Broker, index: int) -> None:
    """Append a record."""
    log = broker.topics["t"].partitions[index]
    log.append_produced(memoryview(bytearray(ONE)), NOW_MS)


def told(peer: Peer, *wanted: tuple[int, int], version: int = 12, **fields: Any) -> Told:
    """Fetch partitions from offsets; return (partition, error, bytes told) in their order."""
    asked = [{"partition": index, "fetch_offset": offset} for index, offset in wanted]
    answer = peer.ask("Fetch", version, fetch_fields([("t", asked)], version, **fields))
    return [
        (one["partition_index"], one["error_code"], len(one["records"] or b""))
        for topic in answer.message["responses"]
        for one in topic["partitions"]
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_only_what_may_have_news_is_looked_at(
    broker: Broker, version: int, looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked for anew, and what was appended to."""
    monkeypatch.setattr(repeats, "_COUNT_MIN", COUNT)
    peer, ends = Peer(broker), [1] * COUNT
    nothing = [(index, 0, 0) for index in range(COUNT)]
    assert told(peer, *enumerate(ends), version=version) == nothing
    assert looks == list(range(COUNT))
    looks.clear()
    assert told(peer, *enumerate(ends), version=version) == nothing
    assert looks == []
    append(broker, 7)
    answer = told(peer, *enumerate(ends), version=version)
    assert answer == [*nothing[:7], (7, 0, len(ONE)), *nothing[8:]]
    assert looks == [7]
    ends[7] = 2
    assert told(peer, *enumerate(ends), version=version) == nothing
    assert looks == [7, 7]
    looks.clear()
    ends[3] = ends[12] = 0
    answer = told(peer, *enumerate(ends), version=version)
    assert [one for one in answer if one[2]] == [(3, 0, len(ONE)), (12, 0, len(ONE))]
    assert looks == [3, 12]


@pytest.mark.parametrize("version", VERSIONS)
def test_another_offset_is_read_from(broker: Broker, version: int) -> None:
    """Also where nothing was appended since."""
    peer = Peer(broker)
    assert told(peer, (0, 1), (1, 1), version=version) == [(0, 0, 0), (1, 0, 0)]
    assert told(peer, (0, 0), (1, 1), version=version) == [(0, 0, len(ONE)), (1, 0, 0)]
    assert told(peer, (0, 0), (1, 1), version=version) == [(0, 0, len(ONE)), (1, 0, 0)]
    assert told(peer, (0, 9), (1, 1), version=version)[0] == (0, 1, 0)
    assert told(peer, (0, 9), (1, 1), version=version)[0] == (0, 1, 0)


def test_what_did_not_fit_is_given_when_it_fits(broker: Broker) -> None:
    """Nothing was told of it, though there was something."""
    peer, limit = Peer(broker), {"max_bytes": len(ONE)}
    assert told(peer, (0, 0), (1, 0), **limit) == [(0, 0, len(ONE)), (1, 0, 0)]
    assert told(peer, (0, 1), (1, 0), **limit) == [(0, 0, 0), (1, 0, len(ONE))]


def test_another_partition_in_a_place(broker: Broker) -> None:
    """It is told of, and no longer the one that stood there."""
    peer = Peer(broker)
    assert told(peer, (0, 1), (1, 1)) == [(0, 0, 0), (1, 0, 0)]
    assert told(peer, (0, 1), (2, 0)) == [(0, 0, 0), (2, 0, len(ONE))]


def test_a_partition_that_is_named_twice(broker: Broker) -> None:
    """The last is meant, every time."""
    peer = Peer(broker)
    for _ in range(3):
        assert told(peer, (0, 0), (1, 1), (0, 1)) == [(0, 0, 0), (1, 0, 0)]
    assert told(peer, (0, 1), (1, 1)) == [(0, 0, 0), (1, 0, 0)]
    assert told(peer, (1, 0), (1, 1)) == [(1, 0, 0)]


def test_what_is_not_there_stays_behind_the_others(broker: Broker) -> None:
    """Nobody's answer is taken for another's: the order is not that of the request."""
    peer = Peer(broker)
    for _ in range(3):
        assert told(peer, (99, 0), (0, 1), (1, 1)) == [(0, 0, 0), (1, 0, 0), (99, 3, 0)]
    append(broker, 0)
    expected = [(0, 0, len(ONE)), (1, 0, 0), (99, 3, 0)]
    assert told(peer, (99, 0), (0, 1), (1, 1)) == expected


def test_sessions_that_begin_alike_know_nothing_of_each_other(broker: Broker) -> None:
    """What one was told is news to the other."""
    peer, asked = Peer(broker), [{"partition": 0, "fetch_offset": 1}]
    sessions: list[int] = []
    for _ in range(2):
        fields = fetch_fields([("t", asked)], 12, session_id=0, session_epoch=0)
        sessions.append(peer.ask("Fetch", 12, fields).message["session_id"])
    assert len(set(sessions) - {0}) == 2
    broker.topics["t"].partitions[0].delete_records(1)
    for session_id in sessions:
        fields = fetch_fields([], 12, session_id=session_id, session_epoch=1)
        (topic,) = peer.ask("Fetch", 12, fields).message["responses"]
        assert [one["log_start_offset"] for one in topic["partitions"]] == [1]


def test_another_isolation_is_another_question(broker: Broker) -> None:
    """An open transaction hides what is behind it from those who read only what is committed."""
    log = broker.topics["t"].partitions[0]
    log.verifies_transactions = False  # there is no coordinator to ask
    open_one = batch(bytes(100), producer=(7, 0, 0), is_transactional=True)
    log.append_produced(memoryview(bytearray(open_one)), NOW_MS)
    peer = Peer(broker)
    for _ in range(2):
        assert told(peer, (0, 1), isolation_level=1) == [(0, 0, 0)]
        assert told(peer, (0, 1), isolation_level=0) == [(0, 0, len(open_one))]


def test_a_topic_that_is_made_anew(broker: Broker) -> None:
    """The old one's ends are forgotten."""
    peer = Peer(broker)
    for _ in range(2):
        assert told(peer, (0, 1)) == [(0, 0, 0)]
    broker.delete_topic(broker.topics["t"])
    broker.create_topic("t", 1)
    append(broker, 0)
    append(broker, 0)
    assert told(peer, (0, 1)) == [(0, 0, len(ONE))]


def test_few_partitions_are_read_each_time(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept for them."""
    monkeypatch.setattr(repeats, "_COUNT_MIN", 3)
    kept: list[int] = []

    def keep(self: Repeats, found: list[Any]) -> None:
        del self
        kept.append(len(found))

    monkeypatch.setattr(Repeats, "_keep", keep)
    told(Peer(broker), (0, 1), (1, 1))
    assert kept == []
    told(Peer(broker), (0, 1), (1, 1), (2, 1))
    assert kept == [3]
