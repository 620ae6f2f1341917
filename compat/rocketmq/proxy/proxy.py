"""
The proxy: knows its clients, and serves each request with the file that is called like it.

It has no socket and no thread. Whoever has them gives it requests by :meth:`Proxy.serve`, and
telemetry streams by :meth:`Proxy.telemetry`.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Coroutine
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from logstore.compat.rocketmq.connection import AnswerTimeoutError, PeerGoneError
from logstore.compat.rocketmq.proxy import lite_consumers
from logstore.compat.rocketmq.proxy.clients import ProxyClient, Transaction
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError, status
from logstore.compat.rocketmq.proxy.proxy_settings import ProxySettings
from logstore.compat.rocketmq.proxy.renewals import Renewals
from logstore.compat.rocketmq.proxy.routes import ProxyRoutes
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.proxy.turns import Turns
from logstore.compat.rocketmq.registry import Handler, Handlers
from logstore.compat.rocketmq.steps import begin
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.compat.waiting import Later
from logstore.segments.rocketmq.messages.java_strings import is_java_blank

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker

_log = logging.getLogger(__name__)
_RPCS = "logstore.compat.rocketmq.proxy.rpcs"
_SWEEP_MS = 10_000
#: the broker asks for those that are forgotten, which brings them back
_TRANSACTION_COUNT_MAX = 100_000
#: what a request is called in the protocol -> its file; those marked answer with many messages
UNARY = {
    "QueryRoute": "query_route",
    "Heartbeat": "heartbeat",
    "SendMessage": "send_message",
    "QueryAssignment": "query_assignment",
    "AckMessage": "ack_message",
    "ForwardMessageToDeadLetterQueue": "forward_message_to_dead_letter_queue",
    "EndTransaction": "end_transaction",
    "NotifyClientTermination": "notify_client_termination",
    "ChangeInvisibleDuration": "change_invisible_duration",
    "RecallMessage": "recall_message",
    "SyncLiteSubscription": "sync_lite_subscription",
}
STREAMING = {"ReceiveMessage": "receive_message"}
#: what a broker asks of a client
_ASKED_BY_BROKER = (
    RequestCode.CHECK_TRANSACTION_STATE,
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
    RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
    RequestCode.NOTIFY_UNSUBSCRIBE_LITE,
)


_Refused: TypeAlias = "Callable[[Any, Proxy], Any]"


@attrs.frozen
class Caller:
    """Who asks: what stands in the request's headers, and where it comes from."""

    client_id: str
    host: str
    port: int
    #: what is left of the time that the client waits; None for ever
    remaining_ms: float | None = None
    #: by which he shows who he is
    authorization: str = ""
    date_time: str = ""
    access_key: str | None = None
    version: str = ""


