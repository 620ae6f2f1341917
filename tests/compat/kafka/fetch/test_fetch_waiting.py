"""Fetches that wait: for enough bytes, until their time is over, and never for good."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.segments.kafka.partition import KafkaPartition
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import batch
from tests.compat.kafka.peer import Peer, a_broker, fetch_fields

WAIT_MS = 500
ONE = batch(bytes(100))
SIZE = len(ONE)


class Stage:
    """A broker with an empty topic "t" of three partitions."""

    def __init__(self) -> None:
        self.host = SimulatedHost()
        self.broker: Broker = a_broker(self.host)
        self.broker.create_topic("t", 3)
        self.producer = Peer(self.broker)
        self._due_ms = self.broker.timers.next_due_ms()

    def log(self, index: int = 0) -> KafkaPartition:
        """Return a partition."""
        return self.broker.topics["t"].partitions[index]

    def produce(self, index: int = 0, count: int = 1) -> None:
        """Append so many batches, a request each."""
        for _ in range(count):
            answer = self.producer.produce([("t", [(index, ONE)])])
            assert answer.partition["error_code"] == 0

    def fetch(
        self, *offsets: int, peer: Peer | None = None, version: int = 12, **fields: Any
    ) -> Peer:
        """Send a fetch from these offsets of partition 0, 1 ... that may wait; return who did."""
        topic: Any = "t"
        if version >= 13:
            topic = uuid.UUID(bytes=self.broker.topics["t"].topic_id)
        asked = [
            {"partition": index, "fetch_offset": offset}
            for index, offset in enumerate(offsets or (0,))
        ]
        fields = {"max_wait_ms": WAIT_MS, **fields}
        return (peer or Peer(self.broker)).send(
            "Fetch", version, fetch_fields([(topic, asked)], version, **fields)
        )

    def let_pass(self, delay_ms: float) -> None:
        """Turn the clock and run what is due."""
        self.host.clock.advance(delay_ms)
        self.broker.timers.run()

    def check_nothing_left(self) -> None:
        """Nobody waits any more, and no timer is pending for anybody."""
        assert self.broker.timers.next_due_ms() == self._due_ms
        assert [log.on_append for log in self.broker.store.partitions()] == [None] * 3


def sizes(peer: Peer) -> list[int]:
    """Return how many bytes each partition of the only answer has."""
    return [len(r["records"] or b"") for topic in peer.answer().by_topic for r in topic]


@pytest.mark.parametrize("version", range(4, 19))
def test_an_append_answers(version: int) -> None:
    """A fetch at the end of the log is answered by the next append, and has its bytes."""
    stage = Stage()
    peer = stage.fetch(version=version)
    assert (peer.answers(), peer.connection.is_waiting) == ([], True)
    stage.produce()
    assert (sizes(peer), peer.connection.is_waiting) == ([SIZE], False)
    stage.check_nothing_left()


def test_the_end_of_its_time_answers() -> None:
    """Exactly when max_wait_ms have passed, with what there is: nothing."""
    stage = Stage()
    peer = stage.fetch()
    stage.let_pass(WAIT_MS - 1)
    assert peer.answers() == []
    stage.let_pass(1)
    assert sizes(peer) == [0]
    stage.check_nothing_left()


def test_too_little_is_given_when_the_time_is_over() -> None:
    """Bytes that came, though fewer than min_bytes, are in the answer."""
    stage = Stage()
    peer = stage.fetch(min_bytes=2 * SIZE)
    stage.produce()
    assert peer.answers() == []
    stage.let_pass(WAIT_MS)
    assert sizes(peer) == [SIZE]
    stage.check_nothing_left()


def test_bytes_of_all_partitions_count() -> None:
    """min_bytes is about the answer as a whole, and about what was there already."""
    stage = Stage()
    stage.produce(2)
    peer = stage.fetch(0, 0, 0, min_bytes=3 * SIZE)
    stage.produce(0)
    assert peer.answers() == []
    stage.produce(1)
    assert sizes(peer) == [SIZE, SIZE, SIZE]
    stage.check_nothing_left()


@pytest.mark.parametrize("wait_ms", [0, -1, -(2**31)])
def test_who_does_not_want_to_wait_does_not(wait_ms: int) -> None:
    """max_wait_ms 0 or less is answered at once."""
    stage = Stage()
    assert sizes(stage.fetch(max_wait_ms=wait_ms)) == [0]


@pytest.mark.parametrize("bytes_min", [0, -1])
def test_who_wants_nothing_gets_it_at_once(bytes_min: int) -> None:
    """min_bytes 0 is there already."""
    stage = Stage()
    assert sizes(stage.fetch(min_bytes=bytes_min)) == [0]


def test_no_more_is_waited_for_than_may_come() -> None:
    """With min_bytes above max_bytes a full answer goes out at once, as in Kafka."""
    stage = Stage()
    stage.produce(count=3)
    assert sizes(stage.fetch(min_bytes=1 << 20, max_bytes=2 * SIZE)) == [2 * SIZE]


def test_one_append_wakes_everybody() -> None:
    """All who wait for the partition are answered, nobody else is."""
    stage = Stage()
    peers = [stage.fetch() for _ in range(20)]
    other = stage.fetch(0, 0)
    third = Peer(stage.broker)
    asked = [{"partition": 2, "fetch_offset": 0}]
    third.send("Fetch", 12, fetch_fields([("t", asked)], 12, max_wait_ms=WAIT_MS))
    stage.produce(0)
    assert [sizes(peer) for peer in peers] == [[SIZE]] * 20
    assert sizes(other) == [SIZE, 0]
    assert third.answers() == []


def test_an_error_is_not_waited_with() -> None:
    """If any partition has an error the answer goes out at once."""
    stage = Stage()
    assert len(sizes(stage.fetch(0, 0, 0, 0))) == 4  # there is no partition 3
    assert len(sizes(stage.fetch(0, 7))) == 2  # offset 7 is out of range


@pytest.mark.parametrize("version", range(4, 19))
def test_a_deleted_topic_answers(version: int) -> None:
    """Who waits for a topic that goes away is told: 3, or 100 by id."""
    stage = Stage()
    peer = stage.fetch(0, 0, version=version)
    stage.broker.delete_topic(stage.broker.topics["t"])
    code = 100 if version >= 13 else 3
    assert [r["error_code"] for topic in peer.answer().by_topic for r in topic] == [code] * 2
    stage.broker.create_topic("t", 3)
    stage.check_nothing_left()


def test_a_topic_created_anew_is_waited_for_anew() -> None:
    """The old topic's readers have gone, the new one's are woken by its appends."""
    stage = Stage()
    stage.fetch().answers()
    stage.broker.delete_topic(stage.broker.topics["t"])
    stage.broker.create_topic("t", 3)
    peer = stage.fetch()
    stage.produce()
    assert sizes(peer) == [SIZE]
    stage.check_nothing_left()


def test_a_log_start_that_passes_the_reader_is_told_by_the_next_append() -> None:
    """The offset that was the end is below the start now: 1."""
    stage = Stage()
    stage.produce()
    peer = stage.fetch(1)
    stage.log().delete_records(-1)
    assert peer.answers() == []
    stage.producer.produce([("t", [(0, ONE)])])
    assert peer.answer().partition["error_code"] == 0
    late = stage.fetch(2)
    log = stage.log()
    log.append_produced(memoryview(bytearray(ONE)), 1_700_000_000_000)
    log.delete_records(-1)
    stage.broker.readers.wake()
    assert late.answer().partition["error_code"] == 1


def test_requests_behind_a_waiting_one_wait_too() -> None:
    """Pipelined requests are answered in order; those behind a long poll stay unread."""
    stage = Stage()
    peer = Peer(stage.broker)
    stage.fetch(peer=peer)
    peer.send_produce([("t", [(1, ONE)])])
    stage.fetch(0, 0, peer=peer)
    assert (peer.answers(), stage.log(1).end_offset) == ([], 0)
    stage.produce(0)
    answers = peer.answers()
    assert [answer.api for answer in answers] == ["Fetch", "Produce", "Fetch"]
    assert [len(r["records"] or b"") for r in answers[2].by_topic[0]] == [SIZE, SIZE]


def test_a_chain_of_waiting_readers_is_not_a_chain_of_calls() -> None:
    """Each reader's pipelined produce wakes the next reader: 400 of them, no recursion."""
    stage = Stage()
    count = 400
    stage.broker.create_topic("chain", count + 1)
    peers = [Peer(stage.broker) for _ in range(count)]
    for index, peer in enumerate(peers):
        asked = [{"partition": index, "fetch_offset": 0}]
        peer.send("Fetch", 12, fetch_fields([("chain", asked)], 12, max_wait_ms=WAIT_MS))
        peer.send_produce([("chain", [(index + 1, ONE)])])
    Peer(stage.broker).produce([("chain", [(0, ONE)])])
    assert stage.broker.topics["chain"].partitions[count].end_offset == 1
    assert not any(peer.connection.is_closing for peer in peers)


def test_a_lost_reader_is_forgotten_in_time() -> None:
    """Nothing is sent to it; when its time is over nothing of it is left."""
    stage = Stage()
    peer = stage.fetch()
    peer.connection.lost()
    stage.produce()
    assert peer.answers() == []
    stage.let_pass(WAIT_MS)
    stage.check_nothing_left()


def test_read_committed_waits_for_what_is_stable() -> None:
    """Bytes of an open transaction do not count."""
    stage = Stage()
    peer = stage.fetch(isolation_level=1)
    data = batch(b"x", producer=(5, 0, 0), is_transactional=True)
    stage.producer.produce([("t", [(0, data)])])
    assert peer.answers() == []
    stage.let_pass(WAIT_MS)
    assert sizes(peer) == [0]


def test_long_polls_leave_no_timers_behind() -> None:
    """A consumer with an hour's patience that is answered all the time does not fill the memory."""
    stage = Stage()
    peer = Peer(stage.broker)
    for offset in range(1600):
        stage.fetch(offset, peer=peer, max_wait_ms=3_600_000)
        stage.produce()
        peer.answers()
    assert len(stage.broker.timers) <= 1001
