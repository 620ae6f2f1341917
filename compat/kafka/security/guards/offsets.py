"""Guard of OffsetFetch: of a group that one may describe, the topics that one may describe."""

from __future__ import annotations

from typing import Any

from logstore.compat.kafka.library_messages import library_class
from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.guarded_request import REFUSALS, GuardedRequest

_TOPIC, _GROUP = ResourceType.TOPIC, ResourceType.GROUP
_GROUPS_SINCE = 8


def offset_fetch(request: GuardedRequest) -> Any:
    """To describe each group, and each topic of it; of all topics those that one may describe."""
    if request.version < _GROUPS_SINCE:
        return _one_group(request)
    answer_class = library_class(request.api, "Response").OffsetFetchResponseGroup
    topic_class = answer_class.OffsetFetchResponseTopics
    groups = list(request.message.groups)
    refused: dict[int, Any] = {}
    refused_topics: dict[int, list[Any]] = {}
    for place, group in enumerate(groups):
        if not request.may(Operation.DESCRIBE, _GROUP, group.group_id):
            refused[place] = answer_class(
                version=request.version, group_id=group.group_id, topics=[],
                error_code=REFUSALS[_GROUP][0],
            )  # fmt: skip
        elif group.topics is not None:
            refused_topics[place] = _split(request, group, topic_class)
    request.message.groups = [one for place, one in enumerate(groups) if place not in refused]

    def changed(served: Any) -> Any:
        answers = iter(served.groups)
        found: list[Any] = []
        for place, group in enumerate(groups):
            answer = refused.get(place) or next(answers)
            if place not in refused and not answer.error_code:
                _finish(request, answer, refused_topics.get(place), is_all=group.topics is None)
            found.append(answer)
        served.groups = found
        return served

    if not request.message.groups:
        return changed(library_class(request.api, "Response")(version=request.version, groups=[]))
    return request.served(changed)


def _one_group(request: GuardedRequest) -> Any:
    message = request.message
    if not request.may(Operation.DESCRIBE, _GROUP, message.group_id):
        return request.refused(_GROUP)
    is_all = message.topics is None
    topic_class = library_class(request.api, "Response").OffsetFetchResponseTopic
    refused = None if is_all else _split(request, message, topic_class)

    def changed(served: Any) -> Any:
        if not served.error_code:
            _finish(request, served, refused, is_all=is_all)
        return served

    return request.served(changed)


def _split(request: GuardedRequest, group: Any, topic_class: Any) -> list[Any]:
    """Take out of a group's topics those that are not to be seen; return the answers to them."""
    partition_class = (
        getattr(topic_class, "OffsetFetchResponsePartitions", None)
        or topic_class.OffsetFetchResponsePartition
    )
    allowed: list[Any] = []
    refused: list[Any] = []
    for topic in group.topics:
        name = request.topic_of(topic)
        if name is None or request.may(Operation.DESCRIBE, _TOPIC, name):
            allowed.append(topic)
            continue
        fields = {"topic_id": topic.topic_id} if hasattr(topic, "topic_id") else {}
        partitions = [
            partition_class(
                version=request.version, partition_index=index, committed_offset=-1,
                committed_leader_epoch=-1, metadata="", error_code=REFUSALS[_TOPIC][0],
            )
            for index in topic.partition_indexes
        ]  # fmt: skip
        refused.append(
            topic_class(version=request.version, name=topic.name, partitions=partitions, **fields)
        )
    group.topics = allowed
    return refused


def _finish(
    request: GuardedRequest, answer: Any, refused: list[Any] | None, *, is_all: bool
) -> None:
    """Add what was refused to an answer, or take out of it what must not be seen."""
    if is_all:
        answer.topics = [
            one for one in answer.topics
            if (name := request.topic_of(one)) is not None and request.sees(_TOPIC, name)
        ]  # fmt: skip
    elif refused:
        answer.topics = [*answer.topics, *refused]
