"""Answers that wait for the disk: one flush for many, none lost, none given too early."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.segments.kafka.partition import KafkaPartition
from logstore.testing.power_loss import LOSE_UNSYNCED
from logstore.testing.simulated_file import SimulatedFile
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import batch, stamped
from tests.compat.kafka.conversation import DIRECTORY
from tests.compat.kafka.peer import Peer, a_broker

EACH = {"flush.messages": "1"}
STORAGE_ERROR = 56
UNKNOWN_TOPIC_OR_PARTITION = 3
GOOD = batch(bytes(100))

Work = Callable[[], None]
Done = Callable[[BaseException | None], None]


class Workers:
    """Takes the broker's blocking work and does it when the test says so."""

    def __init__(self, broker: Broker) -> None:
        self.waiting: list[tuple[Work, Done]] = []
        broker.offload = lambda work, done: self.waiting.append((work, done))

    def do_next(self, *, in_between: Callable[[], None] | None = None) -> None:
        """Do the oldest piece of work; `in_between` happens before its end is told."""
        work, done = self.waiting.pop(0)
        failure: BaseException | None = None
        try:
            work()
        except Exception as error:  # noqa: BLE001 - what the server's threads do
            failure = error
        if in_between is not None:
            in_between()
        done(failure)


class Stage:
    """A broker whose flushes a test does by hand, and topics that want every batch flushed."""

    def __init__(self, **topics: dict[str, str]) -> None:
        self.host = SimulatedHost()
        self.broker = a_broker(self.host)
        for name, settings in (topics or {"t": EACH}).items():
            self.broker.create_topic(name, 2, settings)
        self.workers = Workers(self.broker)

    def peers(self, count: int) -> list[Peer]:
        """Return so many connections."""
        return [Peer(self.broker) for _ in range(count)]

    def log(self, topic: str = "t", index: int = 0) -> KafkaPartition:
        """Return a partition."""
        return self.broker.topics[topic].partitions[index]

    def syncs(self) -> int:
        """Return how often a ``.log`` file was synced so far."""
        return sum(
            operation.kind == "sync" and operation.path.endswith(".log")
            for operation in self.host.fs.journal.operations
        )

    def after_power_loss(self) -> Broker:
        """Return the broker that starts after the power was lost."""
        self.host.power_loss(LOSE_UNSYNCED)
        return a_broker(self.host)


def code_of(peer: Peer) -> int:
    """Return the error code of the only answer that came."""
    code: int = peer.answer().partition["error_code"]
    return code


def test_the_answer_waits_for_the_flush() -> None:
    """With flush.messages 1 nothing is said before the batch is durable; then it survives."""
    stage = Stage()
    (peer,) = stage.peers(1)
    peer.send_produce([("t", [(0, GOOD)])])
    assert (peer.answers(), peer.connection.is_waiting) == ([], True)
    assert stage.log().log.recovery_point == 0

    stage.workers.do_next()
    assert (code_of(peer), peer.connection.is_waiting) == (0, False)
    assert (stage.log().log.recovery_point, stage.workers.waiting) == (1, [])
    again = stage.after_power_loss()
    assert [bytes(b.data) for b in again.topics["t"].partitions[0].batches()] == [stamped(GOOD, 0)]


def test_many_producers_share_one_flush() -> None:
    """What is appended while a flush runs is covered by the one after it, for all at once."""
    stage = Stage()
    first, *others = stage.peers(8)
    first.send_produce([("t", [(0, GOOD)])])
    for peer in others:
        peer.send_produce([("t", [(0, GOOD)])])
    assert len(stage.workers.waiting) == 1  # one at a time
    before = stage.syncs()

    stage.workers.do_next()
    assert (code_of(first), stage.log().log.recovery_point) == (0, 1)
    assert [peer.answers() for peer in others] == [[]] * 7
    stage.workers.do_next()
    assert [code_of(peer) for peer in others] == [0] * 7
    assert (stage.syncs() - before, stage.workers.waiting) == (2, [])
    assert stage.after_power_loss().topics["t"].partitions[0].end_offset == 8


def test_a_duplicate_waits_for_the_flush_of_what_it_repeats() -> None:
    """A retry that comes while the original is being flushed is not answered before it either."""
    stage = Stage()
    first, second = stage.peers(2)
    sent = batch(b"once", producer=(7, 0, 0))
    first.send_produce([("t", [(0, sent)])])
    second.send_produce([("t", [(0, sent)])])
    assert (first.answers(), second.answers()) == ([], [])
    while stage.workers.waiting:
        stage.workers.do_next()
    answers = [peer.answer().partition for peer in (first, second)]
    assert [(one["error_code"], one["base_offset"]) for one in answers] == [(0, 0), (0, 0)]
    assert stage.after_power_loss().topics["t"].partitions[0].end_offset == 1


