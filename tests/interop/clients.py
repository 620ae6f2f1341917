"""
Three foreign clients behind one face, so that each test is written once.

A client produces samples to one partition, and opens consumers: with a group they subscribe,
without one they read a partition from its start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar, cast

import confluent_kafka
import kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from kafka.structs import TopicPartition

from tests.interop.samples import Sample, samples

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIMEOUT_SECONDS = 30
ResultT = TypeVar("ResultT")


def settings(bootstrap: str) -> dict[str, Any]:
    """Return librdkafka's settings for a broker that may go away; it need not say so on stderr."""
    return {"bootstrap.servers": bootstrap, "log_level": 0}


class OpenConsumer(Protocol):
    """A consumer that stands between a foreign library and a test."""

    def poll(self, timeout_seconds: float) -> list[Sample]:
        """Return what has come, after `timeout_seconds` at most."""
        ...

    def assignment(self) -> set[int]:
        """Return the partitions that are assigned now."""
        ...

    def commit(self) -> None:
        """Commit the offsets up to where polling went, and wait for the answer."""
        ...

    def close(self) -> None:
        """Leave the group, and disconnect."""
        ...


class Client(Protocol):
    """A foreign client library."""

    name: str

    def samples(self) -> list[Sample]:
        """Return the samples that this client is willing to send."""
        ...

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sample], codec: str = "none"
    ) -> list[int]:
        """Send with acks=all to partition 0; return the acknowledged offsets, in order."""
        ...

    def consumer(
        self, bootstrap: str, topic: str, group: str | None = None, records_max: int = 500
    ) -> OpenConsumer:
        """Open a consumer of `topic`: a member of `group`, or a reader of partition 0."""
        ...


def read(consumer: OpenConsumer, count: int, seconds: float = TIMEOUT_SECONDS) -> list[Sample]:
    """Poll until `count` records have come; return them, and whatever came with the last ones."""
    found: list[Sample] = []
    polls_left = int(seconds / 0.2)
    while len(found) < count and polls_left:
        found += consumer.poll(0.2)
        polls_left -= 1
    return found


def read_all(client: Client, bootstrap: str, topic: str, count: int) -> list[Sample]:
    """Return the first `count` records of partition 0 (fewer if they do not come in time)."""
    consumer = client.consumer(bootstrap, topic)
    try:
        return read(consumer, count)
    finally:
        consumer.close()


class Librdkafka:
    """confluent-kafka, which is librdkafka in C."""

    name = "librdkafka"

    def samples(self) -> list[Sample]:
        """Return the samples that it is willing to send."""
        return samples()

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sample], codec: str = "none"
    ) -> list[int]:
        """Send with an idempotent producer."""
        producer = confluent_kafka.Producer(
            settings(bootstrap)
            | {
                "compression.type": codec,
                "enable.idempotence": True,
                "message.max.bytes": 1_048_576,
                "linger.ms": 1000,  # `flush` sends at once: one batch on a busy machine, too
            }
        )
        offsets: list[int] = []
        errors: list[object] = []

        def delivered(error: object, message: confluent_kafka.Message) -> None:
            if error is not None:
                errors.append(error)
            else:
                offsets.append(message.offset() or 0)

        for record in records:
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                partition=0,
                headers=list(record.headers),
                timestamp=record.timestamp_ms,
                on_delivery=delivered,
            )
        producer.flush(TIMEOUT_SECONDS)
        assert not errors, errors
        assert len(offsets) == len(records), "not everything was acknowledged in time"
        return offsets

    def consumer(
        self, bootstrap: str, topic: str, group: str | None = None, records_max: int = 500
    ) -> OpenConsumer:
        """Open a consumer."""
        consumer = confluent_kafka.Consumer(
            settings(bootstrap)
            | {
                "group.id": group or "nobody",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "heartbeat.interval.ms": 200,
                "check.crcs": True,
                "fetch.wait.max.ms": 100,
            }
        )
        if group is None:
            consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        else:
            consumer.subscribe([topic])
        return _LibrdkafkaConsumer(consumer, records_max)


