"""The answers to requests that are to fail: of every API, in every version."""

from __future__ import annotations

import re
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
