"""
Messages that a push consumer works at longer than they are invisible: their time is prolonged.

Source: ``DefaultReceiptHandleManager``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.proxy.clients import Renewed
from logstore.compat.rocketmq.proxy.receipt_handles import ReceiptHandle
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Proxy
    from logstore.compat.rocketmq.wire.remoting import Command

#: for how much longer, the first time and the next ones
_PROLONGED_MS = (60_000, 180_000, 300_000, 600_000, 1_800_000, 3_600_000)


class Renewals:
    """Looks every few seconds for handles that are about to expire."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._settings = proxy.settings
        self._is_scanning = False

    def add(self, client: ProxyClient, renewed: Renewed) -> None:
        """Prolong from now on."""
        client.renewed[renewed.handle.text] = renewed
        if not self._is_scanning:
            self._is_scanning = True
            self._sleep()

    def _sleep(self) -> None:
        self._proxy.broker.timers.after(self._settings.renew_interval_ms, self._scan)

    @staticmethod
    def end(client: ProxyClient, text: str) -> ReceiptHandle:
        """Return the handle that holds now for the one that the client knows; prolong no more."""
        renewed = client.renewed.pop(text, None)
        return ReceiptHandle.parse(text) if renewed is None else renewed.handle

    def clear(self, client: ProxyClient) -> None:
        """Let others have soon what a consumer has that is gone."""
        for renewed in client.renewed.values():
            self._change(client, renewed, self._settings.cleared_ms)
        client.renewed.clear()

    def give_back(
        self, client: ProxyClient, text: str, topic: str, group: str, lite_topic: str
    ) -> None:
        """Let others have soon a message that could not be handed to a consumer."""
        handle = Renewals.end(client, text)
        self._change(
            client, Renewed(handle, group, topic, 0, lite_topic), self._settings.cleared_ms
        )

    def _scan(self) -> None:
        now_ms = self._proxy.now_ms()
        clients = [client for client in self._proxy.clients.values() if client.renewed]
        self._is_scanning = bool(clients)
        if clients:
            self._sleep()
        for client in clients:
            if not client.link.is_open:  # the broker has hung up, for it was silent for so long
                self.clear(client)
                continue
            for text, renewed in list(client.renewed.items()):
                if renewed.handle.visible_ms - now_ms > self._settings.renew_ahead_ms:
                    continue
                if now_ms - renewed.since_ms >= self._settings.renewed_ms_max:
                    del client.renewed[text]
                else:
                    delay_ms = _PROLONGED_MS[min(renewed.count, len(_PROLONGED_MS) - 1)]
                    renewed.count += 1
                    self._change(client, renewed, delay_ms)

    @staticmethod
    def _change(client: ProxyClient, renewed: Renewed, invisible_ms: int) -> None:
        fields = renewed.handle.fields(renewed.topic, renewed.group, renewed.lite_topic)
        fields["invisibleTime"] = str(invisible_ms)
        link = client.link_to(renewed.handle.broker_name)
        link.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, fields).then(
            partial(_changed, renewed), lambda _: None
        )


def _changed(renewed: Renewed, answer: Command) -> None:
    if answer.code == ResponseCode.SUCCESS:
        renewed.handle = ReceiptHandle.parse(renewed.handle.renewed(answer.ext_fields))
