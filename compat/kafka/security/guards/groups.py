"""Guards of what tells of groups: who may not describe a group does not learn of it."""

from __future__ import annotations

from typing import Any

from logstore.compat.kafka.authorized_operations import GROUP_OPERATIONS
from logstore.compat.kafka.library_messages import library_class
from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.guarded_request import PASS, REFUSALS, GuardedRequest
from logstore.compat.kafka.security.guards.needs import Each, spare

_GROUP = ResourceType.GROUP
_GROUPS = Each(Operation.DESCRIBE, _GROUP, "groups", "groups", is_refused_first=True)
#: what the keys of a FindCoordinator are, by their type, and what one must be able to do with them
_KEYS = {0: ResourceType.GROUP, 1: ResourceType.TRANSACTIONAL_ID}
_SHARE, _SHARE_SINCE = 2, 6
_SEVERAL_KEYS_SINCE = 4
_PROTOCOL_SINCE = 5


def describe_groups(request: GuardedRequest) -> Any:
    """To describe each group."""
    wants_operations = request.message.include_authorized_operations
    asked = set(request.message.groups)
    answer = spare(request, _GROUPS)
    if not wants_operations:
        return answer

    def told(served: Any) -> Any:
        for group in served.groups:
            if not group.error_code and group.group_id in asked:
                group.authorized_operations = request.operations(
                    GROUP_OPERATIONS, _GROUP, group.group_id
                )
        return served

    return request.then(answer, told)


def sync_group(request: GuardedRequest) -> Any:
    """To read the group; before that a request must say what it is about."""
    message = request.message
    is_told = message.protocol_type is not None and message.protocol_name is not None
    if request.version >= _PROTOCOL_SINCE and not is_told:
        return PASS  # the handler's to refuse
    is_allowed = request.may(Operation.READ, _GROUP, message.group_id)
    return PASS if is_allowed else request.refused(_GROUP)


def list_groups(request: GuardedRequest) -> Any:
    """All groups are told to who may describe the cluster, to others those that they may."""
    if request.authorizer.allows_cluster(request.client, Operation.DESCRIBE):
        return PASS

    def seen(served: Any) -> Any:
        served.groups = [one for one in served.groups if request.sees(_GROUP, one.group_id)]
        return served

    return request.served(seen)


def find_coordinator(request: GuardedRequest) -> Any:
    """To describe each group or transactional id; share-partitions are between brokers."""
    message = request.message
    is_share = message.key_type == _SHARE and request.version >= _SHARE_SINCE
    if is_share and not request.may_cluster(Operation.CLUSTER_ACTION):
        return request.failed(*REFUSALS[ResourceType.CLUSTER])
    kind = _KEYS.get(message.key_type)
    if kind is None:
        return PASS
    if request.version < _SEVERAL_KEYS_SINCE:
        is_allowed = request.may(Operation.DESCRIBE, kind, message.key)
        return PASS if is_allowed else _none(request, kind)
    return _each_key(request, kind)


def _none(request: GuardedRequest, kind: ResourceType) -> Any:
    code, text = REFUSALS[kind]
    answer_class = library_class(request.api, "Response")
    return answer_class(
        version=request.version, error_code=code, error_message=text, node_id=-1, host="", port=-1
    )


def _each_key(request: GuardedRequest, kind: ResourceType) -> Any:
    answer_class = library_class(request.api, "Response")
    keys = list(request.message.coordinator_keys)
    refused = {key for key in keys if not request.may(Operation.DESCRIBE, kind, key)}
    if not refused:
        return PASS
    request.message.coordinator_keys = [key for key in keys if key not in refused]

    def changed(served: Any) -> Any:
        found = {one.key: one for one in served.coordinators}
        for key in refused:
            found[key] = answer_class.Coordinator(
                version=request.version, key=key, error_code=REFUSALS[kind][0],
                error_message="", node_id=-1, host="", port=-1,
            )  # fmt: skip
        served.coordinators = [found[key] for key in keys]
        return served

    if len(refused) == len(set(keys)):
        return changed(answer_class(version=request.version, coordinators=[]))
    return request.served(changed)
