"""
Guard of Produce: to write the transaction, and each topic.

What a connection sends to the same topics as before was looked at then: as long as no rule changes
it goes the handler's short way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.faults.error_answers import error_answer
from logstore.compat.kafka.framing import MalformedRequestError, Reader
from logstore.compat.kafka.library_messages import library_class
from logstore.compat.kafka.message_handlers import (
    ask_handler,
    changed,
    read_message,
    write_answer,
)
from logstore.compat.kafka.produce.batches import read_batches
from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.guarded_request import REFUSALS
from logstore.segments.kafka.record_batch import TRANSACTIONAL_BIT

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import Api, RawRequest
    from logstore.compat.kafka.security.authorizer import Authorizer
    from logstore.compat.waiting import Later

_IDS_SINCE = 13
_TRANSACTION, _TOPIC = ResourceType.TRANSACTIONAL_ID, ResourceType.TOPIC


class _Asked(NamedTuple):
    """What is written: the transaction, and topics by name or id."""

    transactional_id: str | None
    acks: int
    topics: list[bytes]
    is_transactional: bool


def produce(
    authorizer: Authorizer, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Append what may be written, and refuse the rest."""
    assert api.handle_raw is not None
    route = client.produce_route
    if route is not None:
        start = route.start_of(raw.data, raw.position)
        if start >= 0 and authorizer.knows_route(client, route) and route.split(raw.data, start):
            return api.handle_raw(broker, client, raw)
        client.produce_route = None
    asked = _read(raw)
    transactional_id = asked.transactional_id
    if asked.is_transactional and not (
        transactional_id is not None
        and authorizer.allows(client, Operation.WRITE, _TRANSACTION, transactional_id)
    ):
        return _refuse_all(broker, api, raw, asked)
    refused = {key for key in asked.topics if not _may(authorizer, broker, client, raw, key)}
    if refused:
        return _spare(broker, api, client, raw, asked, refused)
    answer = api.handle_raw(broker, client, raw)
    if client.produce_route is not None:
        authorizer.note_route(client, client.produce_route)
    return answer


def _read(raw: RawRequest) -> _Asked:
    reader = Reader(raw.data, raw.position, is_flexible=raw.is_flexible)
    transactional_id = reader.string()
    acks = reader.i16()
    reader.i32()
    topics: list[bytes] = []
    attributes = 0
    for _ in range(reader.count()):
        topics.append(bytes(reader.take(16)) if raw.version >= _IDS_SINCE else reader.text())
        _, of_topic = read_batches(reader, reader.count())
        attributes |= of_topic
        reader.tags()
    reader.tags()
    name = None if transactional_id is None else transactional_id.decode(errors="replace")
    return _Asked(name, acks, topics, bool(attributes & TRANSACTIONAL_BIT))


def _may(
    authorizer: Authorizer, broker: Broker, client: Client, raw: RawRequest, key: bytes
) -> bool:
    """Tell whether a topic may be written; one that nobody knows is the handler's to refuse."""
    if raw.version < _IDS_SINCE:
        return authorizer.allows(client, Operation.WRITE, _TOPIC, key.decode(errors="replace"))
    topic = broker.topic_by_id(key)
    return topic is None or authorizer.allows(client, Operation.WRITE, _TOPIC, topic.name)


def _refuse_all(broker: Broker, api: Api, raw: RawRequest, asked: _Asked) -> list[Chunk] | None:
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if asked.acks == 0:
        raise MalformedRequestError(f"acks 0, and the append failed: {code.name}")
    return error_answer(broker, api, raw, code, "")


def _spare(
    broker: Broker, api: Api, client: Client, raw: RawRequest, asked: _Asked, refused: set[bytes]
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Append to the topics that may be written, and add to the answer that the others may not."""
    message = read_message(api, raw)
    topics = list(zip(asked.topics, message.topic_data, strict=True))
    message.topic_data = [topic for key, topic in topics if key not in refused]
    answer = ask_handler(api, broker, client, raw, message) if message.topic_data else None
    if asked.acks == 0:
        raise MalformedRequestError("acks 0, and the append failed: TOPIC_AUTHORIZATION_FAILED")
    response_class = library_class(api, "Response")
    results = [
        _refused_topic(response_class.TopicProduceResponse, raw.version, topic)
        for key, topic in topics
        if key in refused
    ]

    def finished(served: Any) -> list[Chunk]:
        served.responses = [*served.responses, *results]
        return write_answer(raw, served)

    if answer is None:
        answer = response_class(version=raw.version, responses=[])
    found: list[Chunk] | Later[list[Chunk]] = changed(answer, finished)
    return found


def _refused_topic(kind: Any, version: int, topic: Any) -> Any:
    identity = {"topic_id": topic.topic_id} if version >= _IDS_SINCE else {"name": topic.name}
    code = REFUSALS[_TOPIC][0]
    return kind(
        version=version,
        **identity,
        partition_responses=[
            kind.PartitionProduceResponse(
                version=version, index=partition.index, error_code=code, base_offset=-1,
                log_append_time_ms=-1, log_start_offset=-1, record_errors=[], error_message=None,
            )
            for partition in topic.partition_data
        ],
    )  # fmt: skip