def test_what_comes_during_the_sync_waits_for_the_next() -> None:
    """An append after the sync has begun is not covered by it, also if it came before its end."""
    stage = Stage()
    first, second = stage.peers(2)
    first.send_produce([("t", [(0, GOOD)])])

    def append_more() -> None:
        second.send_produce([("t", [(0, GOOD)])])

    stage.workers.do_next(in_between=append_more)
    assert (code_of(first), second.answers()) == (0, [])
    assert stage.log().log.recovery_point == 1
    stage.workers.do_next()
    assert code_of(second) == 0


def test_requests_that_wait_keep_their_order() -> None:
    """Pipelined requests of one connection are served one flush after the other."""
    stage = Stage()
    (peer,) = stage.peers(1)
    for _ in range(3):
        peer.send_produce([("t", [(0, GOOD)])])
    offsets: list[int] = []
    while stage.workers.waiting:
        stage.workers.do_next()
        offsets += [answer.partition["base_offset"] for answer in peer.answers()]
    assert offsets == [0, 1, 2]


def test_a_failed_sync_is_told_to_everybody_who_waits() -> None:
    """56 to all whose batch may not be durable; none of them is told a success later."""
    stage = Stage()
    first, second = stage.peers(2)
    stage.host.fs.faults.fail_next_sync(errno.EIO, path="*/t-0/*.log")
    first.send_produce([("t", [(0, GOOD)])])
    second.send_produce([("t", [(0, GOOD)])])
    while stage.workers.waiting:
        stage.workers.do_next()

    assert [code_of(peer) for peer in (first, second)] == [STORAGE_ERROR] * 2
    assert stage.log().log.recovery_point == 0
    # The kernel has forgotten the pages: a sync that succeeds now proves nothing.
    first.send_produce([("t", [(0, GOOD)])])
    assert (code_of(first), stage.log().log.recovery_point) == (STORAGE_ERROR, 0)


def test_after_a_failed_sync_the_partition_takes_nothing_any_more() -> None:
    """56 for every append, one that promises no flush too; others and readers are not concerned."""
    stage = Stage(t={})
    (peer,) = stage.peers(1)
    assert peer.produce([("t", [(0, GOOD)])]).partition["error_code"] == 0
    stage.host.fs.faults.fail_next_sync(errno.EIO, path="*/t-0/*.log")
    with pytest.raises(OSError, match="EIO"):
        stage.log().flush()
    for _ in range(2):
        answer = peer.produce([("t", [(0, GOOD), (1, GOOD)])])
        assert [p["error_code"] for p in answer.by_topic[0]] == [STORAGE_ERROR, 0]
        assert answer.by_topic[0][0]["error_message"] is None  # the broker's own log tells why
    assert [bytes(b.data) for b in stage.log().batches()] == [stamped(GOOD, 0)]

    broker = stage.after_power_loss()
    assert Peer(broker).produce([("t", [(0, GOOD)])]).partition["base_offset"] == 0


def test_the_retry_of_what_a_failed_sync_lost_is_no_success() -> None:
    """A batch that is known by its sequence was appended once; that it lasts nobody can say."""
    stage = Stage()
    (peer,) = stage.peers(1)
    data = batch(bytes(100), producer=(7, 0, 0))
    stage.host.fs.faults.fail_next_sync(errno.EIO, path="*/t-0/*.log")
    peer.send_produce([("t", [(0, data)])])
    stage.workers.do_next()
    assert code_of(peer) == STORAGE_ERROR
    peer.send_produce([("t", [(0, data)])])
    assert code_of(peer) == STORAGE_ERROR


def test_after_a_failed_sync_a_restart_makes_it_good() -> None:
    """What was acknowledged before is there; the log goes on behind what can be read."""
    stage = Stage()
    (peer,) = stage.peers(1)
    for _ in range(2):
        peer.send_produce([("t", [(0, GOOD)])])
        stage.workers.do_next()
    assert [answer.partition["error_code"] for answer in peer.answers()] == [0, 0]
    stage.host.fs.faults.fail_next_sync(errno.EIO, path="*/t-0/*.log")
    peer.send_produce([("t", [(0, GOOD)])])
    stage.workers.do_next()
    assert code_of(peer) == STORAGE_ERROR

    broker = stage.after_power_loss()
    log = broker.topics["t"].partitions[0]
    assert [bytes(b.data) for b in log.batches()] == [stamped(GOOD, 0), stamped(GOOD, 1)]
    assert Peer(broker).produce([("t", [(0, GOOD)])]).partition["base_offset"] == 2


