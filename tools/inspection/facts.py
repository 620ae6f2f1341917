"""
What a file says, as values: one :class:`Fact` per batch, record or entry.

Names and order of the fields are those of Kafka's ``DumpLogSegments``; how a field is written is
the business of :mod:`logstore.tools.inspection.rendering`.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs


@attrs.frozen
class Timestamp:
    """A time in ms since the epoch, -1 for none; `type` says whose clock gave it, if known."""

    ms: int
    type: str | None = None


@attrs.frozen
class MaybeOffset:
    """A number that may be missing (Java: ``OptionalLong``)."""

    number: int | None


@attrs.frozen
class Names:
    """The names of a record's headers; ``DumpLogSegments`` leaves the values out."""

    headers: tuple[tuple[str, bytes | None], ...]


@attrs.frozen
class Payload:
    """The bytes of a key or a value; None is null."""

    data: bytes | None


@attrs.frozen
class Decoded:
    """What a decoder makes of a key or a value; None where it prints nothing."""

    text: str | None


Value: TypeAlias = int | bool | str | Timestamp | MaybeOffset | Names | Payload | Decoded


@attrs.frozen
class Fact:
    """One line of a dump: `kind` is file, batch, record, entry or end."""

    kind: str
    fields: dict[str, Value]


@attrs.frozen
class Problem:
    """Bytes that are not what they must be. `position` is None where the whole file is meant."""

    path: str
    position: int | None
    reason: str

    def __str__(self) -> str:
        place = "" if self.position is None else f" position {self.position}:"
        return f"{self.path}:{place} {self.reason}"


Finding: TypeAlias = Fact | Problem
