"""Fetch: which bytes, how many, up to where, and why not."""

from __future__ import annotations

import errno
import importlib
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.security.listener import Listener
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import NOW_MS, batch, stamped
from tests.compat.kafka.peer import Answer, Peer, a_broker, fetch_fields

VERSIONS = range(4, 19)
OUT_OF_RANGE, UNKNOWN, UNKNOWN_ID, FENCED, TOO_NEW, STORAGE_ERROR = 1, 3, 100, 74, 75, 56
ONE = batch(bytes(100))
SIZE = len(ONE)


def filled(settings: dict[str, str] | None = None, partitions: int = 1, count: int = 5) -> Broker:
    """Return a broker whose topic "t" has `count` equal batches of one record everywhere."""
    broker = a_broker()
    topic = broker.create_topic("t", partitions, settings)
    for partition in topic.partitions.values():
        for _ in range(count):
            partition.append_produced(memoryview(bytearray(ONE)), NOW_MS)
    return broker


def log_of(broker: Broker, index: int = 0) -> KafkaPartition:
    """Return a partition of topic "t"."""
    return broker.topics["t"].partitions[index]


def named(broker: Broker, version: int) -> Any:
    """Return what a request of this version calls topic "t"."""
    return uuid.UUID(bytes=broker.topics["t"].topic_id) if version >= 13 else "t"


def fetch(broker: Broker, *partitions: dict[str, Any], version: int = 12, **fields: Any) -> Answer:
    """Fetch from partitions of topic "t"; without any, from the start of partition 0."""
    asked = [{"partition": 0, "fetch_offset": 0, **one} for one in partitions or ({},)]
    request = fetch_fields([(named(broker, version), asked)], version, **fields)
    return Peer(broker).ask("Fetch", version, request)


def offsets(records: bytes | None) -> list[int]:
    """Return the base offsets of the whole batches in `records`."""
    found: list[int] = []
    rest = bytes(records or b"")
    while len(rest) >= 12 and len(rest) >= 12 + int.from_bytes(rest[8:12], "big"):
        found.append(int.from_bytes(rest[:8], "big"))
        rest = rest[12 + int.from_bytes(rest[8:12], "big") :]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_gives_the_batches_as_they_are_stored(version: int) -> None:
    """Byte for byte, with high watermark, last stable offset and, from v5 on, the log start."""
    broker = filled(count=3)
    log_of(broker).delete_records(1)
    answer = fetch(broker, {"fetch_offset": 1}, version=version)

    (topic,) = answer.message["responses"]
    assert topic["topic_id" if version >= 13 else "topic"] == named(broker, version)
    result = answer.partition
    assert (result["partition_index"], result["error_code"]) == (0, 0)
    assert (result["high_watermark"], result["last_stable_offset"]) == (3, 3)
    assert result.get("log_start_offset") == (1 if version >= 5 else None)
    assert result["aborted_transactions"] is None
    assert bytes(result["records"]) == stamped(ONE, 1) + stamped(ONE, 2)


def test_the_library_reads_the_records() -> None:
    """kafka-python's own reader finds every record, of every codec, with a right checksum."""
    from logstore.segments.kafka.compression import Codec

    broker = a_broker()
    broker.create_topic("t", 1)
    for codec in Codec:
        data = batch(b"a" * 50, b"b" * 50, codec=codec)
        assert Peer(broker).produce([("t", [(0, data)])]).partition["error_code"] == 0
    records: Any = importlib.import_module("kafka.record").MemoryRecords
    reader = records(bytes(fetch(broker).partition["records"]))
    values: list[tuple[int, bytes]] = []
    while (found := reader.next_batch()) is not None:
        assert found.validate_crc()
        values += [(record.offset, record.value) for record in found]
    assert values == [(index, (b"ab"[index % 2 : index % 2 + 1]) * 50) for index in range(10)]