class _LibrdkafkaConsumer:
    def __init__(self, consumer: confluent_kafka.Consumer, records_max: int) -> None:
        self._consumer = consumer
        self._records_max = records_max

    def poll(self, timeout_seconds: float) -> list[Sample]:
        found: list[Sample] = []
        for message in self._consumer.consume(self._records_max, timeout_seconds):
            error = message.error()
            if error is not None:
                if (
                    error.retriable()
                    or error.code() == confluent_kafka.KafkaError._ALL_BROKERS_DOWN
                ):
                    continue
                raise confluent_kafka.KafkaException(error)
            headers: Any = message.headers() or []
            found.append(
                Sample(
                    message.key(),
                    message.value(),
                    tuple(headers),
                    message.timestamp()[1],
                )
            )
        return found

    def assignment(self) -> set[int]:
        return {one.partition for one in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


class KafkaPython:
    """kafka-python."""

    name = "kafka-python"

    def samples(self) -> list[Sample]:
        """Return the samples that it is willing to send."""
        return samples(null_record=False, null_header=False)

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sample], codec: str = "none"
    ) -> list[int]:
        """Send with an idempotent producer."""
        compression: Any = None if codec == "none" else codec
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=compression,
            acks="all",
            linger_ms=1000,  # `flush` sends at once: one batch on a busy machine, too
        )
        try:
            sent = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=cast("Any", list(record.headers)),
                    partition=0,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            producer.flush(timeout=TIMEOUT_SECONDS)
            return [future.get(timeout=TIMEOUT_SECONDS).offset for future in sent]
        finally:
            producer.close(timeout=TIMEOUT_SECONDS)

    def consumer(
        self, bootstrap: str, topic: str, group: str | None = None, records_max: int = 500
    ) -> OpenConsumer:
        """Open a consumer."""
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
            fetch_max_wait_ms=100,
            max_poll_records=records_max,
            metadata_max_age_ms=1000,  # to notice soon what it did not know as a group's leader
        )
        if group is None:
            consumer.assign([TopicPartition(topic, 0)])
        else:
            consumer.partitions_for_topic(topic)  # so that it knows the topic from the start
            consumer.subscribe([topic])
        return _KafkaPythonConsumer(consumer)


class _KafkaPythonConsumer:
    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def poll(self, timeout_seconds: float) -> list[Sample]:
        batches = self._consumer.poll(timeout_ms=int(timeout_seconds * 1000))
        return [
            Sample(record.key, record.value, tuple(record.headers), record.timestamp)
            for batch in batches.values()
            for record in batch
        ]

    def assignment(self) -> set[int]:
        return {one.partition for one in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit()

    def close(self) -> None:
        self._consumer.close()


class Aiokafka:
    """aiokafka; its event loop runs while a test waits for it."""

    name = "aiokafka"

    def samples(self) -> list[Sample]:
        """Return the samples that it is willing to send."""
        return samples(null_record=False)

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sample], codec: str = "none"
    ) -> list[int]:
        """Send with an idempotent producer."""

        async def send() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec == "none" else codec,
                enable_idempotence=True,
                linger_ms=100,  # one batch on a busy machine, too; `flush` waits for that
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        partition=0,
                        timestamp_ms=record.timestamp_ms,
                        headers=list(record.headers),
                    )
                    for record in records
                ]
                done = await asyncio.wait_for(asyncio.gather(*sent), TIMEOUT_SECONDS)
                return [metadata.offset for metadata in done]
            finally:
                await producer.stop()

        return asyncio.run(send())

    def consumer(
        self, bootstrap: str, topic: str, group: str | None = None, records_max: int = 500
    ) -> OpenConsumer:
        """Open a consumer."""
        return _AiokafkaConsumer(bootstrap, topic, group, records_max)


class _AiokafkaConsumer:
    def __init__(self, bootstrap: str, topic: str, group: str | None, records_max: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._consumer: Any = None
        self._run(self._open(bootstrap, topic, group, records_max))

    def _run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        return self._loop.run_until_complete(work)

    async def _open(self, bootstrap: str, topic: str, group: str | None, records_max: int) -> None:
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
            fetch_max_wait_ms=100,
            max_poll_records=records_max,
        )
        if group is None:
            self._consumer.assign([AioTopicPartition(topic, 0)])
        else:
            self._consumer.subscribe([topic])
        await self._consumer.start()

    def poll(self, timeout_seconds: float) -> list[Sample]:
        batches = self._run(self._consumer.getmany(timeout_ms=int(timeout_seconds * 1000)))
        return [
            Sample(record.key, record.value, tuple(record.headers), record.timestamp)
            for batch in batches.values()
            for record in batch
        ]

    def assignment(self) -> set[int]:
        return {one.partition for one in self._consumer.assignment()}

    def commit(self) -> None:
        self._run(self._consumer.commit())

    def close(self) -> None:
        self._run(self._consumer.stop())
        self._loop.close()


CLIENTS: tuple[Client, ...] = (Librdkafka(), KafkaPython(), Aiokafka())
