"""How much one pull may scan and return: the settings of ``MessageStoreConfig``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import attrs

#: Java's guess where the size of the memory is not known (``StoreUtil``)
MEMORY_BYTES_UNKNOWN = 24 * 1024 * 1024 * 1024


@attrs.frozen
class GetMessageLimits:
    """
    How much one pull may scan and return; the settings of ``MessageStoreConfig``.

    `corrects_queue_offset` is False on a slave that does not check offsets: it does not tell
    consumers to start elsewhere, for it may only be behind its master.
    """

    filter_bytes_max: int = 16000
    in_memory_bytes_max: int = 262144
    in_memory_count_max: int = 32
    on_disk_bytes_max: int = 65536
    on_disk_count_max: int = 8
    in_memory_ratio_percent: int = 40
    files_max: int = 1
    memory_bytes: int = MEMORY_BYTES_UNKNOWN
    corrects_queue_offset: bool = True

    @classmethod
    def of_settings(
        cls, settings: Mapping[str, str], memory_bytes: int = MEMORY_BYTES_UNKNOWN
    ) -> GetMessageLimits:
        """
        Return the limits that Java's keys in `settings` set; what is missing is Java's default.

        Raises:
            ValueError: a value is no number.

        """
        is_slave = settings.get("brokerRole", "").upper() == "SLAVE"
        checks_in_slave = settings.get("offsetCheckInSlave", "false").lower() == "true"
        given = {
            field: int(settings[key]) for key, field in _FIELD_OF_KEY.items() if key in settings
        }
        return cls(
            **given,
            memory_bytes=memory_bytes,
            corrects_queue_offset=not is_slave or checks_in_slave,
        )

    @cached_property
    def in_memory_bytes(self) -> int:
        """How far from the end of the commit log messages are taken to be in memory."""
        return int(self.memory_bytes * (self.in_memory_ratio_percent / 100.0))


_FIELD_OF_KEY = {
    "maxFilterMessageSize": "filter_bytes_max",
    "maxTransferBytesOnMessageInMemory": "in_memory_bytes_max",
    "maxTransferCountOnMessageInMemory": "in_memory_count_max",
    "maxTransferBytesOnMessageInDisk": "on_disk_bytes_max",
    "maxTransferCountOnMessageInDisk": "on_disk_count_max",
    "accessMessageInMemoryMaxRatio": "in_memory_ratio_percent",
    "travelCqFileNumWhenGetMessage": "files_max",
}
