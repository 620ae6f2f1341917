"""Older releases: what their clients send is understood, what they get they understand."""

from __future__ import annotations

import importlib
import io
import struct
from typing import Any

import pytest

from logstore.compat.connection import Chunk
from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.emulation.release import Emulation
from logstore.compat.kafka.registry import APIS
from logstore.compat.kafka.topics.names import TRANSACTIONS_TOPIC
from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.config_keys import LONG_MAX, ConfigError
from logstore.segments.kafka.legacy.message_set import encode_message_set
from logstore.segments.kafka.record import Record, decode_records
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import NOW_MS, batch
from tests.compat.kafka.conversation import DIRECTORY
from tests.compat.kafka.peer import Peer, a_broker
from tests.compat.kafka.transactions.producer import TransactionalClient

#: the library's classes of versions that brokers of today have no more; they have no types
_OLD = "kafka.protocol.old"
admin: Any = importlib.import_module(f"{_OLD}.admin")
commit: Any = importlib.import_module(f"{_OLD}.commit")
epochs: Any = importlib.import_module(f"{_OLD}.offset_for_leader_epoch")
fetch: Any = importlib.import_module(f"{_OLD}.fetch")
list_offsets: Any = importlib.import_module(f"{_OLD}.list_offsets")
metadata: Any = importlib.import_module(f"{_OLD}.metadata")
produce: Any = importlib.import_module(f"{_OLD}.produce")
RECORDS = [
    Record(0, NOW_MS, b"k1", b"v1"),
    Record(1, NOW_MS + 5, None, b"v2" * 40),
    Record(2, NOW_MS + 3, b"", None),
]
TOPIC_NOT_KNOWN, CORRUPT, CODEC_NOT_SUPPORTED, INVALID_RECORD = 3, 2, 76, 87
LEADER_NOT_AVAILABLE = 5
UNKNOWN_MEMBER = 25


def an_old_broker(
    release: str = "3.9", host: SimulatedHost | None = None, **settings: object
) -> Broker:
    """Return a broker that emulates a release."""
    broker = a_broker(host, **settings)
    broker.emulation = Emulation.of(release)
    return broker


def ask(broker: Broker, request: Any) -> Any:
    """Send a request of the library's old classes; return what its response class reads."""
    body = request.encode()
    frame = struct.pack(">hhih", request.API_KEY, request.API_VERSION, 7, 3) + b"old" + body
    connection = broker.connect("127.0.0.1")
    chunks = connection.feed(struct.pack(">i", len(frame)) + frame)
    assert not connection.is_closing, request
    answer = joined(chunks)
    size_bytes, correlation_id = struct.unpack_from(">ii", answer)
    assert (size_bytes, correlation_id) == (len(answer) - 4, 7)
    stream = io.BytesIO(answer[8:])
    name: str = request.__class__.__name__.replace("Request", "Response")
    found = getattr(importlib.import_module(request.__class__.__module__), name).decode(stream)
    assert stream.read() == b"", "nothing follows the response"
    return found


def joined(chunks: list[Chunk]) -> bytes:
    """Return what is to be sent; answers to old requests name no runs of files."""
    return b"".join(chunk for chunk in chunks if isinstance(chunk, bytes))


def produce_request(version: int, topic: str, data: bytes, acks: int = -1) -> Any:
    """Return a Produce of one message set."""
    return getattr(produce, f"ProduceRequest_v{version}")(acks, 1000, [(topic, [(0, data)])])


def fetch_request(version: int, topic: str, offset: int) -> Any:
    """Return a Fetch of one partition that does not wait."""
    limit = (1 << 25,) if version >= 3 else ()
    kind = getattr(fetch, f"FetchRequest_v{version}")
    return kind(-1, 0, 1, *limit, [(topic, [(0, offset, 1 << 20)])])


