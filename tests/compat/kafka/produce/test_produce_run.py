"""Produce requests that arrive together leave the bytes that they leave one by one."""

from __future__ import annotations

import errno
import uuid
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.produce.run import ProduceRun
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.indexed_segment import IndexedSegment
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import NOW_MS, altered, batch
from tests.compat.kafka.peer import Peer, Topics, a_broker, fetch_fields, produce_fields

_IDS_SINCE = 13
NO_ID = uuid.UUID(int=1)
GOOD = batch(b"a", b"b")
BATCHES: dict[str, bytes | None] = {
    "good": GOOD,
    "later": batch(b"c", timestamp_ms=NOW_MS + 5),
    "future": batch(timestamp_ms=2 * NOW_MS),
    "soon": batch(timestamp_ms=NOW_MS + 5000),
    "corrupt": altered(GOOD, 17, "I", 1, mend_crc=False),
    "large": batch(bytes(20_000)),
    "huge": batch(bytes(40_000)),
    "null": None,
    "number": batch(producer=(5, 0, 0)),
}
TOPICS = {
    "plain": {"index.interval.bytes": "200"},
    "tiny": {"internal.segment.bytes": "1000", "index.interval.bytes": "0"},
    "indexes": {"segment.index.bytes": "36", "index.interval.bytes": "0"},
    "strict": {"max.message.bytes": "100"},
    "usual": {},
    "hasty": {"message.timestamp.after.max.ms": "1000"},
    "timed": {"message.timestamp.type": "LogAppendTime"},
}


@attrs.frozen
class Request:
    """One request: what it brings to which partitions of a topic."""

    topic: str
    batches: tuple[tuple[int, str], ...]
    acks: int = 1
    version: int = 9


#: what a producer of that number sends next: of its next records, or of others
NUMBERED = ["next 5", "next 6", "again 5", "gap 5", "epoch 5"]
_kinds = st.one_of(
    st.sampled_from([*["good"] * 12, *["later"] * 3, *BATCHES]),
    st.sampled_from(["next 5"] * 6 + NUMBERED),
)
_indexes = st.sampled_from([(0,), (0,), (0, 1), (0, 1), (1, 0), (0, 0), (0, 7), ()])


@st.composite
def read_of(draw: st.DrawFn, topics: list[str]) -> list[Request]:
    """Draw what arrives at once: most of it is like the first, which shows the way."""
    topic, indexes = draw(st.sampled_from(topics)), draw(_indexes)
    version = draw(st.sampled_from([9, 9, 8, 13, 4]))
    found: list[Request] = []
    for _ in range(draw(st.integers(1, 10))):
        is_alike = draw(st.integers(0, 9)) > 0
        found.append(
            Request(
                topic if is_alike else draw(st.sampled_from(topics)),
                tuple((index, draw(_kinds)) for index in (indexes if is_alike else draw(_indexes))),
                acks=1 if is_alike else draw(st.sampled_from([-1, 0, 1])),
                version=version if is_alike else draw(st.sampled_from([9, 8, 13])),
            )
        )
    return found


reads = st.lists(
    st.sampled_from([*TOPICS, "plain", "unknown"]), min_size=1, max_size=2, unique=True
).flatmap(lambda topics: st.lists(read_of(topics), max_size=5))


