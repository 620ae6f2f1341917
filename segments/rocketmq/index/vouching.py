"""
Which index files a checkpoint vouches for: those up to the last full one that was synced.

The checkpoint has nothing but that file's end time. Java takes every file that ends no later: where
the clock was set back these are files that came afterwards, and those before may end later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.segments.rocketmq.index.index_file import IndexFile
    from logstore.segments.rocketmq.opening.checkpoint import StoreCheckpoint

__all__ = ["vouched"]


def vouched(files: Sequence[IndexFile], checkpoint: StoreCheckpoint) -> list[IndexFile]:
    """
    Return those of the files, oldest first, that a checkpoint vouches for.

    Not an empty one, nor one begun in the millisecond in which the last full one ended.
    """
    until_ms = checkpoint.index_msg_timestamp_ms
    for place, file in enumerate(files):
        if file.begin_timestamp_ms < file.end_timestamp_ms == until_ms and file.is_full:
            count = place + 1  # it speaks of this one; whatever follows was not synced
            break
    else:
        count = [*(one.end_timestamp_ms < until_ms for one in files), False].index(False)
    return [file for file in files[:count] if file.next_number > 1]
