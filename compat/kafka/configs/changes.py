"""
Changing the settings of topics and of the broker, for AlterConfigs and IncrementalAlterConfigs.

A change is worked out first, as the resource's whole new set of settings, and then checked and
applied as one: a resource changes completely or not at all.

Source: ``ConfigAdminManager``, ``ConfigurationControlManager`` and its validator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.kafka.configs.client_metrics import check_client_metrics
from logstore.compat.kafka.configs.group_settings import check_group_settings
from logstore.compat.kafka.configs.loggers import change_levels
from logstore.compat.kafka.configs.resources import ResourceType
from logstore.compat.kafka.configs.topic_settings import check_topic_settings
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.hash_order import members_in_order
from logstore.compat.kafka.java_int import java_int
from logstore.compat.kafka.refused_request import RefusedRequestError, refusal_of
from logstore.compat.kafka.topics.names import flaw_of
from logstore.errors import LogStoreError
from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS
from logstore.segments.kafka.config_keys import ConfigKey, ConfigType
from logstore.segments.kafka.topic_config_keys import TOPIC_CONFIG_KEYS

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker


_OTHER_BROKER = "Unexpected broker id, expected {}, but received {}"
_OTHER_NODE = "Unexpected node id. Expected {0}, but received {2}"
_NAMELESS = {
    ResourceType.GROUP: "Default group resources are not allowed.",
    ResourceType.CLIENT_METRICS: "Subscription name can't be empty",
}


class Operation(IntEnum):
    """What to do with one setting (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@attrs.frozen
class Change:
    """One operation on one setting; only a deletion needs no value."""

    name: str
    operation: int
    value: str | None


@attrs.frozen
class Wanted:
    """
    What a resource's settings are to become, as the node `node_id` was asked.

    `is_replacing` drops those that are not named.
    """

    node_id: int
    changes: Sequence[Change]
    is_replacing: bool
    is_rehearsal: bool


@attrs.frozen
class Resource:
    """A topic, or the broker (its number, or empty for every broker of the cluster)."""

    type: int
    name: str


def alter_all(
    broker: Broker,
    node_id: int,
    wanted: Sequence[tuple[Resource, Sequence[Change]]],
    *,
    is_replacing: bool,
    is_rehearsal: bool,
) -> list[dict[str, Any]]:
    """
    Change the resources one by one; return the fields of each one's result on the wire.

    `node_id` is the node that was asked.
    """
    counts = Counter(resource for resource, _ in wanted)
    results: list[dict[str, Any]] = []
    for resource, changes in wanted:
        code, message = ErrorCode.NONE, None
        try:
            if counts[resource] > 1:
                raise _refused("Each resource must appear at most once.")
            change = Wanted(node_id, changes, is_replacing, is_rehearsal)
            _alter(broker, resource, change)
        except (LogStoreError, OSError) as error:
            refusal = refusal_of(error, f"changing settings of {resource.name}")
            code, message = refusal.code, refusal.message
        results.append(
            {
                "error_code": code,
                "error_message": message,
                "resource_type": resource.type,
                "resource_name": resource.name,
            }
        )
    return results


def _alter(broker: Broker, resource: Resource, wanted: Wanted) -> None:
    """
    Change a resource's settings.

    Raises:
        RefusedRequestError: 3 no such topic, 17 not a topic's name, 40 a value, 42 anything else.
        ConfigError: a topic setting that is unknown or has a value that it cannot have.

    """
    is_of_loggers = resource.type == ResourceType.BROKER_LOGGER
    _check_changes(wanted.changes, is_of_loggers=is_of_loggers)
    if resource.type == ResourceType.TOPIC:
        _alter_topic(broker, resource.name, wanted)
    elif resource.type == ResourceType.BROKER:
        _alter_broker(broker, resource.name, wanted)
    elif resource.type in (ResourceType.GROUP, ResourceType.CLIENT_METRICS):
        _alter_named(broker, resource, wanted)
    elif is_of_loggers and not wanted.is_replacing:
        check_is_this_node(wanted.node_id, resource.name, _OTHER_NODE)
        change_levels(wanted.changes, is_rehearsal=wanted.is_rehearsal)
    else:
        raise _refused(f"Unknown resource type {resource.type}")


def check_is_this_node(node_id: int, name: str, unexpected: str, what: str = "Node") -> None:
    """
    Refuse the name of a broker resource that does not mean the node that was asked (42).

    `unexpected` says so of another's, with places for our number, its name and its number.
    """
    number = java_int(name)
    if number is None:
        raise _refused(f"{what} id must be an integer, but it is: {name}")
    if number != node_id:
        raise _refused(unexpected.format(node_id, name, number))


def _check_changes(changes: Sequence[Change], *, is_of_loggers: bool) -> None:
    if len({change.name for change in changes}) < len(changes):
        raise _refused("Error due to duplicate config keys")
    empty = [one.name for one in changes if one.value is None and one.operation != Operation.DELETE]
    if empty:
        raise _refused(f"Null value not supported for : {', '.join(empty)}")
    for change in changes:
        if change.operation not in set(Operation) and not is_of_loggers:
            raise _refused(f"Unknown operations type {change.operation}")


def _alter_topic(broker: Broker, name: str, wanted: Wanted) -> None:
    topic = broker.topics.get(name)
    own: Mapping[str, str] = {} if topic is None or wanted.is_replacing else topic.settings
    settings = _changed(own, wanted.changes, TOPIC_CONFIG_KEYS)
    if not name:
        raise _refused("Default topic resources are not allowed.")
    flaw = flaw_of(name)
    if flaw is not None:
        raise RefusedRequestError(ErrorCode.INVALID_TOPIC_EXCEPTION, flaw)
    check_topic_settings(broker, settings)
    if topic is None:
        raise RefusedRequestError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        )
    if not wanted.is_rehearsal and settings != topic.settings:
        broker.store.change_settings(topic, settings)
        broker.placements.elect_where_fine()


