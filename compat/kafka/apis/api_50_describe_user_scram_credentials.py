"""
DescribeUserScramCredentials (50): version 0.

* nobody has credentials, since nobody needs any: all users (null or an empty list) are none
* a user that is named: 91, there is nothing about this one; a user that is named twice: 92
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka.protocol.admin.users import (
        DescribeUserScramCredentialsRequest,
        DescribeUserScramCredentialsResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client


def handle(
    broker: Broker, client: Client, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Find no credentials."""
    from kafka.protocol.admin.users import DescribeUserScramCredentialsResponse

    del broker, client
    result_class = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    counts = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        version=request.API_VERSION,
        error_message=None,
        results=[
            result_class(
                user=name,
                error_code=ErrorCode.RESOURCE_NOT_FOUND
                if count == 1
                else ErrorCode.DUPLICATE_RESOURCE,
                error_message=f"user '{name}' has no credentials here"
                if count == 1
                else f"the request names user '{name}' {count} times",
                credential_infos=[],
            )
            for name, count in counts.items()
        ],
    )
