"""The answers to requests that are to fail: of every API, in every version."""

from __future__ import annotations

import re
import struct
import uuid
from typing import Any

import attrs
import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.faults.error_answers import error_answer
from logstore.compat.kafka.faults.faulty_connection import SERVED_ALL_THE_SAME
from logstore.compat.kafka.faults.own_answers import OWN_ANSWERS
from logstore.compat.kafka.groups.consumer.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from logstore.compat.kafka.groups.streams.messages import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from logstore.compat.kafka.library_messages import library_class
from logstore.compat.kafka.registry import APIS, Api, RawRequest
from logstore.segments.kafka.internal_topics.codec import decode_message, encode_message
from logstore.segments.kafka.internal_topics.schema import ArrayOf, Message, empty, fields_of
from tests.compat.kafka.conversation import Conversation, build, joined, message_class, plain
from tests.compat.kafka.own_messages import own_messages

CODE = ErrorCode.KAFKA_STORAGE_ERROR
#: whose messages the library does not have
BY_HAND = tuple(OWN_ANSWERS)
VERSIONS = [
    (api, version)
    for api in APIS.values()
    if api.key not in (*BY_HAND, *SERVED_ALL_THE_SAME)
    for version in range(api.version_min, api.version_max + 1)
]


def filled(kind: Any, struct: Any, version: int) -> Any:
    """Return a message with one element in each list, and a word in each text."""
    values: dict[str, Any] = {}
    for field in struct._fields:
        if not field.for_version_q(version):
            continue
        if field.is_struct_array():
            values[field.name] = [filled(getattr(kind, field.type_str), field, version)]
        elif field.is_struct():
            values[field.name] = filled(getattr(kind, field.type_str), field, version)
        elif field.is_array():
            values[field.name] = ["word"] if "string" in field.type_str else [0]
        elif field.type_str == "string":
            values[field.name] = "word"
        elif field.name == "acks":
            values[field.name] = -1
    return kind(version=version, **values)


def codes_in(told: object) -> set[int]:
    """Return every error code in a message, however deep."""
    return {int(code) for code in re.findall(r"error_code': (-?\d+)", repr(told))}


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=lambda of: getattr(of, "name", of))
def test_every_api_in_every_version(api: Api, version: int) -> None:
    """The library reads the answer, and finds the code in it and no other."""
    kind = library_class(api, "Request")
    body = filled(kind, kind._struct, version).encode(version=version)
    request = RawRequest(version, 7, memoryview(body), 0, version >= api.flexible_from)
    answer = error_answer(Conversation().broker, api, request, CODE, "the disk is broken")
    assert answer is not None
    told = plain(
        library_class(api, "Response").decode(
            joined(answer), version=version, header=True, framed=True
        )
    )
    assert codes_in(told) - {0} == {CODE}, told


MEMBER: dict[str, Any] = {"group_id": "A", "member_id": "m", "group_instance_id": None}
JOINING: dict[str, Any] = {
    **MEMBER, "session_timeout_ms": 9000, "rebalance_timeout_ms": 9000, "reason": None,
    "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b""}],
}  # fmt: skip
SYNCING: dict[str, Any] = {
    **MEMBER, "generation_id": 1, "protocol_type": "consumer", "protocol_name": "range",
    "assignments": [],
}  # fmt: skip
PRODUCER: dict[str, Any] = {"transactional_id": "A", "producer_id": 1, "producer_epoch": 0}
ENDING: dict[str, Any] = {**PRODUCER, "committed": True}
BEGINNING: dict[str, Any] = {**PRODUCER, "transaction_timeout_ms": 1000}
SEVERAL: dict[str, Any] = {"key_type": 0, "coordinator_keys": ["A"]}
#: an answer behind its header
BODIES: list[tuple[str, int, dict[str, Any], str]] = [
    ("JoinGroup", 5, JOINING, "00000000 0010 ffffffff 0000 0000 0000 00000000"),
    ("JoinGroup", 9, JOINING, "00 00000000 0010 ffffffff 00 00 01 00 01 01 00"),
    ("SyncGroup", 5, SYNCING, "00 00000000 0010 00 00 01 00"),
    ("EndTxn", 5, ENDING, "00 00000000 0010 ffffffffffffffff ffff 00"),
    ("InitProducerId", 4, BEGINNING, "00 00000000 0010 ffffffffffffffff ffff 00"),
    ("DescribeTransactions", 0, {"transactional_ids": ["A"]},
     f"00 00000000 02 0010 0241 01 00000000 {'00' * 16} 0000 01 00 00"),
    ("FindCoordinator", 3, {"key": "A", "key_type": 0},
     "00 00000000 0010 00 ffffffff 01 ffffffff 00"),
    ("FindCoordinator", 4, SEVERAL, "00 00000000 02 0241 ffffffff 01 ffffffff 0010 00 00 00"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "version", "fields", "wanted"), BODIES)
