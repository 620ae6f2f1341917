"""The settings of a store: Java's ``MessageStoreConfig``."""

from __future__ import annotations

from collections.abc import Mapping

from logstore.segments.rocketmq.index.index_file import IndexSizes
from logstore.segments.rocketmq.settings.java_config import ConfigError, ConfigKey, JavaConfig
from logstore.segments.rocketmq.settings.store_config_keys import STORE_KEYS

#: Every setting of a store with type and default, by name.
STORE_CONFIG_KEYS: Mapping[str, ConfigKey] = {key.name: key for key in STORE_KEYS}

CONSUME_QUEUE_UNIT_BYTES = 20
BATCH_CONSUME_QUEUE_UNIT_BYTES = 46
_TIMER_PRECISIONS_MS = (100, 200, 500, 1000)

#: sizes and counts that make no sense below
_MINIMA = {
    "mappedFileSizeCommitLog": 4096,
    "mappedFileSizeConsumeQueue": CONSUME_QUEUE_UNIT_BYTES,
    "mappedFileSizeConsumeQueueExt": 64,
    "mapperFileSizeBatchConsumeQueue": BATCH_CONSUME_QUEUE_UNIT_BYTES,
    "mappedFileSizeTimerLog": 52,
    "maxHashSlotNum": 1,
    "maxIndexNum": 2,
    "maxMessageSize": 1,
}


class StoreConfig(JavaConfig):
    """
    The values of ``MessageStoreConfig``; names of other classes are in `unknown`.

    Beside Java's names there are properties for what Java's getters work out.

    Raises, on construction and on update:
        ConfigError: a value is not of its type, or a size too small for anything to fit.

    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(STORE_CONFIG_KEYS, settings or {})

    def update(self, settings: Mapping[str, str]) -> list[str]:
        """Set values by name; return the names of keys whose value changed."""
        for name, minimum in _MINIMA.items():
            if name in settings:
                value = self.keys[name].parse(settings[name])
                if isinstance(value, int) and value < minimum:
                    raise ConfigError(name, settings[name], f"at least {minimum}")
        return super().update(settings)

    @property
    def commit_log_file_size_bytes(self) -> int:
        """Length of a commit log file (``mappedFileSizeCommitLog``)."""
        return self.integer("mappedFileSizeCommitLog")

    @property
    def consume_queue_file_size_bytes(self) -> int:
        """Length of a consume queue file: ``mappedFileSizeConsumeQueue`` up to whole units."""
        return _whole(self.integer("mappedFileSizeConsumeQueue"), CONSUME_QUEUE_UNIT_BYTES)

    @property
    def consume_queue_ext_file_size_bytes(self) -> int:
        """Length of a file of consume queue extensions (``mappedFileSizeConsumeQueueExt``)."""
        return self.integer("mappedFileSizeConsumeQueueExt")

    @property
    def batch_consume_queue_file_size_bytes(self) -> int:
        """Length of a batch consume queue file (``mapperFileSizeBatchConsumeQueue``)."""
        return self.integer("mapperFileSizeBatchConsumeQueue")

    @property
    def index_sizes(self) -> IndexSizes:
        """Slots and entries of an index file (``maxHashSlotNum``, ``maxIndexNum``)."""
        return IndexSizes(self.integer("maxHashSlotNum"), self.integer("maxIndexNum"))

    @property
    def disk_used_ratio_max(self) -> float:
        """Part of the volume in use above which expired files go (``diskMaxUsedSpaceRatio``)."""
        return min(max(self.integer("diskMaxUsedSpaceRatio"), 10), 95) / 100

    @property
    def disk_warning_ratio(self) -> float:
        """Part of the volume in use above which puts are refused."""
        return min(max(self.integer("diskSpaceWarningLevelRatio") / 100, 0.35), 0.90)

    @property
    def disk_clean_forcibly_ratio(self) -> float:
        """Part of the volume in use above which files go before they expire."""
        return min(max(self.integer("diskSpaceCleanForciblyRatio") / 100, 0.30), 0.85)

    @property
    def is_sync_flush(self) -> bool:
        """Whether a put waits for the disk (``flushDiskType``)."""
        return self.text("flushDiskType") == "SYNC_FLUSH"

    @property
    def is_slave(self) -> bool:
        """Whether this is the copy of another broker (``brokerRole``)."""
        return self.text("brokerRole") == "SLAVE"

    @property
    def has_transient_store_pool(self) -> bool:
        """Whether puts go to memory first and to the files by a commit; never on a slave."""
        return self.boolean("transientStorePoolEnable") and not self.is_slave

    @property
    def timer_precision_ms(self) -> int:
        """Length of a slot of the timer wheel: 100, 200, 500 or 1000 ms, what fits below."""
        wanted = self.integer("timerPrecisionMs")
        fitting = [one for one in _TIMER_PRECISIONS_MS if one <= wanted]
        return fitting[-1] if fitting else _TIMER_PRECISIONS_MS[0]


def _whole(size_bytes: int, unit_bytes: int) -> int:
    """Round up to whole units."""
    return -(-size_bytes // unit_bytes) * unit_bytes
