"""Replies as a server sends them, encoded by the protocol library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka.protocol.consumer import FetchResponse, OffsetCommitResponse, OffsetFetchResponse
from kafka.protocol.producer import ProduceResponse

from logstore.tools.bench.frames import FETCH_VERSION, PRODUCE_VERSION
from logstore.tools.bench.group_frames import COMMIT_VERSION, OFFSET_FETCH_VERSION


def encoded_response(response: Any) -> bytes:
    """Return the response as a server would send it, its size in front."""
    response.with_header(correlation_id=1)
    return bytes(response.encode(header=True, framed=True))


def produce_reply(topic: str, errors: Sequence[int], base_offset: int = 0) -> bytes:
    """Return a Produce reply with these error codes, one per partition."""
    answered = ProduceResponse.TopicProduceResponse
    return encoded_response(
        ProduceResponse(
            responses=[
                answered(
                    name=topic,
                    partition_responses=[
                        answered.PartitionProduceResponse(
                            index=index,
                            error_code=error,
                            base_offset=base_offset,
                            log_append_time_ms=-1,
                            log_start_offset=0,
                            record_errors=[],
                            error_message=None,
                        )
                        for index, error in enumerate(errors)
                    ],
                )
            ],
            throttle_time_ms=0,
            version=PRODUCE_VERSION,
        )
    )


def fetch_reply(topic: str, error: int, partition_error: int, records: bytes) -> bytes:
    """Return a Fetch reply about one partition."""
    answered = FetchResponse.FetchableTopicResponse
    return encoded_response(
        FetchResponse(
            throttle_time_ms=0,
            error_code=error,
            session_id=0,
            responses=[
                answered(
                    topic=topic,
                    partitions=[
                        answered.PartitionData(
                            partition_index=0,
                            error_code=partition_error,
                            high_watermark=10,
                            last_stable_offset=10,
                            log_start_offset=0,
                            aborted_transactions=None,
                            preferred_read_replica=-1,
                            records=records,
                        )
                    ],
                )
            ],
            version=FETCH_VERSION,
        )
    )


def commit_reply(topic: str, errors: Sequence[int]) -> bytes:
    """Return an OffsetCommit reply with these error codes, one per partition."""
    answered = OffsetCommitResponse.OffsetCommitResponseTopic
    return encoded_response(
        OffsetCommitResponse(
            throttle_time_ms=0,
            topics=[
                answered(
                    name=topic,
                    partitions=[
                        answered.OffsetCommitResponsePartition(
                            partition_index=index, error_code=error
                        )
                        for index, error in enumerate(errors)
                    ],
                )
            ],
            version=COMMIT_VERSION,
        )
    )


def offset_fetch_reply(topic: str, errors: Sequence[int]) -> bytes:
    """Return an OffsetFetch reply with these error codes, one per partition."""
    answered = OffsetFetchResponse.OffsetFetchResponseTopic
    return encoded_response(
        OffsetFetchResponse(
            throttle_time_ms=0,
            topics=[
                answered(
                    name=topic,
                    partitions=[
                        answered.OffsetFetchResponsePartition(
                            partition_index=index,
                            committed_offset=7,
                            committed_leader_epoch=-1,
                            metadata="",
                            error_code=error,
                        )
                        for index, error in enumerate(errors)
                    ],
                )
            ],
            error_code=0,
            version=OFFSET_FETCH_VERSION,
        )
    )