def stored(broker: Broker, topic: str = "t") -> list[Any]:
    """Return all records of the log, batch by batch."""
    return [decode_records(one.data) for one in broker.topics[topic].partitions[0].batches()]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_message_sets_become_one_batch(version: int, codec: Codec) -> None:
    """Keys, values, codec, and in magic 1 times; offsets are the leader's."""
    broker = an_old_broker()
    broker.create_topic("t", 1)
    magic = 1 if version == 2 else 0
    data = bytes(encode_message_set(RECORDS, magic=magic, codec=codec))
    for base_offset in (0, 3):
        answer = ask(broker, produce_request(version, "t", data))
        ((topic, [result]),) = answer.topics
        assert (topic, *result[:3]) == ("t", 0, 0, base_offset)
        assert result[3:] == ((-1,) if version == 2 else ())
    entries = list(broker.topics["t"].partitions[0].batches())
    assert [(one.magic, one.codec, one.base_offset) for one in entries] == [
        (2, codec, 0),
        (2, codec, 3),
    ]
    (first, _) = stored(broker)
    assert [(r.key, r.value) for r in first] == [(r.key, r.value) for r in RECORDS]
    expected_times = [r.timestamp_ms for r in RECORDS] if magic else [-1] * 3
    assert [r.timestamp_ms for r in first] == expected_times


def test_the_time_that_the_broker_gives_is_told_from_version_2_on() -> None:
    """A LogAppendTime topic's answer has the broker's clock."""
    broker = an_old_broker()
    broker.create_topic("t", 1, {"message.timestamp.type": "LogAppendTime"})
    data = bytes(encode_message_set(RECORDS, magic=1))
    ((_, [told]),) = ask(broker, produce_request(2, "t", data)).topics
    assert told == (0, 0, 0, NOW_MS)
    ((_, [untold]),) = ask(broker, produce_request(1, "t", data)).topics
    assert untold == (0, 0, 3)


def test_what_cannot_be_converted_is_refused_and_the_rest_kept() -> None:
    """A wrong CRC is 2, two wrappers are 87, no topic is 3; the partition beside them is kept."""
    broker = an_old_broker()
    broker.create_topic("t", 3)
    good = bytes(encode_message_set(RECORDS, magic=1))
    wrapper = bytes(encode_message_set(RECORDS, magic=1, codec=Codec.GZIP))
    sets = [(0, good), (1, good[:-1] + b"x"), (2, wrapper * 2)]
    request = produce.ProduceRequest_v2(-1, 1000, [("t", sets), ("none", [(0, good)])])
    answer = ask(broker, request)
    codes = [(topic, [result[1] for result in results]) for topic, results in answer.topics]
    assert codes == [("t", [0, CORRUPT, INVALID_RECORD]), ("none", [TOPIC_NOT_KNOWN])]
    assert [p.end_offset for p in broker.topics["t"].partitions.values()] == [3, 0, 0]


@pytest.mark.parametrize("size_bytes", [0, 5, 20])
def test_a_set_without_a_whole_message_is_no_error(size_bytes: int) -> None:
    """Nothing is written, and the base offset is -1."""
    broker = an_old_broker()
    broker.create_topic("t", 1)
    data = bytes(encode_message_set(RECORDS, magic=1))[:size_bytes]
    assert ask(broker, produce_request(2, "t", data)).topics == [("t", [(0, 0, -1, -1)])]
    assert stored(broker) == []


def test_nobody_is_answered_who_wants_no_answer() -> None:
    """Acks 0: the messages are kept and nothing is sent."""
    broker = an_old_broker()
    broker.create_topic("t", 1)
    request = produce_request(1, "t", bytes(encode_message_set(RECORDS, magic=0)), acks=0)
    frame = struct.pack(">hhih", 0, 1, 7, -1) + request.encode()
    assert broker.connect("127.0.0.1").feed(struct.pack(">i", len(frame)) + frame) == []
    assert len(stored(broker)[0]) == 3


