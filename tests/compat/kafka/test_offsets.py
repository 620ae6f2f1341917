"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords: where a log begins, ends, and was when."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from logstore.partition import Record as PlainRecord
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record, encode_batch
from tests.compat.kafka.conversation import Conversation, joined

LATEST, EARLIEST, LARGEST, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)
NOW_MS = 1_700_000_000_000
NOWHERE = {"error_code": 0, "timestamp": -1, "offset": -1, "leader_epoch": -1}


def filled(conversation: Conversation, *ages_ms: int, name: str = "a") -> KafkaPartition:
    """Create a topic whose records are so old, one batch each; return its partition."""
    conversation.create(name)
    partition = conversation.broker.topics[name].partitions[0]
    for age_ms in ages_ms:
        partition.append_records([PlainRecord(b"k", b"v", NOW_MS - age_ms)])
    return partition


def look_up(
    conversation: Conversation,
    timestamp: int,
    *,
    version: int = 11,
    isolation: int = 0,
    replica: int = -1,
    **fields: Any,
) -> dict[str, Any]:
    """Return where a timestamp lies in partition 0 of topic "a"."""
    asked = {"partition_index": 0, "timestamp": timestamp, **fields}
    top: dict[str, Any] = {"isolation_level": isolation} if version >= 2 else {}
    answer = conversation.ask(
        "ListOffsets",
        version,
        replica_id=replica,
        topics=[{"name": "a", "partitions": [asked]}],
        **top,
    )
    (topic,) = answer["topics"]
    (partition,) = topic["partitions"]
    assert (topic["name"], partition.pop("partition_index")) == ("a", 0)
    result: dict[str, Any] = partition
    return result


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version_knows_both_ends(version: int) -> None:
    """Every version answers start and end without a timestamp; v4 adds the leader epoch."""
    conversation = Conversation()
    filled(conversation, 30, 20, 10).delete_records(1)
    epoch = {"leader_epoch": 0} if version >= 4 else {}
    expected = {"error_code": 0, "timestamp": -1, **epoch}
    assert look_up(conversation, LATEST, version=version) == {**expected, "offset": 3}
    assert look_up(conversation, EARLIEST, version=version) == {**expected, "offset": 1}


def test_a_time_finds_the_first_record_that_is_as_young() -> None:
    """A timestamp finds the first record that is at least that young, with its own timestamp."""
    conversation = Conversation()
    filled(conversation, 30, 20, 10)
    found = look_up(conversation, NOW_MS - 25)
    assert found == {"error_code": 0, "timestamp": NOW_MS - 20, "offset": 1, "leader_epoch": 0}
    assert look_up(conversation, 0)["offset"] == 0
    assert look_up(conversation, NOW_MS - 9) == NOWHERE


def test_a_time_below_the_log_start_finds_what_is_left() -> None:
    """Records below the log start are not found any more."""
    conversation = Conversation()
    filled(conversation, 30, 20, 10).delete_records(2)
    assert look_up(conversation, 0)["offset"] == 2


def test_the_youngest_record_is_not_always_the_last() -> None:
    """-3 finds the record with the largest timestamp; in an empty log nothing."""
    conversation = Conversation()
    partition = filled(conversation)
    assert look_up(conversation, LARGEST) == NOWHERE
    for age_ms in (30, 10, 20):
        partition.append_records([PlainRecord(b"k", b"v", NOW_MS - age_ms)])
    found = look_up(conversation, LARGEST)
    assert (found["offset"], found["timestamp"]) == (1, NOW_MS - 10)


def test_nothing_is_tiered() -> None:
    """-4 is the log start, -5 and -6 nowhere: there is no tiered storage."""
    conversation = Conversation()
    filled(conversation, 10, 10).delete_records(1)
    assert look_up(conversation, EARLIEST_LOCAL)["offset"] == 1
    assert look_up(conversation, LATEST_TIERED) == NOWHERE
    assert look_up(conversation, PENDING_UPLOAD) == NOWHERE


