"""Questions of one broker to others, whose addresses a name server tells (RpcClientImpl)."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.connection import (
    AnswerTimeoutError,
    Channel,
    PeerGoneError,
    RemotingConnection,
)
from logstore.compat.rocketmq.replication.follower import host_and_port
from logstore.compat.rocketmq.steps import Step
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.outbox import Outbox
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.waiting import Later
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.found_brokers import FindBrokers
    from logstore.compat.rocketmq.registrar import Reach
    from logstore.compat.rocketmq.registry import Handlers
    from logstore.compat.rocketmq.wire.codes import RequestCode
    from logstore.compat.rocketmq.wire.remoting import Command

_log = logging.getLogger(__name__)

#: how long a broker's address is believed
_ADDRESSES_MS = 5_000


class CallError(RefusedError):
    """Another broker cannot be asked, or answers what nobody expects."""

    def __init__(self, remark: str) -> None:
        super().__init__(ResponseCode.SYSTEM_ERROR, remark)


class BrokerCalls:
    """Asks other brokers. Also the service behind the connections to them."""

    def __init__(self, broker: Broker) -> None:
        self.handlers: Handlers = {}
        self.timers = broker.timers
        self.outbox = Outbox()
        #: nobody sends here
        self.send_run = None
        self._broker = broker
        self._reach: Reach | None = None
        self._find_brokers: FindBrokers | None = None
        self._addresses: dict[str, str] = {}
        self._found_ms = float("-inf")
        self._channels: dict[str, Channel] = {}
        #: who waits for a connection, by address
        self._waiting: dict[str, list[Later[Channel]]] = {}

    def begin(self, reach: Reach, find_brokers: FindBrokers) -> None:
        """Say how connections are made, and who tells where brokers are."""
        self._reach, self._find_brokers = reach, find_brokers

    async def ask(
        self,
        broker_name: str,
        code: RequestCode,
        fields: Mapping[str, str],
        expected: Collection[int] = (ResponseCode.SUCCESS,),
    ) -> Command:
        """
        Return what the master of that name answers.

        Raises:
            CallError: it cannot be asked, or the code of its answer is none of those `expected`.

        """
        address = await self._address_of(broker_name)
        try:
            channel = await Step(self._channel_to(address))
            timeout_ms = self._broker.settings.forward_timeout_ms
            answer = await Step(channel.ask(code, fields, timeout_ms=timeout_ms))
        except (PeerGoneError, AnswerTimeoutError, OSError) as error:
            self._found_ms = float("-inf")
            raise CallError(f"error from remoting layer: {error}") from error
        if answer.code not in expected:
            raise CallError("unknown remote error")
        return answer

    async def _address_of(self, broker_name: str) -> str:
        now_ms = self._broker.host.clock.monotonic_ms()
        if self._find_brokers is not None and (
            broker_name not in self._addresses or now_ms > self._found_ms + _ADDRESSES_MS
        ):
            try:
                self._addresses = await Step(self._find_brokers())
                self._found_ms = now_ms
            except LogStoreError as error:
                _log.warning("nobody tells where brokers are: %s", error)
        address = self._addresses.get(broker_name)
        if address is None:
            raise CallError(f"cannot find addr for broker {broker_name}")
        return address

    def _channel_to(self, address: str) -> Later[Channel]:
        later: Later[Channel] = Later()
        channel = self._channels.get(address)
        found = host_and_port(address)
        if channel is not None and channel.is_open:
            later.answer(channel)
        elif self._reach is None or found is None:
            later.fail(PeerGoneError(f"{address} cannot be reached"))
        elif address in self._waiting:
            self._waiting[address].append(later)
        else:
            self._waiting[address] = [later]
            self._reach(*found, partial(self._reached, address), partial(self._failed, address))
        return later

    def _reached(self, address: str, host: str, port: int) -> RemotingConnection:
        connection = RemotingConnection(self, host, port)
        channel = connection.channel
        channel.sign = self._broker.sign
        # What is said before the driver has the connection goes out when it is asked first.
        self.timers.after(0, lambda: self._tell_reached(address, channel))
        return connection

    def _tell_reached(self, address: str, channel: Channel) -> None:
        self._channels[address] = channel
        for later in self._waiting.pop(address, ()):
            later.answer(channel)

    def _failed(self, address: str, error: Exception) -> None:
        for later in self._waiting.pop(address, ()):
            later.fail(PeerGoneError(f"{address} cannot be reached: {error}"))

    def requests_served(self) -> None:
        """Do nothing: other brokers ask on connections of their own."""

    def disconnected(self, channel: Channel) -> None:
        """Connect anew with the next question."""
        self._channels = {
            address: known for address, known in self._channels.items() if known is not channel
        }
