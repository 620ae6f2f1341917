"""The table of APIs: complete, loadable, and cheap until somebody needs the library."""

from __future__ import annotations

import importlib
import importlib.resources
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.kafka.delegation_tokens import messages as token_messages
from logstore.compat.kafka.groups.consumer import messages
from logstore.compat.kafka.groups.share import messages as share_messages
from logstore.compat.kafka.groups.streams import messages as streams_messages
from logstore.compat.kafka.nodes import quorum_messages
from logstore.compat.kafka.registry import APIS, Api
from logstore.compat.kafka.share_reads import messages as read_messages
from logstore.compat.kafka.share_state import messages as state_messages
from tests.compat.kafka.conversation import Conversation, message_class

#: messages of our own, which the library lacks
OURS = (
    {
        kind.__name__: kind
        for kind in (
            token_messages.CreateDelegationTokenRequest,
            token_messages.CreateDelegationTokenResponse,
            token_messages.RenewDelegationTokenRequest,
            token_messages.ExpireDelegationTokenRequest,
            token_messages.DescribeDelegationTokenRequest,
            token_messages.DescribeDelegationTokenResponse,
            quorum_messages.UnregisterBrokerRequest,
            quorum_messages.AddRaftVoterRequest,
            quorum_messages.RemoveRaftVoterRequest,
            messages.ConsumerGroupHeartbeatRequest,
            messages.ConsumerGroupHeartbeatResponse,
            messages.ConsumerGroupDescribeRequest,
            messages.ConsumerGroupDescribeResponse,
            share_messages.ShareGroupHeartbeatRequest,
            share_messages.ShareGroupHeartbeatResponse,
            share_messages.ShareGroupDescribeRequest,
            share_messages.ShareGroupDescribeResponse,
            share_messages.DescribeShareGroupOffsetsRequest,
            share_messages.DescribeShareGroupOffsetsResponse,
            share_messages.AlterShareGroupOffsetsRequest,
            share_messages.AlterShareGroupOffsetsResponse,
            share_messages.DeleteShareGroupOffsetsRequest,
            share_messages.DeleteShareGroupOffsetsResponse,
            read_messages.ShareFetchRequest,
            read_messages.ShareFetchResponse,
            read_messages.ShareAcknowledgeRequest,
            read_messages.ShareAcknowledgeResponse,
            state_messages.InitializeShareGroupStateRequest,
            state_messages.ReadShareGroupStateRequest,
            state_messages.ReadShareGroupStateResponse,
            state_messages.WriteShareGroupStateRequest,
            state_messages.DeleteShareGroupStateRequest,
            state_messages.ReadShareGroupStateSummaryRequest,
            state_messages.ReadShareGroupStateSummaryResponse,
            streams_messages.StreamsGroupHeartbeatRequest,
            streams_messages.StreamsGroupHeartbeatResponse,
            streams_messages.StreamsGroupDescribeRequest,
            streams_messages.StreamsGroupDescribeResponse,
        )
    }
    | dict.fromkeys(
        (
            "InitializeShareGroupStateResponse",
            "WriteShareGroupStateResponse",
            "DeleteShareGroupStateResponse",
        ),
        state_messages.StateOutcomeResponse,
    )
    | dict.fromkeys(
        ("RenewDelegationTokenResponse", "ExpireDelegationTokenResponse"),
        token_messages.TokenExpiryResponse,
    )
    | dict.fromkeys(
        ("UnregisterBrokerResponse", "AddRaftVoterResponse", "RemoveRaftVoterResponse"),
        quorum_messages.OutcomeResponse,
    )
)
_OWN_NAMES = {name.removesuffix("Request").removesuffix("Response") for name in OURS}
OWN_KEYS = sorted(key for key, api in APIS.items() if api.name in _OWN_NAMES)


@pytest.mark.parametrize("key", OWN_KEYS)
def test_messages_of_our_own_have_every_version(key: int) -> None:
    """What the library does not know is there in every version that is served."""
    api = APIS[key]
    for kind in ("Request", "Response"):
        known = OURS[api.name + kind]
        for version in range(api.version_min, api.version_max + 1):
            assert version in known.VERSIONS
            assert known.is_flexible(version) == api.is_flexible(version)


@pytest.mark.parametrize("key", sorted(set(APIS) - set(OWN_KEYS)))
def test_the_library_has_every_version(key: int) -> None:
    """The library knows every version that is served, and from which one on it is flexible."""
    api = APIS[key]
    for kind in ("Request", "Response"):
        known = message_class(api.name + kind)
        assert key == known.API_KEY
        assert known.max_version >= api.version_max
        for version in range(api.version_min, api.version_max + 1):
            assert known.flexible_version_q(version) == api.is_flexible(version)