class Served:
    """A broker, and one client of it; its requests arrive together, or one by one."""

    def __init__(self, *, together: bool) -> None:
        self.host = SimulatedHost()
        self.broker: Broker = a_broker(self.host)
        for name, settings in TOPICS.items():
            self.broker.create_topic(name, 2, settings)
        self.peer = Peer(self.broker)
        self._together = together
        #: of each producer and partition: the epoch, and the first sequence that is free
        self._numbers: dict[tuple[int, int], tuple[int, int]] = {}

    def read(self, requests: list[Request]) -> tuple[bytes, bool]:
        """Return what comes of one read, and whether the connection is closed."""
        frames = [self.frame(request) for request in requests]
        answer = b""
        for data in [b"".join(frames)] if self._together else frames:
            if not self.peer.connection.is_closing:
                chunks: Any = self.peer.connection.feed(data)
                answer += b"".join(bytes(chunk) for chunk in chunks)
        is_closing = self.peer.connection.is_closing
        if is_closing:
            self.peer = Peer(self.broker)
        return answer, is_closing

    def frame(self, request: Request) -> bytes:
        """Return a request as it is sent."""
        found = self.broker.topics.get(request.topic)
        name: Any = request.topic
        if request.version >= _IDS_SINCE:
            name = NO_ID if found is None else uuid.UUID(bytes=found.topic_id)
        topics: Topics = [
            (name, [(index, self._batch(index, kind)) for index, kind in request.batches])
        ]
        fields = produce_fields(topics, request.version, request.acks)
        return self.peer.encoded("Produce", request.version, fields)

    def _batch(self, index: int, kind: str) -> bytes | None:
        if kind in BATCHES:
            return BATCHES[kind]
        what, producer_id = kind.split()
        producer = int(producer_id), index
        epoch, sequence = self._numbers.get(producer, (0, 0))
        if what == "again":
            return batch(b"a", b"b", producer=(producer[0], epoch, max(0, sequence - 2)))
        epoch, sequence = {
            "next": (epoch, sequence), "gap": (epoch, sequence + 3), "epoch": (epoch + 1, 0),
        }[what]  # fmt: skip
        self._numbers[producer] = epoch, sequence + 2
        return batch(b"a", b"b", producer=(producer[0], epoch, sequence))

    def producers(self) -> dict[tuple[str, int], list[str]]:
        """Return what is known of all producers."""
        return {
            (partition.topic, partition.index): [str(one) for one in partition.known_producers()]
            for partition in self.broker.store.partitions()
        }

    def places(self) -> dict[tuple[str, int, int], int]:
        """Return where each offset of the active segments is found."""
        return {
            (partition.topic, partition.index, offset): partition.log.active.locate(offset)
            for partition in self.broker.store.partitions()
            for offset in range(partition.log.active.base_offset, partition.end_offset)
        }

    def files(self) -> dict[str, bytes]:
        """Return all files of the topics' partitions, after a clean stop."""
        directories = [p.files.directory for p in self.broker.store.partitions()]
        self.broker.close()
        found: dict[str, bytes] = {}
        for directory in directories:
            for entry in self.host.fs.list_directory(directory):
                path = f"{directory}/{entry.name}"
                file = self.host.fs.open(path, writable=False)
                found[path] = file.read(0, file.size())
        return found


def assert_same(reads: list[list[Request]]) -> None:
    """Same answers in the same order, same bytes in every file, offsets in the same places."""
    together, singly = Served(together=True), Served(together=False)
    for requests in reads:
        assert together.read(requests) == singly.read(requests)
        assert together.places() == singly.places()
        assert together.producers() == singly.producers()
    assert together.files() == singly.files()


@given(reads=reads)
def test_together_they_leave_what_they_leave_one_by_one(reads: list[list[Request]]) -> None:
    """Whatever arrives with whatever else."""
    assert_same(reads)


def both(*kinds: str) -> tuple[tuple[int, str], ...]:
    """Return batches for partition 0, 1 and so on."""
    return tuple(enumerate(kinds))


