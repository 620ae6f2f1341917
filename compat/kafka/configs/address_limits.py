"""How many connections certain addresses may have."""

from __future__ import annotations

import re

from logstore.segments.kafka.config_keys import ConfigError

ADDRESS_LIMITS = "max.connections.per.ip.overrides"
_COUNT = re.compile(r"[+-]?[0-9]+")


def address_limits(text: str) -> dict[str, int]:
    """
    Return the limits of addresses that ``max.connections.per.ip.overrides`` has.

    Raises:
        ConfigError: it is no list of addresses, each with a colon and a number.

    """
    found: dict[str, int] = {}
    for pair in re.split(r"\s*,\s*", text) if text else ():
        address, colon, count = pair.rpartition(":")
        if not colon:
            reason = f"begin 0, end -1, length {len(pair)}"
            raise _refused(
                text, f"Error parsing configuration property '{ADDRESS_LIMITS}': {reason}"
            )
        if not _COUNT.fullmatch(count.strip()):
            raise _refused(text, f'For input string: "{count.strip()}"')
        found[address.strip()] = int(count)
    return found


def _refused(text: str, sentence: str) -> ConfigError:
    return ConfigError(ADDRESS_LIMITS, text, sentence, sentence)