def test_a_fetch_into_the_middle_gives_the_whole_batch() -> None:
    """The client drops the records below its offset itself, as with Kafka."""
    broker = a_broker()
    broker.create_topic("t", 1)
    data = batch(b"a", b"b", b"c")
    for _ in range(2):
        Peer(broker).produce([("t", [(0, data)])])
    for offset, first in ((0, 0), (1, 0), (2, 0), (3, 3), (5, 3)):
        found = offsets(fetch(broker, {"fetch_offset": offset}).partition["records"])
        assert found[0] == first


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("offset", "code"), [(-1, 1), (1, 1), (2, 0), (5, 0), (6, 1), (2**40, 1)])
def test_offsets_outside_of_the_log_are_1(version: int, offset: int, code: int) -> None:
    """Below the log start or above the end; the end itself is an empty answer."""
    broker = filled()
    log_of(broker).delete_records(2)
    result = fetch(broker, {"fetch_offset": offset}, version=version).partition
    assert result["error_code"] == code
    assert result["high_watermark"] == (-1 if code else 5)
    expected = -1 if code else 2
    assert result.get("log_start_offset", expected) == expected
    assert bool(result["records"]) == (offset == 2)


@pytest.mark.parametrize("version", VERSIONS)
def test_of_a_partition_named_twice_the_last_is_meant(version: int) -> None:
    """It is read once, from where the last mention of it says."""
    broker = filled()
    asked = [{"partition": 0, "fetch_offset": offset} for offset in (99, 3)]
    request = fetch_fields([(named(broker, version), asked)], version)
    answer = Peer(broker).ask("Fetch", version, request)
    assert [[result["error_code"] for result in topic] for topic in answer.by_topic] == [[0]]
    assert offsets(answer.by_topic[0][0]["records"])[-1] == 4


@pytest.mark.parametrize("version", VERSIONS)
def test_an_isolation_that_there_is_not_fails_the_request(version: int) -> None:
    """It is told at the top, and before topics had ids of every partition, as often as named."""
    broker = filled()
    asked = [{"partition": 0, "fetch_offset": 0}] * 2
    request = fetch_fields([(named(broker, version), asked)], version, isolation_level=2)
    answer = Peer(broker).ask("Fetch", version, request)
    assert answer.message.get("error_code", -1) == -1
    codes = [result["error_code"] for topic in answer.by_topic for result in topic]
    assert codes == ([] if version >= 13 else [-1, -1])


def test_a_request_that_fails_is_told_its_own_session() -> None:
    """As it was named, also where there is no such session (any more)."""
    broker = filled()
    asked = [("t", [{"partition": 0, "fetch_offset": 0}])]
    request = fetch_fields(asked, 9, isolation_level=2, session_id=77, session_epoch=0)
    answer = Peer(broker).ask("Fetch", 9, request)
    assert (answer.message["error_code"], answer.message["session_id"]) == (-1, 77)


def test_of_unknown_topics_no_isolation_is_asked_for() -> None:
    """Where nothing is to be read the isolation does not matter."""
    request = fetch_fields([("nobody", [{"partition": 0}])], 11, isolation_level=2)
    answer = Peer(a_broker()).ask("Fetch", 11, request)
    assert (answer.message["error_code"], answer.partition["error_code"]) == (0, UNKNOWN)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_not_there_is_unknown(version: int) -> None:
    """3 for a name or a partition, 100 for an id; the other partitions are served."""
    broker = filled(count=1)
    nobody: Any = uuid.UUID(int=9) if version >= 13 else "nobody"
    asked = [{"partition": index, "fetch_offset": 0} for index in (0, 1, -1)]
    request = fetch_fields([(nobody, asked[:1]), (named(broker, version), asked)], version)
    answer = Peer(broker).ask("Fetch", version, request)
    codes = [[result["error_code"] for result in topic] for topic in answer.by_topic]
    stranger = [UNKNOWN_ID if version >= 13 else UNKNOWN]
    # What was read comes first, then ids that are unknown, then names and partitions.
    assert codes == [[0], stranger, [UNKNOWN, UNKNOWN]]
    assert offsets(answer.by_topic[0][0]["records"]) == [0]
    assert {result["high_watermark"] for topic in answer.by_topic for result in topic} == {1, -1}


