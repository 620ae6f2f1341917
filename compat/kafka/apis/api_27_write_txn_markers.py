"""
WriteTxnMarkers (27): versions 1-2.

* what coordinators ask the leaders of partitions, and ``kafka-transactions abort`` too: append the
  marker that ends a producer's transaction
* a partition that does not exist is 3; an older producer 47, an older coordinator 52
* what is said of one producer is told together, of no partitions nothing; a marker of no producer
  fails the request (-1), or only itself where it is for the offsets of groups
* v1: flexible; v2: the version of transactions, by which a marker's epoch is judged; without one
  (-1) nothing is written (-1)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refusals import code_of
from logstore.compat.kafka.topics.names import GROUPS_TOPIC
from logstore.compat.kafka.transactions.markers import Marker
from logstore.compat.kafka.transactions.marking import write_marker
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from kafka.protocol.producer.transaction import WriteTxnMarkersRequest, WriteTxnMarkersResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.partition import KafkaPartition

_log = logging.getLogger(__name__)
_FIRST_WITH_VERSION = 2
_VERSION_UNKNOWN = -1
#: a partition, by its topic's name
_Place = tuple[str, int]


def handle(
    broker: Broker, client: Client, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    """Write every marker to every partition that it names."""
    del client
    told: dict[int, dict[_Place, ErrorCode]] = {}
    for asked in request.markers:
        marker = _marker(request, asked)
        places = {place: broker.partition(*place) for place in _places(asked)}
        if not marker.has_producer and any(
            one is not None and one.topic != GROUPS_TOPIC for one in places.values()
        ):
            return _response(request, _failed(request))
        for place, one in places.items():
            told.setdefault(marker.producer_id, {})[place] = _write(broker, one, marker)
    return _response(request, told)


def _marker(request: WriteTxnMarkersRequest, asked: Any) -> Marker:
    knows_version = request.API_VERSION >= _FIRST_WITH_VERSION
    return Marker(
        producer_id=asked.producer_id,
        producer_epoch=asked.producer_epoch,
        is_commit=asked.transaction_result,
        coordinator_epoch=asked.coordinator_epoch,
        transaction_version=asked.transaction_version if knows_version else 0,
    )


def _places(asked: Any) -> list[_Place]:
    return [(topic.name, index) for topic in asked.topics for index in topic.partition_indexes]


def _failed(request: WriteTxnMarkersRequest) -> dict[int, dict[_Place, ErrorCode]]:
    """Return the failure of all: Kafka stumbles over a marker of no producer."""
    return {
        asked.producer_id: dict.fromkeys(_places(asked), ErrorCode.UNKNOWN_SERVER_ERROR)
        for asked in request.markers
    }


def _response(
    request: WriteTxnMarkersRequest, told: Mapping[int, Mapping[_Place, ErrorCode]]
) -> WriteTxnMarkersResponse:
    from kafka.protocol.producer.transaction import WriteTxnMarkersResponse

    result_class = WriteTxnMarkersResponse.WritableTxnMarkerResult
    topic_class = result_class.WritableTxnMarkerTopicResult
    partition_class = topic_class.WritableTxnMarkerPartitionResult
    results: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = []
    for producer_id, codes in told.items():
        by_topic: dict[str, list[Any]] = {}
        for (name, index), code in codes.items():
            by_topic.setdefault(name, []).append(
                partition_class(partition_index=index, error_code=code)
            )
        topics = [topic_class(name=name, partitions=them) for name, them in by_topic.items()]
        results.append(result_class(producer_id=producer_id, topics=topics))
    return WriteTxnMarkersResponse(version=request.API_VERSION, markers=results)


def _write(broker: Broker, partition: KafkaPartition | None, marker: Marker) -> ErrorCode:
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not marker.has_producer or _lacks_version(partition, marker):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    try:
        write_marker(broker, partition, marker)
    except (LogStoreError, OSError) as error:
        _log.warning("%s: no marker: %s", partition, error)
        return code_of(error)
    return ErrorCode.NONE


def _lacks_version(partition: KafkaPartition, marker: Marker) -> bool:
    """Tell whether Kafka stumbles because nobody said by which version a marker is judged."""
    if marker.transaction_version != _VERSION_UNKNOWN or marker.producer_id < 0:
        return False
    known = partition.producers.get(marker.producer_id)
    return known is None or known.epoch <= marker.producer_epoch