@pytest.mark.parametrize("key", sorted(APIS))
def test_a_file_stands_where_its_key_says(key: int) -> None:
    """An API's handler stands in the file of its key, whose first line tells name and key."""
    api = APIS[key]
    handler = api.load()
    assert handler.__module__ == api.file
    assert api.file.rpartition(".")[2].startswith(f"api_{key:02}_")
    module = importlib.import_module(api.file)
    assert (module.__doc__ or "").strip().startswith(f"{api.name} ({key}): version")


def test_every_file_is_in_the_table() -> None:
    """An API's file that no entry leads to would never be asked."""
    folder = importlib.resources.files("logstore.compat.kafka.apis")
    names = {entry.name for entry in folder.iterdir() if entry.name.startswith("api_")}
    assert {name.removesuffix(".py") for name in names} == {
        api.file.rpartition(".")[2] for api in APIS.values()
    }


@pytest.mark.parametrize(
    ("key", "version", "fields"),
    [
        (12, 4, {"group_id": "g", "generation_id": 1, "member_id": "m"}),
        (22, 4, {"transactional_id": None, "transaction_timeout_ms": 1000}),
    ],
)
def test_a_handler_is_imported_when_it_is_asked(
    key: int, version: int, fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request finds it and is answered as the second one, which needs no search."""
    api = APIS[key]
    fresh = Api(
        key,
        api.name,
        api.version_min,
        api.version_max,
        flexible_from=api.flexible_from,
        module=api.module,
    )
    monkeypatch.setitem(APIS, key, fresh)
    handler = api.load()
    assert handler not in (fresh.handle, fresh.handle_raw)
    conversation = Conversation()
    answers = [conversation.ask(api.name, version, **fields) for _ in range(2)]
    assert answers[0]["error_code"] == answers[1]["error_code"]
    assert handler == (fresh.handle if api.module else fresh.handle_raw)


#: what an idempotent producer says before its first record, and the record: ApiVersions v3,
#: CreateTopics v5, Metadata v9 and v12, InitProducerId v4, ApiVersions v0, Produce v3
FIRST_CONTACT = """
import json, sys
from logstore.compat.kafka.broker import Broker
from logstore.testing.simulated_host import SimulatedHost
broker = Broker.open(SimulatedHost(), "/data", {})
from logstore.segments.kafka.record import Record, encode_batch
connection = broker.connect("127.0.0.1")
batch = encode_batch([Record(0, broker.host.clock.wall_ms(), b"k", b"v")])
for request in (
    "0012 0003 00000001 0001 78 00 0261 0261 00",
    "0013 0005 00000006 0001 78 00 02 0262 00000001 0001 01 01 00 000003e8 00 00",
    "0003 0009 00000002 0001 78 00 02 0261 00 01 00 00 00",
    "0003 000c 00000003 0001 78 00 02 00000000000000000000000000000000 0261 00 01 00 00",
    "0016 0004 00000004 0001 78 00 00 0000ea60 ffffffffffffffff ffff 00",
    "0012 0000 00000005 0001 78",
    "0000 0003 00000007 0001 78 ffff 0001 000003e8 00000001 0001 61 00000001 00000000"
    + len(batch).to_bytes(4, "big").hex() + batch.hex(),
):
    frame = bytes.fromhex(request)
    output = connection.feed(len(frame).to_bytes(4, "big") + frame)
    assert output and not connection.is_closing, request
assert sorted(broker.topics) == ["a", "b"]
assert broker.topics["a"].partitions[0].end_offset == 1
print(json.dumps(sorted(sys.modules)))
"""


def test_the_first_contact_needs_little() -> None:
    """The first record is acknowledged without the library, groups, and APIs that nobody asked."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CONTACT], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    modules: list[str] = json.loads(done.stdout)
    assert [name for name in modules if name.split(".")[0] == "kafka"] == []
    assert [name for name in modules if name.startswith("logstore.compat.kafka.groups")] == []
    apis = [name for name in modules if name.startswith("logstore.compat.kafka.apis.")]
    assert apis == [APIS[key].file for key in (0, 3, 18, 19, 22)]


@pytest.mark.parametrize("key", [3, 18, 22, *OWN_KEYS])
@given(data=st.data())
def test_fuzz_requests_that_are_read_by_hand(key: int, data: st.DataObject) -> None:
    """Any bytes after a good header are answered, or close the connection; nothing else happens."""
    version = data.draw(st.integers(APIS[key].version_min, APIS[key].version_max))
    body = data.draw(st.binary(max_size=64))
    frame = b"\x00" + bytes([key, 0, version]) + b"\x00\x00\x00\x07\xff\xff"
    frame += (b"\x00" if APIS[key].is_flexible(version) else b"") + body
    conversation = Conversation({"auto.create.topics.enable": "false"})
    output = conversation.connection.feed(len(frame).to_bytes(4, "big") + frame)
    assert bool(output) != conversation.connection.is_closing
    if output:
        answer = b"".join(bytes(chunk) for chunk in output if isinstance(chunk, bytes))
        assert int.from_bytes(answer[:4], "big") == len(answer) - 4
        assert answer[4:8] == b"\x00\x00\x00\x07"