@pytest.mark.parametrize("size_bytes", [0, 5, 30])
def test_who_wants_no_answer_may_send_no_whole_message(size_bytes: int) -> None:
    """Acks 0: a real 3.9 neither writes anything nor hangs up."""
    broker = an_old_broker()
    broker.create_topic("t", 1)
    data = bytes(encode_message_set(RECORDS, magic=1))[:size_bytes]
    frame = struct.pack(">hhih", 0, 2, 7, -1) + produce_request(2, "t", data, acks=0).encode()
    connection = broker.connect("127.0.0.1")
    assert connection.feed(struct.pack(">i", len(frame)) + frame) == []
    assert not connection.is_closing
    assert stored(broker) == []


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_batches_become_messages(version: int) -> None:
    """Offsets, keys, values and, from version 2 on, times; headers are left out."""
    broker = an_old_broker()
    broker.create_topic("t", 1)
    peer = Peer(broker)
    peer.produce([("t", [(0, batch(b"a", b"b"))])], version=3)
    peer.produce([("t", [(0, batch(b"c", codec=Codec.GZIP))])], version=3)
    ((_, [result]),) = ask(broker, fetch_request(version, "t", 1)).topics
    index, error, high_watermark, messages = result
    assert (index, error, high_watermark) == (0, 0, 3)
    entries = list(iterate_entries(memoryview(messages)))
    assert {entry.magic for entry in entries} == {1 if version >= 2 else 0}
    records = [record for entry in entries for record in decode_records(entry.data)]
    assert [(r.offset, r.value) for r in records] == [(1, b"b"), (2, b"c")]
    assert {r.timestamp_ms for r in records} == ({NOW_MS} if version >= 2 else {-1})


def test_zstd_is_refused_to_old_consumers() -> None:
    """They have no name for it: 76."""
    broker = an_old_broker()
    broker.create_topic("t", 1)
    Peer(broker).produce([("t", [(0, batch(b"a", codec=Codec.ZSTD))])], version=8)
    ((_, [result]),) = ask(broker, fetch_request(3, "t", 0)).topics
    assert result == (0, CODEC_NOT_SUPPORTED, -1, None)


def test_an_old_consumer_waits_for_what_comes() -> None:
    """A Fetch at the log end is answered once somebody has produced."""
    broker = an_old_broker()
    broker.create_topic("t", 1)
    request = fetch.FetchRequest_v2(-1, 60_000, 1, [("t", [(0, 0, 1 << 20)])])
    frame = struct.pack(">hhih", 1, 2, 7, -1) + request.encode()
    connection = broker.connect("127.0.0.1")
    assert connection.feed(struct.pack(">i", len(frame)) + frame) == []
    Peer(broker).produce([("t", [(0, batch(b"late"))])], version=3)
    answer = joined(connection.output)
    ((_, [result]),) = fetch.FetchResponse_v2.decode(io.BytesIO(answer[8:])).topics
    (entry,) = iterate_entries(memoryview(result[3]))
    assert decode_records(entry.data)[0].value == b"late"


def test_offsets_of_segments_are_told_newest_first() -> None:
    """ListOffsets v0: the ends, and the segments whose files are at least as old as a time."""
    host = SimulatedHost()
    broker = an_old_broker(host=host)
    broker.create_topic("t", 1, {"segment.ms": "1000"})
    peer = Peer(broker)
    for value in (b"a", b"b", b"c"):
        peer.produce([("t", [(0, batch(value, timestamp_ms=host.clock.wall_ms()))])], version=3)
        host.clock.advance(5000)

    def before(time_ms: int, count: int) -> tuple[int, list[int]]:
        request = list_offsets.ListOffsetsRequest_v0(-1, [("t", [(0, time_ms, count)])])
        ((_, [(_, error, offsets)]),) = ask(broker, request).topics
        return error, offsets

    assert before(-1, 1) == (0, [3])
    assert before(-1, 10) == (0, [3, 2, 1, 0])
    assert before(-2, 10) == (0, [0])
    assert before(NOW_MS + 5000, 10) == (0, [1, 0])
    assert before(NOW_MS - 1, 10) == (0, [])
    request = list_offsets.ListOffsetsRequest_v0(-1, [("none", [(0, -1, 1)])])
    assert ask(broker, request).topics == [("none", [(0, TOPIC_NOT_KNOWN, [])])]


def test_groups_of_before_members_commit_and_resume() -> None:
    """OffsetCommit v0 and v1, OffsetFetch v0: a simple consumer's offsets are the group's."""
    broker = an_old_broker()
    broker.create_topic("t", 2)
    first = commit.OffsetCommitRequest_v0("g", [("t", [(0, 5, "five")])])
    assert ask(broker, first).topics == [("t", [(0, 0)])]
    second = commit.OffsetCommitRequest_v1("g", -1, "", [("t", [(1, 7, -1, "seven")])])
    assert ask(broker, second).topics == [("t", [(1, 0)])]
    found = ask(broker, commit.OffsetFetchRequest_v0("g", [("t", [0, 1])]))
    assert found.topics == [("t", [(0, 5, "five", 0), (1, 7, "seven", 0)])]
    stranger = commit.OffsetCommitRequest_v1("g", 3, "nobody", [("t", [(0, 9, -1, "")])])
    assert ask(broker, stranger).topics[0][1][0][1] in (UNKNOWN_MEMBER, 22)


