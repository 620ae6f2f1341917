"""
Metadata records about delegation tokens (KIP-48, KIP-900).

They stand apart as those of :mod:`.access_records` do: most directories have none. A token's secret
is not among what is kept: it follows from the token's id and the cluster's secret key.

Source: ``DelegationTokenRecord.json``, ``RemoveDelegationTokenRecord.json``.
"""

from __future__ import annotations

import attrs

from logstore.segments.kafka.cluster_metadata.records import MetadataRecord
from logstore.segments.kafka.cluster_metadata.wire import INT64, STRING, Field, array_of


@attrs.frozen(eq=False, repr=False)
class DelegationTokenRecord(MetadataRecord):
    """
    A token, new or renewed; the record takes the place of the one before.

    Owner, requester and renewers are principals as text, ``User:alice``. Times are milliseconds of
    the wall clock.
    """

    API_KEY = 10
    FIELDS = (
        Field("owner", STRING),
        Field("requester", STRING),
        Field("renewers", array_of(STRING)),
        Field("issue_timestamp", INT64),
        Field("max_timestamp", INT64),
        Field("expiration_timestamp", INT64),
        Field("token_id", STRING),
    )
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
    token_id: str


@attrs.frozen(eq=False, repr=False)
class RemoveDelegationTokenRecord(MetadataRecord):
    """A token does not hold any more."""

    API_KEY = 26
    FIELDS = (Field("token_id", STRING),)
    token_id: str
