"""The arranged rules say what a walk over all of them would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.kafka.security.acl import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from logstore.compat.kafka.security.acl_index import AclIndex

NAMES = ("a", "ab", "abc", "b", "*")
RULES = st.builds(
    Acl,
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]).map(int),
    st.sampled_from(NAMES),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]).map(int),
    st.sampled_from(["User:a", "User:b", "User:*"]),
    st.sampled_from(["*", "h", "i"]),
    st.sampled_from([Operation.ALL, Operation.READ, Operation.DESCRIBE, Operation.WRITE]).map(int),
    st.sampled_from([Permission.ALLOW, Permission.DENY]).map(int),
)


def is_about(acl: Acl, kind: int, name: str) -> bool:
    """Tell whether a rule is about a name, the plain way."""
    if acl.resource_type != kind:
        return False
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, "*")


@given(st.sets(RULES, max_size=12), st.sampled_from(NAMES), st.data())
def test_decisions(rules: set[Acl], name: str, data: st.DataObject) -> None:
    """DENY counts more than ALLOW, whatever they are about; also after rules were taken away."""
    index = AclIndex()
    for acl in rules:
        index.add(acl)
    gone = data.draw(st.sets(st.sampled_from(sorted(rules)))) if rules else set[Acl]()
    for acl in gone:
        index.remove(acl)
    about = [acl for acl in rules - gone if is_about(acl, ResourceType.TOPIC, name)]
    for operation in (Operation.READ, Operation.DESCRIBE, Operation.DELETE):
        said = {
            acl.decides("h", operation) for acl in about if acl.principal in ("User:a", "User:*")
        }
        expected = False if False in said else True if True in said else None
        found = index.decide("User:a", "h", operation, ResourceType.TOPIC, name)
        assert found == (expected, bool(about))


def rule(name: str, pattern: PatternType, permission: Permission) -> Acl:
    """Return a rule about writing to topics."""
    return Acl(ResourceType.TOPIC, name, pattern, "User:a", "*", Operation.WRITE, permission)


def test_any_resource() -> None:
    """An allowed name or beginning counts unless a rule denies all of it."""
    literal, prefixed = PatternType.LITERAL, PatternType.PREFIXED
    allow, deny = Permission.ALLOW, Permission.DENY
    cases: list[tuple[list[Acl], bool]] = [
        ([], False),
        ([rule("t", literal, allow)], True),
        ([rule("t", literal, allow), rule("t", literal, deny)], False),
        ([rule("t", literal, allow), rule("t", prefixed, deny)], False),
        ([rule("te", prefixed, allow), rule("t", prefixed, deny)], False),
        ([rule("te", prefixed, allow), rule("te", literal, deny)], True),
        ([rule("te", prefixed, allow), rule("tes", prefixed, deny)], True),
        ([rule("*", literal, allow), rule("t", prefixed, deny)], True),
        ([rule("t", literal, allow), rule("*", literal, deny)], False),
        ([rule("t", literal, allow)._replace(operation=Operation.READ)], False),
        ([rule("t", literal, allow)._replace(principal="User:b")], False),
        ([rule("t", literal, allow)._replace(host="i")], False),
    ]
    for rules, expected in cases:
        index = AclIndex()
        for acl in rules:
            index.add(acl)
        found = index.allows_any("User:a", "h", Operation.WRITE, ResourceType.TOPIC)
        assert found is expected, rules