def test_topics_are_made_and_deleted_as_they_were() -> None:
    """CreateTopics v0 and v1, DeleteTopics v0; an error has its text from v1 on."""
    broker = an_old_broker()
    made = admin.CreateTopicsRequest_v0([("a", 2, 1, [], [])], 1000)
    assert ask(broker, made).topic_errors == [("a", 0)]
    assert ask(broker, made).topic_errors == [("a", 36)]
    only_asked = admin.CreateTopicsRequest_v1([("b", 1, 1, [], [])], 1000, True)
    assert ask(broker, only_asked).topic_errors == [("b", 0, None)]
    assert list(broker.topics) == ["a"]
    again = admin.CreateTopicsRequest_v1([("a", 1, 1, [], [])], 1000, False)
    ((name, code, message),) = ask(broker, again).topic_errors
    assert (name, code) == ("a", 36)
    assert "a" in message
    assert ask(broker, admin.DeleteTopicsRequest_v0(["a"], 1000)).topic_error_codes == [("a", 0)]
    assert list(broker.topics) == []


def test_configs_are_described_without_where_they_come_from() -> None:
    """DescribeConfigs v0, as 3.9 answers it: nothing is told to be a default."""
    broker = an_old_broker()
    broker.create_topic("t", 1, {"retention.ms": "5"})
    asked = admin.DescribeConfigsRequest_v0([(2, "t", ["retention.ms", "cleanup.policy", "no"])])
    ((code, _, kind, name, configs),) = ask(broker, asked).results
    assert (code, kind, name) == (0, 2, "t")
    assert sorted(configs) == [
        ("cleanup.policy", "delete", False, False, False),
        ("retention.ms", "5", False, False, False),
    ]
    ((code, *_),) = ask(broker, admin.DescribeConfigsRequest_v0([(2, "no", None)])).results
    assert code == TOPIC_NOT_KNOWN


def test_rights_had_no_patterns() -> None:
    """CreateAcls, DescribeAcls and DeleteAcls v0: names are whole, others are not seen."""
    broker = an_old_broker(
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:ANONYMOUS",
    )
    entry = ("User:a", "*", 3, 3)
    created = [
        ask(broker, admin.CreateAclsRequest_v0([(2, "t", *entry)])),
        ask(broker, admin.CreateAclsRequest_v1([(2, "p", 4, *entry)])),
    ]
    assert [code for answer in created for code, _ in answer.results] == [0, 0]
    everything = (2, None, None, None, 1, 1)
    described = ask(broker, admin.DescribeAclsRequest_v0(*everything))
    assert (described.error_code, described.resources) == (0, [(2, "t", [entry])])
    ((code, _, [gone]),) = ask(broker, admin.DeleteAclsRequest_v0([everything])).filter_results
    assert (code, gone[0], gone[2:]) == (0, 0, (2, "t", *entry))
    assert ask(broker, admin.DescribeAclsRequest_v0(*everything)).resources == []


@pytest.mark.parametrize(
    ("release", "of_rules", "of_configs"),
    [("2.4", None, None), ("2.5", "", None), ("2.6", "", None), ("2.7", "", "")],
)
def test_nothing_wrong_had_no_message_at_first(
    release: str, of_rules: str | None, of_configs: str | None
) -> None:
    """Rules had none (null) before 2.5, settings before 2.7; since then it is empty."""
    broker = an_old_broker(
        release,
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:ANONYMOUS",
    )
    broker.create_topic("t", 1)
    created = ask(broker, admin.CreateAclsRequest_v1([(2, "t", 3, "User:a", "*", 3, 3)]))
    described = ask(broker, admin.DescribeAclsRequest_v0(2, None, None, None, 1, 1))
    shown = ask(broker, admin.DescribeConfigsRequest_v0([(2, "t", ["retention.ms"])]))
    assert (created.results, described.error_message) == ([(0, of_rules)], of_rules)
    assert [message for _, message, *_ in shown.results] == [of_configs]


