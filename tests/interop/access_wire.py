"""Somebody who speaks to a broker under a name: the real one by SASL, ours in this process."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.faults.own_answers import OWN_ANSWERS
from logstore.compat.kafka.framing import RESPONSE_PREFIX
from logstore.compat.kafka.registry import APIS
from logstore.compat.kafka.security.principal import USER, Principal
from logstore.os_host import system_host
from logstore.segments.kafka.internal_topics.codec import decode_message, encode_message
from logstore.segments.kafka.internal_topics.schema import Message
from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.compat.kafka.conversation import build, joined, message_class, plain
from tests.compat.kafka.own_messages import own_messages
from tests.interop.raw_wire import Wire

AUTHORIZER: dict[str, object] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
}
USERS = ("admin", "alice", "bob")
_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36


class Speaker(Protocol):
    """One connection of one user."""

    def exchange(self, payload: bytes) -> bytes | None:
        """Send a request's payload; return the answer's, or None where the broker hangs up."""
        ...


def sasl_settings(port: int) -> dict[str, object]:
    """Return what makes a real broker on `port` take names (and passwords) on `port` + 2."""
    users = " ".join(f'user_{name}="{name}"' for name in USERS)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    open_to_all = f"PLAINTEXT://127.0.0.1:{port}"
    by_name = f"SASL_PLAINTEXT://127.0.0.1:{port + 2}"
    return {
        "listeners": f"{open_to_all},{by_name},CONTROLLER://127.0.0.1:{port + 1}",
        "advertised.listeners": f"{open_to_all},{by_name}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{module} required {users};",
    }


class RealSpeaker:
    """A user at a real broker."""

    def __init__(self, peer: KafkaPeer, user: str) -> None:
        self._wire = Wire(f"127.0.0.1:{peer.port + 2}")
        self._login(user)

    def _login(self, user: str) -> None:
        header = struct.pack(">hhih", _SASL_HANDSHAKE, 1, 1, -1)
        self._wire.send_frame(header + struct.pack(">h5s", 5, b"PLAIN"))
        assert self._wire.receive_frame() is not None
        token = f"\0{user}\0{user}".encode()
        header = struct.pack(">hhih", _SASL_AUTHENTICATE, 0, 2, -1)
        self._wire.send_frame(header + struct.pack(">i", len(token)) + token)
        answer = self._wire.receive_frame()
        assert answer is not None
        assert answer[4:6] == b"\0\0", f"{user} is not let in"

    def exchange(self, payload: bytes) -> bytes | None:
        """Send and wait."""
        self._wire.send_frame(payload)
        return self._wire.receive_frame()


class OurSpeaker:
    """A user at our broker, who is believed."""

    def __init__(self, broker: Broker, user: str) -> None:
        self._broker = broker
        self._connection = broker.connect("127.0.0.1")
        self._connection.client.principal = Principal(USER, user)

    def exchange(self, payload: bytes) -> bytes | None:
        """Send, and turn the clock until there is an answer."""
        answer = joined(self._connection.feed(struct.pack(">i", len(payload)) + payload))
        while not answer and not self._connection.is_closing:
            self._broker.timers.run()
            answer = joined(self._connection.output)
            self._connection.output.clear()
        return answer[4:] or None


class Asker:
    """Asks as one user; requests and answers are mappings."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    def ask(self, api: str, version: int, fields: Mapping[str, Any]) -> Any:
        """Return the answer, or "closed"."""
        key = next(one.key for one in APIS.values() if one.name == api)
        if key in OWN_ANSWERS:
            return self._ask_own(key, *own_messages(APIS[key]), version, fields)
        request = build(message_class(f"{api}Request"), version, fields)
        request.with_header(correlation_id=7, client_id="test")
        answer = self._speaker.exchange(request.encode(version=version, header=True, framed=False))
        if answer is None:
            return "closed"
        response = message_class(f"{api}Response")
        return plain(response.decode(answer, version=version, header=True))

    def _ask_own(
        self,
        key: int,
        request_class: type[Message],
        response_class: type[Message],
        version: int,
        fields: Mapping[str, Any],
    ) -> Any:
        header = struct.pack(">hhih", key, version, 7, 4) + b"test" + b"\0"
        body = encode_message(request_class(**fields), version)
        answer = self._speaker.exchange(header + body)
        if answer is None:
            return "closed"
        return decode_message(response_class, answer, version, RESPONSE_PREFIX.size - 4 + 1)


def open_ours(directory: Path, settings: Mapping[str, object]) -> Broker:
    """Return our broker on real files, in this process."""
    given = {name: str(value) for name, value in settings.items()}
    return Broker.open(system_host(), str(directory), given)


def topic_id(admin: Asker, name: str) -> uuid.UUID | None:
    """Return the id of a topic, None while there is none."""
    answer = admin.ask("Metadata", 12, {"topics": [{"name": name}], "allow_auto_topic_creation": 0})
    found: uuid.UUID | None = answer["topics"][0]["topic_id"]
    return found