FIRST = Request("plain", both("good"))
FIRST_OF_BOTH = Request("plain", both("good", "good"))
CASES = {
    "later ones": [
        [Request("usual", both(kind)) for kind in ("good", "good", "good", "later", "good")]
    ],
    "too soon": [
        [Request("hasty", both(kind)) for kind in ("good", "good", "later", "soon", "good")]
    ],
    "one named twice": [
        [FIRST_OF_BOTH] * 2,
        [Request("plain", ((0, "good"), (0, "later")))] * 3 + [FIRST_OF_BOTH],
    ],
    "one that is not there": [
        [FIRST_OF_BOTH] * 2,
        [FIRST_OF_BOTH, Request("plain", ((0, "good"), (7, "good"))), FIRST_OF_BOTH],
    ],
    "alone and not there": [[FIRST] * 2, [FIRST, Request("plain", ((7, "good"),)), FIRST]],
    "of another topic": [[FIRST] * 2, [FIRST, Request("usual", both("good")), FIRST]],
    "of another version": [[FIRST] * 2, [FIRST, attrs.evolve(FIRST, version=10)] * 2],
    "too large": [
        [Request("strict", both(kind)) for kind in kinds]
        for kinds in (["good"] * 2, ["good", "large", "large", "good"])
    ],
    "of the future": [[FIRST] * 2, [FIRST, Request("plain", both("future")), FIRST]],
    "one and both in turns": [[FIRST, FIRST_OF_BOTH], [FIRST, FIRST, FIRST_OF_BOTH] * 3],
    "both and one in turns": [[FIRST], [FIRST_OF_BOTH, FIRST_OF_BOTH, FIRST] * 3],
    "in another order": [
        [FIRST_OF_BOTH] * 2,
        [FIRST_OF_BOTH, Request("plain", both("good", "later")[::-1])] * 3,
    ],
    "small segments": [[Request("tiny", both("good"))] * 40],
    "small segments of both": [[Request("tiny", both("good", "later"))] * 40],
    "small indexes": [[Request("indexes", both(kind))] * 10 for kind in ("good", "later")],
    "numbered": [[Request("usual", both("next 5"))] * count for count in (1, 2, 9)],
    "numbered for both": [[Request("usual", both("next 5", "next 5"))] * n for n in (1, 2, 9)],
    "numbered by two": [
        [Request("usual", both(kind))] * 2 for kind in ("next 5", "next 6", "next 5")
    ]
    + [[Request("usual", both(kind)) for kind in ("next 5", "next 6", "next 6", "next 5")]],
    "numbered by two as by one": [
        [Request("usual", both(kind))] for kind in ("next 5", "next 6", "next 6")
    ]
    + [[Request("usual", both(kind)) for kind in ("good", "next 5", "next 6")]] * 2
    + [[Request("usual", both(kind)) for kind in ("next 5", "next 6")]],
    "numbered or not": [
        [Request("usual", both(kind)) for kind in kinds]
        for kinds in (["next 5"] * 2, ["next 5", "good", "next 5"], ["good", "next 5", "good"])
    ],
    "a repetition": [
        [Request("usual", both(kind)) for kind in kinds]
        for kinds in (["next 5"] * 2, ["next 5", "again 5", "next 5"], ["again 5", "next 5"])
    ],
    "a gap": [
        [Request("usual", both(kind)) for kind in kinds]
        for kinds in (["next 5"] * 2, ["next 5", "gap 5", "next 5", "next 5"])
    ],
    "a new epoch": [
        [Request("usual", both(kind)) for kind in kinds]
        for kinds in (["next 5"] * 2, ["next 5", "epoch 5", "next 5", "next 5"])
    ],
    "a broken one": [[FIRST] * 2, [FIRST, FIRST, Request("plain", both("corrupt")), FIRST]],
}


@pytest.mark.parametrize("case", CASES)
def test_the_rules_hold_for_each_of_them(case: str) -> None:
    """What a partition or a topic has a rule about is not passed over in company."""
    assert_same(CASES[case])


def test_what_a_topic_wants_is_asked_anew_each_time() -> None:
    """Settings that change between two reads hold for the second, whatever the first left."""
    served = Served(together=True)
    topic = served.broker.topics["plain"]
    served.read([FIRST])
    served.read([Request("plain", both("corrupt"))] * 2)
    served.broker.store.change_settings(topic, {"flush.messages": "1"})
    served.read([FIRST] * 2)
    partition = topic.partitions[0]
    assert partition.log.recovery_point == partition.end_offset == 6