@pytest.mark.parametrize(
    ("timestamp", "first"), [(LARGEST, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (-6, 11)]
)
def test_special_times_of_later_versions_are_35(timestamp: int, first: int) -> None:
    """A special timestamp is 35 in versions that do not know it yet."""
    conversation = Conversation()
    filled(conversation, 10)
    assert look_up(conversation, timestamp, version=first - 1)["error_code"] == 35
    assert look_up(conversation, timestamp, version=first)["error_code"] == 0


def test_other_negative_times_are_35() -> None:
    """A negative timestamp without a meaning is 35."""
    conversation = Conversation()
    filled(conversation, 10)
    assert look_up(conversation, -7)["error_code"] == 35


def test_a_reader_of_committed_records_ends_before_open_transactions() -> None:
    """read_committed ends at the last stable offset and finds no record behind it by time."""
    conversation = Conversation()
    partition = filled(conversation, 30)
    batch = encode_batch(
        [Record(offset=0, timestamp_ms=NOW_MS - 10, key=b"k", value=b"v")],
        producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True,
    )  # fmt: skip
    partition.verifies_transactions = False  # nobody has asked the coordinator
    partition.append_produced(memoryview(batch), NOW_MS)
    assert look_up(conversation, LATEST)["offset"] == 2
    assert look_up(conversation, LATEST, isolation=1)["offset"] == 1
    assert look_up(conversation, NOW_MS - 10)["offset"] == 1
    assert look_up(conversation, NOW_MS - 10, isolation=1) == NOWHERE
    assert look_up(conversation, LARGEST, isolation=1) == NOWHERE
    assert look_up(conversation, LATEST, isolation=1, replica=-2)["offset"] == 2


def test_another_leader_epoch_is_fenced() -> None:
    """An epoch below the leader's is 74, one above it 75, without an answer."""
    conversation = Conversation()
    filled(conversation, 10).become_leader(3)
    assert look_up(conversation, LATEST, current_leader_epoch=3)["leader_epoch"] == 3
    assert look_up(conversation, LATEST, current_leader_epoch=2) == NOWHERE | {"error_code": 74}
    assert look_up(conversation, LATEST, current_leader_epoch=4) == NOWHERE | {"error_code": 75}


def test_what_is_not_there_is_3() -> None:
    """An unknown topic or partition is 3."""
    conversation = Conversation()
    filled(conversation, 10)
    asked = {"partition_index": 1, "timestamp": LATEST}
    answer = conversation.ask(
        "ListOffsets", 11, replica_id=-1, isolation_level=0,
        topics=[{"name": "a", "partitions": [asked]}, {"name": "b", "partitions": [asked]}],
    )  # fmt: skip
    found = [partition["error_code"] for topic in answer["topics"]
             for partition in topic["partitions"]]  # fmt: skip
    assert found == [3, 3]


ASKED_PARTITIONS = [
    struct.pack(">iiq", 0, -1, EARLIEST),
    struct.pack(">iiq", 7, -1, LATEST),
    struct.pack(">iiq", 0, -1, LATEST),
    struct.pack(">iiq", 1, -1, LATEST),
]
#: two tagged fields that nobody knows: of tag 0 with one byte, of tag 5 with two
TAGS = bytes((2, 0, 1, 9, 5, 2, 8, 8))


def by_hand(partitions: list[bytes]) -> bytes:
    """Return a ListOffsets of version 6 that asks for partitions of "a"."""
    body = struct.pack(">ibBB", -1, 0, 2, 2) + b"a" + bytes((len(partitions) + 1,))
    body += b"".join(partitions) + b"\0\0"
    header = struct.pack(">hhih", 2, 6, 5, 0) + b"\0"
    return struct.pack(">i", len(header + body)) + header + body


@pytest.mark.parametrize("tagged", [(0,), (1,), (3,), (0, 1, 2, 3)], ids=str)
def test_tags_change_nothing(tagged: tuple[int, ...]) -> None:
    """Partitions with tagged fields, wherever they stand, are answered as without."""
    conversation = Conversation()
    conversation.create("a", 2)
    conversation.broker.topics["a"].partitions[1].append_records([PlainRecord(b"k", b"v", NOW_MS)])
    plain, with_tags = (
        by_hand(
            [
                asked + (TAGS if number in places else b"\0")
                for number, asked in enumerate(ASKED_PARTITIONS)
            ]
        )
        for places in ((), tagged)
    )
    assert len(with_tags) > len(plain)
    answer = joined(conversation.connection.feed(plain))
    # Partition 0 comes twice, 7 is not there, 1 has one record.
    rows = [(0, 42, -1, -1, -1), (7, 3, -1, -1, -1), (1, 0, -1, 1, 0)]
    assert answer.endswith(b"".join(struct.pack(">ihqqiB", *row, 0) for row in rows) + b"\0\0")
    assert joined(conversation.connection.feed(with_tags)) == answer


@pytest.mark.parametrize("cut_bytes", [1, 2, 3, 19, 40])
def test_partitions_that_are_not_there_close_the_connection(cut_bytes: int) -> None:
    """A request that ends before its last partition is no request."""
    conversation = Conversation()
    frame = by_hand([asked + b"\0" for asked in ASKED_PARTITIONS])
    cut = struct.pack(">i", len(frame) - 4 - cut_bytes) + frame[4:-cut_bytes]
    assert joined(conversation.connection.feed(cut)) == b""
    assert conversation.connection.is_closing


def test_a_partition_that_comes_twice_is_invalid() -> None:
    """A partition asked for twice is 42, once in the answer."""
    conversation = Conversation()
    filled(conversation, 10)
    asked = [{"partition_index": 0, "timestamp": time} for time in (LATEST, EARLIEST)]
    answer = conversation.ask(
        "ListOffsets", 11, replica_id=-1, isolation_level=0,
        topics=[{"name": "a", "partitions": asked}],
    )  # fmt: skip
    assert [entry["error_code"] for entry in answer["topics"][0]["partitions"]] == [42]


# OffsetForLeaderEpoch


def end_of(
    conversation: Conversation, epoch: int, *, version: int = 4, current: int = -1
) -> tuple[int, int, int]:
    """Return (error, epoch, end offset) for an epoch of partition 0 of topic "a"."""
    top = {"replica_id": -1} if version >= 3 else {}
    asked = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
    answer = conversation.ask(
        "OffsetForLeaderEpoch", version, topics=[{"topic": "a", "partitions": [asked]}], **top
    )
    (entry,) = answer["topics"][0]["partitions"]
    return entry["error_code"], entry["leader_epoch"], entry["end_offset"]


@pytest.mark.parametrize("version", range(2, 5))
def test_an_epoch_ends_where_the_next_one_starts(version: int) -> None:
    """Every version knows where an old epoch ended; the present one ends at the log end."""
    conversation = Conversation()
    partition = filled(conversation, 30, 20)
    partition.become_leader(4)
    partition.append_records([PlainRecord(b"k", b"v", NOW_MS)])
    for epoch, expected in {
        0: (0, 0, 2),
        2: (0, 0, 2),
        4: (0, 4, 3),
        5: (0, -1, -1),
        -1: (0, -1, -1),
    }.items():
        assert end_of(conversation, epoch, version=version) == expected


def test_epochs_are_fenced_too() -> None:
    """A client with another idea of the present epoch gets 74 or 75; unknown partitions are 3."""
    conversation = Conversation()
    assert end_of(conversation, 0) == (3, -1, -1)
    filled(conversation, 10).become_leader(2)
    assert end_of(conversation, 2, current=2) == (0, 2, 1)
    assert end_of(conversation, 2, current=1) == (74, -1, -1)
    assert end_of(conversation, 2, current=3) == (75, -1, -1)


@pytest.mark.parametrize("version", [2, 11])
def test_an_isolation_that_there_is_not_fails_everything(version: int) -> None:
    """All of the request is -1, as Kafka stumbles over it; version 1 has none."""
    conversation = Conversation()
    filled(conversation, 30, 20)
    topics = [
        {"name": name, "partitions": [{"partition_index": 0, "timestamp": LATEST}]}
        for name in ("a", "nobody")
    ]
    for isolation, codes in ((2, [-1, -1]), (-1, [-1, -1]), (1, [0, 3])):
        answer = conversation.ask(
            "ListOffsets", version, replica_id=-1, isolation_level=isolation, topics=topics
        )
        told = [one["partitions"][0] for one in answer["topics"]]
        assert [one["error_code"] for one in told] == codes
        assert [one["offset"] for one in told] == [-1 if code else 2 for code in codes]


def test_what_fails_as_a_whole_is_told_as_often_as_it_was_asked() -> None:
    """A topic and a partition that come twice are answered twice, each with -1."""
    conversation = Conversation()
    filled(conversation, 1)
    partition = {"partition_index": 0, "timestamp": LATEST}
    topics: list[dict[str, Any]] = [
        {"name": "a", "partitions": [partition] * 2},
        {"name": "a", "partitions": []},
    ]
    answer = conversation.ask("ListOffsets", 3, replica_id=-1, isolation_level=5, topics=topics)
    told = [[one["error_code"] for one in topic["partitions"]] for topic in answer["topics"]]
    assert told == [[-1, -1], []]


# DeleteRecords


def delete_below(
    conversation: Conversation, offset: int, *, version: int = 2, topic: str = "a", index: int = 0
) -> tuple[int, int]:
    """Return (error, log start) of a deletion."""
    asked = {"partition_index": index, "offset": offset}
    answer = conversation.ask(
        "DeleteRecords", version, topics=[{"name": topic, "partitions": [asked]}], timeout_ms=1
    )
    (entry,) = answer["topics"][0]["partitions"]
    assert entry["partition_index"] == index
    return entry["error_code"], entry["low_watermark"]


@pytest.mark.parametrize("version", range(3))
def test_records_are_deleted_up_to_an_offset(version: int) -> None:
    """Every version moves the log start; records below it cannot be read any more."""
    conversation = Conversation()
    partition = filled(conversation, 30, 20, 10)
    assert delete_below(conversation, 2, version=version) == (0, 2)
    assert partition.start_offset == 2
    assert look_up(conversation, EARLIEST)["offset"] == 2


def test_a_partition_named_twice_is_told_once() -> None:
    """The last offset is meant; a topic of which nothing is asked is not told."""
    conversation = Conversation()
    filled(conversation, 30, 20, 10)
    topics = [
        {"name": name, "partitions": [{"partition_index": 0, "offset": one} for one in offsets]}
        for name, offsets in (("a", [3, 2]), ("b", []), ("a", [1]))
    ]
    answer = conversation.ask("DeleteRecords", 2, topics=topics, timeout_ms=1)["topics"]
    told = [(one["name"], [each["low_watermark"] for each in one["partitions"]]) for one in answer]
    assert told == [("a", [1])]


def test_records_of_a_topic_without_a_policy_are_deleted() -> None:
    """Only one that is compacted, and no more than that, is 44."""
    conversation = Conversation()
    for name, policy, code in (("n", "", 0), ("c", "compact", 44), ("d", "compact,delete", 0)):
        conversation.create(name, settings={"cleanup.policy": policy})
        assert delete_below(conversation, 0, topic=name)[0] == code


def test_minus_one_deletes_everything() -> None:
    """Offset -1 is the high watermark, and so all that is there."""
    conversation = Conversation()
    filled(conversation, 30, 20, 10)
    assert delete_below(conversation, -1) == (0, 3)


def test_the_log_start_never_moves_back() -> None:
    """An offset below the log start changes nothing and is no error."""
    conversation = Conversation()
    filled(conversation, 30, 20, 10)
    delete_below(conversation, 2)
    assert delete_below(conversation, 1) == (0, 2)


@pytest.mark.parametrize("offset", [-2, 4, 2**62])
def test_offsets_outside_of_the_log_are_1(offset: int) -> None:
    """A negative offset or one above the log end is 1, and nothing is deleted."""
    conversation = Conversation()
    partition = filled(conversation, 30, 20, 10)
    assert delete_below(conversation, offset) == (1, -1)
    assert partition.start_offset == 0


def test_some_topics_keep_their_records() -> None:
    """A topic that is only compacted is 44, an internal one 17, an unknown one 3."""
    conversation = Conversation()
    conversation.create("a", settings={"cleanup.policy": "compact"})
    conversation.create("both", settings={"cleanup.policy": "compact,delete"})
    conversation.create("__consumer_offsets")
    assert delete_below(conversation, 0) == (44, -1)
    assert delete_below(conversation, 0, topic="both") == (0, 0)
    assert delete_below(conversation, 0, topic="__consumer_offsets") == (17, -1)
    assert delete_below(conversation, 0, topic="no such") == (3, -1)
    assert delete_below(conversation, 0, index=1) == (3, -1)


def test_a_topic_named_twice_is_answered_once_and_one_without_partitions_not() -> None:
    """Its partitions are answered together, as they were asked for."""
    conversation = Conversation()
    filled(conversation, 0)
    wanted = [{"partition_index": 0, "timestamp": LATEST}]
    other = [{"partition_index": 7, "timestamp": LATEST}]
    answer = conversation.ask(
        "ListOffsets",
        11,
        replica_id=-1,
        isolation_level=0,
        topics=[
            {"name": "a", "partitions": wanted},
            {"name": "b", "partitions": []},
            {"name": "a", "partitions": other},
        ],
        timeout_ms=0,
    )
    found = [
        (topic["name"], [one["partition_index"] for one in topic["partitions"]])
        for topic in answer["topics"]
    ]
    assert found == [("a", [0, 7])]
