"""
DescribeLogDirs (35): versions 1-5. The one data directory and the size of its partitions.

* topics null: all partitions; otherwise those asked for that there are
* a size is that of the data files, without indexes; nothing lags and nothing moves
* v2: flexible; v3: an error of the whole answer
* v4: size of the volume and what of it is free; v5: cordoned directories: never
* a volume that cannot be measured: the directory is answered with -1, and without partitions

Source: ``ReplicaManager.describeLogDirs``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka.protocol.admin.cluster import DescribeLogDirsRequest, DescribeLogDirsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.partition import KafkaPartition


_log = logging.getLogger(__name__)
_LONG_MAX = 2**63 - 1


def handle(
    broker: Broker, client: Client, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Measure the partitions."""
    from kafka.protocol.admin.cluster import DescribeLogDirsResponse

    del client
    directory = DescribeLogDirsResponse.DescribeLogDirsResult(
        version=request.API_VERSION, log_dir=broker.data_directory, **_measured(broker, request)
    )
    return DescribeLogDirsResponse(version=request.API_VERSION, results=[directory])


def _measured(broker: Broker, request: DescribeLogDirsRequest) -> dict[str, Any]:
    """Return what is told of the directory besides its name."""
    from kafka.protocol.admin.cluster import DescribeLogDirsResponse

    try:
        space = broker.host.fs.volume_space(broker.data_directory)
    except OSError as error:
        _log.error("%s: the volume cannot be measured: %s", broker.data_directory, error)
        return {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR, "topics": []}
    topic_class = DescribeLogDirsResponse.DescribeLogDirsResult.DescribeLogDirsTopic
    topics = [
        topic_class(
            name=name,
            partitions=[
                topic_class.DescribeLogDirsPartition(
                    partition_index=partition.index,
                    partition_size=partition.size_bytes,
                    offset_lag=0,
                    is_future_key=False,
                )
                for partition in partitions
            ],
        )
        for name, partitions in _asked(broker, request).items()
        if partitions
    ]
    return {
        "topics": topics,
        "total_bytes": min(space.total_bytes, _LONG_MAX),
        "usable_bytes": min(space.usable_bytes, _LONG_MAX),
    }


def _asked(broker: Broker, request: DescribeLogDirsRequest) -> dict[str, list[KafkaPartition]]:
    if request.topics is None:
        return {
            name: [topic.partitions[index] for index in sorted(topic.partitions)]
            for name, topic in broker.topics.items()
        }
    found: dict[str, dict[int, KafkaPartition]] = {}
    for asked in request.topics:
        topic = broker.topics.get(asked.topic)
        if topic is None:
            continue
        partitions = found.setdefault(asked.topic, {})
        for index in asked.partitions:
            if index in topic.partitions:
                partitions[index] = topic.partitions[index]
    return {name: list(partitions.values()) for name, partitions in found.items()}
