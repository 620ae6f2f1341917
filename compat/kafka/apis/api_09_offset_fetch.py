"""
OffsetFetch (9): versions 1-10.

* a partition without an offset: offset -1, leader epoch -1, empty metadata, no error; the same for
  unknown groups and topics
* topics null (v2 and later): everything that the group has committed
* v2: error of the whole group (v1 repeats it for each partition); v3: throttle time
* v5: leader epoch; v6: flexible; v7: require stable; v8: several groups
* v9: member id and epoch, which are looked at for KIP-848 and streams groups (25, 113)
* v10: topics by id (100)
* with require stable an offset that an open transaction may change is 88, to be asked for again
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.offsets_log import CommittedOffset

if TYPE_CHECKING:
    from kafka.protocol.consumer.group import OffsetFetchRequest, OffsetFetchResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_FIRST_WITH_GROUP_ERROR = 2
_FIRST_WITH_STABLE = 7
_FIRST_WITH_GROUPS = 8
_FIRST_WITH_EPOCHS = 9
_FIRST_WITH_TOPIC_IDS = 10
#: the library reads an id of zeros, which no topic has, as None
_NO_ID = uuid.UUID(int=0)


@attrs.frozen
class _Asked:
    """One topic of a question, by name or by id."""

    name: str
    topic_id: uuid.UUID | None
    partition_indexes: list[int]


@attrs.frozen
class _Found:
    """One topic of an answer: its id (None if it has none) and its partitions' fields."""

    name: str
    topic_id: uuid.UUID | None
    partitions: list[dict[str, Any]]


def handle(broker: Broker, client: Client, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Return how far groups have come."""
    if request.API_VERSION >= _FIRST_WITH_GROUPS:
        return _answer_groups(broker, request)
    return _answer_group(broker, request)


def _answer_group(broker: Broker, request: OffsetFetchRequest) -> OffsetFetchResponse:
    from kafka.protocol.consumer.group import OffsetFetchResponse

    topic_class = OffsetFetchResponse.OffsetFetchResponseTopic
    partition_class = topic_class.OffsetFetchResponsePartition
    asked = request.topics
    topics = None if asked is None else [_Asked(t.name, None, t.partition_indexes) for t in asked]
    is_stable = request.API_VERSION >= _FIRST_WITH_STABLE and request.require_stable
    error, found = _look_up(broker, request.group_id, topics, is_stable=is_stable)
    if error is not ErrorCode.NONE and request.API_VERSION >= _FIRST_WITH_GROUP_ERROR:
        found = []
    return OffsetFetchResponse(
        version=request.API_VERSION,
        error_code=error,
        topics=[
            topic_class(
                name=topic.name,
                partitions=[partition_class(**fields) for fields in topic.partitions],
            )
            for topic in found
        ],
    )


def _answer_groups(broker: Broker, request: OffsetFetchRequest) -> OffsetFetchResponse:
    from kafka.protocol.consumer.group import OffsetFetchResponse

    group_class = OffsetFetchResponse.OffsetFetchResponseGroup
    topic_class = group_class.OffsetFetchResponseTopics
    partition_class = topic_class.OffsetFetchResponsePartitions
    by_id = request.API_VERSION >= _FIRST_WITH_TOPIC_IDS
    groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = []
    for group in request.groups:
        topics: list[_Asked] | None = None
        if group.topics is not None:
            topics = [
                _Asked(
                    asked.name,
                    (asked.topic_id or _NO_ID) if by_id else None,
                    asked.partition_indexes,
                )
                for asked in group.topics
            ]
        is_stable = request.require_stable
        error, found = _look_up(broker, group.group_id, topics, is_stable=is_stable)
        if error is ErrorCode.NONE and request.API_VERSION >= _FIRST_WITH_EPOCHS:
            error = broker.groups.others.fetch_error(
                group.group_id, group.member_id, group.member_epoch
            )
        answered = [
            topic_class(
                **_identity(topic, by_id=by_id),
                partitions=[partition_class(**fields) for fields in topic.partitions],
            )
            for topic in found
            if error is ErrorCode.NONE and not (by_id and topic.topic_id is None)
        ]
        groups.append(group_class(group_id=group.group_id, topics=answered, error_code=error))
    return OffsetFetchResponse(version=request.API_VERSION, groups=groups)


def _look_up(
    broker: Broker, group_id: str, topics: list[_Asked] | None, *, is_stable: bool
) -> tuple[ErrorCode, list[_Found]]:
    """
    Return what a group has in the asked topics, or in all topics for None.

    With `is_stable` nothing of what an open transaction may change.
    """
    if topics is None:
        return _look_up_all(broker, group_id, is_stable=is_stable)
    names = [_name(broker, asked) for asked in topics]
    wanted = [
        (name, index)
        for name, asked in zip(names, topics, strict=True)
        if name is not None
        for index in asked.partition_indexes
    ]
    error, offsets = broker.groups.fetch_offsets(group_id, wanted)
    unstable = broker.groups.unstable(group_id, wanted if is_stable else ())
    found: list[_Found] = []
    for name, asked in zip(names, topics, strict=True):
        # Topics are only unknown by id; a name without offsets is just a name without offsets.
        code = ErrorCode.UNKNOWN_TOPIC_ID if name is None else error
        fields = [
            _unstable(index)
            if (name, index) in unstable
            else _fields(index, offsets.get((name or "", index)), code)
            for index in asked.partition_indexes
        ]
        found.append(_Found(asked.name, asked.topic_id, fields))
    # Kafka asks its coordinator for the topics that are there, and puts the others behind them.
    order = sorted(range(len(found)), key=lambda place: names[place] is None)
    return error, [found[place] for place in order]


def _look_up_all(
    broker: Broker, group_id: str, *, is_stable: bool
) -> tuple[ErrorCode, list[_Found]]:
    error, offsets = broker.groups.fetch_offsets(group_id, None)
    unstable = broker.groups.unstable(group_id, offsets if is_stable else ())
    found: dict[str, _Found] = {}
    for (name, index), committed in sorted(offsets.items(), key=lambda one: one[0]):
        if name not in found:
            topic = broker.topics.get(name)
            topic_id = None if topic is None else uuid.UUID(bytes=topic.topic_id)
            found[name] = _Found(name, topic_id, [])
        is_held = (name, index) in unstable
        found[name].partitions.append(
            _unstable(index) if is_held else _fields(index, committed, ErrorCode.NONE)
        )
    return error, list(found.values())


def _identity(topic: _Found, *, by_id: bool) -> dict[str, Any]:
    return {"topic_id": topic.topic_id} if by_id else {"name": topic.name}


def _name(broker: Broker, asked: _Asked) -> str | None:
    if asked.topic_id is None:
        return asked.name
    topic = broker.topic_by_id(asked.topic_id)
    return None if topic is None else topic.name


def _unstable(index: int) -> dict[str, Any]:
    return _fields(index, None, ErrorCode.UNSTABLE_OFFSET_COMMIT)


def _fields(index: int, committed: CommittedOffset | None, error: ErrorCode) -> dict[str, Any]:
    return {
        "partition_index": index,
        "committed_offset": -1 if committed is None else committed.offset,
        "committed_leader_epoch": -1 if committed is None else committed.leader_epoch,
        "metadata": "" if committed is None else committed.metadata,
        "error_code": error,
    }
