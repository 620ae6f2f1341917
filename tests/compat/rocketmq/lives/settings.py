"""The settings that a life has: small files, and whatever else the dice switch on."""

from __future__ import annotations

import random

#: files so small that they roll
_SMALL = {
    "mappedFileSizeConsumeQueue": "200",
    "mappedFileSizeConsumeQueueExt": "1024",
    "mapperFileSizeBatchConsumeQueue": "230",
    "mappedFileSizeTimerLog": "5200",
    "maxHashSlotNum": "7",
    "maxIndexNum": "40",
    "maxMessageSize": "20000",
    "transactionCheckMax": "1000000",
    "transactionCheckInterval": "10000",
    "transactionTimeOut": "3000",
    "recallMessageEnable": "true",
    # at any hour: that of the machine does not matter
    "deleteWhen": ";".join(f"{hour:02}" for hour in range(24)),
}


def drawn_settings(dice: random.Random) -> dict[str, str]:
    """Return the settings of one life."""
    is_sync = dice.random() < 0.6

    def flag(chance: float) -> str:
        return "true" if dice.random() < chance else "false"

    has_crc = flag(0.5)
    return {
        **_SMALL,
        "mappedFileSizeCommitLog": dice.choice(("32768", "65536")),
        "flushDiskType": "SYNC_FLUSH" if is_sync else "ASYNC_FLUSH",
        "transientStorePoolEnable": "false" if is_sync else flag(0.3),
        "transientStorePoolSize": "3",
        "enableConsumeQueueExt": flag(0.3),
        "enableCalcFilterBitMap": flag(0.3),
        "enabledAppendPropCRC": has_crc,
        "forceVerifyPropCRC": has_crc,
        "timerWheelEnable": flag(0.7),
        "messageIndexSafe": flag(0.3),
        "readUnCommitted": flag(0.2),
        "fileReservedTime": dice.choice(("1", "72")),
    }
