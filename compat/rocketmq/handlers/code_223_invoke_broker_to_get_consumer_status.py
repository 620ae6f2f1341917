"""
INVOKE_BROKER_TO_GET_CONSUMER_STATUS: how far each client of a group is in a topic, by itself.

The clients' tables are handed on as they are: their keys are objects, which is no standard JSON.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.clients.releases import check_knows_resets
from logstore.compat.rocketmq.wire.bodies import json_body, object_body
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.clients.clients import Client
    from logstore.compat.rocketmq.clients.consumers import ConsumerGroup
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

_log = logging.getLogger(__name__)
_TIMEOUT_MS = 5_000


def handle(
    broker: Broker,
    channel: Channel,
    request: Command,
) -> Later[Response]:
    """Serve one request."""
    fields = request.ext_fields
    topic, group = read_text(fields, "topic"), read_text(fields, "group")
    wanted = (fields.get("clientAddr") or "").strip()
    connected = broker.consumers.group(group)
    if connected is None or not connected.members:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{group}]"
        )
    clients = list(_clients_of(connected, wanted))
    return _Question(topic, group, clients).ask()


def _clients_of(connected: ConsumerGroup, wanted: str) -> Iterator[Client]:
    """Yield who is to be asked. Raises RefusedError where one of a group is too old for it."""
    for client in connected.members.values():
        check_knows_resets(client.version)
        if wanted in ("", client.client_id):
            yield client
            if wanted:
                return


class _Question:
    """Asks several clients; the answer is made when the last has answered, or failed to."""

    def __init__(self, topic: str, group: str, clients: list[Client]) -> None:
        self._fields = as_fields(topic=topic, group=group)
        self._clients = clients
        self._tables: dict[str, bytes] = {}
        self._waiting = len(clients)
        self._later: Later[Response] = Later()

    def ask(self) -> Later[Response]:
        for client in self._clients:
            code = RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT
            answer = client.channel.ask(code, self._fields, timeout_ms=_TIMEOUT_MS)
            answer.then(partial(self._answered, client.client_id), self._failed)
        if not self._clients:
            self._finish()
        return self._later

    def _answered(self, client_id: str, answer: Command) -> None:
        table = _table_of(bytes(answer.body))
        if answer.code == ResponseCode.SUCCESS and table:
            self._tables[client_id] = table
        self._finish_one()

    def _failed(self, error: Exception) -> None:
        _log.info("a consumer did not say how far it is: %s", error)
        self._finish_one()

    def _finish_one(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._finish()

    def _finish(self) -> None:
        pieces = [json_body(name) + b":" + table for name, table in self._tables.items()]
        body = object_body(consumerTable=b"{" + b",".join(pieces) + b"}", messageQueueTable=b"{}")
        answer = Response(ResponseCode.SUCCESS, "not set any response code", body=body)
        self._later.answer(answer)


def _table_of(body: bytes) -> bytes:
    """Return the table in ``{"messageQueueTable":{...}}`` as it stands there."""
    _, _, rest = body.partition(b'"messageQueueTable":')
    return rest[: rest.rfind(b"}")].strip()
