"""
Which APIs the broker has, in which versions: one line per API file, read by everyone.

ApiVersions answers from this table, the dispatcher looks handlers up in it and the test of the
coverage page compares with it, so that the three cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

#: A handler of decoded messages: (broker, client, request message) -> response message or Later.
MessageHandler = Callable[["Broker", "Client", Any], Any]


@attrs.define(slots=True)
class RawRequest:
    """A request that its handler reads by itself. `data` is valid during the call only."""

    version: int
    correlation_id: int
    data: memoryview
    position: int
    is_flexible: bool


#: What a raw handler returns: whole frames, None for "no answer", or a promise of frames.
RawAnswer = "list[Chunk] | Later[list[Chunk]] | None"
RawHandler = Callable[["Broker", "Client", RawRequest], "list[Chunk] | Later[list[Chunk]] | None"]


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
    handle: MessageHandler | None
    #: reads the request and writes the response by hand: for what is asked often or first
    handle_raw: RawHandler | None
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
    module: str = "",
    handle: MessageHandler | None = None,
    handle_raw: RawHandler | None = None,
    advertised_min: int | None = None,
) -> None:
    """Enter one API; called once, at the end of its file."""
    assert key not in APIS, f"API {key} is registered twice"
    assert (handle is None) != (handle_raw is None), f"API {key} needs one handler"
    assert handle is None or module, f"API {key} needs its message module"
    advertised = versions[0] if advertised_min is None else advertised_min
    APIS[key] = Api(key, name, *versions, flexible_from, module, handle, handle_raw, advertised)
