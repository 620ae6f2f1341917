"""
What most requests need, said in a line: the cluster, one resource, or each of those in a list.

Of a list the client gets what it may have: the handler is asked for less, and the answer tells of
the rest that it was refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.guarded_request import PASS, REFUSALS, Guard, GuardedRequest


class Need(NamedTuple):
    """An operation on the one resource that the request's `field` names."""

    operation: Operation
    kind: ResourceType
    field: str


class Each(NamedTuple):
    """
    An operation on each resource that a list of the request names; `results` is the answer's list.

    Elements are topics by name or id, or just words.
    """

    operation: Operation
    kind: ResourceType
    elements: str
    results: str
    is_refused_first: bool = False
    message: str | None = None


def cluster(*operations: Operation, is_told: bool = True, is_repeated: bool = False) -> Guard:
    """
    Return the guard of what needs one of the operations on the cluster.

    With `is_told` the answer says which; some of Kafka's do not. Some say it once more of each
    thing that was asked for: `is_repeated`.
    """

    def guard(request: GuardedRequest) -> Any:
        if any(request.may_cluster(operation) for operation in operations):
            return PASS
        if not is_told:
            return request.refused(ResourceType.CLUSTER)
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        text = f"Request {request.api.name} needs {operations[-1].name} permission."
        if not is_repeated:
            return request.failed(code, text)
        answer = request.failed_each(code, text)
        answer.error_code = code
        return answer

    return guard


def needs(*wanted: Need, each: Each | None = None, unless: Operation | None = None) -> Guard:
    """
    Return the guard of what needs all of `wanted`, and then something of `each` of a list.

    Who may do `unless` with the cluster needs nothing else.
    """

    def guard(request: GuardedRequest) -> Any:
        if unless is not None and request.authorizer.allows_cluster(request.client, unless):
            return PASS
        for need in wanted:
            if not request.may(need.operation, need.kind, getattr(request.message, need.field)):
                return request.refused(need.kind)
        return PASS if each is None else spare(request, each)

    return guard


def spare(request: GuardedRequest, each: Each) -> Any:
    """Serve those of a list's elements that the client may have, and refuse the others."""
    message = request.message
    allowed: list[Any] = []
    refused: list[Any] = []
    for element in getattr(message, each.elements):
        (allowed if _may(request, each, element) else refused).append(element)
    if not refused:
        return PASS
    setattr(message, each.elements, refused)
    answer = request.failed_each(REFUSALS[each.kind][0], each.message)
    if not allowed:
        return answer
    setattr(message, each.elements, allowed)
    results = getattr(answer, each.results)

    def merged(served: Any) -> Any:
        found = list(getattr(served, each.results))
        parts = results + found if each.is_refused_first else found + results
        setattr(served, each.results, parts)
        return served

    return request.served(merged)


def _may(request: GuardedRequest, each: Each, element: Any) -> bool:
    """Tell whether an element may be had; a topic that nobody knows is the handler's to refuse."""
    name = element if isinstance(element, str) else request.topic_of(element)
    return name is None or request.may(each.operation, each.kind, name)