def test_what_was_asked_is_not_said_again(
    name: str, version: int, fields: dict[str, Any], wanted: str
) -> None:
    """A refusal tells of no member, protocol, producer or node; a real broker was seen so."""
    (api,) = (one for one in APIS.values() if one.name == name)
    body = build(message_class(f"{name}Request"), version, fields).encode(version=version)
    request = RawRequest(version, 7, memoryview(body), 0, version >= api.flexible_from)
    broker = Conversation().broker
    answer = error_answer(broker, api, request, ErrorCode.NOT_COORDINATOR, "")
    assert answer is not None
    assert joined(answer)[8:] == bytes.fromhex(wanted)


#: requests with errors of which the real one's answers leave what was asked, or do not
TOLD: list[tuple[str, int, dict[str, Any], str, object]] = [
    ("CreateTopics", 5, {"topics": [{"name": "t", "num_partitions": 2, "replication_factor": 3,
     "assignments": [], "configs": []}], "timeout_ms": 1, "validate_only": False},
     "num_partitions", -1),
    ("AlterClientQuotas", 0, {"entries": [{"entity": [{"entity_type": "user", "entity_name": None}],
     "ops": []}], "validate_only": False}, "entity",
     [{"entity_type": "user", "entity_name": None}]),
    ("ElectLeaders", 1, {"election_type": 0, "timeout_ms": 1,
     "topic_partitions": [{"topic": "t", "partitions": [4]}]}, "partition_id", 4),
    ("AlterPartitionReassignments", 0, {"timeout_ms": 1, "topics": [{"name": "t",
     "partitions": [{"partition_index": 4, "replicas": [1]}]}]}, "partition_index", 4),
    ("ListPartitionReassignments", 0, {"timeout_ms": 1,
     "topics": [{"name": "t", "partition_indexes": [4]}]}, "partition_index", 4),
    ("WriteTxnMarkers", 1, {"markers": [{"producer_id": 1, "producer_epoch": 0,
     "transaction_result": True, "coordinator_epoch": 0,
     "topics": [{"name": "t", "partition_indexes": []}]}]}, "topics", []),
]  # fmt: skip


def answered_with(name: str, version: int, fields: dict[str, Any], code: ErrorCode) -> Any:
    """Return what a request is told that fails with a code."""
    (api,) = (one for one in APIS.values() if one.name == name)
    body = build(message_class(f"{name}Request"), version, fields).encode(version=version)
    request = RawRequest(version, 7, memoryview(body), 0, version >= api.flexible_from)
    answer = error_answer(Conversation().broker, api, request, code, "")
    assert answer is not None
    response = library_class(api, "Response")
    return plain(response.decode(joined(answer), version=version, header=True, framed=True))


def values_of(told: Any, name: str) -> list[Any]:
    """Return the values of fields of a name, however deep."""
    if isinstance(told, list):
        elements: list[Any] = told  # pyright: ignore[reportUnknownVariableType]
        return [it for one in elements for it in values_of(one, name)]
    if not isinstance(told, dict):
        return []
    fields: dict[str, Any] = told  # pyright: ignore[reportUnknownVariableType]
    here = [fields[name]] if name in fields else []
    return here + [it for one in fields.values() for it in values_of(one, name)]


@pytest.mark.parametrize(("name", "version", "fields", "field", "wanted"), TOLD)
def test_what_is_said_of_what_was_asked(
    name: str, version: int, fields: dict[str, Any], field: str, wanted: object
) -> None:
    """As Kafka's own answers to failed requests have it."""
    assert values_of(answered_with(name, version, fields, CODE), field) == [wanted]


def test_a_refusal_of_versions_has_no_tags_in_its_header() -> None:
    """Else no client could read it."""
    fields = {"client_software_name": "a", "client_software_version": "1"}
    body = build(message_class("ApiVersionsRequest"), 3, fields).encode(version=3)
    request = RawRequest(3, 7, memoryview(body), 0, is_flexible=True)
    answer = error_answer(Conversation().broker, APIS[18], request, CODE, "")
    assert answer is not None
    assert joined(answer)[4:10] == struct.pack(">ih", 7, CODE)


