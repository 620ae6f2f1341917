"""
The versioned features (KIP-584) that ApiVersions tells of: only what this broker really serves.

A feature that is absent counts as level 0 for every client. ``group.version`` 1 says that there are
groups of KIP-848, ``streams.version`` 1 that there are those of KIP-1071; ``transaction.version`` 2
makes Java and franz-go use the protocol of KIP-890; ``share.version`` 1 lets Java read in share
groups. Each is told only where it is served.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

#: how the records of the metadata log are written
METADATA_VERSION = "metadata.version"
#: level 7 of it is 3.3-IV3, the lowest that 4.x knows; 30 is 4.3-IV0
_METADATA_VERSION_MIN = 7
_METADATA_VERSION_4_3 = 30
#: every transaction has an epoch of its own, and writes add their partitions (KIP-890)
TRANSACTION_VERSION = "transaction.version"
_TRANSACTION_VERSION_MAX = 2
#: consumer groups whose coordinator assigns partitions (KIP-848)
GROUP_VERSION = "group.version"
_GROUP_VERSION_MAX = 1
#: streams groups, whose coordinator assigns tasks (KIP-1071)
STREAMS_VERSION = "streams.version"
_STREAMS_VERSION_MAX = 1
#: share groups (KIP-932)
SHARE_VERSION = "share.version"
_SHARE_VERSION_MAX = 1
#: how the voters of the quorum are told: here it is this one node, level 0
KRAFT_VERSION = "kraft.version"
#: replicas that hold every committed record are counted (KIP-966)
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"
#: what brokers before 4.0 did not tell of
NEW_IN_4_0 = frozenset(
    {
        TRANSACTION_VERSION,
        GROUP_VERSION,
        SHARE_VERSION,
        STREAMS_VERSION,
        ELIGIBLE_LEADER_REPLICAS_VERSION,
    }
)


class Feature(NamedTuple):
    """A feature's range of levels, and the level in force (0: not in force)."""

    name: str
    level_min: int
    level_max: int
    level: int


#: name, lowest and highest level that are served, and the place in Java's table of sixteen, in
#: whose order they are told
_SERVED = (
    (GROUP_VERSION, 0, _GROUP_VERSION_MAX, 0),
    (KRAFT_VERSION, 0, 1, 5),
    (METADATA_VERSION, _METADATA_VERSION_MIN, _METADATA_VERSION_4_3, 7),
    (SHARE_VERSION, 0, _SHARE_VERSION_MAX, 7),
    (STREAMS_VERSION, 0, _STREAMS_VERSION_MAX, 8),
    (TRANSACTION_VERSION, 0, _TRANSACTION_VERSION_MAX, 10),
    (ELIGIBLE_LEADER_REPLICAS_VERSION, 0, 1, 12),
)
_PLACES = {name: place for name, _, _, place in _SERVED}


def features_of(levels: Mapping[str, int]) -> list[Feature]:
    """Return what is served; `levels` are those that the cluster's metadata has turned on."""
    return [
        Feature(name, lowest, highest, min(levels.get(name, 0), highest))
        for name, lowest, highest, _ in _SERVED
    ]


def in_force(features: Sequence[Feature]) -> list[Feature]:
    """
    Return those that are in force, in the order in which Kafka tells of them.

    Its table is a copy that is as small as can be, into which the metadata's version comes last.
    """
    found = [feature for feature in features if feature.level > 0]
    size = 1
    while len(found) > size * 3 / 4:
        size *= 2
    found.sort(key=lambda one: (_PLACES[one.name] & (size - 1), one.name == METADATA_VERSION))
    return found
