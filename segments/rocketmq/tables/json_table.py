"""A table that stands in one JSON file with a backup beside it (signatures)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from logstore.host import Host
from logstore.segments.rocketmq.release import Release


class JsonTable(ABC):
    """
    A table in memory and its file ``config/<name>.json``, replaced as a whole by :meth:`persist`.

    `is_dirty` says that something changed since the last load or persist.
    """

    file_name: str
    is_dirty: bool

    def __init__(self, host: Host, directory: str, release: Release = Release.V5) -> None:
        raise NotImplementedError

    def load(self) -> bool:
        """
        Read the file, or its backup if the file is missing, empty or unreadable.

        Returns whether either was there. Raises CorruptFileError if neither can be understood.
        """
        raise NotImplementedError

    def persist(self) -> None:
        """Write the file and keep the old one as ``.bak``; durable on return."""
        raise NotImplementedError

    def persist_if_dirty(self) -> bool:
        """Persist if something changed; tell whether it had."""
        raise NotImplementedError

    @abstractmethod
    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it."""

    @abstractmethod
    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file."""

    def encoded(self, *, is_pretty: bool = False) -> bytes:
        """Return the text that Java writes: for the file if pretty, else for remoting bodies."""
        raise NotImplementedError
