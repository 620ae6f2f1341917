"""A connection some of whose requests fail, are late or lost, as a test has planned it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from logstore.compat.connection import Chunk
from logstore.compat.kafka.connection import API_VERSIONS, KafkaConnection
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import REQUEST_HEADER, skip_tags
from logstore.compat.kafka.registry import APIS, Api, RawRequest
from logstore.compat.waiting import Later
from logstore.segment import Extent

if TYPE_CHECKING:
    from logstore.compat.faults.request_fault import RequestFault
    from logstore.compat.faults.request_faults import RequestFaults
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.produce.run import ProduceRun

_log = logging.getLogger(__name__)
#: Metadata, ApiVersions, DescribeCluster: an answer without all that is in one is of no use, so
#: these are served, and only then told to have failed
SERVED_ALL_THE_SAME = (3, API_VERSIONS, 60)


class _Struck(NamedTuple):
    """A request and the fault that it met. `frame` is a copy that stays."""

    fault: RequestFault
    api: Api
    request: RawRequest
    frame: memoryview


class FaultyConnection(KafkaConnection):
    """As :class:`KafkaConnection`; requests are looked at only while faults are planned."""

    __slots__ = ("_answer_to", "_faults")

    def __init__(self, broker: Broker, peer_host: str, faults: RequestFaults) -> None:
        super().__init__(broker, peer_host)
        self._faults = faults
        #: the request being served whose answer is to be lost, late or a lie
        self._answer_to: _Struck | None = None

    def _produce_run(self) -> ProduceRun | None:
        return None if self._faults.planned else super()._produce_run()

    def _handle(self, frame: memoryview) -> None:
        struck = self._struck(frame) if self._faults.planned else None
        if struck is None:
            super()._handle(frame)
            return
        fault = struck.fault
        _log.info("%s: %s of %s", fault.action, struck.api.name, self.client.client_id)
        is_served = fault.when == "after" or (
            fault.action == "fail" and struck.api.key in SERVED_ALL_THE_SAME
        )
        if is_served:
            self._serve_struck(struck)
        elif fault.action in ("delay", "hold"):
            self._wait(self._end_of_wait(fault), partial(self._serve_late, struck))
        else:
            self.output += self._outcome(struck, [])

    def _struck(self, frame: memoryview) -> _Struck | None:
        """Return the request with the fault that it meets, if any."""
        key, version, correlation_id = REQUEST_HEADER.unpack_from(frame)
        api = self._api(key, version)
        if api is None or not api.version_min <= version <= api.version_max:
            return None
        copy = memoryview(bytearray(frame))
        is_flexible = version >= api.flexible_from
        position = self._read_client_id(copy)
        if is_flexible:
            position = skip_tags(copy, position)
        request = RawRequest(version, correlation_id, copy, position, is_flexible)
        topics = partial(_topics_of, self.broker, api, request)
        fault = self._faults.strike(api.name, self.client.client_id, topics)
        return None if fault is None else _Struck(fault, api, request, copy)

    def _serve_struck(self, struck: _Struck) -> None:
        """Serve it, and do to its answer what is planned."""
        before = len(self.output)
        self._answer_to = struck
        super()._handle(struck.frame)
        if self._take_struck() is not None:  # it did not have to wait
            answer = self.output[before:]
            del self.output[before:]
            self.output += self._outcome(struck, answer)

    def _take_struck(self) -> _Struck | None:
        struck, self._answer_to = self._answer_to, None
        return struck

    def _serve_late(self, struck: _Struck, _: Any) -> list[Chunk]:
        super()._handle(struck.frame)
        return []

    def _wait(self, later: Later[Any], encode: Callable[[Any], list[Chunk]]) -> None:
        struck = self._take_struck()
        if struck is None:
            super()._wait(later, encode)
        else:
            super()._wait(later, lambda answer: self._outcome(struck, encode(answer)))

    def _outcome(self, struck: _Struck, answer: list[Chunk]) -> list[Chunk]:
        """Return what is sent; `answer` is the true one, empty if the request is not served."""
        fault = struck.fault
        if fault.action in ("delay", "hold"):
            self._wait(self._end_of_wait(fault), lambda _: answer)
            return []
        failed = None if fault.action == "drop" else self._failed(struck, answer)
        if failed is None:
            self.is_closing = True
            return []
        return failed

    def _failed(self, struck: _Struck, answer: list[Chunk]) -> list[Chunk] | None:
        from logstore.compat.kafka.faults.error_answers import error_answer, spoilt

        fault, code = struck.fault, ErrorCode[struck.fault.error]
        if struck.api.key == API_VERSIONS and code == ErrorCode.UNSUPPORTED_VERSION:
            refusal = self.broker.unsupported_api_versions(struck.request.correlation_id)
            return None if refusal is None else [refusal]
        if struck.api.key in SERVED_ALL_THE_SAME:
            frame = b"".join(bytes(chunk) for chunk in answer if not isinstance(chunk, Extent))
            return spoilt(struck.api, struck.request, frame, code, fault.topic)
        return error_answer(self.broker, struck.api, struck.request, code, fault.message)

    def _end_of_wait(self, fault: RequestFault) -> Later[bool]:
        later: Later[bool] = Later()
        if fault.action == "delay":
            self.broker.timers.after(fault.delay_ms, partial(later.answer, True))
        else:
            fault.held.append(partial(later.answer, True))
        return later


def _topics_of(broker: Broker, api: Api, request: RawRequest) -> Collection[str]:
    from logstore.compat.kafka.faults.named_topics import topics_of  # reads what handlers do not

    return topics_of(broker, api, request)


def make_faulty(broker: Broker, faults: RequestFaults) -> None:
    """Let requests of connections to come meet `faults`, which learn what Kafka calls things."""
    faults.know((api.name for api in APIS.values()), ErrorCode.__members__)

    def connection(_: Broker, peer_host: str) -> FaultyConnection:
        return FaultyConnection(broker, peer_host, faults)

    broker.make_connection = connection
