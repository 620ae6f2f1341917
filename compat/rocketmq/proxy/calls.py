"""The calls of the proxy's clients: their messages in and out of gRPC."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from logstore.compat.grpc.status import CallError, GrpcCode
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError, StreamEndedError
from logstore.compat.rocketmq.proxy.proxy import STREAMING, UNARY, Caller, Proxy
from logstore.compat.rocketmq.proxy.schema import MESSAGES

if TYPE_CHECKING:
    from logstore.compat.grpc.call import Call, Handling

_SERVICE = "/apache.rocketmq.v2.MessagingService/"
_TELEMETRY = "Telemetry"
_CLIENT_ID = "x-mq-client-id"


class ProxyCalls:
    """Serves what clients call. Part of :class:`logstore.compat.grpc.connection.GrpcService`."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self._begin_by_path: dict[str, Callable[[Call], Handling]] = {}
        for names, kind in ((UNARY, _Unary), (STREAMING, _Streaming)):
            for name in names:
                self._begin_by_path[_SERVICE + name] = partial(kind, proxy, name)
        self._begin_by_path[_SERVICE + _TELEMETRY] = self._listen
        self._listening: set[_Telemetry] = set()

    def begin(self, call: Call) -> Handling | None:
        """Return what serves a call, None if the proxy has no such method."""
        begin = self._begin_by_path.get(call.path)
        return None if begin is None else begin(call)

    def _listen(self, call: Call) -> Handling:
        listening = _Telemetry(self.proxy, call, self._listening.discard)
        self._listening.add(listening)
        return listening

    def end_all(self) -> None:
        """Tell those who listen that nothing follows."""
        for listening in tuple(self._listening):
            listening.half_closed()


class _Unary:
    """One request, one answer."""

    def __init__(self, proxy: Proxy, name: str, call: Call) -> None:
        self._proxy = proxy
        self._name = name
        self._call = call
        self._caller = _caller_of(call)
        self._read = MESSAGES[f"{name}Request"].FromString
        self._request: Any = None

    def message(self, data: bytes) -> None:
        """Take the request."""
        if self._request is not None:
            raise CallError(GrpcCode.INTERNAL, "Too many requests")
        self._request = _parsed(self._read, data)

    def half_closed(self) -> None:
        """Serve the request, which is whole now."""
        if self._request is None:
            raise CallError(GrpcCode.INTERNAL, "Half-closed without a request")
        self._serve()

    def _serve(self) -> None:
        call = self._call
        later = self._proxy.serve(self._name, self._caller, self._request)
        later.then(lambda answer: call.answer(answer.SerializeToString()), self._failed)

    def _failed(self, error: Exception) -> None:
        self._call.end(GrpcCode.UNKNOWN, f"{type(error).__name__}: {error}")

    def cancelled(self) -> None:
        """Take note that nobody waits for the answer."""


class _Streaming(_Unary):
    """One request, many messages in answer; what the client does not get is given back."""

    def __init__(self, proxy: Proxy, name: str, call: Call) -> None:
        super().__init__(proxy, name, call)
        self._found: list[Any] = []

    def _serve(self) -> None:
        later = self._proxy.serve(self._name, self._caller, self._request)
        later.then(self._answered, self._failed)

    def _answered(self, answers: list[Any]) -> None:
        if self._call.is_ended:
            self._give_back(answers)
            return
        self._found = answers
        for answer in answers:
            self._call.tell(answer.SerializeToString())
        self._call.end()

    def cancelled(self) -> None:
        """Give back what has not left."""
        if untold := self._found[self._call.told_count :]:
            self._give_back(untold)

    def _give_back(self, answers: list[Any]) -> None:
        self._proxy.give_back(self._name, self._caller, self._request, answers)


class _Telemetry:
    """A client that tells of itself, and is told what there is to tell, until either ends."""

    def __init__(self, proxy: Proxy, call: Call, on_end: Callable[[_Telemetry], None]) -> None:
        self._proxy = proxy
        self._call = call
        self._on_end = on_end
        self._caller = _caller_of(call)
        self._read = MESSAGES["TelemetryCommand"].FromString
        self._take = proxy.telemetry(self._caller, self._tell)
        self._is_over = False

    def _tell(self, command: Any) -> None:
        self._call.tell(command.SerializeToString())

    def message(self, data: bytes) -> None:
        """Take a command; one that is none ends the stream."""
        try:
            self._take(_parsed(self._read, data))
        except ProxyError as error:
            self.cancelled()
            is_clients = Code.BAD_REQUEST <= error.code < Code.INTERNAL_SERVER_ERROR
            code = GrpcCode.INVALID_ARGUMENT if is_clients else GrpcCode.INTERNAL
            text = f"process client telemetryCommand failed. {error}"
            raise CallError(code, text) from error
        except CallError:
            self.cancelled()
            raise
        except StreamEndedError:  # and the client has been told why
            self.half_closed()

    def half_closed(self) -> None:
        """End the stream."""
        self.cancelled()
        self._call.end()

    def cancelled(self) -> None:
        """Take note that the client does not listen any more."""
        if not self._is_over:
            self._is_over = True
            self._on_end(self)
            self._proxy.telemetry_ended(self._caller, self._tell)


def _parsed(read: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return read(data)
    except DecodeError as error:
        raise CallError(GrpcCode.INTERNAL, "Invalid protobuf byte sequence") from error


def _caller_of(call: Call) -> Caller:
    metadata = call.metadata
    return Caller(
        metadata.get(_CLIENT_ID, ""),
        call.host,
        call.port,
        call.timeout_ms,
        metadata.get("authorization", ""),
        metadata.get("x-mq-date-time", ""),
        metadata.get("x-mq-authorization-ak"),
        metadata.get("x-mq-client-version", ""),
    )