@pytest.mark.parametrize("kind", ["good", "next 5"])
@pytest.mark.parametrize("count", [1, 3, 8])
def test_each_partition_is_written_once_a_read(
    count: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many requests for two partitions cost two writes, once the first has shown the way."""
    served = Served(together=True)
    request = Request("plain", ((0, kind), (1, kind)))
    served.read([request])
    served.read([request])
    runs: list[int] = []
    append = IndexedSegment.append_usual_run

    def counted(self: IndexedSegment, run: Any, *rest: Any) -> int:
        runs.append(len(run))
        return append(self, run, *rest)

    monkeypatch.setattr(IndexedSegment, "append_usual_run", counted)
    served.read([request] * count)
    assert runs == ([count] * 2 if count > 1 else [])
    assert [p.end_offset for p in served.broker.topics["plain"].partitions.values()] == [
        4 + 2 * count
    ] * 2


def test_who_compresses_is_served_one_by_one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be gathered is not looked at for that again and again."""
    served = Served(together=True)
    tried: list[int] = []
    take = ProduceRun.take

    def counted(self: ProduceRun, *words: Any) -> bool:
        tried.append(1)
        return take(self, *words)

    monkeypatch.setattr(ProduceRun, "take", counted)
    packed = batch(b"a", codec=Codec.LZ4)
    for data, tried_by_now in ((packed, 0), (GOOD, 4), (packed, 5)):
        fields = produce_fields([("plain", [(0, data)])], 9, 1)
        served.peer.send_together("Produce", 9, [fields] * 5).answers()
        assert len(tried) == tried_by_now
    assert served.broker.topics["plain"].partitions[0].end_offset == 20


def test_a_fetch_between_them_sees_what_came_before_it() -> None:
    """Whatever else arrives with produce requests is served in its turn."""
    served = Served(together=True)
    request = Request("plain", ((0, "good"),))
    served.read([request])
    fetch = served.peer.encoded(
        "Fetch", 12, fetch_fields([("plain", [{"partition": 0, "fetch_offset": 0}])], 12)
    )
    frames = [served.frame(request), served.frame(request), fetch, served.frame(request)]
    served.peer.connection.feed(b"".join(frames))
    partition = served.broker.topics["plain"].partitions[0]
    assert partition.end_offset == 8


@pytest.mark.parametrize(("failures", "refused"), [(1, []), (2, [0]), (4, [0, 1, 2])])
@pytest.mark.parametrize("version", [5, 9])
def test_a_write_that_fails_is_undone_and_each_is_tried_by_itself(
    failures: int, refused: list[int], version: int
) -> None:
    """A disk that is full may have room for some of them; each request is told its own."""
    served = Served(together=True)
    request = Request("plain", ((0, "good"),), version=version)
    served.read([request])
    partition = served.broker.topics["plain"].partitions[0]
    served.host.fs.faults.fail_next(
        "write",
        errno.ENOSPC,
        path=f"{partition.files.directory}/*.log",
        count=failures,
        partial_bytes=100,
    )
    fields = produce_fields([("plain", [(0, GOOD)])], version, 1)
    answers = served.peer.send_together("Produce", version, [fields] * 4).answers()
    codes = [answer.partition["error_code"] for answer in answers]
    assert [number for number, code in enumerate(codes) if code] == refused
    assert {code for code in codes if code} <= {ErrorCode.KAFKA_STORAGE_ERROR}
    served.read([request] * 2)
    offsets = [found.base_offset for found in partition.batches()]
    assert offsets == list(range(0, 2 * (7 - len(refused)), 2))


@pytest.mark.parametrize(("failures", "refused"), [(1, []), (2, [1]), (3, [1, 3])])
def test_requests_for_one_partition_each_fail_each_by_itself(
    failures: int, refused: list[int]
) -> None:
    """A partition that gets one batch of a read has it tried twice, and told what is wrong."""
    served = Served(together=True)
    served.read([Request("plain", ((0, "good"),)), Request("plain", ((1, "good"),))])
    partition = served.broker.topics["plain"].partitions[1]
    path = f"{partition.files.directory}/*.log"
    served.host.fs.faults.fail_next("write", errno.EIO, path=path, count=failures)
    requests = [produce_fields([("plain", [(index, GOOD)])], 9, 1) for index in (0, 1, 0, 1)]
    if failures < 3:
        del requests[3:]
    answers = served.peer.send_together("Produce", 9, requests).answers()
    codes = [answer.partition["error_code"] for answer in answers]
    assert [number for number, code in enumerate(codes) if code] == refused
    assert {code for code in codes if code} <= {ErrorCode.KAFKA_STORAGE_ERROR}