def test_ends_of_epochs_are_told_to_the_first_who_asked() -> None:
    """OffsetForLeaderEpoch v0 and, with the epoch in its answer, v1."""
    broker = an_old_broker()
    broker.create_topic("t", 1)
    ask(broker, produce_request(2, "t", bytes(encode_message_set(RECORDS, magic=1))))
    epoch = broker.topics["t"].partitions[0].leader_epoch
    asked = [("t", [(0, epoch), (7, epoch)])]
    answers = [ask(broker, getattr(epochs, f"OffsetForLeaderEpochRequest_v{v}")(asked)).topics
               for v in (0, 1)]  # fmt: skip
    assert answers == [
        [("t", [(0, 0, 3), (TOPIC_NOT_KNOWN, 7, -1)])],
        [("t", [(0, 0, epoch, 3), (TOPIC_NOT_KNOWN, 7, -1, -1)])],
    ]


@pytest.mark.parametrize(("release", "code"), [("3.2", LEADER_NOT_AVAILABLE), ("3.3", 3)])
def test_a_topic_that_a_question_makes_has_no_leader_yet(release: str, code: int) -> None:
    """With ZooKeeper its maker was told so, since then that there is none."""
    broker = an_old_broker(release)
    for wanted in (code, 0):
        ((found, *_),) = ask(broker, metadata.MetadataRequest_v0(["made"])).topics
        assert found == wanted


@pytest.mark.parametrize(("release", "code"), [("2.7", LEADER_NOT_AVAILABLE), ("2.8", 3)])
def test_since_2_8_others_have_topics_made_by_the_controller(release: str, code: int) -> None:
    """And say that there are none yet."""
    emulation = Emulation.of(release)
    assert emulation.error_of_new_topics(is_controller=False) == code
    assert emulation.error_of_new_topics(is_controller=True) == LEADER_NOT_AVAILABLE


@pytest.mark.parametrize(("release", "gives_up"), [("2.7", False), ("2.8", True)])
def test_members_that_do_not_sync_are_given_up_since_2_8(release: str, *, gives_up: bool) -> None:
    """Whether the group coordinator is there before it is known which release this is, or later."""
    assert an_old_broker(release).groups.surroundings.gives_up_on_syncs == gives_up
    broker = a_broker()
    groups = broker.groups
    broker.emulation = Emulation.of(release)
    assert groups.surroundings.gives_up_on_syncs == gives_up


def test_what_the_release_did_not_have_ends_the_connection() -> None:
    """Neither newer versions nor, without an emulation, older ones are served."""
    broker = an_old_broker("0.10.2")
    connection = broker.connect("127.0.0.1")
    frame = struct.pack(">hhih", 1, 4, 7, -1)
    connection.feed(struct.pack(">i", len(frame)) + frame)
    assert connection.is_closing
    today = a_broker().connect("127.0.0.1")
    frame = struct.pack(">hhih", 1, 3, 7, -1)
    today.feed(struct.pack(">i", len(frame)) + frame)
    assert today.is_closing


def test_clients_are_told_the_ranges_of_the_release() -> None:
    """As far as they are served; 3.9 knows no transactions of KIP-890."""
    broker = an_old_broker("3.9")
    who = {"client_software_name": "x", "client_software_version": "1"}
    answer = Peer(broker).ask("ApiVersions", 3, who)
    told = {
        one["api_key"]: (one["min_version"], one["max_version"])
        for one in answer.message["api_keys"]
    }
    assert {key: told[key] for key in (0, 1, 2, 3, 8, 9, 18, 19, 20)} == {
        0: (0, 11), 1: (0, 17), 2: (0, 9), 3: (0, 12), 8: (0, 9), 9: (0, 9), 18: (0, 4),
        19: (0, 7), 20: (0, 6),
    }  # fmt: skip
    assert told.keys() <= APIS.keys()
    names = [one["name"] for one in answer.message["supported_features"]]
    assert names == ["metadata.version"]


