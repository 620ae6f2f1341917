"""What a verification says: where something is wrong or worth knowing, in plain words."""

from __future__ import annotations

import enum

import attrs


class Severity(enum.Enum):
    """Whether a finding makes the directory a damaged one."""

    DAMAGE = "damage"
    NOTE = "note"


@attrs.frozen
class Finding:
    """
    One thing that was found.

    `file` is relative to the directory that was verified; `position` is a byte in it, `offset` one
    of the partition, each None where it is not one place. `kind` is for programs, `text` for
    people.
    """

    kind: str
    file: str
    text: str
    position: int | None = None
    offset: int | None = None
    severity: Severity = Severity.DAMAGE
    #: where it is in RocketMQ's commit log
    physical_offset: int | None = None

    @property
    def is_damage(self) -> bool:
        """Tell whether the directory is damaged."""
        return self.severity is Severity.DAMAGE

    def __str__(self) -> str:
        place = "" if self.position is None else f" position {self.position}:"
        return f"{self.file}:{place} {self.text}"
