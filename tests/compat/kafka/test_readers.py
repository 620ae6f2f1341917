"""Who waits for data, and how they are asked whether it is enough."""

from __future__ import annotations

from logstore.compat.kafka.readers import Readers
from logstore.segments.kafka.partition import KafkaPartition
from tests.compat.kafka.batches import NOW_MS, batch
from tests.compat.kafka.peer import a_broker


def partitions() -> tuple[KafkaPartition, KafkaPartition]:
    """Return two empty partitions of one topic."""
    found = a_broker().create_topic("t", 2).partitions
    return found[0], found[1]


def append(partition: KafkaPartition) -> None:
    """Append one record."""
    partition.append_produced(memoryview(bytearray(batch())), NOW_MS)


def test_a_reader_is_asked_once_for_many_appends() -> None:
    """Between two looks any number of appends count as one."""
    first, second = partitions()
    readers = Readers()
    asked: list[str] = []
    readers.wait([first, second], lambda: asked.append("first"))
    readers.wait([second], lambda: asked.append("second"))
    for partition in (first, second, first, second):
        append(partition)
    assert asked == []
    readers.wake()
    assert sorted(asked) == ["first", "first", "second"]  # once a partition
    readers.wake()
    assert len(asked) == 3


def test_who_has_left_is_not_asked() -> None:
    """Also if it left while the others were being asked; leaving twice is fine."""
    (first, _) = partitions()
    readers = Readers()
    asked: list[int] = []
    leave = readers.wait([first, first], lambda: asked.append(1))
    leave()
    leave()
    readers.wait([first], lambda: leaves[0]())
    leaves = [readers.wait([first], lambda: asked.append(2))]
    append(first)
    readers.wake()
    assert asked == []


def test_a_reader_that_fails_harms_nobody() -> None:
    """The one who appended goes on, and the other readers are asked."""
    (first, _) = partitions()
    readers = Readers()
    asked: list[int] = []

    def fail() -> None:
        raise RuntimeError("a fault of ours")

    readers.wait([first], fail)
    readers.wait([first], lambda: asked.append(1))
    append(first)
    readers.wake()
    assert asked == [1]


def test_who_is_woken_may_append_and_wake() -> None:
    """Those whom that touches are asked after it, by the same call, and not from within."""
    first, second = partitions()
    readers = Readers()
    events: list[str] = []

    def pass_on() -> None:
        events.append("begin")
        append(second)
        readers.wake()
        events.append("end")

    readers.wait([first], pass_on)
    readers.wait([second], lambda: events.append("second"))
    append(first)
    readers.wake()
    assert events == ["begin", "end", "second"]


def test_nobody_pays_for_readers_that_are_not_there() -> None:
    """A partition that nobody waits for is not watched; the last one to leave ends the watch."""
    first, second = partitions()
    readers = Readers()
    leaves = [readers.wait([first], lambda: None), readers.wait([first], lambda: None)]
    assert (first.on_append is not None, second.on_append) == (True, None)
    leaves[0]()
    assert first.on_append is not None
    leaves[1]()
    assert first.on_append is None


def test_an_abandoned_partition_wakes_its_readers() -> None:
    """They look once more, and find it gone."""
    first, second = partitions()
    readers = Readers()
    asked: list[str] = []
    readers.wait([first], lambda: asked.append("first"))
    readers.wait([second], lambda: asked.append("second"))
    readers.abandon(first)
    assert asked == ["first"]
