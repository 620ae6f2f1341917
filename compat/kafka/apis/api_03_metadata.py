"""
Metadata (3): versions 0-13. Which topics there are and where to find them.

* topics null: all (v0: an empty list); an empty list: none
* a topic that is not there is created if the request (v4) and ``auto.create.topics.enable`` allow
  it; as with Kafka the answer to that is 3, and the topic is there when the client asks again
* 3 unknown, 17 not a name that a topic can have, 100 unknown id
* nodes that are down are not told; a partition that nobody can lead has an error (5) and no leader,
  also one that is not in this directory, but in another of ``log.dirs`` or on another node
* v0: replicas that are down are not told, and are the partition's error (9)
* v1: rack, controller, internal topics; v2: cluster id; v3: throttle time; v5: offline replicas
* v7: leader epoch; v8: authorized operations (of the cluster until v10, see DescribeCluster)
* v9: flexible; v10: topic ids in the answer; v12: topics by id, names are not looked at then
* v13: an error of the whole answer (129 in Kafka, for clients that must bootstrap again: never)

Read and written by hand: it stands before the first record of every connection.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.authorized_operations import (
    CLUSTER_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
    bit_field,
)
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import MalformedRequestError, Reader
from logstore.compat.kafka.node_endpoint import write_node
from logstore.compat.kafka.nodes.placement import NOBODY
from logstore.compat.kafka.registry import RawRequest
from logstore.compat.kafka.topics.creation import create_automatically
from logstore.compat.kafka.topics.names import INTERNAL_TOPICS, flaw_of
from logstore.compat.kafka.writer import Writer
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.nodes.placement import Placement
    from logstore.compat.kafka.security.listener import Listener
    from logstore.segments.kafka.topic import Topic

_log = logging.getLogger(__name__)
_FLEXIBLE_FROM = 9
_TOPIC_IDS_FROM = 10
_TOPICS_BY_ID_FROM = 12
_NO_ID = bytes(16)
_NO_NAME: bytes = b""
_NO_CONTROLLER = -1
_NO_EPOCH = -1
#: what may be done with a topic is not told where it has no name to ask about
_WITHOUT_OPERATIONS = (ErrorCode.UNKNOWN_TOPIC_ID,)
_PARTITION = struct.Struct(">hii")  # error, index, leader
_PARTITION_V7 = struct.Struct(">hiii")  # and the leader's epoch


class _Wanted(NamedTuple):
    """One topic of a question: its id (zeros: none) and its name."""

    topic_id: bytes
    name: bytes | None


class _Question(NamedTuple):
    """`topics` None asks for all."""

    topics: list[_Wanted] | None
    may_create: bool
    wants_cluster_operations: bool
    wants_topic_operations: bool


class _Answered(NamedTuple):
    """One topic of the answer; `topic` is None where there is an error."""

    error: ErrorCode
    topic_id: bytes
    name: bytes | None
    topic: Topic | None = None


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Answer where topics are."""
    version = request.version
    question = _read(request)
    answered: list[_Answered] = []
    error = _flaw_of(question, version)
    if question.topics is None:
        answered = [_found(topic) for topic in broker.topics.values()]
    elif error is not ErrorCode.NONE:
        answered = [
            _Answered(error, wanted.topic_id, wanted.name or _NO_NAME) for wanted in question.topics
        ]
    else:
        answered = _look_up(broker, client, question, question.topics)
    writer = Writer(is_flexible=request.is_flexible)
    if version >= 3:
        writer.i32(0)
    if error is ErrorCode.NONE:
        _write_cluster(writer, broker, client.listener, version)
    else:
        _write_no_cluster(writer, version)
    writer.count(len(answered))
    operations = bit_field(TOPIC_OPERATIONS) if question.wants_topic_operations else NOT_ASKED
    places = _Places(broker, version)
    for found in answered:
        _write_topic(writer, found, version, places)
        if version >= 8:
            is_told = found.error not in _WITHOUT_OPERATIONS and error is ErrorCode.NONE
            writer.i32(operations if is_told else NOT_ASKED)
        writer.tags()
    if 8 <= version <= 10:
        wants_operations = question.wants_cluster_operations
        is_told = wants_operations and error is ErrorCode.NONE
        writer.i32(bit_field(CLUSTER_OPERATIONS) if is_told else NOT_ASKED)
    if version >= 13:
        writer.i16(error)
    writer.tags()
    return [writer.frame(request.correlation_id)]


