"""How many connections certain addresses may have."""

from __future__ import annotations

from logstore.segments.kafka.config_keys import ConfigError

ADDRESS_LIMITS = "max.connections.per.ip.overrides"


def address_limits(text: str) -> dict[str, int]:
    """
    Return the limits of addresses that ``max.connections.per.ip.overrides`` has.

    Raises:
        ConfigError: it is no list of addresses, each with a colon and a number.

    """
    found: dict[str, int] = {}
    for pair in filter(None, (one.strip() for one in text.split(","))):
        address, _, count = pair.rpartition(":")
        if not (address and count.isascii() and count.isdigit()):
            raise ConfigError(ADDRESS_LIMITS, text, f"{pair} is no ADDRESS:COUNT")
        found[address] = int(count)
    return found
