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
def test_a_transactional_id_keeps_its_producer_id(version: int) -> None:
    """Whoever begins with the same transactional id gets the same id, each time a new epoch."""
    conversation = Conversation()
    answers = [
        conversation.ask("InitProducerId", version, **asked(version, transactional_id="payments"))
        for _ in range(3)
    ]
    assert [answer["error_code"] for answer in answers] == [0, 0, 0]
    assert [answer["producer_epoch"] for answer in answers] == [0, 1, 2]
    assert len({answer["producer_id"] for answer in answers}) == 1


@pytest.mark.parametrize(("version", "error_code"), [(3, 47), (4, 90)])
def test_a_producer_that_was_shut_out_is_told_in_its_words(version: int, error_code: int) -> None:
    """An old epoch is 90; clients before version 4 know only 47."""
    conversation = Conversation()
    wanted = asked(4, transactional_id="payments")
    old = conversation.ask("InitProducerId", 4, **wanted)
    conversation.ask("InitProducerId", 4, **wanted)
    mine = {"producer_id": old["producer_id"], "producer_epoch": old["producer_epoch"]}
    answer = conversation.ask("InitProducerId", version, **{**wanted, **mine})
    assert (answer["error_code"], answer["producer_id"]) == (error_code, -1)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_must_be_one(timeout_ms: int) -> None:
    """A transaction's timeout is above 0 and at most ``transaction.max.timeout.ms``: else 50."""
    wanted = asked(4, transactional_id="payments", transaction_timeout_ms=timeout_ms)
    assert Conversation().ask("InitProducerId", 4, **wanted)["error_code"] == 50


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