def test_metadata_whose_sync_failed_is_synced_by_the_next_flush() -> None:
    """The first flush makes partition.metadata durable; if that fails the second one does."""
    stage = Stage()
    (peer,) = stage.peers(1)
    topic_id = stage.broker.topics["t"].topic_id
    stage.host.fs.faults.fail_next_sync(
        errno.EIO, path="*/t-0/partition.metadata", drops_unsynced=False
    )
    codes: list[int] = []
    for _ in range(2):
        peer.send_produce([("t", [(0, GOOD)])])
        stage.workers.do_next()
        codes.append(code_of(peer))
    assert codes == [STORAGE_ERROR, 0]
    assert stage.after_power_loss().topics["t"].topic_id == topic_id


def test_a_request_waits_for_all_its_partitions() -> None:
    """The answer comes once the last of its flushes has ended."""
    stage = Stage(t=EACH, quick={})
    (peer,) = stage.peers(1)
    peer.send_produce([("t", [(0, GOOD), (1, GOOD)]), ("quick", [(0, GOOD)])])
    stage.workers.do_next()
    assert peer.answers() == []
    stage.workers.do_next()
    assert [[p["error_code"] for p in topic] for topic in peer.answer().by_topic] == [[0, 0], [0]]


def test_a_failed_sync_spares_other_partitions() -> None:
    """Only the result of the partition whose sync failed is 56; a good append is not denied."""
    stage = Stage(t=EACH, quick={})
    (peer,) = stage.peers(1)
    stage.host.fs.faults.fail_next_sync(errno.EIO, path="*/t-1/*.log")
    peer.send_produce([("t", [(0, GOOD), (1, GOOD), (9, GOOD)]), ("quick", [(1, GOOD)])])
    while stage.workers.waiting:
        stage.workers.do_next()
    answer = peer.answer()
    codes = [[p["error_code"] for p in topic] for topic in answer.by_topic]
    assert codes == [[0, STORAGE_ERROR, 3], [0]]


def test_acks_0_does_not_wait_and_is_flushed_all_the_same() -> None:
    """The promise of flush.messages is about the disk, not about the answer."""
    stage = Stage()
    first, second = stage.peers(2)
    frame = first.encoded(
        "Produce",
        9,
        {
            "transactional_id": None,
            "acks": 0,
            "timeout_ms": 1,
            "topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": GOOD}]}],
        },
    )
    assert first.connection.feed(frame) == []
    assert not first.connection.is_waiting
    assert len(stage.workers.waiting) == 1
    stage.workers.do_next()
    assert stage.log().log.recovery_point == 1
    assert second.send_produce([("t", [(1, GOOD)])]).answers() == []


def test_the_flush_comes_with_the_message_that_makes_it_due() -> None:
    """With flush.messages 3 every third append waits; those before it do not."""
    stage = Stage(t={"flush.messages": "3"})
    (peer,) = stage.peers(1)
    for round_end in (3, 6):
        for _ in range(2):
            assert peer.produce([("t", [(0, GOOD)])]).partition["error_code"] == 0
        peer.send_produce([("t", [(0, GOOD)])])
        assert peer.answers() == []
        stage.workers.do_next()
        assert (code_of(peer), stage.log().log.recovery_point) == (0, round_end)


def flushes_under_way(stage: Stage) -> int:
    """Return how many flushes wait for a worker; other housekeeping waits there too."""
    return sum(done.__qualname__.startswith("Flusher.") for _, done in stage.workers.waiting)


def test_time_makes_a_flush_due() -> None:
    """With flush.ms unflushed data goes to the disk when so long has passed, and only then."""
    stage = Stage(t={"flush.ms": "5000"}, never={})
    stage.broker.start_housekeeping()
    (peer,) = stage.peers(1)
    peer.produce([("t", [(0, GOOD)]), ("never", [(0, GOOD)])])
    for _ in range(4):
        stage.host.clock.advance(1000)
        stage.broker.timers.run()
        assert flushes_under_way(stage) == 0
    stage.host.clock.advance(1000)
    stage.broker.timers.run()
    assert flushes_under_way(stage) == 1
    while stage.workers.waiting:
        stage.workers.do_next()
    assert (stage.log().log.recovery_point, stage.log("never").log.recovery_point) == (1, 0)
    stage.host.clock.advance(60_000)
    stage.broker.timers.run()
    assert flushes_under_way(stage) == 0  # nothing new


