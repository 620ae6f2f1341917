"""Where the masters of all brokers are, as name servers tell (GET_BROKER_CLUSTER_INFO)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from logstore.compat.rocketmq.name_server.routes import MASTER_ID, RouteTable
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.waiting import Later
from logstore.errors import LogStoreError
from logstore.segments.rocketmq.tables.java_json import JsonError, parse_json
from logstore.segments.rocketmq.tables.json_fields import JsonTypeError, as_object, as_text

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

#: promises the addresses of masters by broker name
FindBrokers: TypeAlias = Callable[[], Later[dict[str, str]]]
_TIMEOUT_MS = 3000


def brokers_in_table(routes: RouteTable) -> Later[dict[str, str]]:
    """Return what a name server in this process knows."""
    later: Later[dict[str, str]] = Later()
    found = {name: data.addresses.get(MASTER_ID) for name, data in routes.brokers.items()}
    later.answer({name: address for name, address in found.items() if address is not None})
    return later


def brokers_at(channel: Channel) -> Later[dict[str, str]]:
    """Ask a name server elsewhere."""
    asked = channel.ask(RequestCode.GET_BROKER_CLUSTER_INFO, timeout_ms=_TIMEOUT_MS)
    return asked.changed(_masters)


def _masters(answer: Command) -> dict[str, str]:
    if answer.code != ResponseCode.SUCCESS:
        raise LogStoreError(answer.remark or f"the name server answers {answer.code}")
    try:
        table = as_object(as_object(parse_json(bytes(answer.body).decode())).get("brokerAddrTable"))
        found: dict[str, str] = {}
        for name, data in table.items():
            addresses = as_object(as_object(data).get("brokerAddrs"))
            for broker_id, address in addresses.items():
                if int(broker_id) == MASTER_ID:
                    found[str(name)] = as_text(address)
    except (JsonError, JsonTypeError, ValueError) as error:
        raise LogStoreError(f"what the name server answers cannot be read: {error}") from error
    return found
