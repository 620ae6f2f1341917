"""
Releases of Kafka as its metadata know them: the metadata version, and the features that go with it.

A metadata version has a level, which the log holds, and a name: ``4.3-IV0``; a release alone
(``4.3``) is its newest one. ``kafka-storage format --release-version`` takes either, and turns on
the features whose default level starts with that version or an older one.

Source: ``MetadataVersion``, ``Feature`` and its enums, ``Formatter``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from logstore.errors import LogStoreError

METADATA_VERSION = "metadata.version"
_TRANSACTIONS = "transaction.version"
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"

#: names by level; 3.3-IV3, the first for production, is 7. Those from 31 on are not stable yet
_NAMES: Mapping[int, str] = {
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
}
#: feature, its level, and the metadata version from which it is on by default
_FEATURES = (
    (ELIGIBLE_LEADER_REPLICAS, 1, 26),
    ("group.version", 1, 22),
    ("share.version", 1, 28),
    ("streams.version", 1, 29),
    (_TRANSACTIONS, 2, 24),
)

_SCRAM = 11
_METADATA_TRANSACTIONS = 13
_DELEGATION_TOKENS = 14
_DIRECTORIES = 17
_ELIGIBLE_LEADER_REPLICAS = 23


class UnknownReleaseError(LogStoreError, ValueError):
    """A text names no release of Kafka that a data directory can be written for."""


class MetadataVersion(NamedTuple):
    """One metadata version, by its level."""

    level: int

    @property
    def name(self) -> str:
        """The name, such as 4.3-IV0; the level in digits where nobody here knows it."""
        return _NAMES.get(self.level, f"level {self.level}")

    @property
    def has_scram(self) -> bool:
        """Tell whether users' SCRAM credentials may stand in the metadata (KIP-900)."""
        return self.level >= _SCRAM

    @property
    def has_transactions(self) -> bool:
        """Tell whether records may stand in metadata transactions (KIP-868)."""
        return self.level >= _METADATA_TRANSACTIONS

    @property
    def has_delegation_tokens(self) -> bool:
        """Tell whether delegation tokens may stand in the metadata (KIP-900)."""
        return self.level >= _DELEGATION_TOKENS

    @property
    def partition_record_version(self) -> int:
        """The version in which partitions are written: 1 knows directories, 2 the ELR."""
        if self.level >= _ELIGIBLE_LEADER_REPLICAS:
            return 2
        return 1 if self.level >= _DIRECTORIES else 0

    @property
    def features(self) -> dict[str, int]:
        """The levels of all features in a directory that is formatted for it, itself first."""
        return {
            METADATA_VERSION: self.level,
            **{name: level for name, level, since in _FEATURES if since <= self.level},
        }

    def features_of(self, *, is_upgraded: bool) -> dict[str, int]:
        """
        Return the levels in a directory that begins with it.

        Where it `is_upgraded` from ZooKeeper's time, transactions are written as they were until
        somebody turns ``transaction.version`` on; brokers of before read nothing else.
        """
        levels = self.features
        if is_upgraded:
            levels.pop(_TRANSACTIONS, None)
        return levels


NEWEST = MetadataVersion(max(_NAMES))


def parse_release(text: str) -> MetadataVersion:
    """
    Return the metadata version that ``X.Y`` or ``X.Y-IVn`` names.

    Raises:
        UnknownReleaseError: there is none.

    """
    found = [level for level, name in _NAMES.items() if text in (name, name.partition("-")[0])]
    if not found:
        oldest, newest = _NAMES[min(_NAMES)], NEWEST.name
        raise UnknownReleaseError(
            f"{text!r} is no metadata version; name a release from {oldest} to {newest}, such as "
            f"{newest.partition('-')[0]}"
        )
    return MetadataVersion(max(found))
