"""
WriteTxnMarkers (27): versions 1-2.

* what coordinators ask the leaders of partitions, and ``kafka-transactions abort`` too: append the
  marker that ends a producer's transaction
* a partition that does not exist is 3; an older producer 47, an older coordinator 52
* v1: flexible; v2: the version of transactions, by which a marker's epoch is judged
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refusals import code_of
from logstore.compat.kafka.transactions.markers import Marker
from logstore.compat.kafka.transactions.marking import write_marker
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from kafka.protocol.producer.transaction import WriteTxnMarkersRequest, WriteTxnMarkersResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_log = logging.getLogger(__name__)
_FIRST_WITH_VERSION = 2
#: the id and the epoch of no producer
_NOBODY = -1


def handle(
    broker: Broker, client: Client, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    """Write every marker to every partition that it names."""
    from kafka.protocol.producer.transaction import WriteTxnMarkersResponse

    del client
    result_class = WriteTxnMarkersResponse.WritableTxnMarkerResult
    topic_class = result_class.WritableTxnMarkerTopicResult
    partition_class = topic_class.WritableTxnMarkerPartitionResult
    results: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = []
    for asked in request.markers:
        knows_version = request.API_VERSION >= _FIRST_WITH_VERSION
        marker = Marker(
            producer_id=asked.producer_id,
            producer_epoch=asked.producer_epoch,
            is_commit=asked.transaction_result,
            coordinator_epoch=asked.coordinator_epoch,
            transaction_version=asked.transaction_version if knows_version else 0,
        )
        topics = [
            topic_class(
                name=topic.name,
                partitions=[
                    partition_class(
                        partition_index=index,
                        error_code=_write(broker, topic.name, index, marker),
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in asked.topics
        ]
        results.append(result_class(producer_id=asked.producer_id, topics=topics))
    return WriteTxnMarkersResponse(version=request.API_VERSION, markers=results)


def _write(broker: Broker, topic: str, index: int, marker: Marker) -> ErrorCode:
    partition = broker.partition(topic, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if _NOBODY in (marker.producer_id, marker.producer_epoch):
        return ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka stumbles over it
    try:
        write_marker(broker, partition, marker)
    except (LogStoreError, OSError) as error:
        _log.warning("%s-%s: no marker: %s", topic, index, error)
        return code_of(error)
    return ErrorCode.NONE
