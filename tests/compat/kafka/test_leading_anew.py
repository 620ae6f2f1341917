"""A broker that starts leads its partitions in a new epoch, as Kafka's does after an absence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.os_host import system_host
from logstore.testing.power_loss import LOSE_UNSYNCED
from tests.compat.kafka.batches import NOW_MS, batch
from tests.compat.kafka.conversation import DIRECTORY, Conversation
from tests.segments.kafka.golden_case import copy_of_data, open_copy

LATEST = -1


def produce(conversation: Conversation, *batches: bytes, version: int = 9) -> list[int]:
    """Send batches, each to partition 0 of ``a`` by a request of its own; return error codes."""
    codes: list[int] = []
    for data in batches:
        partition = {"index": 0, "records": data}
        answer = conversation.ask(
            "Produce",
            version,
            transactional_id=None,
            acks=-1,
            timeout_ms=1000,
            topic_data=[{"name": "a", "partition_data": [partition]}],
        )
        codes.append(answer["responses"][0]["partition_responses"][0]["error_code"])
    return codes


def checkpoint(conversation: Conversation, index: int = 0) -> str:
    """Return what the file of epochs says, below its head."""
    path = f"{DIRECTORY}/a-{index}/leader-epoch-checkpoint"
    file = conversation.host.fs.open(path)
    lines = file.read(0, file.size()).decode().splitlines()
    return ", ".join(lines[2:])


def led_in(conversation: Conversation) -> list[int]:
    """Return the leader epochs that Metadata tells."""
    answer = conversation.ask("Metadata", 9, topics=[{"name": "a"}])
    return [one["leader_epoch"] for one in answer["topics"][0]["partitions"]]


def end_of_epoch(conversation: Conversation, epoch: int) -> tuple[int, int]:
    """Return the epoch and the end offset that OffsetForLeaderEpoch tells."""
    asked = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": epoch}
    answer = conversation.ask(
        "OffsetForLeaderEpoch", 4, replica_id=-1, topics=[{"topic": "a", "partitions": [asked]}]
    )
    (found,) = answer["topics"][0]["partitions"]
    return found["leader_epoch"], found["end_offset"]


def test_every_start_is_two_elections() -> None:
    """In the one nobody leads, in the other this broker; batches carry it, the metadata tell it."""
    conversation = Conversation()
    conversation.create("a", 2)
    assert led_in(conversation) == [0, 0]
    assert produce(conversation, batch(b"1")) == [0]
    conversation.restart()
    assert led_in(conversation) == [2, 2]
    assert produce(conversation, batch(b"2")) == [0]
    conversation.restart()
    assert led_in(conversation) == [4, 4]
    assert produce(conversation, batch(b"3")) == [0]
    stored = conversation.broker.topics["a"].partitions[0].batches()
    assert [one.leader_epoch for one in stored] == [0, 2, 4]
    conversation.broker.close()
    assert (checkpoint(conversation, 0), checkpoint(conversation, 1)) == ("0 0, 2 1, 4 2", "0 0")


def test_starts_without_an_append_leave_no_trace_but_in_the_metadata() -> None:
    """The next epoch with records in it starts where the log ended."""
    conversation = Conversation()
    conversation.create("a")
    produce(conversation, batch(b"1"))
    for _ in range(3):
        conversation.restart()
        assert end_of_epoch(conversation, led_in(conversation)[0]) == (led_in(conversation)[0], 1)
        assert end_of_epoch(conversation, 0) == (0, 1)
    assert checkpoint(conversation) == "0 0"
    produce(conversation, batch(b"2"))
    conversation.broker.close()
    assert checkpoint(conversation) == "0 0, 6 1"


Append = Callable[[Conversation], Any]
APPENDS: dict[str, Append] = {
    "one": lambda conversation: produce(conversation, batch(b"2")),
    "several": lambda conversation: produce(conversation, batch(b"2"), batch(b"3"), batch(b"4")),
    "numbered": lambda conversation: produce(
        conversation, batch(b"2", producer=(7, 0, 0)), batch(b"3", producer=(7, 0, 1))
    ),
    "by itself": lambda conversation: (
        conversation.broker.topics["a"]
        .partitions[0]
        .append_produced(memoryview(bytearray(batch(b"2"))), NOW_MS)
    ),
}


@pytest.mark.parametrize("append", APPENDS.values(), ids=APPENDS)
def test_what_is_flushed_has_its_epoch_on_the_disk(append: Append) -> None:
    """Whichever way it came in, and however the broker stops."""
    conversation = Conversation()
    conversation.create("a")
    produce(conversation, batch(b"1"))
    conversation.restart()
    append(conversation)
    conversation.broker.topics["a"].partitions[0].flush()
    conversation.host.power_loss(LOSE_UNSYNCED)
    assert checkpoint(conversation) == "0 0, 2 1"


def test_a_log_that_lost_its_end_tells_where_it_leaves_its_readers() -> None:
    """Whoever has read what is gone learns of it, also once the log is as long again (KIP-320)."""
    conversation = Conversation()
    conversation.create("a")
    produce(conversation, batch(b"1"))
    conversation.broker.topics["a"].partitions[0].flush()
    produce(conversation, batch(b"2"), batch(b"3"))
    assert end_of_epoch(conversation, 0) == (0, 3)
    conversation.host.power_loss(LOSE_UNSYNCED)
    conversation.broker = conversation.open()
    conversation.connection = conversation.broker.connect("127.0.0.1")
    assert end_of_epoch(conversation, 0) == (0, 1)
    produce(conversation, batch(b"4"), batch(b"5"), batch(b"6"))
    assert end_of_epoch(conversation, 0) == (0, 1)
    assert end_of_epoch(conversation, 2) == (2, 4)


def test_who_knows_the_old_epoch_is_told() -> None:
    """It is fenced (74), as after any election."""
    conversation = Conversation()
    conversation.create("a")
    produce(conversation, batch(b"1"))
    conversation.restart()
    partition = {
        "partition": 0,
        "current_leader_epoch": 0,
        "fetch_offset": 0,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": 1000,
    }
    answer = conversation.ask(
        "Fetch",
        12,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1000,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[{"topic": "a", "partitions": [partition]}],
        forgotten_topics_data=[],
        rack_id="",
    )
    assert answer["responses"][0]["partitions"][0]["error_code"] == 74


def test_who_takes_over_from_a_real_broker(tmp_path: Path) -> None:
    """One that has stopped led by nobody already: there is one election left."""
    directory = copy_of_data("epochs-4.3", tmp_path)
    store = open_copy(directory, is_writable=False)
    (name,) = (name for name in store.topics_by_name if not name.startswith("__"))
    before = store.metadata.image.topics[name].partitions[0]
    store.close()
    assert before.leader == -1
    broker = Broker.open(system_host(), str(directory), {})
    assert broker.topics[name].partitions[0].leader_epoch == before.leader_epoch + 1
    told = broker.store.metadata.image.topics[name].partitions[0]
    assert (told.leader, told.leader_epoch, told.isr) == (1, before.leader_epoch + 1, (1,))
    broker.close()
