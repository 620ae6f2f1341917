"""
DescribeDelegationToken (41): versions 1-3. Tells of tokens, secrets included.

* 61 there are no tokens; 64 who asks has not said who it is, or by a token
* owner, renewers and who asked for it see a token; others whom rules let describe it, or its
  owner's tokens
* no list is everybody's, an empty one nobody's
* v2: flexible; v3: who asked for the token

Source: ``KafkaApis.handleDescribeTokensRequest``, ``DelegationTokenManager.filterToken``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.delegation_tokens.admission import is_allowed, may_ask
from logstore.compat.kafka.delegation_tokens.messages import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribedToken,
    TokenPrincipal,
)
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.principal import Principal

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest
    from logstore.segments.kafka.cluster_metadata.token_records import DelegationTokenRecord


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Describe the tokens that the client may see."""
    asked = read_request(DescribeDelegationTokenRequest, request)
    tokens = broker.delegation_tokens
    error = ErrorCode.NONE
    found: list[DelegationTokenRecord] = []
    if not may_ask(client):
        error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    elif not tokens.is_enabled:
        error = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    else:
        wanted = None
        if asked.owners is not None:
            wanted = {str(Principal(it.principal_type, it.principal_name)) for it in asked.owners}
        found = [
            token
            for token in tokens.known.values()
            if wanted is None or not wanted.isdisjoint(_people_of(token))
            if _may_see(broker, client, token)
        ]
    described = tuple(_described(token, tokens.secret_of(token.token_id)) for token in found)
    return answered(DescribeDelegationTokenResponse(error_code=error, tokens=described), request)


def _people_of(token: DelegationTokenRecord) -> tuple[str, ...]:
    return token.owner, token.requester, *token.renewers


def _may_see(broker: Broker, client: Client, token: DelegationTokenRecord) -> bool:
    if str(client.principal) in _people_of(token):
        return True
    kinds = ResourceType.DELEGATION_TOKEN, ResourceType.USER
    return is_allowed(broker, client, Operation.DESCRIBE, kinds[0], token.token_id) or is_allowed(
        broker, client, Operation.DESCRIBE_TOKENS, kinds[1], token.owner
    )


def _described(token: DelegationTokenRecord, secret: bytes) -> DescribedToken:
    owner, requester = Principal.parse(token.owner), Principal.parse(token.requester)
    renewers = [Principal.parse(text) for text in token.renewers]
    return DescribedToken(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=secret,
        renewers=tuple(
            TokenPrincipal(principal_type=one.kind, principal_name=one.name) for one in renewers
        ),
    )
