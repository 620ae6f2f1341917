"""
One Kafka client's connection without its socket: frames in, responses out, strictly in order.

One request is served at a time. While its answer is awaited (a long poll, a group join, a flush)
later requests stay unread, as in Kafka, whose broker mutes the channel.
"""

from __future__ import annotations

import importlib
import logging
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

from logstore.compat.connection import Chunk, FrameBuffer, FrameError
from logstore.compat.kafka.framing import (
    I16,
    REQUEST_HEADER,
    MalformedRequestError,
    framed,
    skip_tags,
)
from logstore.compat.kafka.null_fields import find_null
from logstore.compat.kafka.produce.alone import answer_alone
from logstore.compat.kafka.registry import APIS, Api, RawRequest
from logstore.compat.kafka.security.principal import ANONYMOUS
from logstore.compat.kafka.whole_requests import decode_whole
from logstore.compat.waiting import Later
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.fetch.repeats import Repeats
    from logstore.compat.kafka.produce.route import ProduceRoute
    from logstore.compat.kafka.produce.run import ProduceRun
    from logstore.compat.kafka.security.listener import Listener
    from logstore.compat.kafka.security.sasl.authentication import Authentication

_log = logging.getLogger(__name__)
API_VERSIONS, API_VERSIONS_FLEXIBLE_FROM = 18, 3
_unpack_header = REQUEST_HEADER.unpack_from


class Client:
    """What is known of the peer."""

    __slots__ = (
        "authentication",
        "client_id",
        "fetch_repeats",
        "host",
        "is_by_token",
        "listener",
        "principal",
        "produce_lead",
        "produce_route",
        "raw_client_id",
        "sends_usual",
        "software",
    )

    def __init__(self, host: str, listener: Listener) -> None:
        self.host = host
        #: by which it came in
        self.listener = listener
        #: how far it is with saying who it is; None where nobody has to
        self.authentication: Authentication | None = None
        self.principal = ANONYMOUS
        #: it has come in by a delegation token
        self.is_by_token = False
        self.client_id = ""
        self.raw_client_id: bytes = b""
        self.software = ""
        #: what its last fetch of everything found
        self.fetch_repeats: Repeats | None = None
        #: how this client's last produce request was understood
        self.produce_route: ProduceRoute | None = None
        #: what it began with, from the client id up to the first partition
        self.produce_lead = b""
        #: whether its batches were usual ones: only such are gathered
        self.sends_usual = False


class Throttled(list[Chunk]):
    """Frames to a client that used too much: it is not read from for `throttle_ms` (KIP-219)."""

    def __init__(self, frames: list[Chunk], throttle_ms: int) -> None:
        super().__init__(frames)
        self.throttle_ms = throttle_ms


