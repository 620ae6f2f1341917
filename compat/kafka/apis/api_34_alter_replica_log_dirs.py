"""
AlterReplicaLogDirs (34): versions 1-2.

* there is one data directory, so a partition can only be "moved" to where it is: no error, and
  nothing happens; another path is 57
* a partition that does not exist is 3, a topic whose directory could not be renamed 17
* v2: flexible

Source: ``ReplicaManager.alterReplicaLogDirs``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka.protocol.admin.cluster import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_FILE_NAME_LENGTH_MAX = 255
#: what Kafka would append to the directory's name while it copies: a UUID and a word
_MOVING_SUFFIX_LENGTH = len(".0123456789abcdef0123456789abcdef-future")


def handle(
    broker: Broker, client: Client, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Answer for every partition whether it is where it is wanted."""
    from kafka.protocol.admin.cluster import AlterReplicaLogDirsResponse

    del client
    topic_class = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
    found: dict[str, dict[int, ErrorCode]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                code = _code(broker, directory.path, topic.name, index)
                found.setdefault(topic.name, {})[index] = code
    results: list[Any] = [
        topic_class(
            topic_name=name,
            partitions=[
                topic_class.AlterReplicaLogDirPartitionResult(
                    partition_index=index, error_code=code
                )
                for index, code in codes.items()
            ],
        )
        for name, codes in found.items()
    ]
    return AlterReplicaLogDirsResponse(version=request.API_VERSION, results=results)


def _code(broker: Broker, path: str, topic: str, index: int) -> ErrorCode:
    if len(f"{topic}-{index}") + _MOVING_SUFFIX_LENGTH > _FILE_NAME_LENGTH_MAX:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path != broker.data_directory:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if broker.partition(topic, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE
