"""The settings of a store: Java's ``MessageStoreConfig`` (signatures)."""

from __future__ import annotations

from logstore.segments.rocketmq.java_config import JavaConfig


class StoreConfig(JavaConfig):
    """
    The values of ``MessageStoreConfig``.

    Beside access by Java's names: derived values under names of their own.
    """

    @property
    def commit_log_file_size_bytes(self) -> int:
        """Length of a commit log file (``mappedFileSizeCommitLog``)."""
        raise NotImplementedError

    @property
    def consume_queue_file_size_bytes(self) -> int:
        """Length of a consume queue file: ``mappedFileSizeConsumeQueue`` up to whole units."""
        raise NotImplementedError
