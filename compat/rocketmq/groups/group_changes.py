"""Groups as administrators describe them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.errors import LogStoreError
from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupConfig


def read_group(fields: Mapping[str, object]) -> SubscriptionGroupConfig:
    """
    Return the settings of a group; attributes are changes, ``+name`` sets one.

    Raises:
        RefusedError: SYSTEM_ERROR; a field has a value that is none.

    """
    plain = dict(fields)
    attributes = plain.get("attributes")
    if isinstance(attributes, Mapping):
        plain["attributes"] = {
            str(name).removeprefix("+"): value
            for name, value in cast("Mapping[object, object]", attributes).items()
            if not str(name).startswith("-")
        }
    try:
        return SubscriptionGroupConfig.from_json(plain)
    except (LogStoreError, ValueError, KeyError, TypeError) as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"the group: {error}") from error
