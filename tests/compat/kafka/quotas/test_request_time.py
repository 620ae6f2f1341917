"""`request_percentage`: whose requests take too much of the time is told to keep still."""

from __future__ import annotations

import struct
import uuid
from typing import Any

import attrs
import pytest

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.connection import KafkaConnection
from logstore.compat.kafka.faults.own_answers import OWN_ANSWERS
from logstore.compat.kafka.library_messages import library_class
from logstore.compat.kafka.registry import APIS, Api
from logstore.segments.kafka.internal_topics.codec import decode_message, encode_message
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import batch
from tests.compat.kafka.conversation import Conversation, joined, plain
from tests.compat.kafka.faults.test_error_answers import filled_of_ours
from tests.compat.kafka.nodes.cluster import Cluster
from tests.compat.kafka.own_messages import own_messages
from tests.compat.kafka.peer import Peer, a_broker
from tests.compat.kafka.quotas.test_client_quotas import CLIENT, alter, altered, fetch
from tests.compat.kafka.security.test_every_version import request
from tests.compat.kafka.share_reads.member import ShareStage, got, partition_of
from tests.compat.kafka.share_reads.share_requests import ACCEPT, RELEASE

#: how long a look at the clock takes while it is busy
BUSY_MS = 300.0
#: of these answers none says for how long; what comes among brokers and before anybody has a name
SILENT = {17, 27, 36, 55, 83, 84, 85, 86, 87}
#: Produce, which is looked at by itself, and a join, which waits for company
OTHERS = {0, 11, 17, 36}
EVERY_API = [api for api in APIS.values() if api.key not in OTHERS]
SINCE = {2: 2, 3: 3, 8: 3, 9: 3, 10: 1, 12: 1, 13: 1, 14: 1, 15: 1, 16: 1, 18: 1}


class BusyClock(ManualClock):
    """Each look at it takes time, once it is busy: whoever serves a request is slow."""

    busy_ms = 0.0

    def monotonic_ms(self) -> float:
        """Return ms since some start, a while after the last time."""
        self._monotonic_ms += self.busy_ms
        return self._monotonic_ms


def slow(percentage: float, **limits: float) -> tuple[BusyClock, Broker]:
    """Return a slow broker with a topic, where `test` has so much of the time."""
    clock = BusyClock()
    broker = a_broker(SimulatedHost(clock=clock))
    broker.create_topic("t", 1)
    limit(broker, request_percentage=percentage, **limits)
    clock.busy_ms = BUSY_MS
    return clock, broker


def limit(broker: Broker, **limits: float | None) -> None:
    """Limit what the client id `test` may use."""
    fields = {"entries": [altered(CLIENT, **limits)], "validate_only": False}
    answer = Peer(broker).ask("AlterClientQuotas", 1, fields)
    assert answer.message["entries"][0]["error_code"] == 0


def let_pass(clock: BusyClock, broker: Broker, delay_ms: float) -> None:
    """Let time pass."""
    clock.busy_ms, busy_ms = 0.0, clock.busy_ms
    clock.advance(delay_ms)
    broker.timers.run()
    clock.busy_ms = busy_ms


def says_it(version: int, key: int) -> bool:
    """Tell whether an answer says for how long its client is not read from."""
    return key not in SILENT and version >= SINCE.get(key, 0)


def test_who_takes_too_much_time_is_not_read_from() -> None:
    """The answer comes at once; the pause is that in which the share comes right, up to 1 s."""
    clock, broker = slow(10.0)
    peer = Peer(broker)
    first = peer.ask("ListGroups", 3, {"states_filter": []})
    # 30 percent of a second in a window that counts as ten of them: three of ten.
    assert first.message["throttle_time_ms"] == 0
    told = [0]
    while not told[-1]:
        answer = peer.ask("ListGroups", 3, {"states_filter": []})
        told.append(answer.message["throttle_time_ms"])
    assert 0 < told[-1] <= 1000
    peer.send("ListGroups", 3, {"states_filter": []})
    let_pass(clock, broker, told[-1] - 1)
    assert peer.answers() == []
    let_pass(clock, broker, BUSY_MS + 1)
    assert peer.answer().api == "ListGroups"
    other = Peer(broker, "other").ask("ListGroups", 3, {"states_filter": []})
    assert other.message["throttle_time_ms"] == 0


