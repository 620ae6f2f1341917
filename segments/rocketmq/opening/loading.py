"""
A store's parts, opened in Java's order: tables, commit log, queues, checkpoint, index.

Source: ``BrokerController.initialize``, ``DefaultMessageStore.load``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.segments.rocketmq import store_rules
from logstore.segments.rocketmq.index.message_index import MessageIndex
from logstore.segments.rocketmq.log.commit_log import CommitLog
from logstore.segments.rocketmq.opening.checkpoint import CHECKPOINT_NAME, StoreCheckpoint
from logstore.segments.rocketmq.opening.directory import (
    COMMIT_LOG_FOLDER,
    INDEX_FOLDER,
    StoreDirectory,
)
from logstore.segments.rocketmq.opening.elsewhere import check_is_whole
from logstore.segments.rocketmq.queues.consume_queues import ConsumeQueues
from logstore.segments.rocketmq.settings.java_config import ConfigError
from logstore.segments.rocketmq.tables.consumer_filters import ConsumerFilterTable
from logstore.segments.rocketmq.tables.consumer_offsets import (
    ConsumerOffsetTable,
    LightConsumerOffsetTable,
)
from logstore.segments.rocketmq.tables.delay_offsets import DelayOffsetTable
from logstore.segments.rocketmq.tables.json_table import JsonTable
from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupTable
from logstore.segments.rocketmq.tables.topics import TopicTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from logstore.host import Host
    from logstore.segments.rocketmq.settings.release import Release
    from logstore.segments.rocketmq.settings.store_config import StoreConfig


@attrs.frozen
class StoreTables:
    """The tables under ``config/``, each loaded."""

    topics: TopicTable
    subscription_groups: SubscriptionGroupTable
    consumer_offsets: ConsumerOffsetTable
    delay_offsets: DelayOffsetTable
    consumer_filters: ConsumerFilterTable

    @classmethod
    def load(
        cls, host: Host, directory: str, release: Release, *, has_light_queues: bool = False
    ) -> StoreTables:
        """
        Read the tables; where there are light queues (``enableLmq``) offsets have another file.

        Raises:
            CorruptFileError: neither a file nor its backup can be understood.

        """
        offset_table = LightConsumerOffsetTable if has_light_queues else ConsumerOffsetTable
        tables = cls(
            TopicTable(host, directory, release),
            SubscriptionGroupTable(host, directory, release),
            offset_table(host, directory, release),
            DelayOffsetTable(host, directory, release),
            ConsumerFilterTable(host, directory, release),
        )
        for table in tables.all():
            table.load()
        return tables

    def all(self) -> tuple[JsonTable, ...]:
        """Return every table."""
        return (
            self.topics,
            self.subscription_groups,
            self.consumer_offsets,
            self.delay_offsets,
            self.consumer_filters,
        )

    def is_batch_topic(self, topic: str) -> bool | None:
        """
        Tell whether the queues of a topic are batch consume queues (``queue.type``).

        None for a topic that is not there: what was left of its queues is of either kind.
        """
        config = self.topics.get(topic)
        return None if config is None else config.attributes.get("queue.type") == "BatchCQ"


@attrs.frozen
class StoreParts:
    """What stands in the directory, opened but not recovered."""

    commit_log: CommitLog
    consume_queues: ConsumeQueues
    checkpoint: StoreCheckpoint
    index: MessageIndex

    def close(self) -> None:
        """Give all file handles back; nothing is written."""
        self.commit_log.close(is_clean=False)
        self.consume_queues.close()
        self.checkpoint.close()
        self.index.close()


def commit_log_directory(home: StoreDirectory, config: StoreConfig) -> str:
    """
    Return where the commit log stands: in the store, or where ``storePathCommitLog`` says.

    Raises:
        ConfigError: it names several directories, or none by an absolute path.

    """
    path = config.text("storePathCommitLog")
    if not path:
        return home.path_of(COMMIT_LOG_FOLDER)
    if "," in path or not path.startswith("/"):
        raise ConfigError("storePathCommitLog", path, "the absolute path of one directory")
    return path.rstrip("/")


def load_parts(
    home: StoreDirectory,
    config: StoreConfig,
    settings: Mapping[str, str],
    release: Release,
    is_batch_topic: Callable[[str], bool | None],
) -> StoreParts:
    """
    Open commit log, queues, checkpoint and index.

    After an unclean stop index files that are younger than the checkpoint are removed: they are
    made anew. Where the store is only read they stay, unread.

    Raises:
        CorruptFileError, MissingSegmentError: a file has not the size or the place that it must
            have; the error names it. Or the commit log is elsewhere.
        ForeignDirectoryError: it is to be written, and a part of it stands in RocksDB.

    """
    host, is_writable = home.host, home.is_writable
    log_directory = commit_log_directory(home, config)
    check_is_whole(host.fs, home.path, log_directory, is_writable=is_writable)
    commit_log = CommitLog(
        host,
        log_directory,
        store_rules.commit_log_settings(config, settings),
        is_clean=home.was_clean,
        is_writable=is_writable,
    )
    queues = ConsumeQueues(
        host,
        home.path,
        store_rules.queue_settings(config, release, is_batch_topic),
        is_clean=home.was_clean,
        is_writable=is_writable,
    )
    queues.load()
    checkpoint = StoreCheckpoint(host, home.path_of(CHECKPOINT_NAME))
    index = MessageIndex(
        host,
        home.path_of(INDEX_FOLDER),
        checkpoint,
        sizes=config.index_sizes,
        release=release,
        is_writable=is_writable,
    )
    index.load(is_clean=home.was_clean)
    return StoreParts(commit_log, queues, checkpoint, index)
