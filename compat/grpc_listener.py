"""
The socket of a RocketMQ proxy: gRPC on the event loop of the broker behind it.

Needs the extra ``grpc``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import grpc

from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError
from logstore.compat.rocketmq.proxy.proxy import STREAMING, UNARY, Caller, Proxy
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.running import AddressError
from logstore.compat.tls_or_plain import MakeContext, TlsOrPlain
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from google.protobuf.message import Message

_SERVICE = "apache.rocketmq.v2.MessagingService"
_CLIENT_ID = "x-mq-client-id"
#: where it listens if something stands before it
_BEHIND = "127.0.0.1:0"
_REQUEST_BYTES_MAX = 130 * 1024 * 1024
_OPTIONS = (
    ("grpc.max_receive_message_length", _REQUEST_BYTES_MAX),
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),
)


class GrpcListener:
    """Gives a proxy the requests of its clients; to be used on one event loop."""

    def __init__(
        self,
        proxy: Proxy,
        key_and_chain: tuple[bytes, bytes] | None = None,
        make_context: MakeContext | None = None,
    ) -> None:
        self.proxy = proxy
        #: what it shows (PEM) to clients, who must speak TLS then
        self._key_and_chain = key_and_chain
        #: what clients are told who speak TLS, where all may do as they like
        self._make_context = make_context
        self._front: TlsOrPlain | None = None
        self._server: grpc.aio.Server | None = None
        self._telling: set[asyncio.Queue[Any]] = set()

    async def start(self, host: str, port: int) -> int:
        """
        Listen; return the port.

        Raises:
            AddressError: the address is taken, or not ours.

        """
        server = grpc.aio.server(options=_OPTIONS)
        server.add_generic_rpc_handlers((self._handlers(),))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if self._make_context is None:
                found = self._add_port(server, address)
            else:
                self._front = TlsOrPlain(self._add_port(server, _BEHIND), self._make_context)
                found = await self._front.start(host, port)
        except (RuntimeError, OSError) as error:
            raise AddressError(f"{address} cannot be listened on; name another port") from error
        await server.start()
        self._server = server
        return found

    def _add_port(self, server: grpc.aio.Server, address: str) -> int:
        if self._key_and_chain is None:
            return int(server.add_insecure_port(address))
        credentials = grpc.ssl_server_credentials([self._key_and_chain])
        return int(server.add_secure_port(address, credentials))

    async def stop(self) -> None:
        """Hang up on everybody."""
        server, self._server = self._server, None
        for queue in self._telling:
            queue.put_nowait(None)
        if self._front is not None:
            self._front.stop()
        if server is not None:
            await server.stop(0)
        self.proxy.close()

    def _handlers(self) -> Any:
        handlers: dict[str, Any] = {
            name: grpc.unary_unary_rpc_method_handler(
                partial(self._serve, name), *_codecs(f"{name}Request")
            )
            for name in UNARY
        }
        for name in STREAMING:
            handlers[name] = grpc.unary_stream_rpc_method_handler(
                partial(self._stream, name), *_codecs(f"{name}Request")
            )
        handlers["Telemetry"] = grpc.stream_stream_rpc_method_handler(
            self._telemetry, *_codecs("TelemetryCommand")
        )
        return grpc.method_handlers_generic_handler(_SERVICE, handlers)

    async def _serve(self, name: str, request: Message, context: Any) -> Message:
        answer: Message = await _future_of(self.proxy.serve(name, self._caller(context), request))
        return answer

    async def _stream(self, name: str, request: Message, context: Any) -> AsyncIterator[Message]:
        """Tell all messages of an answer; what is left when the client hangs up is given back."""
        caller, told_count = self._caller(context), 0
        give_back = partial(self.proxy.give_back, name, caller, request)
        found = _future_of(self.proxy.serve(name, caller, request), give_back)
        try:
            for answer in await found:
                yield answer
                told_count += 1
        finally:
            was_found = found.done() and not found.cancelled() and found.exception() is None
            if was_found and (untold := found.result()[told_count:]):
                give_back(untold)

    async def _telemetry(
        self, commands: AsyncIterator[Message], context: Any
    ) -> AsyncIterator[Message]:
        """Serve the commands of a client, and tell it what there is to tell, until either ends."""
        queue: asyncio.Queue[Message | None] = asyncio.Queue()
        caller, tell = self._caller(context), queue.put_nowait
        take = self.proxy.telemetry(caller, tell)
        self._telling.add(queue)
        reading = asyncio.ensure_future(_read(commands, take, tell))
        try:
            while (told := await queue.get()) is not None:
                yield told
            if reading.done() and isinstance(reading.exception(), ProxyError):
                await _refuse(context, reading.exception())
        finally:
            reading.cancel()
            self._telling.discard(queue)
            self.proxy.telemetry_ended(caller, tell)

    def _caller(self, context: Any) -> Caller:
        """Return who asks; gRPC names a peer as ``ipv4:127.0.0.1:47`` or ``ipv6:%5B::1%5D:47``."""
        headers: dict[str, object] = dict(context.invocation_metadata() or ())
        host, _, text = unquote(context.peer()).partition(":")[2].rpartition(":")
        port = int(text) if text.isdecimal() else 0
        origin = None if self._front is None else self._front.origin(port)
        if origin is not None:
            host, port = origin[:2]
        remaining = context.time_remaining()
        access_key = headers.get("x-mq-authorization-ak")
        return Caller(
            str(headers.get(_CLIENT_ID, "")),
            host.strip("[]") or "127.0.0.1",
            port,
            None if remaining is None else 1000 * remaining,
            str(headers.get("authorization", "")),
            str(headers.get("x-mq-date-time", "")),
            None if access_key is None else str(access_key),
        )


async def _read(
    commands: AsyncIterator[Any], take: Callable[[Any], None], tell: Callable[[Any], None]
) -> None:
    try:
        async for command in commands:
            take(command)
    finally:
        tell(None)


async def _refuse(context: Any, error: Any) -> None:
    is_clients = Code.BAD_REQUEST <= error.code < Code.INTERNAL_SERVER_ERROR
    code = grpc.StatusCode.INVALID_ARGUMENT if is_clients else grpc.StatusCode.INTERNAL
    await context.abort(code, f"process client telemetryCommand failed. {error}")


def _future_of(
    later: Later[Any], give_back: Callable[[Any], None] | None = None
) -> asyncio.Future[Any]:
    """Return an answer to come as asyncio has it; `give_back` gets one that nobody waits for."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def answered(answer: Any) -> None:
        if not future.done():
            future.set_result(answer)
        elif give_back is not None:
            give_back(answer)

    def failed(error: Exception) -> None:
        if not future.done():
            future.set_exception(error)

    later.then(answered, failed)
    return future


def _codecs(name: str) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    """Return what reads a request and writes any answer."""
    return MESSAGES[name].FromString, lambda message: message.SerializeToString()
