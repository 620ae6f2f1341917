"""
Metadata records about who may do what, and how much of it: access control and client quotas.

They stand apart from the other kinds because most directories have none: only a log in which one
occurs has this file imported.

Source: ``AccessControlEntryRecord.json``, ``RemoveAccessControlEntryRecord.json``,
``ClientQuotaRecord.json``.
"""

from __future__ import annotations

import attrs

from logstore.segments.kafka.cluster_metadata.records import MetadataRecord
from logstore.segments.kafka.cluster_metadata.wire import (
    BOOLEAN,
    FLOAT64,
    INT8,
    NULLABLE_STRING,
    STRING,
    UUID,
    Field,
    array_of,
    struct_of,
)

#: pairs of a type ("user", "client-id", "ip") and a name; None is whoever has no quota of its own
QuotaEntity = tuple[tuple[str, str | None], ...]


@attrs.frozen(eq=False, repr=False)
class AccessControlEntryRecord(MetadataRecord):
    """Somebody may do something, or may not; the numbers are those of Kafka's enumerations."""

    API_KEY = 18
    FIELDS = (
        Field("entry_id", UUID),
        Field("resource_type", INT8),
        Field("resource_name", STRING),
        Field("pattern_type", INT8),
        Field("principal", STRING),
        Field("host", STRING),
        Field("operation", INT8),
        Field("permission_type", INT8),
    )
    entry_id: bytes
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@attrs.frozen(eq=False, repr=False)
class RemoveAccessControlEntryRecord(MetadataRecord):
    """The entry of that id does not hold any more."""

    API_KEY = 19
    FIELDS = (Field("entry_id", UUID),)
    entry_id: bytes


@attrs.frozen(eq=False, repr=False)
class ClientQuotaRecord(MetadataRecord):
    """A limit of an entity from now on; with `remove` it has that limit no more."""

    API_KEY = 14
    FIELDS = (
        Field("entity", array_of(struct_of(STRING, NULLABLE_STRING))),
        Field("key", STRING),
        Field("value", FLOAT64),
        Field("remove", BOOLEAN),
    )
    entity: QuotaEntity
    key: str
    value: float
    remove: bool = False
