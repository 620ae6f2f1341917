"""A request at its guard: what the client may do, and the ways on: serve, serve less, refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.faults.error_answers import failed_answer
from logstore.compat.kafka.message_handlers import changed
from logstore.compat.kafka.security.acl import Operation, ResourceType

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import Api
    from logstore.compat.kafka.security.authorizer import Authorizer

#: a guard that returns this has nothing against a request as it is
PASS: Final = object()
_NO_ID = UUID(int=0)
#: what is said of a kind of resource with which one may not do something
REFUSALS = {
    ResourceType.TOPIC: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    ResourceType.GROUP: (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
    ResourceType.CLUSTER: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
    ResourceType.TRANSACTIONAL_ID: (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional Id authorization failed.",
    ),
}


@attrs.frozen
class GuardedRequest:
    """
    A decoded request of `version`; `serve` hands a message of its kind to the API's handler.

    The message is the guard's: it may take out of it what the client may not ask for.
    """

    broker: Broker
    client: Client
    authorizer: Authorizer
    api: Api
    version: int
    message: Any
    serve: Callable[[Any], Any]

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Tell whether the client may do that with a resource."""
        return self.authorizer.allows(self.client, operation, kind, name)

    def may_cluster(self, operation: Operation) -> bool:
        """Tell whether the client may do that with the cluster."""
        return self.authorizer.allows_cluster(self.client, operation)

    def sees(self, kind: ResourceType, name: str) -> bool:
        """Tell whether the client may know of a resource, of which it did not ask by name."""
        return self.authorizer.allows(self.client, Operation.DESCRIBE, kind, name, is_logged=False)

    def failed(self, code: ErrorCode, message: str | None = None) -> Any:
        """Return an answer that says so of all that is (still) in the message."""
        return failed_answer(self.api, self.message, self.version, code, message)

    def failed_each(self, code: ErrorCode, message: str | None = None) -> Any:
        """Return an answer that says so of each thing in the message, and not of the whole."""
        return failed_answer(self.api, self.message, self.version, code, message, says_at_top=False)

    def refused(self, kind: ResourceType) -> Any:
        """Return the answer to whoever may not use a resource of that kind."""
        return self.failed(REFUSALS[kind][0])

    def served(self, change: Callable[[Any], Any]) -> Any:
        """Return what `change` makes of the answer to the message as it is now."""
        return changed(self.serve(self.message), change)

    def then(self, answer: Any, change: Callable[[Any], Any]) -> Any:
        """Return what `change` makes of an answer that another guard has found."""
        if answer is PASS:
            return self.served(change)
        return changed(answer, change)

    def topic_of(self, element: Any) -> str | None:
        """Return the name of a topic that is asked for by name or id; None if nobody knows it."""
        topic_id: UUID | None = getattr(element, "topic_id", None)
        if topic_id is None or topic_id == _NO_ID:  # the library reads the id of zeros as None
            name: str | None = getattr(element, "name", None) or getattr(element, "topic", None)
            return name or None
        topic = self.broker.topic_by_id(topic_id)
        return None if topic is None else topic.name

    def operations(self, supported: Iterable[int], kind: ResourceType, name: str) -> set[int]:
        """Return which of the operations the client may do with a resource."""
        return {
            operation
            for operation in supported
            if self.authorizer.allows(
                self.client, Operation(operation), kind, name, is_logged=False
            )
        }


#: Decides on a request: PASS, or the answer (perhaps of a handler that was asked for less).
Guard = Callable[[GuardedRequest], Any]
