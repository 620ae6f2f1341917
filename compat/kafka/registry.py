"""
Which APIs the broker has, in which versions: one line per API file, read by everyone.

ApiVersions answers from this table, the dispatcher looks handlers up in it and the test of the
coverage page compares with it, so that the three cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

#: A handler of decoded messages: (broker, client, request message) -> response message or Later.
MessageHandler = Callable[["Broker", "Client", Any], Any]


@attrs.frozen
class Api:
    """One entry of the table."""

    key: int
    name: str
    version_min: int
    version_max: int
    #: the first flexible version: request header v2, response header v1
    flexible_from: int
    #: module below ``kafka.protocol`` that has ``<name>Request`` and ``<name>Response``
    module: str
    handle: MessageHandler
    #: what ApiVersions says instead of `version_min` (Produce: old clients look for 0)
    advertised_min: int

    def is_flexible(self, version: int) -> bool:
        """Tell whether headers of this version carry tagged fields."""
        return version >= self.flexible_from


APIS: dict[int, Api] = {}


def register(
    key: int,
    name: str,
    versions: tuple[int, int],
    *,
    flexible_from: int,
    module: str,
    handle: MessageHandler,
    advertised_min: int | None = None,
) -> None:
    """Enter one API; called once, at the end of its file."""
    assert key not in APIS, f"API {key} is registered twice"
    advertised = versions[0] if advertised_min is None else advertised_min
    APIS[key] = Api(key, name, *versions, flexible_from, module, handle, advertised)
