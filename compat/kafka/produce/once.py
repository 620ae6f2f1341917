"""
A partition that a Produce names twice: what of it is appended, and what is told.

As in ``KafkaApis.handleProduceRequest``, which keeps what is sound in one table and what is not in
another: of the sound ones the last is appended, and if one is not sound that is what is told.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.produce.batches import ZSTD_SINCE, PartitionBatch, is_zstd
from logstore.compat.kafka.produce.reply import ProduceReply
from logstore.compat.kafka.refusals import code_of
from logstore.errors import LogStoreError
from logstore.segments.kafka.append_errors import ShortHeaderError
from logstore.segments.kafka.validation import only_batch

#: topic name or id, and its partitions
TopicBatches = tuple[bytes, list[PartitionBatch]]


def flaw(records: memoryview, version: int) -> int:
    """Return why a batch is refused whatever log it is for, 0 for one that is sound so far."""
    try:
        only_batch(records)
    except ShortHeaderError:
        return 0  # Kafka does not look that far yet
    except LogStoreError as error:
        return code_of(error)
    is_early = version < ZSTD_SINCE and is_zstd(records)
    return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if is_early else 0


def _is_each_once(topics: list[TopicBatches]) -> bool:
    """Tell whether every topic has something to append and no partition is named twice."""
    if len(topics) > 1 and len({key for key, _ in topics}) < len(topics):
        return False
    return all(
        len(batches) == 1 or len({batch[0] for batch in batches}) == len(batches) > 0
        for _, batches in topics
    )


def each_once(
    topics: list[TopicBatches], version: int, by_key: Mapping[bytes, Container[int]]
) -> tuple[list[TopicBatches], dict[bytes, dict[int, int]]]:
    """Return topics with one batch for each partition, and what is told instead of its result."""
    if _is_each_once(topics):
        return topics, {}
    found: dict[bytes, dict[int, PartitionBatch]] = {}
    sound: dict[bytes, set[int]] = {}
    told: dict[bytes, dict[int, int]] = {}
    for key, batches in topics:
        if not batches:
            continue
        by_index, of_topic = found.setdefault(key, {}), sound.setdefault(key, set())
        for batch in batches:
            index = batch[0]
            if code := flaw(batch[1], version):
                told.setdefault(key, {})[index] = code
            else:
                of_topic.add(index)
            if not code or index not in of_topic:
                by_index[index] = batch
    overruled = {
        key: {
            index: code
            for index, code in codes.items()
            if index in sound[key] and index in by_key.get(key, ())
        }
        for key, codes in told.items()
    }
    return [(key, list(by_index.values())) for key, by_index in found.items()], overruled


def parted(
    batches: list[PartitionBatch], overruled: dict[int, int] | None, reply: ProduceReply
) -> list[tuple[list[PartitionBatch], ProduceReply]]:
    """Return batches of a topic and the replies for their results, of which one is not sent."""
    if not overruled:
        return [(batches, reply)]
    for index, code in overruled.items():
        reply.fail(index, code)
    return [
        ([batch for batch in batches if batch[0] not in overruled], reply),
        ([batch for batch in batches if batch[0] in overruled], ProduceReply(reply.version, 1)),
    ]
