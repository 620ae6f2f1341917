"""Groups as administrators describe them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import attrs

from logstore.compat.rocketmq.topics.attributes import (
    Number,
    OneOf,
    Rules,
    Switch,
    Text,
    changed_attributes,
)
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.errors import LogStoreError
from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupConfig

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker

#: what groups can be told (SubscriptionGroupAttributes)
_ATTRIBUTES: Rules = {
    "priority.factor": Number(0, 100),
    "lite.bind.topic": Text(),
    "lite.sub.model": OneOf(("Shared", "Exclusive")),
    "lite.sub.reset.offset.exclusive": Switch(),
    "lite.sub.reset.offset.unsubscribe": Switch(),
    "lite.sub.client.quota": Number(-1),
    "lite.sub.client.max.event.cnt": Number(10),
    "lite.sub.wildcard": Text(),
}


def read_group(fields: Mapping[str, object]) -> SubscriptionGroupConfig:
    """
    Return the settings of a group; its attributes are changes, each with a sign before its name.

    Raises:
        RefusedError: SYSTEM_ERROR; a field has a value that is none.

    """
    plain = dict(fields)
    attributes = plain.get("attributes")
    if isinstance(attributes, Mapping):
        changes = cast("Mapping[object, object]", attributes)
        plain["attributes"] = {str(name): value for name, value in changes.items()}
    try:
        return SubscriptionGroupConfig.from_json(plain)
    except (LogStoreError, ValueError, KeyError, TypeError) as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"the group: {error}") from error


def put_group(broker: Broker, wanted: SubscriptionGroupConfig) -> None:
    """
    Make or change a group; its attributes are changes.

    Raises:
        RefusedError: SYSTEM_ERROR; an attribute cannot be what it is told.

    """
    known = broker.groups.table.get(wanted.group_name)
    current: Mapping[str, str] = {} if known is None else known.attributes
    attributes = changed_attributes(current, wanted.attributes, _ATTRIBUTES, is_new=known is None)
    broker.groups.put(attrs.evolve(wanted, attributes=attributes))
