"""
One blocking connection, and the few administrative calls that a benchmark makes on it.

The targets are single nodes: whatever is asked is asked of the bootstrap address itself.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from kafka.protocol.admin import CreateTopicsRequest, DeleteTopicsRequest
from kafka.protocol.consumer import FetchResponse, ListOffsetsRequest, OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest
from kafka.protocol.producer import ProduceResponse

from logstore.tools.bench.frames import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    BenchError,
    decoded,
    encoded,
    fetch_frame,
    produce_frame,
    record_batch,
    text_values,
)

CREATE_TOPICS_VERSION = 5
DELETE_TOPICS_VERSION = 4
FIND_COORDINATOR_VERSION = 3
LIST_OFFSETS_VERSION = 6
METADATA_VERSION = 9
OFFSET_FETCH_VERSION = 5
READY_SECONDS_MAX = 120

_LATEST = -1


class Connection:
    """A blocking TCP connection that carries frames, one at a time."""

    def __init__(self, address: tuple[str, int], timeout_s: float = 60) -> None:
        self.socket = socket.create_connection(address, timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exchange(self, frame: bytes) -> bytes:
        """Send a whole frame; return the reply without its size."""
        self.socket.sendall(frame)
        return self.receive()

    def receive(self) -> bytes:
        """Return the next frame without its size; BenchError where the server hangs up."""
        (size_bytes,) = struct.unpack(">i", self._receive_exactly(4))
        return self._receive_exactly(size_bytes)

    def call(self, request: Any) -> Any:
        """Send a request message of the protocol library and return the response message."""
        frame = self.exchange(encoded(request))
        response = request.header.get_response_class()
        return decoded(response, request.API_VERSION, frame)

    def _receive_exactly(self, size_bytes: int) -> bytes:
        received = bytearray()
        while len(received) < size_bytes:
            data = self.socket.recv(size_bytes - len(received), socket.MSG_WAITALL)
            if not data:
                raise BenchError("the server closed the connection")
            received += data
        return bytes(received)

    def close(self) -> None:
        """Hang up."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def create_topic(connection: Connection, topic: str, partition_count: int) -> None:
    """Create a topic and return once every partition of it answers."""
    creatable = CreateTopicsRequest.CreatableTopic
    response = connection.call(
        CreateTopicsRequest(
            topics=[
                creatable(
                    name=topic,
                    num_partitions=partition_count,
                    replication_factor=1,
                    assignments=[],
                    configs=[],
                )
            ],
            timeout_ms=60_000,
            validate_only=False,
            version=CREATE_TOPICS_VERSION,
        )
    )
    error = response.topics[0].error_code
    if error:
        raise BenchError(f"creating topic {topic} was answered with error {error}")
    wait_until_ready(connection, topic, partition_count)


def delete_topic(connection: Connection, topic: str) -> None:
    """Delete a topic."""
    response = connection.call(
        DeleteTopicsRequest(topic_names=[topic], timeout_ms=60_000, version=DELETE_TOPICS_VERSION)
    )
    error = response.responses[0].error_code
    if error:
        raise BenchError(f"deleting topic {topic} was answered with error {error}")


def wait_until_ready(connection: Connection, topic: str, partition_count: int) -> None:
    """Return once Metadata names a leader of every partition and each tells its end offset."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not _has_leaders(connection, topic, partition_count):
        _wait_a_little(topic, deadline)
    while end_offsets(connection, topic, partition_count) is None:
        _wait_a_little(topic, deadline)


def wait_for_coordinator(connection: Connection, group: str) -> None:
    """Return once the group is served; the first to ask for any has the offsets topic made."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not _has_coordinator(connection, group):
        _wait_a_little(f"of group {group}'s coordinator", deadline)


def _has_coordinator(connection: Connection, group: str) -> bool:
    found = connection.call(
        FindCoordinatorRequest(key=group, key_type=0, version=FIND_COORDINATOR_VERSION)
    )
    if found.error_code:
        return False
    asked = OffsetFetchRequest(group_id=group, topics=None, version=OFFSET_FETCH_VERSION)
    return not connection.call(asked).error_code


def _wait_a_little(topic: str, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise BenchError(f"topic {topic} was not ready after {READY_SECONDS_MAX} s")
    time.sleep(0.002)


def _has_leaders(connection: Connection, topic: str, partition_count: int) -> bool:
    response = connection.call(
        MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=topic)],
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
            version=METADATA_VERSION,
        )
    )
    found = response.topics[0]
    return (
        not found.error_code
        and len(found.partitions) == partition_count
        and all(one.leader_id >= 0 and not one.error_code for one in found.partitions)
    )


def end_offsets(connection: Connection, topic: str, partition_count: int) -> list[int] | None:
    """Return the end offset of every partition in order, None where one does not answer yet."""
    list_topic = ListOffsetsRequest.ListOffsetsTopic
    response = connection.call(
        ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            topics=[
                list_topic(
                    name=topic,
                    partitions=[
                        list_topic.ListOffsetsPartition(
                            partition_index=index, current_leader_epoch=-1, timestamp=_LATEST
                        )
                        for index in range(partition_count)
                    ],
                )
            ],
            version=LIST_OFFSETS_VERSION,
        )
    )
    partitions = response.topics[0].partitions
    if any(one.error_code for one in partitions):
        return None
    return [one.offset for one in sorted(partitions, key=lambda one: one.partition_index)]


def produce(connection: Connection, topic: str, partitions: Sequence[int], batch: bytes) -> None:
    """Append a batch to each of the partitions and wait for the acknowledgement."""
    reply = connection.exchange(produce_frame(topic, partitions, batch))
    for answered in decoded(ProduceResponse, PRODUCE_VERSION, reply).responses:
        for partition in answered.partition_responses:
            if partition.error_code:
                raise BenchError(
                    f"Produce to {topic}-{partition.index} was answered with error "
                    f"{partition.error_code}"
                )


def fetched_bytes(connection: Connection, topic: str, partition: int, offset: int) -> int:
    """Return how many bytes of records one Fetch from that offset brings (up to 1 MiB)."""
    reply = connection.exchange(fetch_frame(topic, partition, offset, bytes_max=1 << 20))
    response = decoded(FetchResponse, FETCH_VERSION, reply)
    error = response.error_code or response.responses[0].partitions[0].error_code
    if error:
        raise BenchError(f"Fetch of {topic}-{partition} at {offset} was answered with {error}")
    return len(response.responses[0].partitions[0].records or b"")


def write_past_first_index_entries(
    connection: Connection, topic: str, partition_count: int
) -> None:
    """
    Append 3 batches of 5 KB to every partition, so that what is timed later is the steady state.

    Kafka makes its sparse index files when the first entry goes in, that is with the first batch
    after 4,096 bytes; this costs 31-37 ms a partition where it was seen, once in its life.
    """
    batch = record_batch(text_values(1024, 5))
    for index in range(partition_count):
        for _ in range(3):
            produce(connection, topic, [index], batch)
