"""
Requests about share groups and streams groups, of which the library does not have the messages.

Beside `ok` and `no` there are the groups `share`, which has a member, `idle`, which never has one,
and `streams`, whose application wants the topic `log` made; and the topics `quiet` and `mute`, to
which nobody writes: what has been read of others depends on what a broker has had the time for.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from logstore.compat.kafka.groups.share import messages as of_groups
from logstore.compat.kafka.share_state import messages as of_state
from logstore.segments.kafka.internal_topics.schema import Message
from tests.compat.kafka.share_reads.share_requests import SaidOf, acknowledge_request, fetch_request
from tests.interop.streams_wire import internal, joining, subtopology, topology

OK, NO, GONE = "ok", "no", "gone"
SHARE, IDLE, STREAMS, LOG = "share", "idle", "streams", "log"
MEMBER = "m"
QUIET, MUTE = "quiet", "mute"
_TOPICS = (OK, NO, GONE)
Ids = Mapping[str, uuid.UUID]
Fields = Callable[[Ids], Mapping[str, Any]]


def _fixed(**fields: Any) -> Fields:
    return lambda _: fields


def _of(message: Callable[[Ids], Message]) -> Fields:
    return lambda ids: attrs.asdict(message(ids), recurse=False)


def _heartbeats() -> Iterator[tuple[str, int, Fields]]:
    for group in (SHARE, NO):
        for topics in (None, (OK,), (OK, NO)):
            fields = {"group_id": group, "member_epoch": 5, "subscribed_topic_names": topics}
            yield "ShareGroupHeartbeat", 1, _fixed(member_id="stranger", **fields)
            yield "ShareGroupHeartbeat", 1, _fixed(member_id="too long" * 10, **fields)
    names = (SHARE, NO, GONE)
    yield "ShareGroupDescribe", 1, _fixed(group_ids=names, include_authorized_operations=1)


def _said(ids: Ids, first_offset: int = 100_000) -> SaidOf:
    """Return what is said of records that nobody has; of a run that ends before it starts: 42."""
    said = [(first_offset, 100_000, (1,))]
    return {(ids[QUIET].bytes, 0): said, (ids[QUIET].bytes, 7): said, (ids[MUTE].bytes, 0): said}


def _reads() -> Iterator[tuple[str, int, Fields]]:
    """Yield the requests of a member from the first to the last of its session."""
    who, unsound = (SHARE, "reader"), 100_001

    def begin(ids: Ids) -> Message:
        keys = {ids[QUIET].bytes: (0, 7), ids[MUTE].bytes: (0,)}
        return fetch_request(who, 0, keys, max_wait_ms=0)

    yield "ShareFetch", 1, _of(begin)
    yield "ShareFetch", 1, _of(lambda ids: fetch_request(who, 1, said=_said(ids), max_wait_ms=0))
    yield (
        "ShareFetch",
        2,
        _of(lambda ids: fetch_request(who, 2, said=_said(ids, unsound), max_wait_ms=0)),
    )
    yield "ShareFetch", 2, _of(lambda _: fetch_request(who, 3, max_wait_ms=0))
    yield "ShareAcknowledge", 1, _of(lambda ids: acknowledge_request(who, 4, _said(ids)))
    yield "ShareAcknowledge", 2, _of(lambda ids: acknowledge_request(who, 5, _said(ids, unsound)))
    yield "ShareAcknowledge", 2, _of(lambda ids: acknowledge_request(who, 9, _said(ids)))
    yield "ShareFetch", 2, _of(lambda _: fetch_request(who, -1, max_wait_ms=0))
    for group in (SHARE, NO):
        for member_id in ("stranger", "too long" * 10):
            other = (group, member_id)
            fields = attrs.asdict(fetch_request(other, 5, max_wait_ms=0), recurse=False)
            yield "ShareFetch", 2, _fixed(**fields)
            fields = attrs.asdict(acknowledge_request(other, 5, {}), recurse=False)
            yield "ShareAcknowledge", 2, _fixed(**fields)


def _offsets() -> Iterator[tuple[str, int, Fields]]:
    topics = tuple(
        of_groups.DescribeOffsetsTopic(topic_name=name, partitions=(0,)) for name in _TOPICS
    )
    groups = tuple(
        of_groups.DescribeOffsetsGroup(group_id=group, topics=wanted)
        for group in (NO, SHARE, IDLE)
        for wanted in (topics, None, (), topics[1:2])
    )
    starts = tuple(
        of_groups.AlterOffsetsTopic(
            topic_name=name,
            partitions=(of_groups.AlterOffsetsPartition(partition_index=0, start_offset=0),),
        )
        for name in _TOPICS
    )
    forgotten = tuple(of_groups.DeleteOffsetsTopic(topic_name=name) for name in _TOPICS)
    for version in (0, 1):
        yield "DescribeShareGroupOffsets", version, _fixed(groups=groups)
    for group in (SHARE, NO, IDLE):
        yield "AlterShareGroupOffsets", 0, _fixed(group_id=group, topics=starts)
        yield "DescribeShareGroupOffsets", 1, _fixed(groups=groups)
        yield "DeleteShareGroupOffsets", 0, _fixed(group_id=group, topics=forgotten)


def _states() -> Iterator[tuple[str, int, Fields]]:
    """Yield what only brokers ask each other, of a topic that is not there."""

    def about(topic: type[Any], partition: Message) -> Fields:
        named = topic(topic_id=uuid.UUID(int=5), partitions=(partition,))
        return _fixed(group_id="g", topics=(named,))

    begin = of_state.StateToBegin(partition=0, state_epoch=0, start_offset=0)
    read = of_state.StateToRead(partition=0, leader_epoch=0)
    write = of_state.StateToWrite(
        partition=0, state_epoch=0, leader_epoch=0, start_offset=0, state_batches=()
    )
    forget = of_state.StateToDelete(partition=0)
    yield "InitializeShareGroupState", 0, about(of_state.TopicToBegin, begin)
    yield "ReadShareGroupState", 0, about(of_state.TopicToRead, read)
    yield "WriteShareGroupState", 1, about(of_state.TopicToWrite, write)
    yield "DeleteShareGroupState", 0, about(of_state.TopicToDelete, forget)
    yield "ReadShareGroupStateSummary", 1, about(of_state.TopicToRead, read)


def _quorum() -> Iterator[tuple[str, int, Fields]]:
    """Yield what is asked about brokers and voters that are not there."""
    stranger = {"voter_id": 5, "voter_directory_id": uuid.UUID(int=5), "cluster_id": None}
    yield "UnregisterBroker", 0, _fixed(broker_id=99)
    yield "AddRaftVoter", 1, _fixed(**stranger, timeout_ms=1, listeners=())
    yield "RemoveRaftVoter", 0, _fixed(**stranger)


def _streams() -> Iterator[tuple[str, int, Fields]]:
    plain = subtopology("0", OK, state_changelog_topics=(internal(LOG),))
    told = (
        topology(subtopology("0", OK, NO)),
        topology(subtopology("0", OK, repartition_sink_topics=(NO,))),
        topology(subtopology("0", OK, repartition_source_topics=(internal(NO),))),
        topology(subtopology("0", OK, state_changelog_topics=(internal(NO),))),
        topology(subtopology("0", NO, "a/b")),
        topology(subtopology("0", NO, "__consumer_offsets")),
    )
    for group in (STREAMS, NO):
        fields = {"group_id": group, "member_id": "stranger", "member_epoch": 5}
        yield "StreamsGroupHeartbeat", 0, _fixed(**fields)
        for one in told:
            yield "StreamsGroupHeartbeat", 0, _fixed(**fields, topology=one)
    first = {"group_id": STREAMS, "member_id": MEMBER, "member_epoch": 0}
    yield "StreamsGroupHeartbeat", 0, _fixed(**first, **joining(topology(plain)))
    names = (STREAMS, NO, GONE)
    yield "StreamsGroupDescribe", 0, _fixed(group_ids=names, include_authorized_operations=1)


#: API, version and fields
GROUP_REQUESTS = (*_heartbeats(), *_reads(), *_offsets(), *_states(), *_quorum(), *_streams())
