"""
Access control: who (principal, host) may, or may not, do what (operation) with what (resource).

The numbers are those of the wire and of the metadata log. Source: ``ResourceType``,
``PatternType``, ``AclOperation``, ``AclPermissionType``, ``AclBinding``, ``AclBindingFilter``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeVar

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.cluster_metadata.access_records import AccessControlEntryRecord

#: every name of a resource, and every host
WILDCARD = "*"
#: everybody
WILDCARD_PRINCIPAL = "User:*"
#: the only resource of type CLUSTER
CLUSTER_NAME = "kafka-cluster"


class ResourceType(IntEnum):
    """Kinds of resources; ANY occurs in filters alone."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a name is meant; ANY and MATCH (all that say something of a name) occur in filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What is done; ANY occurs in filters alone."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether it is allowed; ANY occurs in filters alone."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


KindT = TypeVar("KindT", bound=IntEnum)
#: whoever may do one of these may describe, too
_IMPLIES_DESCRIBE = frozenset(
    {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
)
_IMPLIES_DESCRIBE_CONFIGS = frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS})


class Acl(NamedTuple):
    """One rule. The numbers are as they came: a newer Kafka may know more of them."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int

    @classmethod
    def of(cls, record: AccessControlEntryRecord) -> Acl:
        """Return the rule of a metadata record."""
        return cls(
            record.resource_type, record.resource_name, record.pattern_type, record.principal,
            record.host, record.operation, record.permission_type,
        )  # fmt: skip

    def record(self, entry_id: bytes) -> AccessControlEntryRecord:
        """Return the record that keeps it under an id."""
        return AccessControlEntryRecord(entry_id, *self)

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """Everything that Kafka has enumerations for."""
        return self.resource_type, self.pattern_type, self.operation, self.permission

    def decides(self, host: str, operation: int) -> bool | None:
        """Return whether its principal may do that from there; None if it does not say."""
        if self.host not in (WILDCARD, host):
            return None
        if self.permission != Permission.ALLOW:
            return False if self.operation in (operation, Operation.ALL) else None
        if self.operation in (operation, Operation.ALL):
            return True
        if operation == Operation.DESCRIBE:
            return True if self.operation in _IMPLIES_DESCRIBE else None
        if operation == Operation.DESCRIBE_CONFIGS:
            return True if self.operation in _IMPLIES_DESCRIBE_CONFIGS else None
        return None

    def check(self) -> None:
        """
        Insist on a rule that may be kept.

        Raises:
            RefusedRequestError: it must not.

        """
        flaw = self._flaw_of_resource() or self._flaw()
        if flaw is not None:
            raise RefusedRequestError(ErrorCode.INVALID_REQUEST, flaw)

    def _flaw_of_resource(self) -> str | None:
        if self.resource_type == ResourceType.CLUSTER and self.resource_name != CLUSTER_NAME:
            return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        return None if self.resource_name else "Invalid empty resource name"

    def _flaw(self) -> str | None:
        kind = _named(ResourceType, self.resource_type)
        if kind in (ResourceType.UNKNOWN, ResourceType.ANY):
            return f"Invalid resourceType {kind.name}"
        pattern = _named(PatternType, self.pattern_type)
        if pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
            return f"Invalid patternType {pattern.name}"
        operation = _named(Operation, self.operation)
        if operation in (Operation.UNKNOWN, Operation.ANY):
            return f"Invalid operation {operation.name}"
        permission = _named(Permission, self.permission)
        if permission not in (Permission.DENY, Permission.ALLOW):
            return f"Invalid permissionType {permission.name}"
        if ":" not in self.principal:
            return (
                f"Could not parse principal from `{self.principal}` (no colon is present "
                "separating the principal type from the principal name)"
            )
        return None


class AclFilter(NamedTuple):
    """Which rules are meant; None of a name, and ANY, is every one."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """Everything that Kafka has enumerations for."""
        return self.resource_type, self.pattern_type, self.operation, self.permission

    @property
    def flaw(self) -> str | None:
        """Why it cannot be followed: it has a number that nobody knows."""
        if not (
            _named(ResourceType, self.resource_type) and _named(PatternType, self.pattern_type)
        ):
            return "Unknown patternFilter."
        if not (_named(Operation, self.operation) and _named(Permission, self.permission)):
            return "Unknown entryFilter."
        return None

    def matches(self, acl: Acl) -> bool:
        """Tell whether a rule is meant."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        is_match = self.pattern_type == PatternType.MATCH
        if not is_match and self.pattern_type not in (PatternType.ANY, acl.pattern_type):
            return False
        name = self.resource_name
        if name is None:
            return True
        if not is_match:
            return name == acl.resource_name
        if acl.pattern_type == PatternType.PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name in (name, WILDCARD)


def _named(kind: type[KindT], number: int) -> KindT:
    """Return the member of that number; UNKNOWN for those that nobody knows."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)
