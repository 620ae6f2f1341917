"""Where a client wants to begin with a lite topic that it subscribes to (OffsetOption)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from logstore.segments.rocketmq.tables.json_fields import as_int

_POLICY, _OFFSET, _TAIL = "POLICY", "OFFSET", "TAIL_N"
_KINDS = (_POLICY, _OFFSET, _TAIL, "TIMESTAMP")
_FIRST, _END = 1, 2


@attrs.frozen
class StartOption:
    """A kind and its number; by time is a kind that no release heeds."""

    kind: str | None
    value: int = 0

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> StartOption:
        """Return what a body says. Raises JsonTypeError, ValueError."""
        kind = fields.get("type")
        if kind is not None and kind not in _KINDS:
            raise ValueError(f"there is no option {kind}")
        return cls(kind, as_int(fields.get("value", 0)))

    def start(self, committed: int, find_end: Callable[[], int]) -> int | None:
        """Return where to begin; None to go on where the group is, or as one that never was."""
        if self.kind == _POLICY:
            return 0 if self.value == _FIRST else find_end() if self.value == _END else None
        if self.kind == _OFFSET:
            return self.value
        if self.kind == _TAIL and committed >= 0:
            return max(0, committed - self.value)
        return None
