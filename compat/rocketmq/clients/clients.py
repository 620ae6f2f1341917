"""Who is connected: one client process as a group sees it, and the channel that leads to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel

#: a client that has sent no heart beat for longer is taken for gone (ClientHousekeepingService)
CLIENT_EXPIRY_MS = 120_000
#: how often clients that have gone silent are looked for
CLIENT_SCAN_INTERVAL_MS = 10_000


@attrs.define(eq=False)
class Client:
    """One client process in one group (ClientChannelInfo)."""

    channel: Channel
    client_id: str
    language: str
    version: int
    last_seen_ms: int = 0


def connection_fields(client: Client) -> dict[str, object]:
    """Return a client as administrators are shown it (Connection)."""
    return {
        "clientAddr": client.channel.address,
        "clientId": client.client_id,
        "language": client.language,
        "version": client.version,
    }
