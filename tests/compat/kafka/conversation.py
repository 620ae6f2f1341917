"""A client that talks to a broker in this process: requests and answers as the library has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logstore.compat.connection import Chunk
from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.library_messages import library_class
from logstore.compat.kafka.registry import APIS
from logstore.segment import Extent
from logstore.testing.simulated_host import SimulatedHost

DIRECTORY = "/data"
HOST, PORT = "broker.test", 9092
_KINDS = ("Request", "Response")


def message_class(name: str) -> Any:
    """Return the library's class of a request or response, such as ``MetadataRequest``."""
    kind = next(kind for kind in _KINDS if name.endswith(kind))
    api = next(api for api in APIS.values() if api.name == name.removesuffix(kind))
    return library_class(api, kind)


def build(kind: Any, version: int, fields: Mapping[str, Any]) -> Any:
    """Return a message of class `kind`; structs in `fields` are given as mappings."""
    values = dict(fields)
    for field in kind._struct._fields:
        value = values.get(field.name)
        if value is not None and field.is_struct_array():
            inner = getattr(kind, field.type_str)
            values[field.name] = [build(inner, version, entry) for entry in value]
        elif value is not None and field.is_struct():
            values[field.name] = build(getattr(kind, field.type_str), version, value)
    return kind(version=version, **values)


def plain(message: Any) -> Any:
    """Return a message as mappings and lists; ids stay UUIDs."""
    return message.to_dict(json=False)


class Conversation:
    """One connection to a fresh broker on a simulated disk."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.host = SimulatedHost()
        self.broker = self.open(settings)
        self.connection = self.broker.connect("127.0.0.1")
        self._correlation_id = 0

    def open(self, settings: Mapping[str, str] | None = None) -> Broker:
        """Return a broker over the simulated disk as it stands."""
        broker = Broker.open(self.host, DIRECTORY, dict(settings or {}))
        broker.advertised_host, broker.advertised_port = HOST, PORT
        return broker

    def restart(self, settings: Mapping[str, str] | None = None) -> None:
        """Stop the broker cleanly, start another one and connect to it."""
        self.broker.close()
        self.broker = self.open(settings)
        self.connection = self.broker.connect("127.0.0.1")

    def ask(self, api: str, version: int, **fields: Any) -> dict[str, Any]:
        """Return the answer to a request."""
        response: dict[str, Any] = plain(
            message_class(f"{api}Response").decode(
                self.ask_bytes(api, version, **fields), version=version, header=True, framed=True
            )
        )
        return response

    def ask_bytes(self, api: str, version: int, **fields: Any) -> bytes:
        """Return the frame that answers a request."""
        self._correlation_id += 1
        request = build(message_class(f"{api}Request"), version, fields)
        request.with_header(correlation_id=self._correlation_id, client_id="test")
        frame = request.encode(version=version, header=True, framed=True)
        answer = joined(self.connection.feed(frame))
        assert not self.connection.is_closing, f"{api} v{version} closed the connection"
        assert answer[4:8] == self._correlation_id.to_bytes(4, "big"), (
            "the answer to something else"
        )
        return answer

    def create(
        self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None
    ) -> bytes:
        """Create a topic past the protocol; return its id."""
        return self.broker.create_topic(name, partitions, dict(settings or {})).topic_id


def joined(chunks: list[Chunk]) -> bytes:
    """Return what would be sent."""
    return b"".join(read(chunk) for chunk in chunks)


def read(chunk: Chunk) -> bytes:
    """Return the bytes of one chunk, from its file where it is a run of one."""
    if isinstance(chunk, Extent):
        return chunk.read()
    return bytes(chunk)
