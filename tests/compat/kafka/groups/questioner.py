"""A client that asks a broker over a socket and writes down the answers so that they compare."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import Any, cast

from tests.compat.kafka.conversation import build, message_class, plain
from tests.interop.eventually import eventually
from tests.interop.raw_wire import Wire

UUID4 = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
#: what tells the entries of a list apart; brokers may list them in any order
IDENTITIES = ("partition_index", "name", "topic_id", "group_id", "group_instance_id", "member_id")
SUBSCRIPTION = b"\0\1\0\0\0\1\0\1t\xff\xff\xff\xff\0\0\0\0"


class Line:
    """One connection to a broker."""

    def __init__(self, bootstrap: str) -> None:
        self._wire = Wire(bootstrap)
        self._asked: list[tuple[str, int]] = []

    def close(self) -> None:
        """Hang up."""
        self._wire.close()

    def send(self, api: str, version: int, **fields: Any) -> None:
        """Send a request whose answer is fetched later."""
        request = build(message_class(f"{api}Request"), version, fields)
        request.with_header(correlation_id=len(self._asked), client_id="questioner")
        self._wire.send(request.encode(version=version, header=True, framed=True))
        self._asked.append((api, version))

    def receive(self) -> dict[str, Any]:
        """Wait for the answer to the oldest request."""
        api, version = self._asked.pop(0)
        frame = self._wire.receive_frame()
        assert frame is not None, f"{api} v{version}: the connection is closed"
        kind = message_class(f"{api}Response")
        answer: dict[str, Any] = plain(kind.decode(frame, version=version, header=True))
        return answer

    def ask(self, api: str, version: int, **fields: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self.send(api, version, **fields)
        return self.receive()


class Questioner:
    """
    Asks one broker the questions of a scenario; `answers` is what it heard.

    Ids that the broker made up are renamed in the order in which they are heard, and lists are
    sorted, so that two brokers that behave alike leave equal answers behind.
    """

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.line = self.open()
        self.answers: list[tuple[str, Any]] = []
        self._names: dict[str, str] = {}

    def open(self) -> Line:
        """Return one more connection."""
        return Line(self.bootstrap)

    def hear(self, question: str, answer: dict[str, Any]) -> dict[str, Any]:
        """Write an answer down and return it as it came."""
        self.answers.append((question, self._comparable(answer)))
        return answer

    def ask(self, api: str, version: int, **fields: Any) -> dict[str, Any]:
        """Ask on the main line and write the answer down."""
        question = f"{api} v{version} {self._comparable(fields)}"
        return self.hear(question, self.line.ask(api, version, **fields))

    def await_state(self, group_id: str, state: str) -> None:
        """Wait until a group is in a state, and write down how it looks then."""
        line = self.open()

        def describe() -> dict[str, Any]:
            return line.ask("DescribeGroups", 5, groups=[group_id])

        eventually(lambda: describe()["groups"][0]["group_state"] == state, what=state)
        self.hear(f"{group_id} is {state}", describe())

    def _comparable(self, value: Any) -> Any:
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {key: self._comparable(inner) for key, inner in fields.items() if key != "port"}
        if isinstance(value, list):
            entries = cast("Sequence[Any]", value)
            return sorted((self._comparable(inner) for inner in entries), key=_identity)
        if isinstance(value, bytes):
            value = value.decode("latin-1")
        if isinstance(value, (str, uuid.UUID)):
            return UUID4.sub(self._renamed, str(value))
        return value

    def _renamed(self, found: re.Match[str]) -> str:
        return self._names.setdefault(found[0], f"id-{len(self._names)}")


def _identity(entry: Any) -> str:
    if isinstance(entry, dict):
        fields = cast("dict[str, Any]", entry)
        return repr([fields.get(name) for name in IDENTITIES])
    return repr(entry)


def join_fields(group_id: str, **changes: Any) -> dict[str, Any]:
    """Return what a member sends to join, with `changes` to it."""
    return {
        "group_id": group_id,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
    } | changes


def sync_fields(group_id: str, member: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return what a member sends to sync; a leader gives each member its instance's name."""
    return {
        "group_id": group_id,
        "generation_id": member["generation_id"],
        "member_id": member["member_id"],
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [
            {
                "member_id": one["member_id"],
                "assignment": (one.get("group_instance_id") or "all").encode(),
            }
            for one in member["members"]
        ],
    } | changes


def commit_fields(
    group_id: str, *partitions: int, name: str = "t", **changes: Any
) -> dict[str, Any]:
    """Return what a simple consumer sends to commit offset 5; `changes` may make it a member."""
    metadata = changes.pop("metadata", "note")
    entries = [
        {"partition_index": index, "committed_offset": 5, "committed_metadata": metadata}
        for index in partitions or (0,)
    ]
    return {
        "group_id": group_id,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": name, "partitions": entries}],
    } | changes


def fetch_fields(
    version: int, group_id: str, topics: list[dict[str, Any]] | None
) -> dict[str, Any]:
    """Return what is sent to fetch the offsets of a group, in the shape of the version."""
    if version >= 8:
        return {"groups": [{"group_id": group_id, "topics": topics}]}
    return {"group_id": group_id, "topics": topics}
