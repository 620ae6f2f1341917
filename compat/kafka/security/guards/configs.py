"""Guards of settings: those of topics and groups are theirs, all others are the cluster's."""

from __future__ import annotations

from typing import Any

from logstore.compat.kafka.configs.resources import ResourceType as ConfigKind
from logstore.compat.kafka.library_messages import library_class
from logstore.compat.kafka.security.acl import CLUSTER_NAME, Operation, ResourceType
from logstore.compat.kafka.security.guarded_request import PASS, REFUSALS, Guard, GuardedRequest

_KINDS = {
    ConfigKind.TOPIC: ResourceType.TOPIC,
    ConfigKind.GROUP: ResourceType.GROUP,
    ConfigKind.BROKER: ResourceType.CLUSTER,
    ConfigKind.BROKER_LOGGER: ResourceType.CLUSTER,
    ConfigKind.CLIENT_METRICS: ResourceType.CLUSTER,
}


def settings(operation: Operation, results: str, result_class: str) -> Guard:
    """Return the guard of what does that with the settings of resources."""

    def guard(request: GuardedRequest) -> Any:
        kind = getattr(library_class(request.api, "Response"), result_class)
        allowed: list[Any] = []
        refused: list[Any] = []
        for resource in request.message.resources:
            of = _KINDS.get(resource.resource_type)
            if of is None or _may(request, operation, of, resource.resource_name):
                allowed.append(resource)  # what is of no kind is the handler's to refuse
                continue
            code, text = REFUSALS[of]
            refused.append(
                kind(
                    version=request.version, error_code=code, error_message=text,
                    resource_type=resource.resource_type, resource_name=resource.resource_name,
                )
            )  # fmt: skip
        if not refused:
            return PASS
        request.message.resources = allowed

        def changed(served: Any) -> Any:
            setattr(served, results, [*getattr(served, results), *refused])
            return served

        return request.served(changed)

    return guard


def _may(request: GuardedRequest, operation: Operation, kind: ResourceType, name: str) -> bool:
    return request.may(operation, kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else name)
