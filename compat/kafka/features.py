"""
The versioned features (KIP-584) that ApiVersions tells of: only what this broker really serves.

A feature that is absent counts as level 0 for every client: without ``group.version`` nobody
expects KIP-848. ``transaction.version`` 2 makes Java and franz-go use the protocol of KIP-890.
"""

from __future__ import annotations

import attrs

#: metadata.version 7 is 3.3-IV3, the lowest that 4.x knows; 30 is 4.3-IV0
_METADATA_VERSION_MIN = 7
_METADATA_VERSION_4_3 = 30
#: every transaction has an epoch of its own, and writes add their partitions (KIP-890)
TRANSACTION_VERSION = 2


@attrs.frozen
class Feature:
    """A feature's range of levels, and the level in force (0: not in force)."""

    name: str
    level_min: int
    level_max: int
    level: int


FEATURES: tuple[Feature, ...] = (
    Feature(
        "metadata.version", _METADATA_VERSION_MIN, _METADATA_VERSION_4_3, _METADATA_VERSION_4_3
    ),
    Feature("transaction.version", 0, TRANSACTION_VERSION, TRANSACTION_VERSION),
)

#: grows with every change of a level; nothing changes them here
FINALIZED_EPOCH = 0
