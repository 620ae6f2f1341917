"""Handlers of a broker that has static topics: who asks for a logic queue is served otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.registry import AnyHandler, Handler, Handlers
from logstore.compat.rocketmq.static_topics.consumer_offsets import (
    query_consumer_offset,
    update_consumer_offset,
)
from logstore.compat.rocketmq.static_topics.mapped_pulls import answer_mapped_pull
from logstore.compat.rocketmq.static_topics.mapped_request import MappedRequest
from logstore.compat.rocketmq.static_topics.mapped_sends import answer_mapped_send
from logstore.compat.rocketmq.static_topics.offset_requests import (
    earliest_store_time,
    max_offset,
    min_offset,
    offset_for_time,
)
from logstore.compat.rocketmq.steps import begin
from logstore.compat.rocketmq.wire.codes import RequestCode

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response
    from logstore.compat.waiting import Later

_C = RequestCode


def _begun(
    serve: Callable[[MappedRequest], Coroutine[Later[Any], Any, Response]],
) -> Callable[[MappedRequest], Any]:
    return lambda request: begin(serve(request))


_SERVED: Mapping[int, Callable[[MappedRequest], Any]] = {
    _C.SEND_MESSAGE: answer_mapped_send,
    _C.SEND_MESSAGE_V2: answer_mapped_send,
    _C.SEND_BATCH_MESSAGE: answer_mapped_send,
    _C.PULL_MESSAGE: answer_mapped_pull,
    _C.LITE_PULL_MESSAGE: answer_mapped_pull,
    _C.QUERY_CONSUMER_OFFSET: _begun(query_consumer_offset),
    _C.UPDATE_CONSUMER_OFFSET: _begun(update_consumer_offset),
    _C.SEARCH_OFFSET_BY_TIMESTAMP: _begun(offset_for_time),
    _C.GET_MAX_OFFSET: _begun(max_offset),
    _C.GET_MIN_OFFSET: _begun(min_offset),
    _C.GET_EARLIEST_MSG_STORETIME: _begun(earliest_store_time),
}
#: whose fields are called by letters, in which nobody can say that it is no logic queue
_LETTERED = (_C.SEND_MESSAGE_V2, _C.SEND_BATCH_MESSAGE)


class MappedHandler(Handler):
    """A handler that is asked for queues of this broker."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Handler) -> None:
        super().__init__(inner.code, "")
        self._inner = inner

    def load(self) -> None:
        """Load the handler behind this one."""
        inner = self._inner
        if inner.handle is None and inner.handle_raw is None:
            inner.load()
        if inner.handle_raw is not None:
            self.handle_raw = self._mapped(inner.handle_raw)
        elif inner.handle is not None:
            self.handle = self._mapped(inner.handle)

    def _mapped(self, handle: AnyHandler) -> AnyHandler:
        serve = _SERVED[self.code]
        is_lettered = self.code in _LETTERED
        topic_name = "b" if is_lettered else "topic"

        def mapped(broker: Broker, channel: Channel, request: Command) -> Any:
            fields = request.ext_fields
            detail = broker.static_topics.details.get(fields.get(topic_name, ""))
            is_physical = not is_lettered and fields.get("lo", "").lower() == "false"
            if detail is None or is_physical:
                return handle(broker, channel, request)
            return serve(MappedRequest(broker, channel, request, detail, handle))

        return mapped


def mapped_handlers(handlers: Handlers) -> Handlers:
    """Return `handlers` for a broker that has static topics."""
    return {
        code: MappedHandler(inner) if code in _SERVED else inner for code, inner in handlers.items()
    }
