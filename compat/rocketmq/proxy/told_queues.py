"""Queues as clients of the proxy are told of them: all brokers are where the proxy is."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.proxy.codes import AddressScheme, Code, Permission
from logstore.compat.rocketmq.proxy.failures import ProxyError
from logstore.segments.rocketmq.tables.topics import PERM_READ, PERM_WRITE

if TYPE_CHECKING:
    from logstore.compat.rocketmq.name_server.routes import QueueData
    from logstore.compat.rocketmq.proxy.proxy import Proxy

_NO_SCHEME = 0
_SCHEMES = frozenset(map(int, AddressScheme)) - {_NO_SCHEME}


def permission_of(perm: int) -> Permission:
    """Return what may be done with a topic."""
    if perm & PERM_READ and perm & PERM_WRITE:
        return Permission.READ_WRITE
    if perm & PERM_READ:
        return Permission.READ
    return Permission.WRITE if perm & PERM_WRITE else Permission.NONE


def check_endpoints(asked: Any) -> None:
    """Raise ProxyError where a client says addresses, and not of what kind they are."""
    if asked.addresses and asked.scheme == _NO_SCHEME:
        text = "No enum constant AddressScheme.ADDRESS_SCHEME_UNSPECIFIED"
        raise ProxyError(Code.INTERNAL_SERVER_ERROR, text)


def told_broker(proxy: Proxy, name: str, broker_id: int, asked: Any) -> dict[str, Any]:
    """
    Return a broker: it is found where the client has found the proxy, as far as it says.

    Raises:
        ProxyError: what it says are addresses of a kind that nobody knows.

    """
    about = {"name": name, "id": broker_id}
    if asked.addresses:
        if asked.scheme not in _SCHEMES:
            text = "Can't get the number of an unknown enum value."
            raise ProxyError(Code.INTERNAL_SERVER_ERROR, text)
        return {**about, "endpoints": asked}
    try:
        version = ipaddress.ip_address(proxy.host).version
        scheme = AddressScheme.IPV4 if version == 4 else AddressScheme.IPV6
    except ValueError:
        scheme = AddressScheme.DOMAIN_NAME
    address = {"host": proxy.host, "port": proxy.port}
    return {**about, "endpoints": {"scheme": int(scheme), "addresses": [address]}}


def told_queues(data: QueueData, broker: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a broker's queues: those to read only, those to write only, then the others."""
    reads, writes = data.read_queue_count, data.write_queue_count
    permission = permission_of(data.perm)
    both = min(reads, writes)
    counts = {
        Permission.READ_WRITE: (
            (Permission.READ, reads - both),
            (Permission.WRITE, writes - both),
            (Permission.READ_WRITE, both),
        ),
        Permission.WRITE: ((Permission.WRITE, writes),),
        Permission.READ: ((Permission.READ, reads),),
        Permission.NONE: ((Permission.NONE, max(1, reads, writes)),),
    }[permission]
    kinds = [kind for kind, count in counts for _ in range(count)]
    return [
        {"id": index, "permission": int(kind), "broker": broker} for index, kind in enumerate(kinds)
    ]
