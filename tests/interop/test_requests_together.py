"""librdkafka with many requests under way: what arrives together is acknowledged one by one."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from logstore.compat import TestBroker
from logstore.segments.kafka.indexed_segment import IndexedSegment

pytestmark = pytest.mark.interop
COUNT = 20_000


def test_each_acknowledgement_is_of_its_own_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch a record, 64 requests under way: all offsets told are where the records are."""
    together: list[int] = []
    append = IndexedSegment.append_usual_run

    def counted(self: IndexedSegment, run: Any, *rest: Any) -> int:
        together.append(len(run))
        return append(self, run, *rest)

    monkeypatch.setattr(IndexedSegment, "append_usual_run", counted)
    told: list[tuple[int, bytes]] = []

    def note(error: Any, message: Any) -> None:
        assert error is None, error
        told.append((message.offset(), message.value()))

    with TestBroker() as broker:
        address = {"bootstrap.servers": broker.bootstrap}
        producer: Any = Producer(
            {**address, "linger.ms": 0, "batch.num.messages": 1, "max.in.flight": 64, "acks": "all"}
        )
        for number in range(COUNT):
            producer.produce("t", b"%d" % number + b"." * 120, partition=0, on_delivery=note)
            producer.poll(0)
            if number % 1000 == 0:
                producer.flush()
        assert producer.flush(30) == 0
        consumer: Any = Consumer({**address, "group.id": "g"})
        consumer.assign([TopicPartition("t", 0, 0)])
        found: list[tuple[int, bytes]] = []
        while len(found) < COUNT:
            read = consumer.consume(1000, 10)
            assert read, f"{len(found)} of {COUNT} came"
            found += [(message.offset(), message.value()) for message in read]
        consumer.close()
    assert sorted(told) == found
    assert [offset for offset, _ in found] == list(range(COUNT))
    assert sum(together) > COUNT // 10, "hardly anything arrived together"