def test_a_pause_is_no_longer_than_one_sample() -> None:
    """However small the share and however long the request."""
    _, broker = slow(0.0001)
    told = Peer(broker).ask("ListGroups", 3, {"states_filter": []}).message["throttle_time_ms"]
    assert told == 1000


@pytest.mark.parametrize("version", [7, 9, 13])
def test_a_producer_is_told_the_longer_pause(version: int) -> None:
    """That for bytes, if it is longer than that for time, and the other way round."""
    _, broker = slow(0.0001, producer_byte_rate=100.0)
    name: Any = "t" if version < 13 else uuid.UUID(bytes=broker.topics["t"].topic_id)
    produced = Peer(broker).produce([(name, [(0, batch(b"v"))])], version=version)
    assert produced.message["throttle_time_ms"] == 1000
    assert produced.partition["error_code"] == 0
    more = Peer(broker).produce([(name, [(0, batch(b"v" * 3000))])], version=version)
    assert more.message["throttle_time_ms"] > 10_000


def test_who_wants_no_answer_may_take_any_time() -> None:
    """Produce with acks 0 is exempt, as in Kafka."""
    _, broker = slow(0.0001)
    peer = Peer(broker)
    for _ in range(3):
        peer.send_produce([("t", [(0, batch(b"v"))])], acks=0)
    assert broker.topics["t"].partitions[0].end_offset == 3


def test_a_slow_fetch_gets_nothing() -> None:
    """Its records come when the time is over, and count for nothing until then."""
    clock, broker = slow(0.0001, consumer_byte_rate=10_000.0)
    clock.busy_ms = 0.0
    Peer(broker, "other").produce([("t", [(0, batch(b"v" * 700))])])
    clock.busy_ms = BUSY_MS
    first = fetch(Peer(broker))
    assert (first["throttle_time_ms"], first["responses"]) == (1000, [])
    clock.busy_ms = 0.0
    clock.advance(30_000)
    assert len(fetch(Peer(broker))["responses"]) == 1


def test_waiting_takes_nobodys_time() -> None:
    """What a request does until it waits is counted, and told with its answer."""
    clock, broker = slow(50.0)
    clock.busy_ms = 1.0
    peer = Peer(broker)
    fields = {"group_id": "g", "session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000,
              "member_id": "", "group_instance_id": None, "protocol_type": "consumer",
              "protocols": [{"name": "range", "metadata": b""}]}  # fmt: skip
    assert peer.send("JoinGroup", 3, fields).answers() == []
    let_pass(clock, broker, 3000)
    assert peer.answer().message["throttle_time_ms"] == 0


@pytest.mark.parametrize("api", EVERY_API, ids=lambda api: api.name)
def test_every_answer_says_for_how_long(api: Api) -> None:
    """In every version that has a field for it; nothing else of an answer changes."""
    _, broker = slow(0.0001)
    for version in range(api.version_min, api.version_max + 1):
        topic = broker.topics.get("word") or broker.create_topic("word", 1)
        connection = broker.connect("127.0.0.1")
        message = _answered(connection, api, version, topic.topic_id)
        assert connection.is_waiting
        if says_it(version, api.key):
            assert message["throttle_time_ms"] == 1000
        else:
            assert not message.get("throttle_time_ms")


