"""A remoting connection some of whose requests fail, are late or lost, as a test has planned it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.connection import RemotingConnection, RemotingService
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.remoting import (
    ONEWAY_FLAG,
    Command,
    Response,
    decode_command,
)

if TYPE_CHECKING:
    from logstore.compat.faults.request_fault import RequestFault
    from logstore.compat.faults.request_faults import RequestFaults
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.sending.send_run import SendRun
    from logstore.compat.rocketmq.wire.remoting import Answer

_log = logging.getLogger(__name__)
_NAMES = {int(code): code.name for code in RequestCode}
#: where requests name a topic and a group; of those with one-letter fields these are "b" and "a"
_TOPIC_FIELDS = ("topic", "b")
_GROUP_FIELDS = ("producerGroup", "consumerGroup", "group", "a")


class FaultyRemotingConnection(RemotingConnection):
    """
    As :class:`RemotingConnection`; requests are looked at only while faults are planned.

    Those are then served one by one, and not sends of one read together.
    """

    def __init__(
        self, service: RemotingService, peer_host: str, peer_port: int, faults: RequestFaults
    ) -> None:
        super().__init__(service, peer_host, peer_port)
        self._faults = faults
        #: what is to become of the answers to requests that are served, by opaque
        self._answers_struck: dict[int, RequestFault] = {}

    def _serve_frames(self, send_run: SendRun | None) -> None:
        if not self._faults.planned:
            super()._serve_frames(send_run)
            return
        while not self.is_closing:
            frame = self._frames.next_frame()
            if frame is None:
                break
            self._serve_command(decode_command(frame))

    def _handle(self, request: Command) -> None:
        fault = self._struck(request) if self._faults.planned else None
        if fault is None:
            super()._handle(request)
            return
        name, topic = _NAMES.get(request.code), _field(request, _TOPIC_FIELDS)
        _log.info("%s: %s of %s, topic %s", fault.action, name, self.channel.address, topic)
        if fault.when == "after":
            self._answers_struck[request.opaque] = fault
            super()._handle(request)
            if request.flag & ONEWAY_FLAG:  # there is no answer to lose
                self._outcome(fault, request, [])
        elif fault.action in ("delay", "hold"):
            request.body = memoryview(bytes(request.body))
            serve = partial(super()._handle, request)
            self._after_wait(fault, lambda: self._attend(serve))
        else:
            self._outcome(fault, request, [])

    def _struck(self, request: Command) -> RequestFault | None:
        """Return the fault that a request meets, if any."""
        return self._faults.strike(
            _NAMES.get(request.code, str(request.code)),
            _field(request, _GROUP_FIELDS),
            lambda: (_field(request, _TOPIC_FIELDS),),
        )

    def _answer(self, request: Command, answer: Answer) -> None:
        fault = self._answers_struck.pop(request.opaque, None)
        if fault is None:
            super()._answer(request, answer)
        else:
            self._outcome(fault, request, answer)

    def _outcome(self, fault: RequestFault, request: Command, answer: Answer) -> None:
        """Do to the answer what is planned; it is empty if the request is not served."""
        self._answers_struck.pop(request.opaque, None)
        if fault.action == "drop":
            self.hang_up()
        elif fault.action != "fail":
            self._after_wait(fault, partial(super()._answer, request, answer))
        elif not request.flag & ONEWAY_FLAG:
            super()._answer(request, Response(ResponseCode[fault.error], fault.message))

    def _after_wait(self, fault: RequestFault, go_on: Callable[[], None]) -> None:
        def waited() -> None:
            if not self._is_lost:
                go_on()
                self.say([])  # and what was said on the way

        if fault.action == "delay":
            self.service.timers.after(fault.delay_ms, waited)
        else:
            fault.held.append(waited)


def _field(request: Command, names: tuple[str, ...]) -> str:
    return next((request.ext_fields[name] for name in names if name in request.ext_fields), "")


def make_faulty(service: Broker | NameServer, faults: RequestFaults) -> None:
    """Let requests of connections to come meet `faults`, which learn what RocketMQ's are called."""
    codes = [code for code in service.handlers if code in _NAMES]
    faults.know((_NAMES[code] for code in codes), ResponseCode.__members__)

    def connection(
        service: RemotingService, peer_host: str, peer_port: int
    ) -> FaultyRemotingConnection:
        return FaultyRemotingConnection(service, peer_host, peer_port, faults)

    service.make_connection = connection