class Proxy:
    """Serves clients of a broker that is told nothing of it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.settings = ProxySettings.of_config(broker.config)
        #: where clients find it, which is what routes say
        self.host, self.port = "127.0.0.1", 8081
        self.clients: dict[str, ProxyClient] = {}
        #: by the producer group, which is called as the topic, and the transaction's id
        self.transactions: dict[tuple[str, str], Transaction] = {}
        self.routes = ProxyRoutes(self)
        self.renewals = Renewals(self)
        #: which queue the next message without a group goes to
        self.queue_turns = Turns()
        #: which broker whoever does not care receives from next
        self.broker_turns = Turns()
        self._is_open = True
        self._sweep()

    def now_ms(self) -> int:
        """Return the time."""
        return self.broker.host.clock.wall_ms()

    def close(self) -> None:
        """Let go of all clients."""
        self._is_open = False
        for client in self.clients.values():
            client.close()
        self.clients.clear()

    def check(self, caller: Caller, message: Any) -> None:
        """Raise ProxyError where there is access control, and who asks may not have that."""
        if self.broker.guarding is not None:
            from logstore.compat.rocketmq.proxy.access import check

            check(self.broker.guarding, caller, message)

    # clients

    def client(self, caller: Caller) -> ProxyClient:
        """Return the client that asks. Raises ProxyError: it does not say who it is."""
        if is_java_blank(caller.client_id):
            raise ProxyError(Code.CLIENT_ID_REQUIRED, "client id cannot be empty")
        client = self.clients.get(caller.client_id)
        if client is None or not client.link.is_open:
            before = client
            client = ProxyClient(self, caller.client_id, caller.host, caller.port)
            if before is not None:
                before.close_spare()
                client.asked_settings, client.tell = before.asked_settings, before.tell
                client.renewed, client.far_links = before.renewed, before.far_links
            self.clients[caller.client_id] = client
        client.used_ms = self.now_ms()
        return client

    def remember(self, group: str, transaction_id: str, transaction: Transaction) -> None:
        """Keep where a half message is, until it ends or many others have come since."""
        self.transactions[group, transaction_id] = transaction
        if len(self.transactions) > _TRANSACTION_COUNT_MAX:
            del self.transactions[next(iter(self.transactions))]

    def forget(self, client: ProxyClient) -> None:
        """Let a client go; others have soon what it worked at."""
        self.renewals.clear(client)
        self.clients.pop(client.client_id, None)
        client.leave()

    def _sweep(self) -> None:
        """Forget those who have not been heard of for long and do not listen."""
        if not self._is_open:
            return
        self.broker.timers.after(_SWEEP_MS, self._sweep)
        now_ms = self.now_ms()
        for client in list(self.clients.values()):
            if client.tell is None and now_ms - client.used_ms > self.settings.idle_ms_max:
                self.forget(client)

    def handlers_for(self, client: ProxyClient, broker_name: str) -> Handlers:
        """Return what serves the requests of a broker to a client."""
        handlers: Handlers = {}
        for code in _ASKED_BY_BROKER:
            handlers[code] = Handler(code, f"{_RPCS}.telemetry")
            handlers[code].handle = partial(_serve_broker, client, broker_name)
        return handlers

    # requests

    def serve(self, name: str, caller: Caller, request: Any) -> Later[Any]:
        """Return the answer to come to a request; to a streaming one that is a list."""
        is_unary = name in UNARY
        try:
            self.check(caller, request)
            client = self.client(caller)
        except ProxyError as error:
            told = _refused(name, status(error.code, str(error)), self)
            later: Later[Any] = Later()
            later.answer(told if is_unary else [told])
            return later
        handle, refused = _handling(name)
        return begin(self._guarded(handle, refused, client, caller, request))

    def give_back(self, name: str, caller: Caller, request: Any, answers: list[Any]) -> None:
        """Take back what could not be told to whoever asked, who has hung up."""
        module = importlib.import_module(f"{_RPCS}.{STREAMING[name]}")
        module.give_back(self.client(caller), request, answers)

    async def _guarded(
        self,
        handle: Callable[..., Coroutine[Any, Any, Any]],
        refused: _Refused,
        client: ProxyClient,
        caller: Caller,
        request: Any,
    ) -> Any:
        try:
            return await handle(client, request, caller)
        except ProxyError as error:
            return refused(status(error.code, str(error)), self)
        except AnswerTimeoutError as error:
            return refused(status(Code.PROXY_TIMEOUT, str(error)), self)
        except PeerGoneError as error:  # the client has left meanwhile, or the broker stops
            return refused(status(Code.INTERNAL_SERVER_ERROR, str(error)), self)
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            _log.exception("a request of %s failed", caller.client_id)
            text = f"{type(error).__name__}: {error}"
            return refused(status(Code.INTERNAL_SERVER_ERROR, text), self)

    def telemetry(self, caller: Caller, tell: Callable[[Any], None]) -> Callable[[Any], None]:
        """
        Return what takes the commands of a client that listens from now on; `tell` reaches it.

        It raises ProxyError, which ends the stream.
        """
        from logstore.compat.rocketmq.proxy.rpcs import telemetry

        return partial(telemetry.take, self, caller, tell)

    def telemetry_ended(self, caller: Caller, tell: Callable[[Any], None]) -> None:
        """Take note that a client does not listen any more."""
        client = self.clients.get(caller.client_id)
        if client is not None and client.tell == tell:
            client.tell = None
            client.used_ms = self.now_ms()
            lite_consumers.leave(client)


@cache
def _handling(name: str) -> tuple[Callable[..., Coroutine[Any, Any, Any]], _Refused]:
    """Return what serves such requests, and what makes the answer to one that is refused."""
    is_unary = name in UNARY
    module = importlib.import_module(f"{_RPCS}.{(UNARY if is_unary else STREAMING)[name]}")
    return module.handle, partial(_refused if is_unary else module.refused, name)


def _refused(name: str, why: Any, proxy: Proxy) -> Any:
    del proxy
    return MESSAGES[f"{name}Response"](status=why)


def _serve_broker(
    client: ProxyClient, broker_name: str, service: Any, channel: Any, request: Any
) -> None:
    from logstore.compat.rocketmq.proxy.rpcs import telemetry

    del service, channel
    telemetry.serve_broker(client, broker_name, request)
