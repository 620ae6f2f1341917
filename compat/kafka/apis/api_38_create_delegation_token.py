"""
CreateDelegationToken (38): versions 1-3. Makes a token that stands for whoever asks for it.

* 61 there are no tokens (``delegation.token.secret.key``); 64 who asks has not said who it is, or
  by a token; 65 the token is for somebody else, and rules forbid it; 67 a renewer is no user
* 35 where metadata have no tokens yet (before 3.6-IV2)
* v2: flexible; v3: for somebody else

Source: ``KafkaApis.handleCreateTokenRequest``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.delegation_tokens.admission import is_allowed, may_ask
from logstore.compat.kafka.delegation_tokens.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import refusal_of
from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.principal import ANONYMOUS, USER, Principal
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest

#: what Kafka says when it stumbles, as it does over an owner's name without a type: of nobody
_STUMBLED = CreateDelegationTokenResponse(
    error_code=ErrorCode.UNKNOWN_SERVER_ERROR,
    principal_type=ANONYMOUS.kind,
    principal_name=ANONYMOUS.name,
    token_requester_principal_type=ANONYMOUS.kind,
    token_requester_principal_name=ANONYMOUS.name,
)


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Make a token, or say why not."""
    asked = read_request(CreateDelegationTokenRequest, request)
    owner = requester = client.principal
    if asked.owner_principal_name:
        if asked.owner_principal_type is None:
            return answered(_STUMBLED, request)
        owner = Principal(asked.owner_principal_type, asked.owner_principal_name)
    renewers = [Principal(one.principal_type, one.principal_name) for one in asked.renewers]
    response = CreateDelegationTokenResponse(
        error_code=_refusal(broker, client, owner, renewers),
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
    )
    if not response.error_code:
        response = _made(broker, response, owner, requester, renewers, asked.max_lifetime_ms)
    return answered(response, request)


def _refusal(
    broker: Broker, client: Client, owner: Principal, renewers: list[Principal]
) -> ErrorCode:
    if not may_ask(client):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if owner != client.principal and not is_allowed(
        broker, client, Operation.CREATE_TOKENS, ResourceType.USER, str(owner)
    ):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if any(one.kind != USER for one in renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return ErrorCode.NONE


def _made(
    broker: Broker,
    response: CreateDelegationTokenResponse,
    owner: Principal,
    requester: Principal,
    renewers: list[Principal],
    lifetime_ms: int,
) -> CreateDelegationTokenResponse:
    tokens = broker.delegation_tokens
    try:
        token = tokens.create(owner, requester, renewers, lifetime_ms)
    except (LogStoreError, OSError) as error:
        return attrs.evolve(
            response,
            error_code=refusal_of(error, "delegation tokens").code,
            issue_timestamp_ms=0,
            expiry_timestamp_ms=0,
            max_timestamp_ms=0,
        )
    return attrs.evolve(
        response,
        issue_timestamp_ms=token.issue_timestamp,
        expiry_timestamp_ms=token.expiration_timestamp,
        max_timestamp_ms=token.max_timestamp,
        token_id=token.token_id,
        hmac=tokens.secret_of(token.token_id),
    )