@pytest.mark.parametrize("version", range(9, 19))
@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (4, FENCED), (5, 0), (6, TOO_NEW)])
def test_leader_epochs_are_compared(version: int, epoch: int, code: int) -> None:
    """A client of an older epoch is 74, of a newer one 75 (KIP-320); -1 is not compared."""
    broker = filled()
    log_of(broker).become_leader(5)
    result = fetch(broker, {"current_leader_epoch": epoch}, version=version).partition
    assert (result["error_code"], bool(result["records"])) == (code, code == 0)


@pytest.mark.parametrize("version", range(12, 19))
def test_who_comes_with_an_old_epoch_is_told_who_leads(version: int) -> None:
    """From v16 on, with the address of the listener by which the client came (KIP-951)."""
    broker = filled()
    log_of(broker).become_leader(5)
    peer = Peer(broker)
    peer.connection.client.listener = Listener("INSIDE", advertised_host="in", advertised_port=7)
    asked = [{"partition": 0, "fetch_offset": 0, "current_leader_epoch": 4}]
    answer = peer.ask("Fetch", version, fetch_fields([(named(broker, version), asked)], version))
    ((partition,),) = answer.by_topic
    assert partition["error_code"] == FENCED
    leader = partition["current_leader"] or {"leader_id": -1, "leader_epoch": -1}
    endpoints = [
        (one["node_id"], one["host"], one["port"], one["rack"])
        for one in answer.message.get("node_endpoints") or ()
    ]
    is_told = version >= 16
    told = (leader["leader_id"], leader["leader_epoch"])
    assert told == ((broker.node_id, 5) if is_told else (-1, -1))
    assert endpoints == ([(broker.node_id, "in", 7, None)] if is_told else [])


