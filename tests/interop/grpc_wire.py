"""A client of RocketMQ's proxy that asks what it is told to, and shows answers as they came."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf import json_format

from logstore.compat.rocketmq.proxy.schema import MESSAGES

_SERVICE = "/apache.rocketmq.v2.MessagingService"
SECONDS_MAX = 30
Headers = tuple[tuple[str, str], ...]


def plain(message: Any) -> dict[str, Any]:
    """Return a message as JSON has it, by the names of the protocol."""
    told: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return told


def _written(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


class GrpcWire:
    """One client of the proxy at `address`."""

    def __init__(
        self,
        address: str,
        client_id: str = "wire@1",
        headers: Headers = (),
        channel: grpc.Channel | None = None,
    ) -> None:
        self.client_id = client_id
        #: what goes with every request, beside what always does
        self.headers = headers
        self.channel = channel or grpc.insecure_channel(address)
        self._commands: queue.Queue[Any] = queue.Queue()
        self._told: Any = None

    @property
    def _headers(self) -> tuple[tuple[str, str], ...]:
        headers = (
            ("x-mq-language", "PYTHON"),
            ("x-mq-protocol", "v2"),
            ("x-mq-client-version", "5.0.0"),
            *self.headers,
        )
        return (*headers, ("x-mq-client-id", self.client_id)) if self.client_id else headers

    def ask(self, name: str, fields: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer to a request."""
        call = self.channel.unary_unary(
            f"{_SERVICE}/{name}",
            request_serializer=_written,
            response_deserializer=MESSAGES[f"{name}Response"].FromString,
        )
        request = MESSAGES[f"{name}Request"](**(fields or {}))
        return plain(call(request, metadata=self._headers, timeout=SECONDS_MAX))

    def receive(self, fields: dict[str, Any]) -> list[dict[str, Any]]:
        """Return all messages of the answer to ReceiveMessage."""
        return [plain(one) for one in self.begin_receive(fields)]

    def begin_receive(self, fields: dict[str, Any]) -> Any:
        """Return the call of a ReceiveMessage, which can be cancelled."""
        call = self.channel.unary_stream(
            f"{_SERVICE}/ReceiveMessage",
            request_serializer=_written,
            response_deserializer=MESSAGES["ReceiveMessageResponse"].FromString,
        )
        request = MESSAGES["ReceiveMessageRequest"](**fields)
        return call(request, metadata=self._headers, timeout=SECONDS_MAX)

    def listen(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Open the telemetry stream with these settings; return what the client is told."""

        def commands() -> Iterator[Any]:
            while (command := self._commands.get()) is not None:
                yield command

        call = self.channel.stream_stream(
            f"{_SERVICE}/Telemetry",
            request_serializer=_written,
            response_deserializer=MESSAGES["TelemetryCommand"].FromString,
        )
        self._told = call(commands(), metadata=self._headers)
        self._commands.put(MESSAGES["TelemetryCommand"](settings=settings))
        return self.told()

    def told(self) -> dict[str, Any]:
        """Wait for the next command of the proxy."""
        return plain(next(self._told))

    def close(self) -> None:
        """Hang up."""
        self._commands.put(None)
        self.channel.close()


def timestamp(delay_seconds: float = 0) -> dict[str, int]:
    """Return a time from now on, as a message has it."""
    return {"seconds": int(time.time() + delay_seconds)}
