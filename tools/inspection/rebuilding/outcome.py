"""What became of a derived file that was made anew."""

from __future__ import annotations

import enum

import attrs


class Outcome(enum.Enum):
    """What became of a derived file."""

    MADE = "made"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    REMOVED = "removed"


@attrs.frozen
class Rebuilt:
    """One derived file and what became of it; `before_bytes` is None if it was missing."""

    name: str
    outcome: Outcome
    before_bytes: int | None
    after_bytes: int