class TestLimits:
    """How much comes at once."""

    def test_the_first_batch_comes_whole_however_large(self) -> None:
        """A consumer with small limits is not stuck: it gets one batch, and no more."""
        broker = filled()
        for limits in ({"max_bytes": 1}, {"max_bytes": 0}):
            assert offsets(fetch(broker, **limits).partition["records"]) == [0]
        for size in (1, 0, SIZE - 1, SIZE):
            assert offsets(fetch(broker, {"partition_max_bytes": size}).partition["records"]) == [0]

    def test_a_limit_may_cut_a_later_batch(self) -> None:
        """Past the first batch the answer ends where the limit is, as in Kafka."""
        broker = filled()
        records = bytes(fetch(broker, {"partition_max_bytes": 2 * SIZE + 10}).partition["records"])
        assert (len(records), offsets(records)) == (2 * SIZE + 10, [0, 1])

    def test_a_wrong_offset_is_told_where_nothing_fits(self) -> None:
        """A partition for which no bytes are left is 1 if there is no such offset, as in Kafka."""
        broker = filled(partitions=5)
        log_of(broker, index=3).delete_records(1)
        end = log_of(broker, index=1).end_offset
        asked = [
            {"partition": index, "fetch_offset": offset}
            for index, offset in ((0, 0), (1, end), (2, end + 1), (3, 0), (4, 0))
        ]
        (results,) = fetch(broker, *asked, max_bytes=1).by_topic
        assert [(r["error_code"], bool(r["records"])) for r in results] == [
            (0, True), (0, False), (OUT_OF_RANGE, False), (OUT_OF_RANGE, False), (0, False),
        ]  # fmt: skip

    def test_only_the_first_partition_may_exceed(self) -> None:
        """Later ones get what is left of max_bytes, and nothing if no whole batch fits in it."""
        broker = filled(partitions=3)
        asked = [{"partition": index} for index in range(3)]
        for limit, sizes in (
            (1, [SIZE, 0, 0]),
            (SIZE + 7, [SIZE + 7, 0, 0]),
            (5 * SIZE + 7, [5 * SIZE, 0, 0]),
            (6 * SIZE, [5 * SIZE, SIZE, 0]),
            (11 * SIZE + 1, [5 * SIZE, 5 * SIZE, SIZE + 1]),
            (11 * SIZE - 1, [5 * SIZE, 5 * SIZE, 0]),
        ):
            answer = fetch(broker, *asked, max_bytes=limit)
            assert [len(r["records"] or b"") for r in answer.by_topic[0]] == sizes

    def test_an_empty_first_partition_passes_the_right_on(self) -> None:
        """The first one that has data is the one that may exceed."""
        broker = filled(partitions=3)
        asked = [{"partition": 0, "fetch_offset": 5}, {"partition": 1}, {"partition": 2}]
        answer = fetch(broker, *asked, max_bytes=1)
        assert [offsets(result["records"]) for result in answer.by_topic[0]] == [[], [0], []]

    def test_the_limit_of_a_partition_holds_for_each(self) -> None:
        """Each partition has its own."""
        broker = filled(partitions=3)
        asked: list[dict[str, Any]] = [
            {"partition": 0, "partition_max_bytes": 2 * SIZE},
            {"partition": 1, "partition_max_bytes": SIZE + 1},
            {"partition": 2, "partition_max_bytes": 0},
        ]
        answer = fetch(broker, *asked)
        assert [len(r["records"] or b"") for r in answer.by_topic[0]] == [2 * SIZE, SIZE + 1, 0]

    def test_the_broker_has_a_limit_of_its_own(self) -> None:
        """fetch.max.bytes of the broker holds where the request would take more."""
        broker = a_broker(fetch_max_bytes=1024)
        log = broker.create_topic("t", 1).partitions[0]
        for _ in range(20):
            log.append_produced(memoryview(bytearray(ONE)), NOW_MS)
        assert len(fetch(broker).partition["records"]) == 1024

    def test_an_answer_comes_from_one_segment(self) -> None:
        """At the end of a segment it stops; the next fetch goes on in the next one."""
        broker = filled({"internal.segment.bytes": str(2 * SIZE + 10)})
        got: list[list[int]] = []
        offset = 0
        while offset < 5:
            got.append(offsets(fetch(broker, {"fetch_offset": offset}).partition["records"]))
            offset = got[-1][-1] + 1
        assert got == [[0, 1], [2, 3], [4]]

    def test_one_partition_may_be_asked_twice(self) -> None:
        """Odd, and served: one result."""
        answer = fetch(filled(), {"fetch_offset": 4}, {"fetch_offset": 3})
        assert [offsets(result["records"]) for result in answer.by_topic[0]] == [[3, 4]]


@given(
    limit=st.integers(0, 14 * SIZE),
    asked=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6 * SIZE)), min_size=1, max_size=3),
)
def test_limits_are_kept_and_progress_is_made(limit: int, asked: list[tuple[int, int]]) -> None:
    """Never more than asked for, but for one first batch; never nothing where there is some."""
    broker = filled(partitions=3)
    answer = fetch(
        broker,
        *[
            {"partition": index, "fetch_offset": offset, "partition_max_bytes": size}
            for index, (offset, size) in enumerate(asked)
        ],
        max_bytes=limit,
    )
    sizes = [len(result["records"] or b"") for result in answer.by_topic[0]]
    has_data = [offset < 5 for offset, _ in asked]
    assert (sum(sizes) > 0) == any(has_data)
    first = has_data.index(True) if any(has_data) else 0
    for index, (size, (_, size_max)) in enumerate(zip(sizes, asked, strict=True)):
        assert size <= max(size_max, SIZE if index == first else 0)
    assert sum(sizes) <= max(limit, SIZE)
    for result, (offset, _) in zip(answer.by_topic[0], asked, strict=True):
        assert offsets(result["records"])[:1] in ([], [offset])


