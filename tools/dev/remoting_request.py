"""One request of RocketMQ's remoting protocol and its answer, for tools that need no client."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import struct
from collections.abc import Mapping
from typing import Any

import attrs

SUCCESS = 0
UPDATE_BROKER_CONFIG = 25
GET_BROKER_RUNTIME_INFO = 28
GET_BROKER_CLUSTER_INFO = 106

_SIZES = struct.Struct(">II")
_WORD = struct.Struct(">I")
_HEADER_SIZE_MASK = 0xFFFFFF


@attrs.frozen
class Answer:
    """What a server said: its response code, remark, fields and body."""

    code: int
    remark: str | None
    fields: Mapping[str, Any]
    body: bytes


def request_frame(
    code: int,
    fields: Mapping[str, object] | None = None,
    body: bytes = b"",
    *,
    opaque: int = 1,
    version: int = 401,
) -> bytes:
    """Return the whole frame of a request with a JSON header, its size in front."""
    header = json.dumps(
        {
            "code": code,
            "extFields": {key: str(value) for key, value in (fields or {}).items()},
            "flag": 0,
            "language": "JAVA",
            "opaque": opaque,
            "serializeTypeCurrentRPC": "JSON",
            "version": version,
        },
        separators=(",", ":"),
    ).encode()
    return _SIZES.pack(4 + len(header) + len(body), len(header)) + header + body


def read_answer(frame: bytes) -> Answer:
    """Return what a frame says, which comes without its size; ValueError where it is none."""
    if len(frame) < _WORD.size:
        raise ValueError(f"a frame of {len(frame)} bytes")
    end = _WORD.size + (_WORD.unpack_from(frame)[0] & _HEADER_SIZE_MASK)
    found = json.loads(frame[_WORD.size : end])
    return Answer(found["code"], found.get("remark"), found.get("extFields") or {}, frame[end:])


def ask(
    address: tuple[str, int],
    code: int,
    fields: Mapping[str, object] | None = None,
    body: bytes = b"",
    *,
    version: int = 401,
    timeout_seconds: float = 2,
) -> Answer:
    """
    Send one request with a JSON header over a connection of its own.

    Raises OSError where nobody listens or the answer breaks off, ValueError where it is no frame.
    """
    frame = request_frame(code, fields, body, version=version)
    with (
        socket.create_connection(address, timeout_seconds) as connection,
        connection.makefile("rb") as replies,
    ):
        connection.sendall(frame)
        size = replies.read(_WORD.size)
        if len(size) < _WORD.size:
            raise ConnectionError(f"{address[0]}:{address[1]} closed instead of answering {code}")
        return read_answer(replies.read(_WORD.unpack(size)[0]))


def lists_broker(name_server: tuple[str, int], broker_address: str = "") -> bool:
    """Tell whether that name server lists a broker (that of this ``HOST:PORT``, if given) now."""
    with contextlib.suppress(OSError, ValueError):
        answer = ask(name_server, GET_BROKER_CLUSTER_INFO)
        wanted = broker_address.encode() if broker_address else b'"brokerAddrs":{'
        return answer.code == SUCCESS and wanted in answer.body
    return False


def is_broker_up(broker: tuple[str, int]) -> bool:
    """Tell whether a broker answers there."""
    with contextlib.suppress(OSError, ValueError):
        return ask(broker, GET_BROKER_RUNTIME_INFO).code == SUCCESS
    return False


def broker_address(name_server: tuple[str, int]) -> tuple[str, int] | None:
    """Return the address of the first master that a name server lists, None if there is none."""
    with contextlib.suppress(OSError, ValueError):
        answer = ask(name_server, GET_BROKER_CLUSTER_INFO)
        # No standard JSON: Java writes the broker's id, a number, as a key without quotes.
        found = re.search(rb'"brokerAddrs":\{"?0"?:"([^"]+):(\d+)"', answer.body)
        if found is not None:
            return found[1].decode(), int(found[2])
    return None