def _answered(connection: KafkaConnection, api: Api, version: int, topic_id: bytes) -> Any:
    """Return the fields of an answer to a request with something in every field."""
    if api.key in OWN_ANSWERS:
        kind, response = own_messages(api)
        tags = b"\0" if api.is_flexible(version) else b""
        header = struct.pack(">hhih", api.key, version, 7, 4) + b"test" + tags
        payload = header + encode_message(_asked(kind), version)
        frame = joined(connection.feed(struct.pack(">i", len(payload)) + payload))
        return attrs.asdict(decode_message(response, frame, version, 8 + len(tags)))
    frame = joined(connection.feed(request(api, version, topic_id)))
    kind = library_class(api, "Response")
    decoded = kind.decode(frame, version=version, header=True, framed=True)
    message = plain(decoded)
    decoded._header = None
    assert frame.endswith(bytes(decoded.encode(version=version)))
    return message


def _asked(kind: Any) -> Any:
    asked = filled_of_ours(kind)
    known = {"group_id": "word", "member_id": "m"}
    return attrs.evolve(asked, **{k: v for k, v in known.items() if hasattr(asked, k)})


def test_without_such_a_limit_only_what_counts_bytes_is_metered() -> None:
    """Other handlers are those of the registry."""
    talk = Conversation()
    alter(talk, CLIENT, producer_byte_rate=1.0)
    assert talk.broker.find_api is not None
    assert talk.broker.find_api(3, 9) is APIS[3]
    alter(talk, CLIENT, request_percentage=1.0)
    assert talk.broker.find_api(3, 9) is not APIS[3]


def test_a_member_of_a_share_group_hears_what_became_of_records() -> None:
    """Who must keep still gets no records; those acquired for him come when the lock is over."""
    stage = ShareStage()
    stage.produce(3)
    member = stage.member()
    assert got(member.fetch(0, stage.wanted)) == "0-2"
    limit(stage.broker, request_percentage=0.0001)
    clock = stage.host.clock
    clock.__class__ = BusyClock
    assert isinstance(clock, BusyClock)
    clock.busy_ms = BUSY_MS
    said = {(stage.topic_id, 0): [(0, 0, (ACCEPT,)), (1, 2, (RELEASE,))]}
    answer = member.fetch(1, stage.wanted, said=said)
    assert answer.throttle_time_ms == 1000
    told = partition_of(answer)
    assert (told.acknowledge_error_code, told.records, told.acquired_records) == (0, b"", ())
    let_pass(clock, stage.broker, 30_001)
    clock.busy_ms = 0.0
    limit(stage.broker, request_percentage=None)
    assert got(stage.member("B").fetch(0, stage.wanted)) == "1-2*3"


def test_bytes_of_share_groups_count_as_those_of_other_consumers() -> None:
    """No more is acquired than may be sent in a window, and too much is not sent."""
    stage = ShareStage()
    for _ in range(9):
        stage.produce(10)
    limit(stage.broker, consumer_byte_rate=60.0)
    first = stage.member().fetch(0, stage.wanted)
    assert (first.throttle_time_ms, got(first)) == (0, "0-19")
    second = stage.member("B").fetch(0, stage.wanted)
    assert second.throttle_time_ms > 0
    assert second.responses == ()


def test_where_leaders_are_stands_behind_the_pause() -> None:
    """What a node of a cluster adds to a Produce does not hide it."""
    cluster = Cluster()
    cluster.lead("t", {0: 1, 1: 2})
    limit(cluster.broker, producer_byte_rate=1.0)
    for version in range(7, 13):
        answer = cluster.ask_at(
            1, "Produce", version, acks=1, timeout_ms=1000, transactional_id=None,
            topic_data=[{"name": "t", "partition_data": [
                {"index": index, "records": batch(b"v" * 999)} for index in (0, 1)
            ]}],
        )  # fmt: skip
        codes = [one["error_code"] for one in answer["responses"][0]["partition_responses"]]
        assert codes == [0, 6]
        assert answer["throttle_time_ms"] > 1000
        assert bool(answer.get("node_endpoints")) is (version >= 10)
        cluster.host.clock.advance(10_000_000)
        cluster.broker.timers.run()
