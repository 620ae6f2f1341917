"""What settings can belong to, by the numbers of the protocol (``ConfigResource.Type``)."""

from __future__ import annotations

from enum import IntEnum


class ResourceType(IntEnum):
    """The kinds of resources with settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
