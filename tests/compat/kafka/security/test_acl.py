"""Rules, and the filters that find them."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.security.acl import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

READ_T = Acl(
    ResourceType.TOPIC, "t", PatternType.LITERAL, "User:a", "*", Operation.READ, Permission.ALLOW
)
EVERY = AclFilter(
    ResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY
)


@pytest.mark.parametrize(
    ("operation", "implied"),
    [
        (Operation.READ, {Operation.READ, Operation.DESCRIBE}),
        (Operation.WRITE, {Operation.WRITE, Operation.DESCRIBE}),
        (Operation.DELETE, {Operation.DELETE, Operation.DESCRIBE}),
        (Operation.ALTER, {Operation.ALTER, Operation.DESCRIBE}),
        (Operation.ALTER_CONFIGS, {Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS}),
        (Operation.DESCRIBE, {Operation.DESCRIBE}),
        (Operation.CREATE, {Operation.CREATE}),
        (Operation.ALL, set(Operation)),
    ],
)
def test_what_an_operation_implies(operation: Operation, implied: set[Operation]) -> None:
    """Whoever may read may describe; who is denied to read is denied nothing else."""
    allows = READ_T._replace(operation=operation)
    denies = allows._replace(permission=Permission.DENY)
    for other in Operation:
        assert allows.decides("h", other) is (True if other in implied else None)
        is_denied = operation in (other, Operation.ALL)
        assert denies.decides("h", other) is (False if is_denied else None)


def test_a_host_is_the_client_s_or_every_one() -> None:
    """A rule of another host says nothing."""
    here = READ_T._replace(host="10.0.0.1")
    assert here.decides("10.0.0.1", Operation.READ) is True
    assert here.decides("10.0.0.2", Operation.READ) is None
    assert READ_T.decides("10.0.0.2", Operation.READ) is True


@pytest.mark.parametrize(
    ("fields", "flaw"),
    [
        ({"resource_type": ResourceType.ANY}, "Invalid resourceType ANY"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"pattern_type": PatternType.MATCH}, "Invalid patternType MATCH"),
        ({"operation": Operation.ANY}, "Invalid operation ANY"),
        ({"permission": Permission.ANY}, "Invalid permissionType ANY"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": ResourceType.CLUSTER},
         "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"principal": "alice"}, "Could not parse principal from `alice`"),
    ],
)  # fmt: skip
def test_rules_that_make_no_sense(fields: dict[str, object], flaw: str) -> None:
    """They are refused as an invalid request, with Kafka's words."""
    with pytest.raises(RefusedRequestError, match=flaw.replace("(", r"\(")) as refused:
        READ_T._replace(**fields).check()  # type: ignore[arg-type]
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    READ_T.check()


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({}, {"t", "te", "*", "o"}),
        ({"resource_name": "te"}, {"te"}),
        ({"resource_name": "te", "pattern_type": PatternType.MATCH}, {"te", "t", "*"}),
        ({"resource_name": "t", "pattern_type": PatternType.PREFIXED}, {"t"}),
        ({"pattern_type": PatternType.LITERAL}, {"te", "*", "o"}),
        ({"principal": "User:b"}, {"o"}),
        ({"host": "h"}, {"o"}),
        ({"operation": Operation.WRITE}, {"o"}),
        ({"permission": Permission.DENY}, {"o"}),
        ({"resource_type": ResourceType.GROUP}, set[str]()),
        ({"resource_type": 99}, set[str]()),
    ],
)
def test_filters(fields: dict[str, object], names: set[str]) -> None:
    """Every part that is given must be the rule's; MATCH finds all that say something of a name."""
    rules = [
        READ_T._replace(pattern_type=PatternType.PREFIXED),
        READ_T._replace(resource_name="te"),
        READ_T._replace(resource_name="*"),
        READ_T._replace(
            resource_name="o", principal="User:b", host="h", operation=Operation.WRITE,
            permission=Permission.DENY,
        ),
    ]  # fmt: skip
    wanted = EVERY._replace(**fields)  # type: ignore[arg-type]
    assert {rule.resource_name for rule in rules if wanted.matches(rule)} == names


def test_filters_that_nobody_can_follow() -> None:
    """A number that Kafka does not know is named by the half of the filter that has it."""
    assert EVERY.flaw is None
    assert EVERY._replace(pattern_type=9).flaw == "Unknown patternFilter."
    assert EVERY._replace(operation=99).flaw == "Unknown entryFilter."
