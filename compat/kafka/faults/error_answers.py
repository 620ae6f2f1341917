"""
The answer to a request that is to fail, as Kafka's own ``getErrorResponse`` of it would look.

Where a response has an error code at its top, that is all there is in it. Elsewhere it has an
element for each that the request named, down to the partitions, and each has the error. A few
answers are no use without what a served request would have had: of those only the code is changed.
"""

from __future__ import annotations

import uuid
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.kafka.connection import API_VERSIONS
from logstore.compat.kafka.declared_messages import answered
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import framed
from logstore.compat.kafka.library_messages import decoded, library_class

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.registry import Api, RawRequest

_FETCH = 1
#: the first version of Fetch with sessions, and that which tells no partitions beside an error
_SESSIONS_SINCE, _BARE_SINCE = 7, 13
#: what a fetch says at its top, and not of partitions
_AT_TOP = (
    ErrorCode.ILLEGAL_SASL_STATE,
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
_CODES = ("error_code", "partition_error_code")
_MESSAGES = ("error_message",)
#: what a request calls the list that its response mirrors, the likeliest first
_SOURCES = (
    "topics", "topic_data", "topic_names", "v3_and_below_topics", "groups", "groups_names",
    "coordinator_keys", "resources", "transactional_ids", "partitions", "partition_data",
    "partition_indexes", "topic_partitions", "creations", "filters",
)  # fmt: skip
_LISTS_OF_PARTITIONS = ("partition_data", "partition_indexes")
#: what elements are known by; a request and its response do not always agree on the word
_TEXT_KEYS = ("name", "topic", "group_id", "key", "transactional_id")
_NUMBER_KEYS = ("partition_index", "partition", "index", "partition_id")
#: what a request asks for, and the answer to one that fails does not tell: -1
_UNTOLD = ("num_partitions", "replication_factor", "high_watermark")
#: ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments, AlterClientQuotas: what
#: was asked is told whether or not there is an error beside it
_TOLD_IN_FULL = frozenset({43, 45, 46, 49})
#: Produce, WriteTxnMarkers: no topic is told that has no partitions
_BY_PARTITION = frozenset({0, 27})
#: what is called so in an answer is just its name in a request
_OTHER_WORDS = {"topic_name": ("name",), "user": ("name",)}
#: what Kafka says of nobody, where its schema would say 0
_NOBODY = ("node_id", "port")
#: whose name may be null: that of everybody without one of his own
_OR_NOBODY = ("entity_name",)
#: what stays 0 of a transaction that is not described
_UNDESCRIBED = ("producer_id", "transaction_start_time_ms")


@attrs.frozen
class _Failure:
    key: int
    version: int
    code: int
    message: str | None

    @property
    def is_told_in_full(self) -> bool:
        """Tell whether an error beside them all leaves what was asked in the answer."""
        if self.key == _FETCH:
            return self.code == ErrorCode.ILLEGAL_SASL_STATE and self.version < _BARE_SINCE
        return self.key in _TOLD_IN_FULL


def error_answer(
    broker: Broker, api: Api, request: RawRequest, code: ErrorCode, message: str
) -> list[Chunk] | None:
    """Return the frame that says so; None for a request that is not answered (acks 0)."""
    failure = _Failure(api.key, request.version, int(code), message or None)
    # With it come all messages that are our own; a broker with an authorizer does without them.
    from logstore.compat.kafka.faults.own_answers import OWN_ANSWERS

    own = OWN_ANSWERS.get(api.key)
    if own is not None:
        error = {"error_code": failure.code, "error_message": failure.message}
        return answered(own(request, error), request)
    asked = decoded(api, request)
    if getattr(asked, "acks", None) == 0:
        return None
    is_of_session = api.key == _FETCH and request.version >= _SESSIONS_SINCE
    if is_of_session and not asked.topics and code is not ErrorCode.ILLEGAL_SASL_STATE:
        asked.topics = _topics_of_session(broker, type(asked), asked)
    has_top = api.key != _FETCH or code in _AT_TOP
    kind = library_class(api, "Response")
    answer = _mirrored(kind, kind._struct, asked, failure, says_at_top=has_top)
    if is_of_session:
        answer.session_id = asked.session_id
    body: bytes = answer.encode(version=request.version)
    return [framed(request.correlation_id, body, has_tags=_has_tags(api, request))]


def failed_answer(
    api: Api,
    asked: Any,
    version: int,
    code: ErrorCode,
    message: str | None,
    *,
    says_at_top: bool = True,
) -> Any:
    """
    Return the answer to a decoded request that says so, as the library has it.

    Not `says_at_top`, it says so only of each thing that was asked for.
    """
    kind = library_class(api, "Response")
    failure = _Failure(api.key, version, int(code), message)
    return _mirrored(kind, kind._struct, asked, failure, says_at_top=says_at_top)


def spoilt(api: Api, request: RawRequest, frame: bytes, code: ErrorCode, topic: str) -> list[Chunk]:
    """Return the answer to a request that was served, with the code in it; of matching topics."""
    version = request.version
    answer = library_class(api, "Response").decode(frame, version=version, header=True, framed=True)
    field = answer._struct.fields.get("error_code")
    if field is not None and field.for_version_q(version):
        answer.error_code = int(code)
    for found in getattr(answer, "topics", None) or ():
        if fnmatchcase(found.name or "", topic):
            found.error_code = int(code)
    answer._header = None  # the library would write a request's version into it
    body: bytes = answer.encode(version=version)
    return [framed(request.correlation_id, body, has_tags=_has_tags(api, request))]


def _has_tags(api: Api, request: RawRequest) -> bool:
    """Tell whether an answer's header has tags; that of ApiVersions never does."""
    return request.is_flexible and api.key != API_VERSIONS


def _topics_of_session(broker: Broker, kind: Any, asked: Any) -> list[Any]:
    """Return what an incremental fetch need not say: the partitions of its session."""
    by_topic: dict[bytes, list[Any]] = {}
    for key, index in broker.fetch_sessions.partitions_of(asked.session_id):
        wanted = kind.FetchTopic.FetchPartition(version=asked.version, partition=index)
        by_topic.setdefault(key, []).append(wanted)
    topics: list[Any] = []
    for key, partitions in by_topic.items():
        topic = broker.topic_by_id(key)
        about = (
            {"topic": key.decode()}
            if topic is None
            else {"topic_id": uuid.UUID(bytes=topic.topic_id)}
        )
        topics.append(kind.FetchTopic(version=asked.version, partitions=partitions, **about))
    return topics


def _mirrored(
    kind: Any, struct: Any, asked: Any, failure: _Failure, *, says_at_top: bool | None = None
) -> Any:
    """
    Return a message of class `kind` that says of all that was asked that it failed.

    `says_at_top` is about a whole answer, and None of an element.
    """
    values: dict[str, Any] = {}
    is_told = says_at_top is not False
    present = [field for field in struct._fields if field.for_version_q(failure.version)]
    has_code = is_told and any(field.name in _CODES for field in present)
    is_bare = has_code and says_at_top is not None
    is_in_full = failure.is_told_in_full
    for field in present:
        if field.name in _CODES:
            values[field.name] = failure.code if is_told else 0
        elif field.name in _MESSAGES:
            values[field.name] = failure.message
        elif field.is_struct_array():
            if is_in_full or (not has_code and _tells_errors(field, failure.version)):
                inner = getattr(kind, field.type_str)
                values[field.name] = [
                    _mirrored(inner, field, element, failure)
                    for element in _source(asked, field)
                    if not (failure.key in _BY_PARTITION and _is_empty(element))
                ]
        elif is_bare:
            _leave_out(values, field, failure.version)
        else:
            _copy_key(values, field, asked)
    return kind(version=failure.version, **values)


def _leave_out(values: dict[str, Any], field: Any, version: int) -> None:
    """Say of a field beside the only code what Kafka says, where that is not its default."""
    if field.name in (*_NOBODY, "producer_epoch"):
        values[field.name] = -1
    elif field.type_str == "string" and field.nullable_for_version_q(version):
        values[field.name] = None


def _tells_errors(struct: Any, version: int) -> bool:
    """Tell whether there is an error code in it, however deep."""
    return any(
        field.for_version_q(version)
        and (field.name in _CODES or (field.is_struct_array() and _tells_errors(field, version)))
        for field in struct._fields
    )


def _is_empty(element: Any) -> bool:
    """Tell whether a topic was named without any partition."""
    return any(getattr(element, name, None) == [] for name in _LISTS_OF_PARTITIONS)


def _source(asked: Any, field: Any) -> list[Any]:
    """Return what a response's list mirrors: a list of the request at the same depth."""
    for name in (field.name, *_SOURCES):
        elements = _listed(asked, name)
        if elements:
            return elements
    users = [*_listed(asked, "deletions"), *_listed(asked, "upsertions")]
    if users:  # AlterUserScramCredentials asks for both and answers each user once
        by_name = {one.name: one for one in users}
        return [by_name[name] for name in sorted(by_name, key=lambda it: it.encode("utf-16-be"))]
    # AlterReplicaLogDirs asks by directory and answers by topic
    return [one for element in _listed(asked, "dirs") for one in _source(element, field)]


def _listed(asked: Any, name: str) -> list[Any]:
    found: Any = getattr(asked, name, None)
    return found if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def _copy_key(values: dict[str, Any], field: Any, asked: Any) -> None:
    """Copy what the element is known by, be it an element or just a word or number itself."""
    name = field.name
    found: Any
    if name in _UNTOLD:
        found = -1
    elif isinstance(asked, str):
        found = asked if name in _TEXT_KEYS else None
    elif isinstance(asked, int):
        found = asked if name in _NUMBER_KEYS else None
    else:
        words = _NUMBER_KEYS if name in _NUMBER_KEYS else (name, *_OTHER_WORDS.get(name, ()))
        found = next((getattr(asked, word) for word in words if hasattr(asked, word)), None)
    if found is not None or name in _OR_NOBODY:
        values[name] = found
    elif name in _NOBODY and not hasattr(asked, name):
        values[name] = -1
    elif name in _UNDESCRIBED:
        values[name] = 0
    elif field.type_str == "int64" and not field.tagged_field_q(0):
        values[name] = -1  # offsets and times of what is not known
