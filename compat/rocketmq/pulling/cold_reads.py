"""
How much cold data groups may read: kept and told, and by itself without any effect.

A broker looks at it where ``coldDataFlowControlEnable`` is set; here nobody is ever slowed down.

Source: ``ColdDataCgCtrService``.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from logstore.segments.rocketmq.settings.java_config import JavaConfig

_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


class ColdReads:
    """The limits of single groups, until the broker stops."""

    def __init__(self, config: JavaConfig) -> None:
        self._config = config
        self.bytes_by_group: dict[str, int] = {}

    def update(self, text: str) -> None:
        """Set what lines ``group=bytes`` say; what is no number is passed over."""
        for line in text.splitlines():
            group, has_value, value = line.strip().partition("=")
            if has_value and _NUMBER.fullmatch(value.strip()):
                self.bytes_by_group[group.strip()] = int(value)

    def remove(self, group: str) -> None:
        """Let what holds for all hold for a group, too."""
        with contextlib.suppress(KeyError):
            del self.bytes_by_group[group]

    def body(self) -> bytes:
        """Return it all as Java tells it; nobody has read any yet."""
        return orjson.dumps(
            {
                "runtimeTable": {},
                "configTable": self.bytes_by_group,
                "cgColdReadThreshold": self._config.integer("cgColdReadThreshold"),
                "globalColdReadThreshold": self._config.integer("globalColdReadThreshold"),
                "globalAcc": 0,
            }
        )
