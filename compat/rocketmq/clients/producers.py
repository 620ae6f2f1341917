"""Producer groups: which channels lead to a group's producers (ProducerManager)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.clients.clients import CLIENT_EXPIRY_MS, Client

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel


class Producers:
    """Groups of producers that are alive; a check-back goes to any one of a group, in turns."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Channel, Client]] = {}
        self._channels: dict[str, Channel] = {}
        self._turn = 0

    def register(self, group: str, client: Client, now_ms: int) -> None:
        """Take note of a heart beat of `client`."""
        members = self._groups.setdefault(group, {})
        known = members.setdefault(client.channel, client)
        known.last_seen_ms = now_ms
        if known is client:
            self._channels[client.client_id] = client.channel

    def unregister(self, group: str, channel: Channel, client_id: str) -> None:
        """Forget one member of a group; unknown ones are fine."""
        members = self._groups.get(group)
        if not members:
            return
        members.pop(channel, None)
        self._channels.pop(client_id, None)
        if not members:
            del self._groups[group]

    def lost(self, channel: Channel) -> None:
        """Forget a channel that was closed, in every group."""
        for group in [group for group, members in self._groups.items() if channel in members]:
            self.unregister(group, channel, self._groups[group][channel].client_id)

    def expire(self, now_ms: int) -> list[Channel]:
        """Forget who has been silent for too long; return their channels."""
        silent = [
            (group, client)
            for group, members in self._groups.items()
            for client in members.values()
            if now_ms - client.last_seen_ms > CLIENT_EXPIRY_MS
        ]
        for group, client in silent:
            self.unregister(group, client.channel, client.client_id)
        return list({id(client.channel): client.channel for _, client in silent}.values())

    def members(self, group: str) -> list[Client]:
        """Return the producers of a group; none if there is no such group."""
        return list(self._groups.get(group, {}).values())

    def any_channel(self, group: str) -> Channel | None:
        """Return a channel of the group, each in its turn; None if nobody is there."""
        members = self._groups.get(group)
        if not members:
            return None
        self._turn += 1
        return list(members)[self._turn % len(members)]

    def channel_of(self, client_id: str) -> Channel | None:
        """Return the channel of the producer with that client id."""
        return self._channels.get(client_id)

    def groups(self) -> Iterator[tuple[str, list[Client]]]:
        """Yield every group and its members."""
        for group, members in self._groups.items():
            yield group, list(members.values())