class KafkaConnection:
    """Implements :class:`logstore.compat.connection.Connection` for the Kafka protocol."""

    __slots__ = (
        "__weakref__",
        "_frames",
        "_is_lost",
        "broker",
        "client",
        "is_closing",
        "is_waiting",
        "on_output",
        "output",
        "writable",
    )

    def __init__(self, broker: Broker, peer_host: str) -> None:
        self.broker = broker
        self.client = Client(peer_host, broker.listener)
        self.output: list[Chunk] = []
        self.is_closing = False
        self.is_waiting = False
        self.on_output: Callable[[], None] | None = None
        self._frames = FrameBuffer(broker.request_bytes_max, broker.landing)
        #: returns where to put the next bytes
        self.writable = self._frames.writable
        self._is_lost = False

    def received(self, count: int) -> None:
        """Serve every whole request that has arrived, until one must wait."""
        frames = self._frames
        frames.received(count)
        self._serve()
        if self.is_closing:
            frames.clear()
        if frames.start < frames.end:
            frames.settle()

    def feed(self, data: bytes) -> list[Chunk]:
        """Receive `data` and take out what is to be sent: for tests, which have no socket."""
        while data:
            target = self.writable()
            count = min(len(target), len(data))
            target[:count] = data[:count]
            self.received(count)
            data = data[count:]
        output, self.output = self.output, []
        return output

    def lost(self) -> None:
        """Take note that the peer is gone."""
        self._is_lost = True
        self.is_closing = True
        self.broker.disconnected(self)

    def _serve(self) -> None:
        while self._serve_frames():
            pass  # what came behind a request that failed
        readers = self.broker.readers
        if readers.touched:
            readers.wake()

    def _serve_frames(self) -> bool:
        """Serve what can be served; tell whether a request failed, and others may wait."""
        frames, client = self._frames, self.client
        gate = client.authentication
        run = self._produce_run()
        frame: memoryview | None = None
        try:
            while frames.start < frames.end and not (self.is_waiting or self.is_closing):
                frame = frames.next_frame()
                if frame is None:
                    break
                route = client.produce_route
                if run is not None and route is not None and client.sends_usual:
                    if self._goes_on(run, route, frame):
                        continue
                    if run.is_filled:
                        self.output += run.finish()
                if gate is None or self._is_admitted(gate, frame):
                    self._handle(frame)
        except (FrameError, MalformedRequestError, struct.error, IndexError, ValueError) as error:
            _log.info("closing the connection of %s: %s", self.client.host, error)
            self.is_closing = True
        except (LogStoreError, OSError) as error:
            assert frame is not None, "there was something to serve"
            self._tell_failure(frame, error)
            return True
        except Exception as error:  # noqa: BLE001 - logged with its traceback
            self._break_off(error)
        finally:
            if run is not None and run.is_filled:
                self.output += run.finish()
        return False

    def _goes_on(self, run: ProduceRun, route: ProduceRoute, frame: memoryview) -> bool:
        """Serve or gather a request like the client's last; tell whether it is one."""
        is_alone = not run.is_filled and self._frames.start == self._frames.end
        if not is_alone or route.partition_count > 1:
            return run.take(self.client, route, frame)
        answer = answer_alone(self.broker, self.client, route, frame)
        if answer is not None:
            self.output.append(answer)
        return answer is not None

    def _produce_run(self) -> ProduceRun | None:
        """Return who gathers produce requests; None while each is to be looked at by itself."""
        broker = self.broker
        is_plain = broker.find_api is None and self.client.authentication is None
        return broker.produce_run if is_plain else None

    def _tell_failure(self, frame: memoryview, error: Exception) -> None:
        """Answer a request during which the disk refused what its handler took for granted."""
        from logstore.compat.kafka.failed_request import failure_answer

        answer = failure_answer(self.broker, frame, error)
        if answer is None:
            self._break_off(error)
            return
        _log.error("a request of %s failed", self.client.host, exc_info=error)
        self.output += answer

    def limit_frames(self, size_bytes_max: int) -> None:
        """Let no larger frames come in from now on."""
        self._frames.frame_bytes_max = size_bytes_max

    def _is_admitted(self, gate: Authentication, frame: memoryview) -> bool:
        """Tell whether a frame is a request to be served; any other one is answered here."""
        answer = gate.admit(frame)
        if answer is None:
            return True
        if isinstance(answer, list):
            self.output += answer
        else:
            self._wait(answer, list)
        return False

    def _handle(self, frame: memoryview) -> None:
        key, version, correlation_id = _unpack_header(frame)
        api = self._api(key, version)
        if api is None or not api.version_min <= version <= api.version_max:
            self._refuse_version(key, version, correlation_id, frame)
            return
        is_flexible = version >= api.flexible_from
        position = self._read_client_id(frame)
        if is_flexible:
            position = 1 + position if frame[position] == 0 else skip_tags(frame, position)
        if api.handle_raw is not None:
            request = RawRequest(version, correlation_id, frame, position, is_flexible)
            frames = api.handle_raw(self.broker, self.client, request)
            if isinstance(frames, list):
                self.output += frames
                if type(frames) is not list:
                    self._mute_after(frames)
            elif frames is not None:
                self._wait(frames, list)
            return
        answer = self._ask(api, version, frame[position:])

        def encode(message: Any) -> list[Chunk]:
            body: bytes = message.encode(version=version)
            return [framed(correlation_id, body, has_tags=is_flexible)]

        if _is_later(answer):
            self._wait(answer, encode)
            return
        try:
            self.output += encode(answer)
        except Exception as error:  # noqa: BLE001 - the request was sound, whatever this is
            self._break_off(error)

    def served(self, key: int, version: int) -> Api | None:
        """Return who serves that version of an API; None if nobody does."""
        api = self._api(key, version)
        return api if api is not None and api.version_min <= version <= api.version_max else None

    def _api(self, key: int, version: int) -> Api | None:
        find_api = self.broker.find_api
        return APIS.get(key) if find_api is None else find_api(key, version)

    def _read_client_id(self, frame: memoryview) -> int:
        """Note the client id, which rarely changes; return the position after it."""
        size_bytes: int = I16.unpack_from(frame, 8)[0]
        end = 10 + max(size_bytes, 0)  # negative: null, which is as good as empty
        if end > len(frame):
            raise MalformedRequestError(f"a client id of {size_bytes} bytes does not fit")
        client = self.client
        raw_client_id = bytes(frame[10:end])
        if raw_client_id != client.raw_client_id:
            client.raw_client_id = raw_client_id
            client.client_id = raw_client_id.decode(errors="replace")
        return end

    def _ask(self, api: Api, version: int, body: memoryview) -> Any:
        """Decode the message, which the library does in bytes, and hand it to its handler."""
        request_class = message_class(api, "Request")
        try:
            request = decode_whole(request_class, bytes(body), version)
        except Exception as error:
            raise MalformedRequestError(
                f"{api.name} v{version} cannot be decoded: {error!r}"
            ) from error
        null = find_null(request, version)
        if null is not None:
            raise MalformedRequestError(f"{api.name} v{version}: {null} must not be null")
        assert api.handle is not None, "an API has one kind of handler"
        return api.handle(self.broker, self.client, request)

    def _wait(self, later: Later[Any], encode: Callable[[Any], list[Chunk]]) -> None:
        self.is_waiting = True
        is_here = True

        def answered(answer: Any) -> None:
            self.is_waiting = False
            if self._is_lost:
                return
            try:
                self.output += encode(answer)
            except Exception as error:  # noqa: BLE001 - logged; whoever answers is not to blame
                self._break_off(error)
            self._mute_after(answer)
            if not is_here:
                self._serve()
                if self.on_output is not None:
                    self.on_output()

        def failed(error: Exception) -> None:
            self.is_waiting = False
            if not self._is_lost:
                self._break_off(error)
                if self.on_output is not None:
                    self.on_output()

        later.then(answered, failed)
        is_here = False

    def _mute_after(self, answer: object) -> None:
        """Read no more from a client that is told to keep still, until its time is over."""
        if not isinstance(answer, Throttled):
            return
        self.is_waiting = True

        def unmute() -> None:
            self.is_waiting = False
            if not self._is_lost:
                self._serve()
                if self.on_output is not None:
                    self.on_output()

        self.broker.timers.after(answer.throttle_ms, unmute)

    def _break_off(self, error: Exception) -> None:
        """Close: a fault of ours in one request must not take the broker down with it."""
        _log.error("closing the connection of %s", self.client.host, exc_info=error)
        self.is_closing = True

    def _refuse_version(
        self, key: int, version: int, correlation_id: int, frame: memoryview
    ) -> None:
        """Answer an ApiVersions of another time in version 0; hang up on everything else."""
        answer = None
        if key == API_VERSIONS:
            position = self._read_client_id(frame)
            emulation = self.broker.emulation
            if version >= API_VERSIONS_FLEXIBLE_FROM and (not emulation or emulation.knows_tags):
                skip_tags(frame, position)
            answer = self.broker.unsupported_api_versions(correlation_id)
        if answer is not None:
            self.output.append(answer)
            return
        _log.info("closing the connection of %s: API %s v%s", self.client.host, key, version)
        self.is_closing = True


def _is_later(answer: Any) -> TypeGuard[Later[Any]]:
    return isinstance(answer, Later)


def message_class(api: Api, kind: str) -> Any:
    """Return the library's class of the API's request or response, imported at first use."""
    module = importlib.import_module(f"kafka.protocol.{api.module}")
    return getattr(module, api.name + kind)
