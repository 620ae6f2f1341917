"""A broker with an authorizer on a simulated disk, and clients of different names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logstore.compat.kafka.security.acl import Operation, PatternType, Permission, ResourceType
from logstore.compat.kafka.security.authorizer import CLASS_NAME
from logstore.compat.kafka.security.principal import USER, Principal
from tests.compat.kafka.conversation import Conversation

AUTHORIZER = {"authorizer.class.name": CLASS_NAME, "super.users": "User:admin; User:root"}
EVERY: Mapping[str, Any] = {
    "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
    "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
}  # fmt: skip


def creation(
    kind: ResourceType,
    name: str,
    operation: Operation,
    *,
    who: str = "User:alice",
    permission: Permission = Permission.ALLOW,
    pattern: PatternType = PatternType.LITERAL,
) -> dict[str, Any]:
    """Return one rule as CreateAcls has it."""
    return {
        "resource_type": int(kind), "resource_name": name, "resource_pattern_type": int(pattern),
        "principal": who, "host": "*", "operation": int(operation),
        "permission_type": int(permission),
    }  # fmt: skip


class GuardedConversation(Conversation):
    """As a conversation; whoever speaks has a name."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(AUTHORIZER | dict(settings or {}))

    def as_user(self, name: str, api: str, version: int, **fields: Any) -> dict[str, Any]:
        """Return the answer to somebody."""
        self.connection.client.principal = Principal(USER, name)
        return self.ask(api, version, **fields)

    def allow(self, *creations: dict[str, Any]) -> list[int]:
        """Create rules as the administrator; return the codes."""
        answer = self.as_user("admin", "CreateAcls", 3, creations=list(creations))
        return [one["error_code"] for one in answer["results"]]

    def rules(self) -> list[tuple[str, str]]:
        """Return names and principals of all rules."""
        answer = self.as_user("admin", "DescribeAcls", 3, **EVERY)
        return [
            (resource["resource_name"], acl["principal"])
            for resource in answer["resources"]
            for acl in resource["acls"]
        ]
