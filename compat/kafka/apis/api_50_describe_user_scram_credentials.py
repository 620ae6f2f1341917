"""
DescribeUserScramCredentials (50): version 0. Which SCRAM credentials users have, by mechanism.

* null or an empty list: all users that have any
* a user that has none: 91; one that is named twice: 92, in place of what there is
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka.protocol.admin.users import (
        DescribeUserScramCredentialsRequest,
        DescribeUserScramCredentialsResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_UNKNOWN = "Attempt to describe a user credential that does not exist: "


def handle(
    broker: Broker, client: Client, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Tell mechanisms and iterations."""
    from kafka.protocol.admin.users import DescribeUserScramCredentialsResponse

    result_class = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    known: dict[str, dict[int, int]] = {}
    for (mechanism, name), record in sorted(broker.store.metadata.image.scram.items()):
        known.setdefault(name, {})[mechanism] = record.iterations
    asked = Counter([user.name for user in request.users] if request.users else list(known))
    results: list[Any] = []
    for name, count in asked.items():
        if count > 1:
            error = ErrorCode.DUPLICATE_RESOURCE
            message = _TWICE + name
        elif name not in known:
            error, message = ErrorCode.RESOURCE_NOT_FOUND, _UNKNOWN + name
        else:
            error, message = ErrorCode.NONE, ""
        found = known[name] if error is ErrorCode.NONE else {}
        infos = [
            result_class.CredentialInfo(mechanism=mechanism, iterations=iterations)
            for mechanism, iterations in found.items()
        ]
        results.append(
            result_class(user=name, error_code=error, error_message=message, credential_infos=infos)
        )
    return DescribeUserScramCredentialsResponse(
        version=request.API_VERSION, error_message="", results=results
    )