@pytest.mark.parametrize(
    ("release", "version", "told"),
    [
        ("4.0", 5, [(18, 0, 4)]), ("3.8", 4, [(18, 0, 3)]), ("2.4", 4, [(18, 0, 3)]),
        ("2.3", 3, []), ("0.10.0", 1, []), ("0.9", 0, None),
    ],
)  # fmt: skip
def test_who_asks_with_a_later_version_is_told_what_the_release_told(
    release: str, version: int, told: list[tuple[int, int, int]] | None
) -> None:
    """Its own range of ApiVersions since 2.4, an error alone before, and nothing before 0.10."""
    connection = an_old_broker(release).connect("127.0.0.1")
    tags = b"\0" if version >= 3 and release != "2.3" else b""  # which it does not know of
    frame = struct.pack(">hhih", 18, version, 7, -1) + tags
    answer = joined(connection.feed(struct.pack(">i", len(frame)) + frame))
    assert connection.is_closing == (told is None)
    if told is None:
        assert answer == b""
        return
    assert struct.unpack_from(">iihi", answer) == (len(answer) - 4, 7, 35, len(told))
    assert list(struct.iter_unpack(">hhh", answer[14:])) == told


def test_an_unknown_release_is_named() -> None:
    """With those that there are."""
    with pytest.raises(ConfigError, match=r"'7\.1': there are 0\.8\.0, .*3\.9"):
        Emulation.of("7.1")


def test_timestamps_of_wrappers_say_whose_they_are() -> None:
    """A log that the broker gives times to is told so in messages of magic 1."""
    broker = an_old_broker()
    broker.create_topic("t", 1, {"message.timestamp.type": "LogAppendTime"})
    Peer(broker).produce([("t", [(0, batch(b"a", codec=Codec.GZIP))])], version=3)
    ((_, [result]),) = ask(broker, fetch_request(2, "t", 0)).topics
    (entry,) = iterate_entries(memoryview(result[3]))
    assert (entry.magic, entry.is_log_append_time) == (1, True)
    assert decode_records(entry.data)[0].timestamp_ms == NOW_MS


@pytest.mark.parametrize(("release", "value_version"), [("2.8", 0), ("3.9", 0), (None, 1)])
def test_transactions_are_noted_as_the_release_noted_them(
    release: str | None, value_version: int
) -> None:
    """Clients of old releases read the log of transactions; also what a restart goes on with."""
    host = SimulatedHost()
    for is_commit in (True, False):
        broker = a_broker(host) if release is None else an_old_broker(release, host)
        if is_commit:
            broker.create_topic("t", 1)
        before = len(_value_versions(broker))
        client = TransactionalClient(broker, 1)
        assert (client.init(), client.send("t", 0, b"a")) == (0, 0)
        assert client.end(is_commit=is_commit) == 0
        assert set(_value_versions(broker)[before:]) == {value_version}
        broker.close()


def _value_versions(broker: Broker) -> list[int]:
    """Return the schema versions of the values in the log of transactions."""
    topic = broker.topics.get(TRANSACTIONS_TOPIC)
    return [
        int.from_bytes(record.value[:2])
        for partition in (topic.partitions.values() if topic is not None else ())
        for one in partition.batches()
        for record in decode_records(one.data)
        if record.value
    ]


@pytest.mark.parametrize(
    ("release", "size_bytes", "after_ms", "asks_coordinator"),
    [("2.4", 1000012, LONG_MAX, False), ("2.8", 1048588, LONG_MAX, False),
     ("3.9", 1048588, LONG_MAX, True), ("4.0", 1048588, 3600000, True)],
)  # fmt: skip
def test_defaults_are_those_of_the_release(
    release: str, size_bytes: int, after_ms: int, asks_coordinator: bool
) -> None:
    """Of sizes, of times to come, and of whether a transaction must know of a partition."""
    broker = Broker.open(SimulatedHost(), DIRECTORY, {}, emulated_release=release)
    topic = broker.create_topic("t", 1)
    config = broker.store.config_of(topic)
    assert config.max_message_bytes == size_bytes
    assert config.message_timestamp_after_max_ms == after_ms
    broker.emulation = None  # the client speaks as those of today
    client = TransactionalClient(broker, 1)
    client.init()
    assert bool(client.write("t", 0, b"not added", version=3)) == asks_coordinator


def test_what_is_given_goes_before_the_defaults_of_a_release() -> None:
    """As it does with today's."""
    settings = {"message.max.bytes": "5000"}
    broker = Broker.open(SimulatedHost(), DIRECTORY, settings, emulated_release="2.4")
    assert broker.store.config_of(broker.create_topic("t", 1)).max_message_bytes == 5000