@pytest.mark.parametrize(("version", "count"), [(12, 1), (13, 0)])
def test_a_fetch_out_of_place(version: int, count: int) -> None:
    """The code stands at the top, before version 13 at each partition, too."""
    partition = {
        "partition": 0, "current_leader_epoch": 0, "fetch_offset": 0, "last_fetched_epoch": 0,
        "log_start_offset": 0, "partition_max_bytes": 1,
    }  # fmt: skip
    which = {"topic": "t"} if version < 13 else {"topic_id": uuid.UUID(int=1)}
    fields = {
        "replica_id": -1, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1, "isolation_level": 0,
        "session_id": 0, "session_epoch": 0, "forgotten_topics_data": [], "rack_id": "",
        "topics": [{**which, "partitions": [partition]}],
    }  # fmt: skip
    told = answered_with("Fetch", version, fields, ErrorCode.ILLEGAL_SASL_STATE)
    assert told["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
    assert values_of(told["responses"], "high_watermark") == [-1] * count


def test_users_are_told_in_order() -> None:
    """Each once."""
    fields: dict[str, Any] = {
        "deletions": [{"name": "b", "mechanism": 1}, {"name": "b", "mechanism": 2}],
        "upsertions": [{"name": "a", "mechanism": 1, "iterations": 4096, "salt": b"",
                        "salted_password": b""}],
    }  # fmt: skip
    told = answered_with("AlterUserScramCredentials", 0, fields, CODE)
    assert values_of(told, "user") == ["a", "b"]


def test_what_is_not_answered() -> None:
    """A produce request with acks 0 has no answer that could say so."""
    kind = library_class(APIS[0], "Request")
    body = kind(version=9, acks=0, timeout_ms=1, topic_data=[]).encode(version=9)
    request = RawRequest(9, 7, memoryview(body), 0, is_flexible=True)
    assert error_answer(Conversation().broker, APIS[0], request, CODE, "") is None


@pytest.mark.parametrize("key", sorted(set(OWN_ANSWERS) - {68, 69, 88, 89}))
def test_messages_of_our_own(key: int) -> None:
    """Each of their APIs is answered with the code where it is told, and with no other."""
    api, version = APIS[key], APIS[key].version_max
    request_class, response_class = own_messages(api)
    asked = filled_of_ours(request_class)
    body = encode_message(asked, version)
    request = RawRequest(version, 7, memoryview(body), 0, is_flexible=True)
    answer = error_answer(Conversation().broker, api, request, CODE, "the disk is broken")
    assert answer is not None
    told = decode_message(response_class, joined(answer), version, 9)
    codes = {int(code) for code in re.findall(r"\berror_code=(-?\d+)", repr(told))}
    assert codes == {CODE}, told


@pytest.mark.parametrize(
    ("key", "wanted"),
    [(38, {"principal_name": "ANONYMOUS", "token_requester_principal_name": "ANONYMOUS"}),
     (39, {"expiry_timestamp_ms": 0}), (40, {"expiry_timestamp_ms": 0})],
)  # fmt: skip
def test_tokens_that_there_are_not(key: int, wanted: dict[str, object]) -> None:
    """They are nobody's, and end at no time."""
    api, version = APIS[key], APIS[key].version_max
    request_class, response_class = own_messages(api)
    body = memoryview(encode_message(empty(request_class), version))
    request = RawRequest(version, 7, body, 0, is_flexible=True)
    answer = error_answer(Conversation().broker, api, request, CODE, "")
    assert answer is not None
    told = decode_message(response_class, joined(answer), version, 9)
    assert {name: getattr(told, name) for name in wanted} == wanted


def filled_of_ours(kind: type[Message]) -> Any:
    """Return a message of our own with one element in each list."""
    lists = {
        field.name: (filled_of_ours(field.type.element),)
        for field in fields_of(kind)
        if isinstance(field.type, ArrayOf) and isinstance(field.type.element, type)
        if issubclass(field.type.element, Message)
    }
    if "group_ids" in {field.name for field in fields_of(kind)}:
        lists["group_ids"] = ("g",)
    return attrs.evolve(empty(kind), **lists)


def test_groups_of_the_new_protocol() -> None:
    """The two messages that the library does not have: each group is named in the answer."""
    heartbeat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)
    describe = ConsumerGroupDescribeRequest(
        group_ids=("g", "h"), include_authorized_operations=False
    )
    streams_heartbeat = StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)
    describe_streams = StreamsGroupDescribeRequest(
        group_ids=("g", "h"), include_authorized_operations=False
    )
    for api, asked, kind in (
        (APIS[68], heartbeat, ConsumerGroupHeartbeatResponse),
        (APIS[69], describe, ConsumerGroupDescribeResponse),
        (APIS[88], streams_heartbeat, StreamsGroupHeartbeatResponse),
        (APIS[89], describe_streams, StreamsGroupDescribeResponse),
    ):
        request = RawRequest(0, 7, memoryview(encode_message(asked, 0)), 0, is_flexible=True)
        answer = error_answer(Conversation().broker, api, request, CODE, "the disk is broken")
        assert answer is not None
        told: Any = decode_message(kind, joined(answer), 0, 9)
        groups = getattr(told, "groups", (told,))
        assert [group.error_code for group in groups] == [CODE] * len(groups)
        assert {group.error_message for group in groups} == {"the disk is broken"}
        assert [getattr(group, "group_id", "") for group in groups] in ([""], ["g", "h"])