def _read(request: RawRequest) -> _Question:
    version = request.version
    reader = Reader(request.data, request.position, is_flexible=request.is_flexible)
    count = reader.length(4)
    is_all = count < 0 or (version == 0 and count == 0)
    topics: list[_Wanted] = []
    for _ in range(count):
        topic_id = bytes(reader.take(16)) if version >= _TOPIC_IDS_FROM else _NO_ID
        name = reader.string()
        if name is None and version < _TOPIC_IDS_FROM:
            raise MalformedRequestError("a topic's name is null")
        reader.tags()
        topics.append(_Wanted(topic_id, name))
    question = _Question(
        None if is_all else topics,
        may_create=reader.i8() != 0 if version >= 4 else True,
        wants_cluster_operations=8 <= version <= 10 and reader.i8() != 0,
        wants_topic_operations=version >= 8 and reader.i8() != 0,
    )
    reader.tags()
    return question


def _flaw_of(question: _Question, version: int) -> ErrorCode:
    """Return why a question is refused as a whole: v10 and v11 have fields of later ones."""
    topics = question.topics or ()
    if version < _TOPIC_IDS_FROM or not topics:
        return ErrorCode.NONE
    has_ids = any(wanted.topic_id != _NO_ID for wanted in topics)
    has_nameless = any(wanted.name is None for wanted in topics)
    if version < _TOPICS_BY_ID_FROM:
        return ErrorCode.INVALID_REQUEST if has_ids or has_nameless else ErrorCode.NONE
    # Neither a name nor an id: Kafka stumbles, and says so of the whole request.
    return ErrorCode.UNKNOWN_SERVER_ERROR if has_nameless and not has_ids else ErrorCode.NONE


