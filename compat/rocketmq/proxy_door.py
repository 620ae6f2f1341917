"""The way to a proxy, which few ask for and whose libraries are an extra."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.secure_ports import ENFORCING, PERMISSIVE, mode_of
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    import ssl

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.running import OpenDoor

#: modules, and what they are called where they are got
_NEEDED = {"grpc": "grpcio", "google.protobuf": "protobuf"}


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
    from logstore.compat.grpc_listener import GrpcListener
    from logstore.compat.rocketmq.proxy.proxy import Proxy
    from logstore.compat.running import OpenDoor

    settings, key_and_chain, make_context = broker.config.settings, None, None
    mode = mode_of(settings)
    if mode == ENFORCING:
        from logstore.compat.rocketmq.tls_settings import plain_key_and_chain

        key_and_chain = plain_key_and_chain(settings)
    elif mode == PERMISSIVE:
        make_context = partial(_http_context, settings)
    proxy = Proxy(broker)
    proxy.host = host

    def started(port: int) -> None:
        proxy.port = port
        on_start(port)

    return OpenDoor(GrpcListener(proxy, key_and_chain, make_context), port, started)


def _http_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Return what the settings say of TLS, for HTTP/2. Raises ConfigError."""
    from logstore.compat.rocketmq.tls_settings import tls_context

    context = tls_context(settings)
    context.set_alpn_protocols(["h2"])
    return context
