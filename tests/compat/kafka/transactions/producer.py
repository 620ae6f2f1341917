"""A transactional producer that speaks the protocol by hand, in version 1 or 2 of transactions."""

from __future__ import annotations

from typing import Any

from logstore.compat.kafka.broker import Broker
from logstore.segments.kafka.record_batch import iterate_batches
from tests.compat.kafka.batches import batch
from tests.compat.kafka.peer import Peer, fetch_fields, produce_fields

GROUP = "readers"


class TransactionalClient:
    """
    One producer and its transactional id.

    `speaks` is the version of transactions: 1 adds partitions before it writes, 2 leaves that to
    the write and takes the next epoch from the answer to its end.
    """

    def __init__(self, broker: Broker, speaks: int = 2, transactional_id: str = "payments") -> None:
        self.peer = Peer(broker)
        self.speaks = speaks
        self.transactional_id = transactional_id
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[tuple[str, int], int] = {}

    @property
    def who(self) -> dict[str, Any]:
        """The fields that tell who it is."""
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def init(self, timeout_ms: int = 60_000) -> int:
        """Begin; return the error code."""
        answer = self.peer.ask(
            "InitProducerId", 4,
            {
                "transactional_id": self.transactional_id, "transaction_timeout_ms": timeout_ms,
                "producer_id": -1, "producer_epoch": -1,
            },
        ).message  # fmt: skip
        code: int = answer["error_code"]
        if not code:
            self.take(answer)
        return code

    def take(self, answer: dict[str, Any]) -> None:
        """Go on as that producer."""
        self.producer_id, self.epoch = answer["producer_id"], answer["producer_epoch"]
        self.sequences.clear()

    def add(self, topic: str, *indexes: int, version: int = 3) -> list[int]:
        """Add partitions; return their error codes."""
        answer = self.peer.ask(
            "AddPartitionsToTxn", version,
            {
                "v3_and_below_transactional_id": self.transactional_id,
                "v3_and_below_producer_id": self.producer_id,
                "v3_and_below_producer_epoch": self.epoch,
                "v3_and_below_topics": [{"name": topic, "partitions": list(indexes)}],
            },
        ).message  # fmt: skip
        return [
            one["partition_error_code"]
            for topic in answer["results_by_topic_v3_and_below"]
            for one in topic["results_by_partition"]
        ]

    def write(self, topic: str, index: int, *values: bytes, version: int | None = None) -> int:
        """Write records in the transaction; return the error code."""
        first = self.sequences.get((topic, index), 0)
        producer = (self.producer_id, self.epoch, first)
        data = batch(*values, producer=producer, is_transactional=True)
        version = version or (12 if self.speaks == 2 else 9)
        fields = produce_fields([(topic, [(index, data)])], version, -1)
        fields["transactional_id"] = self.transactional_id
        code: int = self.peer.ask("Produce", version, fields).partition["error_code"]
        if not code:
            self.sequences[topic, index] = first + len(values)
        return code

    def send(self, topic: str, index: int, *values: bytes) -> int:
        """Write as its version does it, with what must be asked before; return the error code."""
        if self.speaks == 1:
            (code,) = self.add(topic, index)
            if code:
                return code
        return self.write(topic, index, *values)

    def add_offsets(self, group: str = GROUP, version: int = 3) -> int:
        """Take a group's offsets into the transaction; return the error code."""
        answer = self.peer.ask("AddOffsetsToTxn", version, {**self.who, "group_id": group})
        code: int = answer.message["error_code"]
        return code

    def commit_offset(
        self, topic: str, index: int, offset: int, *, version: int | None = None, **fields: Any
    ) -> int:
        """Commit an offset in the transaction; return the error code."""
        version = version or (5 if self.speaks == 2 else 3)
        wanted: dict[str, Any] = {**self.who, "group_id": GROUP, **fields}
        partition = {
            "partition_index": index, "committed_offset": offset, "committed_metadata": "m"
        }  # fmt: skip
        wanted["topics"] = [{"name": topic, "partitions": [partition]}]
        answer = self.peer.ask("TxnOffsetCommit", version, wanted).message
        code: int = answer["topics"][0]["partitions"][0]["error_code"]
        return code

    def send_offset(self, topic: str, index: int, offset: int) -> int:
        """Commit an offset as its version does it; return the error code."""
        if self.speaks == 1:
            code = self.add_offsets()
            if code:
                return code
        return self.commit_offset(topic, index, offset)

    def end(self, *, is_commit: bool, version: int | None = None) -> int:
        """Commit or abort; return the error code."""
        version = version or (5 if self.speaks == 2 else 3)
        answer = self.peer.ask("EndTxn", version, {**self.who, "committed": is_commit}).message
        code: int = answer["error_code"]
        if not code and version >= 5:
            self.take(answer)
        return code


def committed_values(broker: Broker, topic: str, index: int = 0) -> list[bytes]:
    """Return what a read_committed consumer gets, as it filters it by the aborted list."""
    fields = fetch_fields([(topic, [{"partition": index, "fetch_offset": 0}])], 12,
                          isolation_level=1)  # fmt: skip
    result = Peer(broker).ask("Fetch", 12, fields).partition
    assert result["error_code"] == 0
    waiting = sorted((one["first_offset"], one["producer_id"])
                     for one in result["aborted_transactions"] or ())  # fmt: skip
    skipped: set[int] = set()
    found: list[bytes] = []
    from logstore.segments.kafka.control_record import decode_marker
    from logstore.segments.kafka.record import decode_records

    for part in iterate_batches(memoryview(result["records"] or b"")):
        while waiting and waiting[0][0] <= part.last_offset:
            skipped.add(waiting.pop(0)[1])
        records = list(decode_records(part.data))
        if part.is_control:
            marker = decode_marker(records[0])
            if marker is not None and marker.is_abort:
                skipped.discard(part.producer_id)
        elif not (part.is_transactional and part.producer_id in skipped):
            found += [record.value or b"" for record in records]
    return found


def group_offset(
    broker: Broker, topic: str, index: int = 0, *, is_stable: bool = False
) -> tuple[int, int]:
    """Return (error code, offset) of what the group has committed."""
    answer = Peer(broker).ask(
        "OffsetFetch", 7,
        {
            "group_id": GROUP, "require_stable": is_stable,
            "topics": [{"name": topic, "partition_indexes": [index]}],
        },
    ).message  # fmt: skip
    ((partition,),) = [one["partitions"] for one in answer["topics"]]
    return partition["error_code"], partition["committed_offset"]