class TestReadCommitted:
    """Isolation level 1."""

    @pytest.mark.parametrize("version", VERSIONS)
    def test_it_stops_at_the_last_stable_offset(self, version: int) -> None:
        """What is in or behind an open transaction is not given; the list of aborted is empty."""
        broker = filled(count=2)
        log_of(broker).verifies_transactions = False  # nobody has asked the coordinator
        open_one = batch(b"x", producer=(5, 0, 0), is_transactional=True)
        for data in (open_one, ONE):
            log_of(broker).append_produced(memoryview(bytearray(data)), NOW_MS)
        committed = fetch(broker, version=version, isolation_level=1).partition
        assert (committed["high_watermark"], committed["last_stable_offset"]) == (4, 2)
        assert offsets(committed["records"]) == [0, 1]
        assert committed["aborted_transactions"] == []
        everything = fetch(broker, version=version).partition
        assert offsets(everything["records"]) == [0, 1, 2, 3]
        assert (everything["last_stable_offset"], everything["aborted_transactions"]) == (2, None)

    @pytest.mark.parametrize("version", VERSIONS)
    def test_aborted_transactions_are_named(self, version: int) -> None:
        """Who was aborted and from which offset on; only those that reach into the answer."""
        broker = filled(count=0)
        log = log_of(broker)
        log.verifies_transactions = False
        for sequence, is_commit in enumerate((False, True, False)):
            data = batch(b"x", producer=(5, 0, sequence), is_transactional=True)
            log.append_produced(memoryview(bytearray(data)), NOW_MS)
            log.append_marker(5, 0, is_commit=is_commit, coordinator_epoch=0, now_ms=NOW_MS)
        for offset, expected in ((0, [0, 4]), (2, [4]), (6, [])):
            result = fetch(
                broker, {"fetch_offset": offset}, version=version, isolation_level=1
            ).partition
            assert result["last_stable_offset"] == 6
            assert result["aborted_transactions"] == [
                {"producer_id": 5, "first_offset": first} for first in expected
            ]

    def test_from_the_last_stable_offset_on_there_is_nothing_yet(self) -> None:
        """No error: the reader waits for the transaction to end."""
        broker = filled(count=0)
        data = batch(b"x", producer=(5, 0, 0), is_transactional=True)
        log_of(broker).verifies_transactions = False
        log_of(broker).append_produced(memoryview(bytearray(data)), NOW_MS)
        for offset in (0, 1):
            result = fetch(broker, {"fetch_offset": offset}, isolation_level=1).partition
            assert (result["error_code"], bool(result["records"])) == (0, False)


