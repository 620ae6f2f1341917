"""
What a producer is told whose records have no offsets yet, because their transaction is open.

Java's client and those modelled on it take -1 for "not known" (``RecordMetadata.hasOffset()`` is
false then). All others, librdkafka and franz-go among them, add each record's place in the batch to
whatever they are told, and would come to 0, 1, ... with -1: they get a base from which every single
record's offset is negative, which is none.
"""

from __future__ import annotations

UNKNOWN = -1
#: how the clients call themselves (KIP-511) that know what -1 means
_KNOWS_UNKNOWN = ("apache-kafka-java", "kafka-python")


def told_base_offset(base_offset: int, software: str) -> int:
    """Return what a client is told; `base_offset` is negative by the records' number at least."""
    if base_offset < 0 and software.startswith(_KNOWS_UNKNOWN):
        return UNKNOWN
    return base_offset
