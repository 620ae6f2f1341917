"""Producer ids for idempotent producers."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.segments.kafka.record import Record, encode_batch
from tests.compat.kafka.conversation import Conversation, message_class

VERSIONS = range(6)
NOW_MS = 1_700_000_000_000


def asked(version: int, **fields: Any) -> dict[str, Any]:
    """Return the fields of a request."""
    old = {"producer_id": -1, "producer_epoch": -1} if version >= 3 else {}
    return {"transactional_id": None, "transaction_timeout_ms": 60000, **old, **fields}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_producer_gets_its_own_id(version: int) -> None:
    """Without a transactional id every request gets another id, with epoch 0."""
    conversation = Conversation()
    answers = [conversation.ask("InitProducerId", version, **asked(version)) for _ in range(3)]
    assert [answer["error_code"] for answer in answers] == [0, 0, 0]
    assert [answer["producer_epoch"] for answer in answers] == [0, 0, 0]
    assert len({answer["producer_id"] for answer in answers}) == 3


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_are_the_librarys(version: int) -> None:
    """What is written by hand is byte for byte what the library writes for the same answer."""
    written = Conversation().ask_bytes("InitProducerId", version, **asked(version))
    response = message_class("InitProducerIdResponse")
    answer = response.decode(written, version=version, header=True, framed=True)
    assert written[9 if version >= 2 else 8 :] == response.encode(answer)


@pytest.mark.parametrize("version", VERSIONS)
def test_transactions_are_refused_for_good(version: int) -> None:
    """With a transactional id the answer is 35, which no client tries again, and no id."""
    answer = Conversation().ask(
        "InitProducerId", version, **asked(version, transactional_id="payments")
    )
    assert (answer["error_code"], answer["producer_id"], answer["producer_epoch"]) == (35, -1, -1)


def test_an_empty_transactional_id_is_invalid() -> None:
    """An empty transactional id is 42."""
    answer = Conversation().ask("InitProducerId", 4, **asked(4, transactional_id=""))
    assert answer["error_code"] == 42


@pytest.mark.parametrize("old", [{"producer_id": 5}, {"producer_epoch": 5}])
def test_half_an_old_id_is_invalid(old: dict[str, int]) -> None:
    """An old producer id without its epoch, or an epoch without its id, is 42."""
    assert Conversation().ask("InitProducerId", 3, **asked(3, **old))["error_code"] == 42


def test_an_old_id_does_not_matter_without_transactions() -> None:
    """A producer that names its old id and epoch gets a new id like any other."""
    conversation = Conversation()
    first = conversation.ask("InitProducerId", 4, **asked(4))["producer_id"]
    answer = conversation.ask("InitProducerId", 4, **asked(4, producer_id=first, producer_epoch=0))
    assert answer["error_code"] == 0
    assert answer["producer_id"] != first


def test_an_id_is_not_given_out_again_after_a_restart() -> None:
    """A producer with an id from before a restart and one from after it are two producers."""
    conversation = Conversation()
    conversation.create("a")
    records = [Record(offset=0, timestamp_ms=NOW_MS, key=None, value=b"v")]
    offsets: list[int] = []
    producer_ids: list[int] = []
    for _ in range(2):
        producer_ids.append(conversation.ask("InitProducerId", 4, **asked(4))["producer_id"])
        conversation.restart()
    for producer_id in producer_ids:
        batch = encode_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=0)
        partition = conversation.broker.topics["a"].partitions[0]
        offsets.append(partition.append_produced(memoryview(batch), NOW_MS).base_offset)
    assert offsets == [0, 1]
    assert all(0 <= producer_id < 2**53 for producer_id in producer_ids)
