"""
What servers, tools and Spark see of a store, whatever its layout.

A layout is plugged in by registering a :class:`Layout` under the entry-point group
``logstore.layouts``; the built-in layouts do so too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from logstore.host import Host

#: the entry-point group under which layouts register
LAYOUT_GROUP = "logstore.layouts"


class Header(NamedTuple):
    """One named value that travels with a record. Names may repeat."""

    name: str
    value: bytes | None


class Record(NamedTuple):
    """The meeting point of the layouts: what an application writes and reads."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[Header, ...] = ()
    offset: int = -1


class AppendResult(NamedTuple):
    """Offsets that an append got: ``[base_offset, next_offset)``."""

    base_offset: int
    next_offset: int


class PartitionLog(Protocol):
    """A Kafka partition, or a RocketMQ queue."""

    @property
    def topic(self) -> str:
        """Name of the topic."""
        ...

    @property
    def index(self) -> int:
        """Number of the partition (RocketMQ: queue id)."""
        ...

    @property
    def start_offset(self) -> int:
        """First offset that may be read."""
        ...

    @property
    def end_offset(self) -> int:
        """Offset that the next record gets."""
        ...

    def append_records(self, records: Iterable[Record]) -> AppendResult:
        """Append records in order, as one entry where the layout has such a thing."""
        ...

    def read_records(self, offset: int, count_max: int) -> list[Record]:
        """Return up to `count_max` records from `offset` on; fewer only at the end."""
        ...

    def offset_for_timestamp(self, timestamp_ms: int) -> int | None:
        """Return the first offset whose record is at least that young, None if there is none."""
        ...


class Store(Protocol):
    """A directory of partitions."""

    @property
    def directory(self) -> str:
        """Where the store lives."""
        ...

    def topics(self) -> Mapping[str, Mapping[int, PartitionLog]]:
        """Return the partitions of every topic by name and number."""
        ...

    def close(self) -> None:
        """Flush, write the checkpoints and let go of the lock."""
        ...


class Layout(Protocol):
    """The plug: recognises a directory and opens it."""

    @property
    def name(self) -> str:
        """What ``--layout`` calls it."""
        ...

    def recognises(self, host: Host, directory: str) -> bool:
        """Tell whether `directory` looks like a store of this layout."""
        ...

    def open(self, host: Host, directory: str, *, writable: bool = True) -> Store:
        """Open the store, recovering it if its last stop was unclean."""
        ...
