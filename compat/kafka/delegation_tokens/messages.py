"""
The messages of delegation tokens, APIs 38 to 41.

The library that has the other messages does not know these. Source: ``*DelegationToken*.json``.
"""

from __future__ import annotations

from typing import Annotated

import attrs

from logstore.segments.kafka.internal_topics.schema import Held, Int16, Int32, Int64, Message

#: in place of a time where there is no token
NO_TIME = -1


@attrs.frozen(kw_only=True)
class TokenPrincipal(Message):
    """Somebody, by kind and name."""

    principal_type: str
    principal_name: str


@attrs.frozen(kw_only=True)
class CreateDelegationTokenRequest(Message):
    """For whom a token shall be (null: for who asks), who may renew it, how long it lasts."""

    VERSIONS = range(4)
    FLEXIBLE_FROM = 2

    owner_principal_type: Annotated[str | None, Held(3)] = None
    owner_principal_name: Annotated[str | None, Held(3)] = None
    renewers: tuple[TokenPrincipal, ...]
    max_lifetime_ms: Int64


@attrs.frozen(kw_only=True)
class CreateDelegationTokenResponse(Message):
    """The new token."""

    VERSIONS = range(4)
    FLEXIBLE_FROM = 2

    error_code: Int16
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, Held(3, is_ignorable=True)] = ""
    token_requester_principal_name: Annotated[str, Held(3, is_ignorable=True)] = ""
    issue_timestamp_ms: Int64 = NO_TIME
    expiry_timestamp_ms: Int64 = NO_TIME
    max_timestamp_ms: Int64 = NO_TIME
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: Int32 = 0


@attrs.frozen(kw_only=True)
class RenewDelegationTokenRequest(Message):
    """Which token shall last longer, by its secret, and how long from now on."""

    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    hmac: bytes
    renew_period_ms: Int64


@attrs.frozen(kw_only=True)
class ExpireDelegationTokenRequest(Message):
    """Which token shall end, by its secret, and how long from now on; at once if negative."""

    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    hmac: bytes
    expiry_time_period_ms: Int64


@attrs.frozen(kw_only=True)
class TokenExpiryResponse(Message):
    """When a token ends that was renewed or expired."""

    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    error_code: Int16
    expiry_timestamp_ms: Int64 = NO_TIME
    throttle_time_ms: Int32 = 0


@attrs.frozen(kw_only=True)
class DescribeDelegationTokenRequest(Message):
    """Whose tokens to describe; null is everybody's."""

    VERSIONS = range(4)
    FLEXIBLE_FROM = 2

    owners: tuple[TokenPrincipal, ...] | None


@attrs.frozen(kw_only=True)
class DescribedToken(Message):
    """A token, its secret included."""

    principal_type: str
    principal_name: str
    token_requester_principal_type: Annotated[str, Held(3, is_ignorable=True)] = ""
    token_requester_principal_name: Annotated[str, Held(3, is_ignorable=True)] = ""
    issue_timestamp: Int64
    expiry_timestamp: Int64
    max_timestamp: Int64
    token_id: str
    hmac: bytes
    renewers: tuple[TokenPrincipal, ...]


@attrs.frozen(kw_only=True)
class DescribeDelegationTokenResponse(Message):
    """The tokens that there are, and that may be seen."""

    VERSIONS = range(4)
    FLEXIBLE_FROM = 2

    error_code: Int16
    tokens: tuple[DescribedToken, ...] = ()
    throttle_time_ms: Int32 = 0
