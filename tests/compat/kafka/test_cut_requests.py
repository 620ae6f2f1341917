"""Requests that end too early, by a single byte: whoever sends one is hung up on, as by Kafka."""

from __future__ import annotations

import struct

import pytest

from logstore.compat.kafka.faults.own_answers import OWN_ANSWERS
from logstore.compat.kafka.registry import APIS, Api
from logstore.segments.kafka.internal_topics.codec import encode_message
from tests.compat.kafka.conversation import joined
from tests.compat.kafka.faults.test_error_answers import filled_of_ours
from tests.compat.kafka.own_messages import own_messages
from tests.compat.kafka.peer import a_broker
from tests.compat.kafka.security.test_every_version import request

_LENGTH = struct.Struct(">i")


def payload_of(api: Api, version: int, topic_id: bytes) -> bytes:
    """Return a request with something in every field, without its length."""
    if api.key not in OWN_ANSWERS:
        return request(api, version, topic_id)[_LENGTH.size :]
    tags = b"\0" if api.is_flexible(version) else b""
    header = struct.pack(">hhih", api.key, version, 7, 4) + b"test" + tags
    return header + encode_message(filled_of_ours(own_messages(api)[0]), version)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_a_request_that_is_cut_by_a_byte_is_none(api: Api) -> None:
    """In every version, whatever its last field is; nothing is answered and nothing done."""
    broker = a_broker()
    topic_id = broker.create_topic("word", 1).topic_id
    for version in range(api.version_min, api.version_max + 1):
        payload = payload_of(api, version, topic_id)[:-1]
        connection = broker.connect("127.0.0.1")
        frame = joined(connection.feed(_LENGTH.pack(len(payload)) + payload))
        assert (frame, connection.is_closing) == (b"", True), f"version {version}"
