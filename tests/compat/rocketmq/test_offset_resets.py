"""Where groups are told to go on: by place and time, on the server and by their clients."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker
from tests.compat.rocketmq.test_pulling import heartbeat

RESET = {"group": "g", "timestamp": -1, "isForce": "true"}


@pytest.fixture
def peer() -> Peer:
    """Return a consumer, with a topic of three messages and one of batches that has none."""
    peer = Peer(a_broker())
    for _ in range(3):
        peer.produce()
    topic = {
        "topic": "batches", "defaultTopic": "TBW102", "readQueueNums": 1, "writeQueueNums": 1,
        "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
        "attributes": "+queue.type=BatchCQ",
    }  # fmt: skip
    assert peer.ask(Code.UPDATE_AND_CREATE_TOPIC, topic).code == 0
    peer.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC, "batches"))
    return peer


def test_a_queue_without_a_start_has_no_place_before_it(peer: Peer) -> None:
    """One of batches before its first: Java takes what is below 0, and commits nothing."""
    asked = RESET | {"topic": "batches", "queueId": 0}
    answer = peer.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, asked | {"offset": -2})
    assert (answer.code, answer.body[-4:]) == (0, b":-2}}"[-4:])
    assert peer.broker.store.consumer_offsets.query("g", "batches", 0) == -1
    answer = peer.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, asked | {"offset": 2})
    remark = "Target offset 2 not in consume queue range [-1-0]"
    assert (answer.code, answer.remark) == (1, remark)
    other = asked | {"topic": TOPIC, "offset": -2}
    answer = peer.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, other)
    assert answer.remark == "Target offset -2 not in consume queue range [0-3]"


@pytest.mark.parametrize(("timestamp", "expected"), [(-1, 3), (-2, 0), (0, 0), (1 << 62, 3)])
def test_one_time_is_the_end_to_clients(peer: Peer, timestamp: int, expected: int) -> None:
    """Any other below 0 is long ago, and not, as on the server, the end; no remark is set."""
    peer.broker.update_settings({"useServerSideResetOffset": "false"})
    for queue_id in range(4):
        peer.broker.store.consumer_offsets.commit("g", TOPIC, queue_id, 1)
    asked = RESET | {"topic": TOPIC, "timestamp": timestamp}
    answer = peer.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, asked)
    assert (answer.code, answer.remark) == (0, "not set any response code")
    assert b'"queueId":0,"topic":"orders"}:%d' % expected in answer.body


def test_clients_in_cpp_get_queues_in_the_same_order(peer: Peer) -> None:
    """That of Java's map, in a list."""
    peer.broker.update_settings({"useServerSideResetOffset": "false"})
    for queue_id in range(4):
        peer.broker.store.consumer_offsets.commit("g", TOPIC, queue_id, 1)
    asked = RESET | {"topic": TOPIC}
    peer.language = "CPP"
    answer = peer.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, asked)
    (told,) = peer.told(Code.RESET_CONSUMER_CLIENT_OFFSET)
    rows = told.content["offsetTable"]
    pieces = answer.body.split(b'"queueId":')[1:]
    assert [row["queueId"] for row in rows] == [int(piece[:1]) for piece in pieces]
    assert sorted(row["queueId"] for row in rows) == [0, 1, 2, 3]


def test_an_upper_boundary_in_a_queue_of_batches_stays_in_it(peer: Peer) -> None:
    """Where Java's search comes upon nothing the queue's start is the answer."""
    for _ in range(3):
        peer.produce(topic="batches")
        peer.broker.host.clock.advance(1_000)  # type: ignore[attr-defined]
    stored_ms = peer.broker.store.store_timestamp_at("batches", 0, 1)
    asked = {"topic": "batches", "queueId": 0, "boundaryType": "UPPER"}
    found = [
        (peer.ask(Code.SEARCH_OFFSET_BY_TIMESTAMP, asked | {"timestamp": at}).fields or {})[
            "offset"
        ]
        for at in (stored_ms - 1, stored_ms, stored_ms + 1)
    ]
    assert found == ["0", "1", "2"]


def test_nothing_is_viewed_where_a_length_is_0(peer: Peer) -> None:
    """In the middle of a message: its flag, read as a length."""
    answer = peer.ask(Code.VIEW_MESSAGE_BY_ID, {"offset": 16})
    assert (answer.code, answer.remark, answer.body) == (0, None, b"")
