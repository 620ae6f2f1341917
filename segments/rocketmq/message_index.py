"""The message index: which messages have a key (signatures)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from logstore.host import Host
from logstore.segments.rocketmq.index_file import IndexFile, IndexSizes
from logstore.segments.rocketmq.release import Release

if TYPE_CHECKING:
    from logstore.segments.rocketmq.checkpoint import StoreCheckpoint
    from logstore.segments.rocketmq.dispatch_request import DispatchRequest


class IndexFlush:
    """Files to sync. :meth:`run` may run in any thread; hand it to `end_flush` afterwards."""

    def run(self) -> None:
        """Sync the files."""
        raise NotImplementedError


@attrs.frozen
class IndexAnswer:
    """What a query found: physical offsets, and up to when the index knows messages."""

    physical_offsets: list[int]
    last_update_timestamp_ms: int
    last_update_physical_offset: int


class MessageIndex:
    """
    All index files of a store, in one folder; one is written, the others are full.

    A fold over the commit log: `put` passes over messages that are in it already (those before
    the physical offset of the last entry). Only `write` and the flushes touch the disk; a roll
    makes a new file.
    """

    def __init__(
        self,
        host: Host,
        directory: str,
        checkpoint: StoreCheckpoint,
        *,
        sizes: IndexSizes | None = None,
        release: Release = Release.V5,
    ) -> None:
        raise NotImplementedError

    def load(self, *, is_clean: bool) -> list[str]:
        """
        Open the files; after an unclean stop remove those newer than the checkpoint.

        Returns the paths of the files removed (they are built again from the commit log).
        """
        raise NotImplementedError

    @property
    def files(self) -> Sequence[IndexFile]:
        """The files, oldest first."""
        raise NotImplementedError

    @property
    def end_physical_offset(self) -> int:
        """Physical offset of the last message in the index; 0 if it is empty."""
        raise NotImplementedError

    def put(self, request: DispatchRequest) -> None:
        """Add the keys of one message: unique key, keys, and for 5.x its tags."""
        raise NotImplementedError

    def query(
        self,
        topic: str,
        key: str,
        count_max: int,
        begin_ms: int,
        end_ms: int,
        *,
        is_tag: bool = False,
    ) -> IndexAnswer:
        """Return where messages with this key may stand; hashes collide, so look at them."""
        raise NotImplementedError

    def write(self) -> None:
        """Hand all that is pending to the operating system."""
        raise NotImplementedError

    def begin_flush(self, *, is_thorough: bool = False) -> IndexFlush:
        """Write, and return what is to be synced: full files; the last one too if thorough."""
        raise NotImplementedError

    def end_flush(self, flush: IndexFlush) -> None:
        """Set the checkpoint's index timestamp to that of the newest full file synced."""
        raise NotImplementedError

    def flush(self) -> None:
        """Write and sync everything."""
        raise NotImplementedError

    def delete_below(self, physical_offset: int) -> list[str]:
        """Remove files whose messages are all below; never the last. Returns their paths."""
        raise NotImplementedError

    def destroy(self) -> None:
        """Remove all files."""
        raise NotImplementedError

    def close(self) -> None:
        """Give the handles back; what is pending and not written is dropped."""
        raise NotImplementedError