def _look_up(
    broker: Broker, client: Client, question: _Question, topics: list[_Wanted]
) -> list[_Answered]:
    """
    Return what is known of each wanted topic, once; by id if there is any id.

    Ids that are unknown come first, names that are unknown last: those that no topic can have
    before those that are created now.
    """
    ids = dict.fromkeys(wanted.topic_id for wanted in topics if wanted.topic_id != _NO_ID)
    if ids:
        found = [_by_id(broker, topic_id) for topic_id in ids]
        return sorted(found, key=lambda one: one.topic is not None)
    may_create = question.may_create and broker.config.auto_create_topics_enable
    names = dict.fromkeys(wanted.name or _NO_NAME for wanted in topics)
    found = [_by_name(broker, name) for name in names]
    found.sort(key=lambda one: one.topic is None)
    if may_create:
        found.sort(key=lambda one: one.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return [
            _created(broker, client, one)
            if one.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else one
            for one in found
        ]
    return found


def _found(topic: Topic) -> _Answered:
    return _Answered(ErrorCode.NONE, topic.topic_id, topic.name.encode(), topic)


def _by_id(broker: Broker, topic_id: bytes) -> _Answered:
    topic = broker.topic_by_id(topic_id)
    if topic is None:
        return _Answered(ErrorCode.UNKNOWN_TOPIC_ID, topic_id, None)
    return _found(topic)


def _by_name(broker: Broker, raw_name: bytes) -> _Answered:
    name = raw_name.decode(errors="replace")
    topic = broker.topics.get(name)
    if topic is not None:
        return _found(topic)
    if (flaw_of(name) or broker.flaw_of_new_topic(name)) is not None:
        return _Answered(ErrorCode.INVALID_TOPIC_EXCEPTION, _NO_ID, raw_name)
    return _Answered(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _NO_ID, raw_name)


def _created(broker: Broker, client: Client, asked: _Answered) -> _Answered:
    """Create a topic that was asked for; a client to whom it does not appear asks no further."""
    name = (asked.name or _NO_NAME).decode()
    try:
        create_automatically(broker, name)
    except (LogStoreError, OSError) as error:
        _log.warning("topic %s is not created automatically: %s", name, error)
        return asked
    if broker.emulation is None:
        return asked
    node_id = broker.nodes.node_of(client.listener).node_id
    is_controller = node_id == broker.nodes.controller_id
    return asked._replace(error=broker.emulation.error_of_new_topics(is_controller=is_controller))


def _write_cluster(writer: Writer, broker: Broker, listener: Listener, version: int) -> None:
    nodes = broker.nodes.up
    writer.count(len(nodes))
    for node in nodes:
        write_node(node, listener, writer, has_rack=version >= 1)
    if version >= 2:
        writer.string(broker.cluster_id.encode() if broker.cluster_id else None)
    if version >= 1:
        writer.i32(broker.nodes.controller_id)


def _write_no_cluster(writer: Writer, version: int) -> None:
    """Write what stands there in the answer to a question that failed."""
    writer.count(0)
    if version >= 2:
        writer.string(None)
    if version >= 1:
        writer.i32(_NO_CONTROLLER)


class _Places:
    """Where partitions are, as a version writes it; most have it in common."""

    def __init__(self, broker: Broker, version: int) -> None:
        self.placement = broker.placements.find
        self._nodes = broker.nodes
        self._version = version
        self._written: dict[Placement, bytes] = {}

    def written(self, placement: Placement) -> bytes:
        """Return what a partition's entry ends with: replicas, in-sync ones, offline ones."""
        found = self._written.get(placement)
        if found is None:
            found = self._written[placement] = self._write(placement)
        return found

    def told(self, placement: Placement) -> Placement:
        """Return a placement without what a version keeps quiet about."""
        if self._version >= 1:
            return placement
        up = self._nodes.ids_up
        replicas, in_sync = (
            tuple(one for one in node_ids if one in up)
            for node_ids in (placement.replicas, placement.in_sync)
        )
        return placement._replace(replicas=replicas, in_sync=in_sync)

    def _write(self, placement: Placement) -> bytes:
        writer = Writer(is_flexible=self._version >= _FLEXIBLE_FROM)
        told = self.told(placement)
        lists = [told.replicas, told.in_sync]
        if self._version >= 5:
            lists.append(self._nodes.down_among(placement.replicas))
        for node_ids in lists:
            writer.i32s(node_ids)
        writer.tags()
        return writer.body()


def _write_topic(writer: Writer, found: _Answered, version: int, places: _Places) -> None:
    writer.i16(found.error)
    writer.string(found.name)
    if version >= _TOPIC_IDS_FROM:
        writer.raw(found.topic_id)
    if version >= 1:
        writer.boolean((found.name or b"").decode(errors="replace") in INTERNAL_TOPICS)
    topic = found.topic
    if topic is None:
        writer.count(0)
        return
    partitions = topic.partitions
    # All that are here, as a rule; clients count what they are told, so none is left out.
    count = topic.partition_count
    writer.count(count)
    pieces = writer.pieces
    for index in range(count):
        placement, partition = places.placement(topic, index), partitions.get(index)
        leader = NOBODY if partition is None else placement.leader
        error = ErrorCode.LEADER_NOT_AVAILABLE if leader == NOBODY else ErrorCode.NONE
        if version == 0 and not error and places.told(placement) != placement:
            error = ErrorCode.REPLICA_NOT_AVAILABLE
        if version >= 7:
            epoch = _NO_EPOCH if partition is None else partition.leader_epoch
            head = _PARTITION_V7.pack(error, index, leader, epoch)
        else:
            head = _PARTITION.pack(error, index, leader)
        pieces.append(head + places.written(placement))
