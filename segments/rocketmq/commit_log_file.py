"""One file of the commit log; see :mod:`~logstore.segments.rocketmq.mapped_file`."""

from __future__ import annotations


class CommitLogFile:
    """One file of the commit log: `base_offset`, `next_offset`, `path`, `file`, `largest_timestamp_ms()`."""