def _alter_broker(broker: Broker, name: str, wanted: Wanted) -> None:
    for_cluster = not name
    if not for_cluster:
        check_is_this_node(wanted.node_id, name, _OTHER_BROKER)
    config = broker.dynamic_config
    layer = config.of_cluster if for_cluster else config.of_nodes[wanted.node_id]
    own: Mapping[str, str] = {} if wanted.is_replacing else layer
    settings = _changed(own, wanted.changes, BROKER_CONFIG_KEYS)
    config.replace(
        settings,
        is_cluster_wide=for_cluster,
        node_id=wanted.node_id,
        is_rehearsal=wanted.is_rehearsal,
        touched=[change.name for change in wanted.changes],
    )
    broker.placements.elect_where_fine()


def _alter_named(broker: Broker, resource: Resource, wanted: Wanted) -> None:
    """Change a group or a subscription to metrics: they are there once they have settings."""
    kind, name = resource.type, resource.name
    metadata = broker.store.metadata
    present = metadata.settings_of_resource(kind, name)
    own: Mapping[str, str] = {} if wanted.is_replacing else present
    is_group = kind == ResourceType.GROUP
    settings = _changed(own, wanted.changes, {})  # as in Kafka no list of theirs can grow or shrink
    if not name:
        raise _refused(_NAMELESS[ResourceType(kind)])
    if is_group:
        check_group_settings(broker, settings)
    else:
        check_client_metrics(settings)
    if not wanted.is_rehearsal:
        metadata.change_resource(kind, name, settings)


def _changed(
    own: Mapping[str, str], changes: Sequence[Change], keys: Mapping[str, ConfigKey]
) -> dict[str, str]:
    """Return a resource's own settings after the changes."""
    settings = dict(own)
    is_of_broker = keys is BROKER_CONFIG_KEYS
    by_name = {change.name: change for change in changes}
    for name in by_name if is_of_broker else members_in_order(by_name):  # as Kafka walks them
        change, value = by_name[name], by_name[name].value or ""
        if change.operation == Operation.DELETE:
            settings.pop(name, None)
        elif change.operation == Operation.SET:
            settings[name] = value
        else:
            key = keys.get(name) or (_listed(name) if is_of_broker else None)
            if key is None or key.type is not ConfigType.LIST:
                message = _no_list(change, is_of_broker=is_of_broker, is_known=key is not None)
                raise RefusedRequestError(ErrorCode.INVALID_CONFIG, message)
            present = [part for part in settings.get(name, key.default or "").split(",") if part]
            settings[name] = ",".join(_combined(present, _parts(value), change.operation))
    return settings


def _listed(name: str) -> ConfigKey | None:
    """Return what is known of a setting of the broker that has no effect, or of its listeners."""
    from logstore.segments.kafka.listed_config_keys import LISTED_CONFIG_KEYS  # rarely needed

    return LISTED_CONFIG_KEYS.get(name)


def _parts(text: str) -> list[str]:
    """Split as Java does: what is empty at the end goes, but of nothing there is one part."""
    parts = text.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts if text.strip(",") or not text else []


def _no_list(change: Change, *, is_of_broker: bool, is_known: bool) -> str:
    """Return why something cannot grow or shrink, in the words of Kafka's broker or controller."""
    operation = Operation(change.operation).name
    if not is_of_broker:
        return f"Can't {operation} to key {change.name} because its type is not LIST."
    if not is_known:
        return f"Unknown config name: {change.name}"
    return f"Config value {operation.lower()} is not allowed for config key: {change.name}"


def _combined(present: list[str], parts: list[str], operation: int) -> list[str]:
    if operation == Operation.APPEND:
        return present + [part for part in dict.fromkeys(parts) if part not in present]
    for part in parts:
        if part in present:
            present.remove(part)
    return present


def _refused(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_REQUEST, message)
