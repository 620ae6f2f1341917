"""Which partition or queue a key goes to: the same as with the real clients."""

from __future__ import annotations

from logstore.java_hash import java_hash

#: the constants of Kafka's ``Utils.murmur2``
SEED, FACTOR, SHIFT = 0x9747B28C, 0x5BD1E995, 24
MASK = 0xFFFF_FFFF


def murmur2(data: bytes) -> int:
    """Return Kafka's hash of a key (``Utils.murmur2``), as 32 bits without a sign."""
    length = len(data)
    value = (SEED ^ length) & MASK
    whole = length & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * FACTOR & MASK
        word = (word ^ (word >> SHIFT)) * FACTOR & MASK
        value = (value * FACTOR & MASK) ^ word
    rest = data[whole:]
    if rest:
        value = (value ^ int.from_bytes(rest, "little")) * FACTOR & MASK
    value = (value ^ (value >> 13)) * FACTOR & MASK
    return value ^ (value >> 15)


def kafka_partition(key: bytes, partition_count: int) -> int:
    """Return where Kafka's default partitioner puts a record with this key."""
    return (murmur2(key) & 0x7FFF_FFFF) % partition_count


def rocketmq_queue(key: bytes, queue_count: int) -> int:
    """Return where RocketMQ's ``SelectMessageQueueByHash`` puts a message with this key."""
    value = java_hash(key.decode("utf-8", "replace"))
    # Java divides towards zero, then takes the amount.
    return abs(value) % queue_count