class TestDivergence:
    """A fetcher whose log left ours is told where (KIP-595)."""

    def broker(self) -> Broker:
        """Return a broker whose log has epochs 0 [0, 2), 3 [2, 4), 7 [4, 5)."""
        broker = filled(count=0)
        log = log_of(broker)
        for epoch, count in ((0, 2), (3, 2), (7, 1)):
            log.become_leader(epoch)
            for _ in range(count):
                log.append_produced(memoryview(bytearray(ONE)), NOW_MS)
        return broker

    @pytest.mark.parametrize("version", range(12, 19))
    @pytest.mark.parametrize(
        ("offset", "epoch", "diverging"),
        [
            (4, 3, None),
            (5, 7, None),
            (3, 3, None),
            (5, -1, None),
            (5, 3, (3, 4)),
            (4, 5, (3, 4)),
            (3, 0, (0, 2)),
            (5, 6, (3, 4)),
        ],
    )
    def test_the_end_of_the_last_common_epoch_is_told(
        self, version: int, offset: int, epoch: int, diverging: tuple[int, int] | None
    ) -> None:
        """If the epoch is not ours, or ended below the offset; with it come no records."""
        broker = self.broker()
        result = fetch(
            broker, {"fetch_offset": offset, "last_fetched_epoch": epoch}, version=version
        ).partition
        assert result["error_code"] == 0
        if diverging is None:
            assert result["diverging_epoch"] is None
        else:
            assert result["diverging_epoch"] == {"epoch": diverging[0], "end_offset": diverging[1]}
            assert not result["records"]
            assert result["high_watermark"] == 5

    def test_an_epoch_that_cannot_be_compared_is_out_of_range(self) -> None:
        """An epoch above all of ours has no end here; as in Kafka the offset is out of range."""
        result = fetch(self.broker(), {"fetch_offset": 5, "last_fetched_epoch": 9}).partition
        assert (result["error_code"], result["diverging_epoch"]) == (OUT_OF_RANGE, None)

    def test_an_offset_below_the_log_start_is_out_of_range_first(self) -> None:
        """Whatever the epochs say."""
        broker = self.broker()
        log_of(broker).delete_records(4)
        result = fetch(broker, {"fetch_offset": 3, "last_fetched_epoch": 0}).partition
        assert (result["error_code"], result["diverging_epoch"]) == (OUT_OF_RANGE, None)


def test_tags_of_replicas_are_read_over() -> None:
    """Cluster id, replica state, directory id, high watermark: tags that a lone broker ignores."""
    broker = filled()
    partition: dict[str, Any] = {
        "partition": 0,
        "fetch_offset": 0,
        "partition_max_bytes": 1 << 20,
        "replica_directory_id": uuid.UUID(int=5),
        "high_watermark": 3,
    }
    request = fetch_fields([(named(broker, 18), [partition])], 18)
    request["cluster_id"] = "somewhere"
    request["replica_state"] = {"replica_id": 3, "replica_epoch": 4}
    answer = Peer(broker).ask("Fetch", 18, request)
    assert offsets(answer.partition["records"]) == [0, 1, 2, 3, 4]


def test_a_disk_that_cannot_be_read_is_56() -> None:
    """The partition has a storage error, the others are served, and so is the next fetch."""
    host = SimulatedHost()
    broker = a_broker(host)
    topic = broker.create_topic("t", 2, {"internal.segment.bytes": str(2 * SIZE)})
    for partition in topic.partitions.values():
        for _ in range(4):
            partition.append_produced(memoryview(bytearray(ONE)), NOW_MS)
    host.fs.faults.fail_next("read", errno.EIO, path="*/t-0/*", count=None)
    asked = [{"partition": index, "partition_max_bytes": 10} for index in (0, 1)]
    answer = fetch(broker, *asked)
    assert [r["error_code"] for r in answer.by_topic[0]] == [STORAGE_ERROR, 0]
    assert offsets(answer.by_topic[0][1]["records"]) == [0]
    host.fs.faults.clear()
    assert [r["error_code"] for r in fetch(broker, *asked).by_topic[0]] == [0, 0]


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_a_fetch_of_nothing_is_answered_at_once(version: int) -> None:
    """Without partitions there is nothing to wait for."""
    request = fetch_fields([], version, max_wait_ms=10_000)
    assert Peer(filled()).ask("Fetch", version, request).message["responses"] == []


def test_what_is_fetched_can_be_checked() -> None:
    """The CRC of every batch that goes out is right after stamping and restamping."""
    broker = filled({"message.timestamp.type": "LogAppendTime"})
    rest = bytes(fetch(broker).partition["records"])
    for offset in range(5):
        found = RecordBatch(rest[:SIZE], SIZE)
        assert (found.base_offset, found.crc) == (offset, found.computed_crc())
        assert [record.value for record in decode_records(rest[:SIZE])] == [bytes(100)]
        rest = rest[SIZE:]
    assert rest == b""
