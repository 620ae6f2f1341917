"""Fetch sessions: every row of the table, and what a fetcher sees of them on the wire."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.fetch.sessions import (
    IDLE_MS_MAX,
    SHARD_COUNT,
    SLOTS_MAX,
    FetchPartition,
    FetchSession,
    FetchSessions,
)
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import batch
from tests.compat.kafka.peer import Answer, Peer, a_broker, fetch_fields

NOT_FOUND, WRONG_EPOCH, ID_ERROR = 70, 71, 106
EPOCH_MAX = 2**31 - 1
INITIAL, FINAL = 0, -1
KEYS = [(b"t", index) for index in range(4)]


def wanted(*indexes: int, offset: int = 0) -> list[FetchPartition]:
    """Return what a request lists."""
    return [FetchPartition(KEYS[index], offset, 100) for index in indexes]


def opened(sessions: FetchSessions, *indexes: int) -> FetchSession:
    """Open a session, for which there must be room."""
    session = sessions.open(wanted(*indexes or (0,)), uses_ids=False)
    assert session is not None
    return session


def refused(sessions: FetchSessions, *indexes: int) -> bool:
    """Tell whether no shard has room for a session of these partitions."""
    made = [sessions.open(wanted(*indexes), uses_ids=False) for _ in range(SHARD_COUNT)]
    return made == [None] * SHARD_COUNT


class TestTable:
    """The sessions by themselves."""

    def test_ids_are_positive_and_differ(self) -> None:
        """An id is a random positive int32 that no other session has."""
        sessions = FetchSessions(SimulatedHost())
        ids = {opened(sessions).session_id for _ in range(300)}
        assert len(ids) == len(sessions) == 300
        assert all(0 < session_id < 2**31 for session_id in ids)

    def test_an_unknown_id_is_70(self) -> None:
        """A session that was closed, evicted or never there is not found."""
        sessions = FetchSessions(SimulatedHost())
        session = opened(sessions)
        sessions.close(session.session_id)
        for session_id in (session.session_id, 0, 5):
            found = sessions.continued(session_id, 1, [], [], uses_ids=False)
            assert found is ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    @pytest.mark.parametrize("epoch", [2, 3, EPOCH_MAX, -2, 0])
    def test_a_wrong_epoch_is_71_and_changes_nothing(self, epoch: int) -> None:
        """The next request must have the next number."""
        sessions = FetchSessions(SimulatedHost())
        session = opened(sessions)
        found = sessions.continued(session.session_id, epoch, wanted(1), [KEYS[0]], uses_ids=False)
        assert found is ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert (session.next_epoch, list(session.partitions)) == (1, [KEYS[0]])

    @pytest.mark.parametrize("uses_ids", [False, True])
    def test_a_change_of_language_is_106(self, uses_ids: bool) -> None:
        """A session of names cannot go on with ids, nor one of ids with names."""
        sessions = FetchSessions(SimulatedHost())
        session = sessions.open(wanted(0), uses_ids=uses_ids)
        assert session is not None
        found = sessions.continued(session.session_id, 1, [], [], uses_ids=not uses_ids)
        assert found is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        assert sessions.continued(session.session_id, 1, [], [], uses_ids=uses_ids) is session

    def test_epochs_count_and_wrap(self) -> None:
        """1, 2, 3 ... 2^31-1, 1: 0 is for opening."""
        sessions = FetchSessions(SimulatedHost())
        session = opened(sessions)
        for epoch in (1, 2, 3):
            assert sessions.continued(session.session_id, epoch, [], [], uses_ids=False) is session
        session.next_epoch = EPOCH_MAX
        assert sessions.continued(session.session_id, EPOCH_MAX, [], [], uses_ids=False) is session
        assert sessions.continued(session.session_id, 1, [], [], uses_ids=False) is session

    def test_a_request_adds_changes_and_forgets(self) -> None:
        """New partitions go to the end, known ones keep their place, forgotten ones are gone."""
        sessions = FetchSessions(SimulatedHost())
        session = opened(sessions, 0, 1)
        session.partitions[KEYS[0]].told_high_watermark = 9
        sessions.continued(
            session.session_id, 1, wanted(2, 0, offset=7), [KEYS[1], KEYS[3]], uses_ids=False
        )
        assert list(session.partitions) == [KEYS[0], KEYS[2]]
        changed = session.partitions[KEYS[0]]
        assert (changed.fetch_offset, changed.told_high_watermark) == (7, 9)

    def test_a_session_that_wants_nothing_is_closed(self) -> None:
        """Forgetting the last partition gives the slot back."""
        sessions = FetchSessions(SimulatedHost())
        session = opened(sessions)
        sessions.continued(session.session_id, 1, [], [KEYS[0]], uses_ids=False)
        assert len(sessions) == 0

    def test_a_full_shard_gives_none_while_all_are_in_use(self) -> None:
        """Nobody is thrown out who came by within two minutes; after that the idlest goes."""
        host = SimulatedHost()
        sessions = FetchSessions(host, slots_max=3 * SHARD_COUNT)
        first, second, third = [opened(sessions) for _ in range(3 * SHARD_COUNT)][::SHARD_COUNT]
        host.clock.advance(IDLE_MS_MAX)
        assert refused(sessions, 0)
        sessions.continued(first.session_id, 1, [], [], uses_ids=False)
        sessions.continued(third.session_id, 1, [], [], uses_ids=False)
        host.clock.advance(1)
        assert sessions.open(wanted(0), uses_ids=False) is not None
        found = sessions.continued(second.session_id, 1, [], [], uses_ids=False)
        assert found is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        for session in (first, third):
            assert sessions.continued(session.session_id, 2, [], [], uses_ids=False) is session
        assert len(sessions) == 3 * SHARD_COUNT

    def test_a_larger_session_takes_the_place_of_a_smaller_one_that_has_settled(self) -> None:
        """It must have been used two minutes after it began, and have fewer partitions."""
        host = SimulatedHost()
        sessions = FetchSessions(host, slots_max=SHARD_COUNT)
        everyone = [opened(sessions, 0, 1) for _ in range(SHARD_COUNT)]
        host.clock.advance(IDLE_MS_MAX)
        for session in everyone:
            sessions.continued(session.session_id, 1, [], [], uses_ids=False)
        assert refused(sessions, 0, 1, 2)  # it was used, but not late enough
        host.clock.advance(1)
        sessions.continued(everyone[0].session_id, 2, [], [], uses_ids=False)
        assert refused(sessions, 0, 1)  # it is not larger
        opened(sessions, 0, 1, 2)
        found = sessions.continued(everyone[0].session_id, 3, [], [], uses_ids=False)
        assert found is ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    def test_there_are_as_many_slots_as_in_kafka(self) -> None:
        """max.incremental.fetch.session.cache.slots is 1000 by default, and is kept."""
        assert SLOTS_MAX == 1000
        sessions = FetchSessions(SimulatedHost())
        for _ in range(SLOTS_MAX):
            opened(sessions)
        assert sessions.open(wanted(0), uses_ids=False) is None

    @pytest.mark.parametrize(("slots", "kept"), [(0, 0), (7, 0), (8, 8), (15, 8), (16, 16)])
    def test_slots_count_in_eights(self, slots: int, kept: int) -> None:
        """Each of eight shards has an eighth of them, rounded down."""
        sessions = FetchSessions(SimulatedHost(), slots_max=slots)
        for _ in range(30):
            sessions.open(wanted(0), uses_ids=False)
        assert len(sessions) == kept


def ask(
    peer: Peer,
    session: tuple[int, int],
    asked: dict[int, int] | None = None,
    *,
    forgotten: list[int] | None = None,
    version: int = 12,
    **fields: Any,
) -> Answer:
    """Fetch from partitions of topic "t" at these offsets; `session` is (id, epoch)."""
    topic: Any = "t"
    if version >= 13:
        topic = uuid.UUID(bytes=peer.broker.topics["t"].topic_id)
    partitions: list[Any] = [
        {"partition": index, "fetch_offset": offset} for index, offset in (asked or {}).items()
    ]
    request = fetch_fields(
        [(topic, partitions)] if partitions else [],
        version,
        forgotten=[(topic, forgotten)] if forgotten else None,
        session_id=session[0],
        session_epoch=session[1],
        **fields,
    )
    return peer.ask("Fetch", version, request)


def indexes(answer: Answer) -> list[int]:
    """Return the partitions that the answer names."""
    return [result["partition_index"] for topic in answer.by_topic for result in topic]


@pytest.fixture
def broker() -> Broker:
    """A broker with a topic of four partitions, one record in partition 0."""
    broker = a_broker()
    broker.create_topic("t", 4)
    produce(broker, 0)
    return broker


def produce(broker: Broker, index: int) -> None:
    """Append one record."""
    assert Peer(broker).produce([("t", [(index, batch())])]).partition["error_code"] == 0


@pytest.mark.parametrize("version", range(7, 19))
def test_a_session_tells_only_what_changed(broker: Broker, version: int) -> None:
    """First everything, then nothing, then the partition that got a record."""
    peer = Peer(broker)
    first = ask(peer, (0, INITIAL), {0: 1, 1: 0, 2: 0}, version=version)
    session_id = first.message["session_id"]
    assert (session_id > 0, indexes(first)) == (True, [0, 1, 2])
    second = ask(peer, (session_id, 1), version=version)
    assert (second.message["session_id"], indexes(second)) == (session_id, [])
    produce(broker, 2)
    third = ask(peer, (session_id, 2), version=version)
    assert indexes(third) == [2]
    assert third.partition["records"]
    fourth = ask(peer, (session_id, 3), {2: 1}, version=version)
    assert indexes(fourth) == []


@pytest.mark.parametrize("version", [4, 5, 6])
def test_older_versions_have_no_sessions(broker: Broker, version: int) -> None:
    """Below version 7 every fetch is full."""
    peer = Peer(broker)
    fields = fetch_fields([("t", [{"partition": 1, "fetch_offset": 0}])], version)
    for _ in range(2):
        assert indexes(peer.ask("Fetch", version, fields)) == [1]
    assert len(broker.fetch_sessions) == 0


@pytest.mark.parametrize("epoch", [INITIAL, FINAL])
def test_a_full_fetch_closes_the_session_that_it_names(broker: Broker, epoch: int) -> None:
    """(x, 0) opens another one for it, (x, -1) none."""
    peer = Peer(broker)
    old = ask(peer, (0, INITIAL), {0: 0}).message["session_id"]
    new = ask(peer, (old, epoch), {0: 0}).message["session_id"]
    assert (new != old, new == 0) == (True, epoch == FINAL)
    assert len(broker.fetch_sessions) == (0 if epoch == FINAL else 1)
    assert ask(peer, (old, 1), {0: 0}).message["error_code"] == NOT_FOUND


def test_a_fetch_without_a_session_opens_none(broker: Broker) -> None:
    """(0, -1) is what clients without sessions send."""
    assert ask(Peer(broker), (0, FINAL), {0: 0}).message["session_id"] == 0
    assert len(broker.fetch_sessions) == 0


@pytest.mark.parametrize(("slots", "has_one"), [(0, False), (8, True)])
def test_the_broker_has_the_slots_of_its_settings(slots: int, has_one: bool) -> None:
    """max.incremental.fetch.session.cache.slots=0 turns sessions off."""
    broker = a_broker(max_incremental_fetch_session_cache_slots=slots)
    broker.create_topic("t", 1)
    answer = ask(Peer(broker), (0, INITIAL), {0: 0})
    assert (answer.message["session_id"] > 0) is has_one


@pytest.mark.parametrize(
    ("moved", "epoch", "version", "code"),
    [
        (1, 1, 12, NOT_FOUND),
        (0, 2, 12, WRONG_EPOCH),
        (0, -7, 12, WRONG_EPOCH),
        (0, 1, 13, ID_ERROR),
    ],
)
def test_errors_of_sessions_stand_at_the_top(
    broker: Broker, moved: int, epoch: int, version: int, code: int
) -> None:
    """They are about the request as a whole: no partition is named, and the session is kept."""
    peer = Peer(broker)
    session_id = ask(peer, (0, INITIAL), {0: 0}).message["session_id"]
    answer = ask(peer, (session_id + moved, epoch), {0: 0}, version=version)
    assert (answer.message["error_code"], answer.message["responses"]) == (code, [])
    assert answer.message["session_id"] == 0
    assert ask(peer, (session_id, 1), {0: 0}).message["error_code"] == 0


def test_forgotten_partitions_are_not_served(broker: Broker) -> None:
    """Nor are they waited for."""
    peer = Peer(broker)
    session_id = ask(peer, (0, INITIAL), {0: 1, 1: 0}).message["session_id"]
    assert indexes(ask(peer, (session_id, 1), forgotten=[0])) == []
    produce(broker, 0)
    assert indexes(ask(peer, (session_id, 2))) == []
    produce(broker, 1)
    assert indexes(ask(peer, (session_id, 3))) == [1]
    last = ask(peer, (session_id, 4), forgotten=[1])
    assert (last.message["session_id"], len(broker.fetch_sessions)) == (0, 0)


def test_everybody_is_served_in_turn(broker: Broker) -> None:
    """When one answer of a session cannot hold all, the next starts with those who got nothing."""
    for index in (1, 2, 3):
        produce(broker, index)
    peer = Peer(broker)
    session_id = 0
    served: list[list[int]] = []
    for epoch in range(5):
        answer = ask(
            peer,
            (session_id, epoch),
            dict.fromkeys(range(4), 0) if epoch == 0 else None,
            max_bytes=1,
        )
        session_id = answer.message["session_id"]
        served.append([r["partition_index"] for t in answer.by_topic for r in t if r["records"]])
    assert served == [[0], [0], [1], [2], [3]]  # the full fetch that opens it does not count


def test_a_session_outlives_its_connection(broker: Broker) -> None:
    """A fetcher that connects anew goes on where it was."""
    first = Peer(broker)
    session_id = ask(first, (0, INITIAL), {0: 0}).message["session_id"]
    first.connection.lost()
    assert ask(Peer(broker), (session_id, 1)).message["error_code"] == 0


def test_a_session_of_a_deleted_topic_tells_so_until_it_is_forgotten(broker: Broker) -> None:
    """The error is news every time; when the topic is back its records are."""
    peer = Peer(broker)
    session_id = ask(peer, (0, INITIAL), {0: 1}).message["session_id"]
    broker.delete_topic(broker.topics["t"])
    for epoch in (1, 2):
        assert ask(peer, (session_id, epoch)).partition["error_code"] == 3
    broker.create_topic("t", 1)
    produce(broker, 0)
    produce(broker, 0)
    assert ask(peer, (session_id, 3)).partition["high_watermark"] == 2


def test_a_session_remembers_that_an_id_had_a_name(broker: Broker) -> None:
    """A topic that was there is 3 once it is gone, as in Kafka, and one that never was is 100."""
    topic_id = uuid.UUID(bytes=broker.topics["t"].topic_id)
    asked = [(one, [{"partition": 0, "fetch_offset": 0}]) for one in (topic_id, uuid.UUID(int=9))]
    peer = Peer(broker)
    first = peer.ask("Fetch", 13, fetch_fields(asked, 13, session_id=0, session_epoch=0))
    broker.delete_topic(broker.topics["t"])
    fields = fetch_fields([], 13, session_id=first.message["session_id"], session_epoch=1)
    told = peer.ask("Fetch", 13, fields).message["responses"]
    codes = {one["topic_id"]: one["partitions"][0]["error_code"] for one in told}
    assert codes == {topic_id: 3, uuid.UUID(int=9): 100}
    (alone,) = peer.ask("Fetch", 13, fetch_fields(asked[:1], 13)).message["responses"]
    assert alone["partitions"][0]["error_code"] == 100


def test_a_session_tells_that_a_name_has_another_id(broker: Broker) -> None:
    """Where a topic of that name is there again its partitions are 103, before what is 3."""
    topic_id = uuid.UUID(bytes=broker.topics["t"].topic_id)
    asked = [(topic_id, [{"partition": one, "fetch_offset": 0} for one in (1, 0)])]
    peer = Peer(broker)
    first = peer.ask("Fetch", 13, fetch_fields(asked, 13, session_id=0, session_epoch=0))
    broker.delete_topic(broker.topics["t"])
    broker.create_topic("t", 1)
    fields = fetch_fields([], 13, session_id=first.message["session_id"], session_epoch=1)
    (told,) = peer.ask("Fetch", 13, fields).message["responses"]
    codes = [(one["partition_index"], one["error_code"]) for one in told["partitions"]]
    assert codes == [(0, 103), (1, 3)]


def test_two_connections_in_one_session_do_no_harm(broker: Broker) -> None:
    """While one fetch waits another forgets its partition; both are answered."""
    waiting, other = Peer(broker), Peer(broker)
    session_id = ask(waiting, (0, INITIAL), {0: 1, 1: 0}).message["session_id"]
    fields = fetch_fields([], 12, session_id=session_id, session_epoch=1, max_wait_ms=1000)
    waiting.send("Fetch", 12, fields)
    assert waiting.answers() == []
    assert indexes(ask(other, (session_id, 2), forgotten=[0])) == []
    produce(broker, 0)
    assert indexes(waiting.answer()) == [0]
    assert not waiting.connection.is_closing


class Fetcher:
    """A client that keeps what it was told, incrementally."""

    def __init__(self, broker: Broker) -> None:
        self._peer = Peer(broker)
        self._session = (0, INITIAL)
        self.ends: dict[int, int] = {}
        self._wanted: dict[int, int] = {}

    def fetch(self, wished: dict[int, int]) -> None:
        """Fetch what is wished, naming only what changed since the last time."""
        session_id, epoch = self._session
        is_full = epoch == INITIAL
        changed = {i: o for i, o in wished.items() if is_full or self._wanted.get(i) != o}
        forgotten = [] if is_full else [i for i in self._wanted if i not in wished]
        answer = ask(self._peer, self._session, changed, forgotten=forgotten)
        assert answer.message["error_code"] == 0
        for index in forgotten:
            del self.ends[index]
        self._wanted = dict(wished)
        for topic in answer.by_topic:
            for result in topic:
                self.ends[result["partition_index"]] = result["high_watermark"]
        session_id = answer.message["session_id"]
        self._session = (session_id, epoch + 1 if session_id else INITIAL)


@given(
    st.lists(
        st.one_of(
            st.integers(0, 3),
            st.dictionaries(st.integers(0, 3), st.integers(0, 2), max_size=4),
        ),
        max_size=30,
    )
)
def test_an_incremental_fetcher_knows_what_a_full_one_knows(
    steps: list[int | dict[int, int]],
) -> None:
    """Whatever is appended, wished and forgotten in between, the high watermarks are all right."""
    broker = a_broker()
    partitions = broker.create_topic("t", 4).partitions
    fetcher = Fetcher(broker)
    for step in steps:
        if isinstance(step, int):
            produce(broker, step)
            continue
        wished = {index: min(o, partitions[index].end_offset) for index, o in step.items()}
        fetcher.fetch(wished)
        assert fetcher.ends == {index: partitions[index].end_offset for index in wished}


def test_a_session_of_nothing_is_a_session() -> None:
    """Epoch 0 opens one, also if no partition is named yet."""
    request = fetch_fields([], 11, session_id=0, session_epoch=0)
    assert Peer(a_broker()).ask("Fetch", 11, request).message["session_id"] > 0
