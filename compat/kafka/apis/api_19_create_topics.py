"""
CreateTopics (19): versions 2-7.

* the rules stand in ``topics.creation``; one refused topic does not hold the others up
* a name that comes twice is 42, once in the answer; too many partitions in one request are 44 for
  all of its topics
* v4: -1 partitions and replicas mean the broker's defaults
* v5: flexible; what was created: partitions, replicas, every setting and where it comes from
* v7: topic ids (zero for a topic that was only validated)
* no time at all: 7 for all of its topics, and none is made; but not where only those are named
  that are refused before

Read and written by hand: it is the first that a test asks of a broker that has just started, and
the protocol library takes longer to import than a topic to make.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.configs.entries import settings_of_created
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import MalformedRequestError, Reader
from logstore.compat.kafka.refused_request import RefusedRequestError, refusal_of
from logstore.compat.kafka.registry import RawRequest
from logstore.compat.kafka.topics.creation import (
    BROKER_DEFAULT,
    PARTITIONS_MAX,
    TopicPlan,
    carry_out,
    check,
)
from logstore.compat.kafka.topics.names import METADATA_TOPIC
from logstore.compat.kafka.topics.time_given import is_none_given, is_not_waited_for
from logstore.compat.kafka.writer import Writer
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_NO_ID = bytes(16)
_SHAPE_SINCE = 5
_ID_SINCE = 7


class _Result(NamedTuple):
    """What became of one topic; the defaults are those of a refused one."""

    error: int = ErrorCode.NONE
    message: str | None = None
    topic_id: bytes = _NO_ID
    partition_count: int = -1
    replication_factor: int = -1
    #: encoded as the answer has them; None where none are told
    settings: bytes | None = None


_TIMED_OUT = _Result(ErrorCode.REQUEST_TIMED_OUT)


class _ToldSettings:
    """The settings of new topics as the answer has them; those with the same share the work."""

    def __init__(self, broker: Broker, request: RawRequest) -> None:
        self._broker = broker
        self._request = request
        self._known: dict[tuple[tuple[str, str], ...], bytes] = {}

    def of(self, settings: Mapping[str, str]) -> bytes | None:
        """Return all that is told of a topic that has `settings` of its own, encoded."""
        if self._request.version < _SHAPE_SINCE:
            return None
        key = tuple(settings.items())
        if key not in self._known:
            self._known[key] = self._encoded(settings)
        return self._known[key]

    def _encoded(self, settings: Mapping[str, str]) -> bytes:
        writer = Writer(is_flexible=self._request.is_flexible)
        entries = settings_of_created(self._broker, settings)
        writer.count(len(entries))
        for entry in entries:
            writer.string(entry.name.encode())
            writer.string(None if entry.value is None else entry.value.encode())
            writer.boolean(False)  # read-only
            writer.raw(bytes((entry.source,)))
            writer.boolean(False)  # sensitive
            writer.tags()
        return writer.body()


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Create every topic that can be created."""
    del client
    reader = Reader(request.data, request.position, is_flexible=request.is_flexible)
    plans = [_read_plan(reader) for _ in range(reader.count())]
    timeout_ms = reader.i32()
    is_rehearsal = reader.i8() != 0
    reader.tags()
    counts = Counter(plan.name for plan in plans)
    has_news = any(counts[plan.name] == 1 and plan.name != METADATA_TOPIC for plan in plans)
    if has_news and is_none_given(broker, timeout_ms):
        return [_encode(request, [(plan.name, _TIMED_OUT) for plan in plans])]
    results: dict[str, _Result] = {}
    try:
        with broker.store.together():
            told = _ToldSettings(broker, request)
            _create_all(broker, plans, results, told, is_rehearsal=is_rehearsal)
    except (LogStoreError, OSError) as error:
        refusal = refusal_of(error, "making new topics durable")
        _fail(results, _Result(refusal.code, refusal.message))
    if is_not_waited_for(broker, timeout_ms) and not is_rehearsal:
        _fail(results, _TIMED_OUT)
    return [_encode(request, list(results.items()))]


