"""The way to a proxy, which few ask for and whose libraries are an extra."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.running import OpenDoor

#: modules, and what they are called where they are got
_NEEDED = {"google.protobuf": "protobuf", "hpack": "hpack"}


class MissingProxyError(LogStoreError):
    """The libraries of the proxy are not installed."""


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


def proxy_door(broker: Broker, host: str, port: int, on_start: Callable[[int], None]) -> OpenDoor:
    """
    Return a proxy for gRPC clients of `broker`, who are told to come to `host`.

    Raises:
        MissingProxyError: the extra ``grpc`` is not installed.
        ConfigError: it is to speak TLS, and has no certificate.

    """
    missing = [package for module, package in _NEEDED.items() if not _is_there(module)]
    if missing:
        raise MissingProxyError(
            f"RocketMQ's proxy needs {' and '.join(missing)}: pip install 'logstore-segments[grpc]'"
        )
    from logstore.compat.rocketmq.proxy.proxy import Proxy
    from logstore.compat.rocketmq.proxy.proxy_listener import ProxyListener
    from logstore.compat.running import OpenDoor

    proxy = Proxy(broker)
    proxy.host = host

    def started(port: int) -> None:
        proxy.port = port
        on_start(port)

    return OpenDoor(ProxyListener(proxy), port, started)
