"""
Tiered objects: segments with their indexes, stored away and read or restored from there (KIP-405).

::

    from logstore.segments.kafka.remote import (
        PartitionSource, RemoteLog, open_storage, restore_partition, upload_partition
    )

    storage = open_storage("s3://bucket/backups", host)     # or a directory
    upload_partition(PartitionSource(host, "/data/orders-0"), storage)

    log = RemoteLog(storage, storage.find("orders", 0))
    log.fetch(4711, 1 << 20)                                # batches, by ranged reads
    log.find_timestamp(1_700_000_000_000)
    restore_partition(log, host, "/other-data")             # /other-data/orders-0

Objects are named as Kafka's own ``LocalTieredStorage`` names them: its files are read here, and
ours there. What a damaged object is refused with names the object and the position in it.
"""

from __future__ import annotations

from logstore.segments.kafka.remote.bundle_check import Bundle
from logstore.segments.kafka.remote.lineage import MissingOffsetsError
from logstore.segments.kafka.remote.object_names import ObjectKind, RemotePartition, SegmentId
from logstore.segments.kafka.remote.remote_log import RemoteLog
from logstore.segments.kafka.remote.restore import (
    PartitionExistsError,
    Restored,
    restore_partition,
)
from logstore.segments.kafka.remote.segment_metadata import (
    ObjectSum,
    SegmentMetadata,
    SegmentState,
)
from logstore.segments.kafka.remote.storage import (
    MissingObjectError,
    RemoteStorage,
    open_storage,
)
from logstore.segments.kafka.remote.upload import PartitionSource, upload_partition

__all__ = [
    "Bundle",
    "MissingObjectError",
    "MissingOffsetsError",
    "ObjectKind",
    "ObjectSum",
    "PartitionExistsError",
    "PartitionSource",
    "RemoteLog",
    "RemotePartition",
    "RemoteStorage",
    "Restored",
    "SegmentId",
    "SegmentMetadata",
    "SegmentState",
    "open_storage",
    "restore_partition",
    "upload_partition",
]
