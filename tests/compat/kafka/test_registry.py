"""The table of APIs: complete, loadable, and cheap until somebody needs the library."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.kafka.apis import load_all
from logstore.compat.kafka.registry import APIS
from tests.compat.kafka.conversation import Conversation, message_class

load_all()


@pytest.mark.parametrize("key", sorted(APIS))
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
    handler = api.handle or api.handle_raw
    assert handler is not None
    module = importlib.import_module(handler.__module__)
    assert handler.__module__.rpartition(".")[2].startswith(f"api_{key:02}_")
    assert (module.__doc__ or "").strip().startswith(f"{api.name} ({key}): version")


#: what an idempotent producer says before its first record: ApiVersions v3, Metadata v9 and v12,
#: InitProducerId v4, ApiVersions v0
FIRST_CONTACT = """
import sys
from logstore.compat.kafka.broker import Broker
from logstore.testing.simulated_host import SimulatedHost
broker = Broker.open(SimulatedHost(), "/data", {})
connection = broker.connect("127.0.0.1")
for request in (
    "0012 0003 00000001 0001 78 00 0261 0261 00",
    "0003 0009 00000002 0001 78 00 02 0261 00 01 00 00 00",
    "0003 000c 00000003 0001 78 00 02 00000000000000000000000000000000 0261 00 01 00 00",
    "0016 0004 00000004 0001 78 00 00 0000ea60 ffffffffffffffff ffff 00",
    "0012 0000 00000005 0001 78",
):
    frame = bytes.fromhex(request)
    output = connection.feed(len(frame).to_bytes(4, "big") + frame)
    assert output and not connection.is_closing, request
assert list(broker.topics) == ["a"]
print(sorted(name for name in sys.modules if name.split(".")[0] == "kafka"))
"""


def test_the_first_contact_needs_no_library() -> None:
    """What every client asks before its first record is answered without importing the library."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CONTACT], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("key", [3, 18, 22])
@given(data=st.data())
def test_fuzz_requests_that_are_read_by_hand(key: int, data: st.DataObject) -> None:
    """Any bytes after a good header are answered, or close the connection; nothing else happens."""
    version = data.draw(st.integers(0, APIS[key].version_max))
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