def test_a_sealed_segment_is_flushed_in_the_background() -> None:
    """A roll asks for a flush that nobody waits for; the recovery point follows."""
    stage = Stage(t={"internal.segment.bytes": str(len(GOOD) + 10)})
    (peer,) = stage.peers(1)
    for _ in range(3):
        assert peer.produce([("t", [(0, GOOD)])]).partition["error_code"] == 0
    while stage.workers.waiting:
        stage.workers.do_next()
    assert stage.log().log.recovery_point >= 2
    assert stage.after_power_loss().topics["t"].partitions[0].end_offset >= 2


def test_a_segment_that_retention_takes_away_fails_no_flush() -> None:
    """Between the start of a flush and its run a segment may go; what stays is made durable."""
    stage = Stage(t={**EACH, "internal.segment.bytes": str(len(GOOD) + 10)})
    (peer,) = stage.peers(1)
    peer.send_produce([("t", [(0, GOOD)])])
    second = Peer(stage.broker).send_produce([("t", [(0, GOOD)])])
    stage.log().delete_records(1)
    assert stage.log().retain() == 1
    while stage.workers.waiting:
        stage.workers.do_next()
    assert [code_of(peer), code_of(second)] == [0, 0]
    assert stage.log().log.recovery_point == 2


def test_a_topic_deleted_during_the_flush_leaves_nobody_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The producers are told that it is gone (3), not of a broken disk; the log has no error."""
    stage = Stage()
    first, second = stage.peers(2)
    first.send_produce([("t", [(0, GOOD)])])
    second.send_produce([("t", [(0, GOOD)])])
    stage.broker.delete_topic(stage.broker.topics["t"])
    while stage.workers.waiting:
        stage.workers.do_next()
    assert "the flush failed" not in caplog.text
    assert {code_of(peer) for peer in (first, second)} == {UNKNOWN_TOPIC_OR_PARTITION}
    assert stage.broker.create_topic("t", 1, EACH).partitions[0].end_offset == 0
    first.send_produce([("t", [(0, GOOD)])])
    stage.workers.do_next()
    assert code_of(first) == 0


def test_a_lost_peer_is_not_answered() -> None:
    """The flush ends, the connection is gone, and that is all."""
    stage = Stage()
    (peer,) = stage.peers(1)
    peer.send_produce([("t", [(0, GOOD)])])
    peer.connection.lost()
    stage.workers.do_next()
    assert peer.answers() == []
    assert stage.log().log.recovery_point == 1


def test_a_roll_in_the_middle_of_a_flush_leaves_a_trimmed_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread that flushes an index and the loop that seals it do not spoil it together."""
    stage = Stage(t={"index.interval.bytes": "1"})
    log = stage.log()
    (peer,) = stage.peers(1)
    for _ in range(4):
        peer.produce([("t", [(0, GOOD)])])
    really_open = stage.host.fs.open
    rolled: list[str] = []

    def open_and_roll(path: str, *, create: bool = False, writable: bool = True) -> SimulatedFile:
        file = really_open(path, create=create, writable=writable)
        if path.endswith("index") and not rolled:
            rolled.append(path)
            log.log.roll()
        return file

    monkeypatch.setattr(stage.host.fs, "open", open_and_roll)
    log.begin_flush().run()
    monkeypatch.undo()
    assert rolled
    for extension, entry_bytes in ((".index", 8), (".timeindex", 12)):
        file = stage.host.fs.open(f"{DIRECTORY}/t-0/{0:020d}{extension}")
        assert 0 < file.size() <= 4 * entry_bytes, extension

    stage.workers.waiting.clear()
    stage.broker.close()
    again = a_broker(stage.host).topics["t"].partitions[0]
    for offset in range(4):
        extent = again.read(offset, 1 << 20)
        assert extent is not None
        assert extent.read()[:8] == offset.to_bytes(8, "big")


def test_commits_of_groups_keep_the_promise_too() -> None:
    """With log.flush.interval.messages 1 a committed offset is durable when it is answered."""
    host = SimulatedHost()
    broker = a_broker(host, log_flush_interval_messages=1, offsets_topic_num_partitions=1)
    broker.create_topic("t", 1)
    peer = Peer(broker)
    committed = {"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}
    answer = peer.ask(
        "OffsetCommit",
        7,
        {
            "group_id": "g",
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "topics": [{"name": "t", "partitions": [committed]}],
        },
    )
    assert answer.message["topics"][0]["partitions"][0]["error_code"] == 0
    assert broker.flusher.due == []
    host.power_loss(LOSE_UNSYNCED)
    asked = {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}
    found = Peer(a_broker(host)).ask("OffsetFetch", 5, asked)
    assert found.message["topics"][0]["partitions"][0]["committed_offset"] == 7
