"""What real clients said to a real broker, said to ours: the answers must be alike."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from tests.compat.kafka.conversation import Conversation, joined
from tests.compat.kafka.transcript import FETCH, Exchange, Rehearsal, read_frames

CLIENTS = ["aiokafka", "java", "kafka-python", "kafkajs", "librdkafka"]
#: fields whose values are the broker's own business
OWN = {"cluster_id", "session_id", "topic_id", "throttle_time_ms"}
#: of a fetch: what depends on what was appended meanwhile
GROWING = {"aborted_transactions", "high_watermark", "last_stable_offset", "records"}
#: not before which a timestamp can only be a clock's
CLOCK_MS = 1_795_000_000_000
#: APIs whose answer depends on nothing that the client has done before
STATELESS = {"ApiVersions", "Metadata", "DescribeCluster", "DescribeConfigs", "ListOffsets"}


def outline(value: Any, name: str = "") -> Any:
    """Return an answer with all that two brokers must have in common."""
    if hasattr(value, "items"):
        return {key: outline(inner, key) for key, inner in value.items()}
    if hasattr(value, "append"):
        return [outline(inner) for inner in value]
    if name in OWN:
        return type(value).__name__
    if name == "records":
        return len(value or b"")
    if name == "timestamp" and value >= CLOCK_MS:
        return "now"
    return value


def compared(exchange: Exchange) -> tuple[Any, Any]:
    """Return both answers as they are compared."""
    theirs, ours = (
        _without_strangers(exchange.request.api, outline(answer.to_dict(json=False)))
        for answer in (exchange.theirs, exchange.ours)
    )
    if exchange.request.key == FETCH and not exchange.is_alone:
        for answer in (theirs, ours):
            for topic in answer["responses"]:
                for partition in topic["partitions"]:
                    for name in GROWING:
                        del partition[name]
    return theirs, ours


def _without_strangers(api: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only one of the two brokers has, and the order of what has none."""
    if api == "ApiVersions":
        return {"error_code": answer["error_code"]}
    if api == "Metadata":
        named = [topic for topic in answer["topics"] if topic["name"].startswith("wire-")]
        answer["topics"] = sorted(named, key=itemgetter("name"))
    if api == "DescribeConfigs":
        for result in answer["results"]:
            for entry in result["configs"]:
                entry.pop("documentation", None)
            result["configs"].sort(key=itemgetter("name"))
    if api == "ListTransactions":  # the recorded broker had served others before
        answer["transaction_states"] = [
            one for one in answer["transaction_states"] if "java" in one["transactional_id"]
        ]
    if api == "Produce":
        for topic in answer["responses"]:
            topic["partition_responses"].sort(key=itemgetter("index"))
    return answer


@pytest.mark.parametrize("chunk_bytes", [0, 1, 2, 3, 5, 7, 11, 16, 64])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_recorded_client_is_answered_alike(golden: Path, client: str, chunk_bytes: int) -> None:
    """A recorded client's frames, in pieces of any size, get the recorded broker's answers."""
    held: Counter[str] = Counter()
    rehearsal = Rehearsal(read_frames(golden / "wire" / f"{client}.jsonl"), chunk_bytes)
    for exchange in rehearsal.exchanges():
        request = exchange.request
        theirs, ours = compared(exchange)
        assert ours == theirs, (
            f"{request.api} v{request.version} of connection {request.connection}"
        )
        held[request.api] += 1
    assert held["Produce"] >= 2
    assert held["Fetch"] >= 1
    assert held["EndTxn"] >= 1
    assert {"ApiVersions", "Metadata", "CreateTopics", "DeleteTopics"} <= set(held)


@pytest.mark.parametrize("client", CLIENTS)
def test_fetched_records_are_the_same_bytes(golden: Path, client: str) -> None:
    """Fetched batches are byte for byte the recorded ones, markers of transactions apart."""
    checked = 0
    rehearsal = Rehearsal(read_frames(golden / "wire" / f"{client}.jsonl"))
    for exchange in rehearsal.exchanges():
        if exchange.request.key != FETCH or not exchange.is_alone:
            continue
        for theirs, ours in zip(exchange.theirs.responses, exchange.ours.responses, strict=True):
            for one, other in zip(theirs.partitions, ours.partitions, strict=True):
                found = [_batches(partition.records or b"") for partition in (one, other)]
                assert found[0] == found[1]
                checked += len(found[0])
    assert checked >= 2


def _batches(records: bytes) -> list[bytes]:
    """Return the batches that hold a client's records."""
    found: list[bytes] = []
    while records:
        size_bytes = 12 + int.from_bytes(records[8:12], "big")
        if not records[22] & 0x20:  # not a control batch
            found.append(records[:size_bytes])
        records = records[size_bytes:]
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_every_split_of_a_frame_is_the_same_frame(golden: Path, client: str) -> None:
    """A frame may arrive in two parts, cut anywhere, or together with others."""
    recorded = read_frames(golden / "wire" / f"{client}.jsonl")
    frames = {
        len(frame.data).to_bytes(4, "big") + frame.data: None
        for frame in recorded
        if frame.is_request and frame.api in STATELESS
    }
    conversation = Conversation({"auto.create.topics.enable": "false"})
    conversation.create(f"wire-{client}", 2)
    whole = {frame: joined(conversation.connection.feed(frame)) for frame in frames}
    for frame, answer in whole.items():
        assert answer
        for cut in range(1, len(frame)):
            assert conversation.connection.feed(frame[:cut]) == []
            assert joined(conversation.connection.feed(frame[cut:])) == answer
    assert joined(conversation.connection.feed(b"".join(whole))) == b"".join(whole.values())
