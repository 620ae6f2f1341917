"""
The control port: faults by HTTP, for tests in any language.

===========  =======================  ===========================================
GET          ``/``                    all there is to know
GET          ``/faults``              the faults of requests
POST         ``/faults``              plan one: the fields of a ``RequestFault``
DELETE       ``/faults``              all of them end
DELETE       ``/faults/N``            one ends
POST         ``/faults/N/release``    the same: whoever is held goes on
GET          ``/disk``                what is to go wrong with files
POST         ``/disk``                plan one failure: ``kind``, ``error``, ...
PUT          ``/disk``                ``is_read_only``, ``sync_lies``, ``capacity_bytes``
DELETE       ``/disk``                all works again
GET          ``/clock``               what the clocks show
POST         ``/clock``               ``advance_ms``, or ``jump_wall_ms``
POST         ``/leaders``             move those of a ``topic``, or of one ``partition``, ``to`` a
                                      node
GET          ``/nodes``               the nodes of a cluster, and whether each is up
POST         ``/nodes/N/stop``        take one out: others lead what it led
POST         ``/nodes/N/start``       let it in again
===========  =======================  ===========================================

Bodies and answers are JSON. A request that makes no sense is answered with 400 and ``error``.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from logstore.compat.faults.fault_control import ControlError, FaultControl, UnknownFaultError
from logstore.compat.running import AddressError

_log = logging.getLogger(__name__)
_BODY_BYTES_MAX = 1 << 20
#: how often it looks whether it is to end
_LOOK_SECONDS = 0.02

Work = Callable[[], Any]
#: method and path -> what is done; those with a body are given it, those with a number that
_ROUTES: dict[tuple[str, str], Callable[..., Any]] = {
    ("GET", "/"): FaultControl.state,
    ("GET", "/faults"): FaultControl.planned,
    ("POST", "/faults"): FaultControl.plan,
    ("DELETE", "/faults"): FaultControl.clear,
    ("DELETE", "/faults/N"): FaultControl.cancel,
    ("POST", "/faults/N/release"): FaultControl.cancel,
    ("GET", "/disk"): FaultControl.disk_state,
    ("POST", "/disk"): FaultControl.plan_disk_fault,
    ("PUT", "/disk"): FaultControl.set_disk,
    ("DELETE", "/disk"): FaultControl.heal_disk,
    ("GET", "/clock"): FaultControl.time,
    ("POST", "/clock"): FaultControl.push_clock,
    ("POST", "/leaders"): FaultControl.move,
    ("GET", "/nodes"): FaultControl.node_states,
    ("POST", "/nodes/N/stop"): FaultControl.stop_node,
    ("POST", "/nodes/N/start"): FaultControl.start_node,
}
_TAKES_BODY = {("POST", "/faults"), ("POST", "/disk"), ("PUT", "/disk"),
               ("POST", "/clock"), ("POST", "/leaders")}  # fmt: skip


class ControlPort:
    """
    Listens between the ends of a with statement; `run` makes a call where requests are served.

    Raises, on entering:
        AddressError: the address is taken or not ours.
    """

    def __init__(
        self, control: FaultControl, run: Callable[[Work], Any], host: str, port: int
    ) -> None:
        self.control = control
        self.run = run
        self._address = host, port
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port that answers."""
        assert self._server is not None, "it listens only within the with statement"
        return self._server.server_address[1]

    def __enter__(self) -> Self:
        try:
            server = ThreadingHTTPServer(self._address, _handler_of(self))
        except OSError as error:
            host, port = self._address
            raise AddressError(f"{host}:{port}: {error.strerror}; name another port") from error
        self._server = server
        self._thread = threading.Thread(
            target=server.serve_forever,
            args=(_LOOK_SECONDS,),
            name="logstore-control",
            daemon=True,
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def answer(self, method: str, path: str, body: bytes) -> tuple[HTTPStatus, Any]:
        """Do what a request asks for; return what it is answered."""
        number = re.search(r"\d+", path)
        route = re.sub(r"\d+", "N", path)
        work = _ROUTES.get((method, route))
        if work is None:
            is_path = any(route == known for _, known in _ROUTES)
            code = HTTPStatus.METHOD_NOT_ALLOWED if is_path else HTTPStatus.NOT_FOUND
            return code, {"error": f"there is no {method} {path}"}
        given: list[Any] = [self.control] if number is None else [self.control, int(number[0])]
        try:
            if (method, route) in _TAKES_BODY:
                given.append(_read(body))
            return HTTPStatus.OK, self.run(lambda: work(*given))
        except UnknownFaultError as error:
            return HTTPStatus.NOT_FOUND, {"error": str(error)}
        except ControlError as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error)}


def _read(body: bytes) -> dict[str, Any]:
    try:
        asked: Any = json.loads(body or b"{}")
    except ValueError as error:
        raise ControlError(f"the body is no JSON: {error}") from None
    if not isinstance(asked, dict):
        raise ControlError("the body is no JSON object")
    return {**asked}


def _handler_of(port: ControlPort) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """One request to the control port."""

        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            text = self.headers.get("Content-Length") or "0"
            size_bytes = int(text) if text.isdecimal() else -1
            if not 0 <= size_bytes <= _BODY_BYTES_MAX:
                self.close_connection = True
                self._say(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": "too large a body"})
                return
            body = self.rfile.read(size_bytes)
            self._say(*port.answer(self.command, self.path.partition("?")[0], body))

        do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - as the library calls them

        def _say(self, code: HTTPStatus, answer: Any) -> None:
            data = json.dumps(answer).encode() + b"\n"
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
            _log.info(format, *args)

    return Handler