def _create_all(
    broker: Broker,
    plans: list[TopicPlan],
    results: dict[str, _Result],
    told: _ToldSettings,
    *,
    is_rehearsal: bool,
) -> None:
    counts = Counter(plan.name for plan in plans)
    excess = _excess(broker, [one for one in plans if counts[one.name] == 1])
    for plan in plans:
        try:
            if excess is not None:
                raise excess
            if counts[plan.name] > 1:
                raise RefusedRequestError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            results[plan.name] = _create(broker, plan, told, is_rehearsal=is_rehearsal)
        except (LogStoreError, OSError) as error:
            refusal = refusal_of(error, f"creating topic {plan.name}")
            results[plan.name] = _Result(refusal.code, refusal.message)


def _fail(results: dict[str, _Result], failed: _Result) -> None:
    """Tell of all that went well that it did not."""
    results.update({name: failed for name, one in results.items() if not one.error})


def _read_plan(reader: Reader) -> TopicPlan:
    name, partition_count, replication_factor = _text(reader), reader.i32(), reader.i16()
    assignments: list[tuple[int, list[int]]] = []
    for _ in range(reader.count()):
        assignments.append((reader.i32(), [reader.i32() for _ in range(reader.count())]))
        reader.tags()
    settings: dict[str, str | None] = {}
    for _ in range(reader.count()):
        key, value = _text(reader), reader.string()
        # Of a key that comes twice the last value counts; but one without any is refused.
        if settings.get(key, "") is not None:
            settings[key] = None if value is None else value.decode()
        reader.tags()
    reader.tags()
    return TopicPlan(name, partition_count, replication_factor, assignments, settings)


def _text(reader: Reader) -> str:
    value = reader.string()
    if value is None:
        raise MalformedRequestError("CreateTopics: the name of a topic or setting is null")
    return value.decode()


def _excess(broker: Broker, plans: list[TopicPlan]) -> RefusedRequestError | None:
    """Return why the request as a whole is too much, None if it is not."""
    count = 0
    for plan in plans:
        if plan.name == METADATA_TOPIC:
            continue
        if plan.assignments:
            count += len(plan.assignments)
        elif plan.partition_count == BROKER_DEFAULT:
            count += broker.config.num_partitions
        else:
            count += max(plan.partition_count, 0)
    if count <= PARTITIONS_MAX:
        return None
    return RefusedRequestError(
        ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
    )


def _create(broker: Broker, plan: TopicPlan, told: _ToldSettings, *, is_rehearsal: bool) -> _Result:
    """Create one topic, or only see whether that would go."""
    checked = check(broker, plan)
    topic_id = _NO_ID
    if not is_rehearsal:
        topic_id = carry_out(broker, checked).topic_id
    return _Result(
        topic_id=topic_id,
        partition_count=checked.partition_count,
        replication_factor=checked.replication_factor,
        settings=told.of(checked.settings),
    )


def _encode(request: RawRequest, results: list[tuple[str, _Result]]) -> bytes:
    writer = Writer(is_flexible=request.is_flexible)
    writer.i32(0)  # throttle time
    writer.count(len(results))
    for name, result in results:
        writer.string(name.encode())
        if request.version >= _ID_SINCE:
            writer.raw(result.topic_id)
        writer.i16(result.error)
        writer.string(None if result.message is None else result.message.encode())
        if request.version >= _SHAPE_SINCE:
            _write_shape(writer, result)
        writer.tags()
    writer.tags()
    return writer.frame(request.correlation_id)


def _write_shape(writer: Writer, result: _Result) -> None:
    writer.i32(result.partition_count)
    writer.i16(result.replication_factor)
    if result.settings is None:
        writer.count(0)
    else:
        writer.raw(result.settings)
