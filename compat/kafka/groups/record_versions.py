"""
The versions that classic groups and committed offsets are written in.

A release reads what it wrote itself, and refuses to load a partition of ``__consumer_offsets`` with
anything newer in it. So a broker that stands for an old release, or serves a directory that one may
take back, writes as that one does. Source: ``GroupMetadataManager`` up to 3.9,
``GroupCoordinatorRecordHelpers`` since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.segments.kafka.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.kafka.emulation.release import Emulation
    from logstore.compat.kafka.groups.offset_table import TopicPartition
    from logstore.compat.kafka.groups.offsets_log import CommittedOffset
    from logstore.segments.kafka.cluster_metadata.cluster_metadata import ClusterMetadata

#: by release, the first that wrote it, newest first
_OFFSET_VERSIONS = (((4, 1), 4), ((2, 1), 3), ((0,), 1))
_GROUP_VERSIONS = (((2, 3), 3), ((2, 1), 2), ((0, 10, 1), 1), ((0,), 0))
#: the level of metadata.version, 3.5-IV0, whose release is the first to read offsets of version 4
_LEVEL_READING_4 = 9


@attrs.frozen
class RecordVersions:
    """
    The version of an offset's value and of a group's; those of release 4.3 where nothing is said.

    Where `has_expiry`, every offset has the time at which it is forgotten: so it was before 2.1,
    where that is counted from its commit.
    """

    offset: int = 4
    group: int = 3
    has_expiry: bool = False

    @classmethod
    def of(cls, emulation: Emulation | None, metadata: ClusterMetadata) -> RecordVersions:
        """
        Return those of the release that is emulated, or that the directory may go back to.

        One of ZooKeeper's time, whose topics wait to become Kafka's own, is for all since 2.1.
        """
        if emulation is not None:
            release = emulation.release
            offset, group = _since(release, _OFFSET_VERSIONS), _since(release, _GROUP_VERSIONS)
            return cls(offset, group, has_expiry=offset == 1)
        level = metadata.image.metadata_version.level
        return cls(offset=3 if metadata.is_waiting or level < _LEVEL_READING_4 else 4)

    def dated(
        self, offsets: Mapping[TopicPartition, CommittedOffset], retention_ms: int
    ) -> Mapping[TopicPartition, CommittedOffset]:
        """Return offsets as they are kept, each with the time it ends at where all have one."""
        if not self.has_expiry:
            return offsets
        return {
            of: one
            if one.expire_timestamp_ms != NO_TIMESTAMP
            else one._replace(expire_timestamp_ms=one.commit_timestamp_ms + retention_ms)
            for of, one in offsets.items()
        }


def _since(release: tuple[int, ...], versions: tuple[tuple[tuple[int, ...], int], ...]) -> int:
    return next(version for first, version in versions if release >= first)
