"""Every guarded API in every version: who may nothing is refused, and who may everything is not."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import uuid
from typing import Any

import attrs
import pytest

from logstore.compat.kafka.faults.own_answers import OWN_ANSWERS
from logstore.compat.kafka.library_messages import library_class
from logstore.compat.kafka.registry import APIS, Api
from logstore.compat.kafka.security.guards import OPEN
from logstore.compat.kafka.security.principal import USER, Principal
from logstore.segments.kafka.internal_topics.codec import decode_message, encode_message
from tests.compat.kafka.conversation import joined, plain
from tests.compat.kafka.faults.test_error_answers import codes_in, filled, filled_of_ours
from tests.compat.kafka.own_messages import own_messages
from tests.compat.kafka.security.access import GuardedConversation

REFUSALS = {29, 30, 31, 53}
#: of these the answer just has less in it
QUIET = {16, 60, 66}
EVERY_VERSION = [
    (api, version)
    for api in APIS.values()
    if api.key not in OPEN
    for version in range(api.version_min, api.version_max + 1)
]
VERSIONS = [one for one in EVERY_VERSION if one[0].key not in OWN_ANSWERS]
#: of those whose messages are our own
OWN_VERSIONS = [one for one in EVERY_VERSION if one[0].key in OWN_ANSWERS]


def request(api: Api, version: int, topic_id: bytes) -> bytes:
    """Return a request that names the topic `word`, by its id where it must."""
    kind = library_class(api, "Request")
    message = filled(kind, kind._struct, version)
    _identify(message, uuid.UUID(bytes=topic_id))
    if api.name == "DeleteTopics" and version >= 6:
        message.topics[0].topic_id = None
    if api.name == "Metadata" and 10 <= version < 12:
        message.topics[0].topic_id = None
    for name in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        if hasattr(message, name):
            setattr(message, name, 3)
    if hasattr(message, "timeout_ms"):
        message.timeout_ms = 1000  # without any time it would not come to that
    for resource in getattr(message, "resources", None) or ():
        resource.resource_type = 2
    for listed in ("creations", "filters"):
        for one in getattr(message, listed, None) or ():
            for field in one._struct._fields:
                if field.type_str == "int8":
                    setattr(one, field.name, 3)
    message.with_header(correlation_id=7, client_id="test")
    return bytes(message.encode(version=version, header=True, framed=True))


def _identify(message: Any, topic_id: uuid.UUID) -> None:
    """Put the topic's id wherever there is place for one."""
    for field in message._struct._fields:
        value = getattr(message, field.name, None)
        if field.name == "topic_id":
            message.topic_id = topic_id
        elif isinstance(value, list):
            elements: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
            for element in elements:
                if hasattr(element, "_struct"):
                    _identify(element, topic_id)


def answer(user: str, api: Api, version: int) -> Any:
    """Return what somebody is answered, None for nothing."""
    talk = GuardedConversation({"auto.create.topics.enable": "false"})
    topic_id = talk.create("word")
    talk.connection.client.principal = Principal(USER, user)
    frame = joined(talk.connection.feed(request(api, version, topic_id)))
    assert not talk.connection.is_closing
    if not frame:
        return None  # a join that waits for company
    kind = library_class(api, "Response")
    return plain(kind.decode(frame, version=version, header=True, framed=True))


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=lambda of: getattr(of, "name", of))
def test_every_api_in_every_version(api: Api, version: int) -> None:
    """Alice, who may nothing, is told so; the administrator is never."""
    told = answer("alice", api, version)
    is_quiet = api.key in QUIET or (api.name == "DescribeLogDirs" and version < 3)
    assert (codes_in(told) & REFUSALS == set()) is is_quiet, told
    assert not codes_in(answer("admin", api, version)) & REFUSALS


@pytest.mark.parametrize(("api", "version"), OWN_VERSIONS, ids=lambda of: getattr(of, "name", of))
def test_every_api_of_ours(api: Api, version: int) -> None:
    """The same holds where the messages are our own; nobody else is told of a refusal."""
    kind, response = own_messages(api)
    asked = filled_of_ours(kind)
    names = {"group_id": "word", "member_id": "m"}
    known = {name for name in names if hasattr(asked, name)}
    asked = attrs.evolve(asked, **{name: names[name] for name in known})
    for user, is_refused in (("alice", True), ("admin", False)):
        talk = GuardedConversation()
        talk.connection.client.principal = Principal(USER, user)
        header = struct.pack(">hhih", api.key, version, 7, 4) + b"test" + b"\0"
        payload = header + encode_message(asked, version)
        frame = joined(talk.connection.feed(struct.pack(">i", len(payload)) + payload))
        told = repr(decode_message(response, frame, version, 9))
        codes = {int(code) for code in re.findall(r"\berror_code=(-?\d+)", told)}
        assert bool(codes & REFUSALS) is is_refused, told


def test_a_broker_without_rules_and_limits_imports_nothing_of_them() -> None:
    """What is not in use costs a start nothing."""
    program = """
import sys
from logstore.compat.kafka.broker import Broker
from logstore.testing.simulated_host import SimulatedHost
Broker.open(SimulatedHost(), "/data", {}).connect("127.0.0.1")
found = [name for name in sys.modules if ".kafka.quotas" in name or "access_records" in name]
found += [name for name in sys.modules if ".security.a" in name or ".security.g" in name]
print(found)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_broker_with_rules_imports_only_what_is_asked_for() -> None:
    """Guards of share groups and streams groups, and their messages, come when one asks."""
    program = """
import sys
from logstore.compat.kafka.broker import Broker
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.security.access import AUTHORIZER
Broker.open(SimulatedHost(), "/data", AUTHORIZER).connect("127.0.0.1")
found = [name for name in sys.modules if ".guards." in name and ("share" in name or "str" in name)]
print(found + [name for name in sys.modules if "own_" in name or "streams.messages" in name])
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
