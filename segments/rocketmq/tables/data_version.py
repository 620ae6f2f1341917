"""How a table's version is told: a counter, the time of the last change, and a state number."""

from __future__ import annotations

import attrs


@attrs.frozen
class DataVersion:
    """
    The version of a table; brokers, name servers and slaves compare them for equality.

    Source: ``DataVersion``. `state_version` is 5.x only and 0 outside of controller mode.
    """

    timestamp_ms: int
    counter: int = 0
    state_version: int = 0

    def next(self, now_ms: int, state_version: int = 0) -> DataVersion:
        """Return the version after one more change."""
        return DataVersion(now_ms, self.counter + 1, state_version)
