"""
The rules in force, arranged by what they are about: thousands cost no more than a few.

A question looks at the rules of one name, of every beginning of it that has rules, and of ``*``;
and of these only at those of the principal and of everybody. Source: ``StandardAuthorizerData``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from logstore.compat.kafka.security.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Acl,
    Operation,
    PatternType,
    Permission,
)

#: the rules about one pattern, by principal
_Rules = dict[str, list[Acl]]


class Decision(NamedTuple):
    """What the rules say; None is nothing, and `has_rules` tells whether any are about the name."""

    is_allowed: bool | None
    has_rules: bool


class AclIndex:
    """Rules that can be asked; each is there once."""

    def __init__(self) -> None:
        self._literal: dict[tuple[int, str], _Rules] = {}
        self._prefixed: dict[tuple[int, str], _Rules] = {}
        #: how many prefixes of a length there are, by resource type
        self._lengths: dict[int, dict[int, int]] = {}

    def add(self, acl: Acl) -> None:
        """Let a rule hold."""
        key = acl.resource_type, acl.resource_name
        is_prefix = acl.pattern_type == PatternType.PREFIXED
        table = self._prefixed if is_prefix else self._literal
        if is_prefix and key not in table:
            self._count(acl, 1)
        table.setdefault(key, {}).setdefault(acl.principal, []).append(acl)

    def remove(self, acl: Acl) -> None:
        """Let a rule hold no more."""
        key = acl.resource_type, acl.resource_name
        is_prefix = acl.pattern_type == PatternType.PREFIXED
        table = self._prefixed if is_prefix else self._literal
        rules = table[key]
        rules[acl.principal].remove(acl)
        if not rules[acl.principal]:
            del rules[acl.principal]
        if not rules:
            del table[key]
            if is_prefix:
                self._count(acl, -1)

    def _count(self, acl: Acl, change: int) -> None:
        lengths = self._lengths.setdefault(acl.resource_type, {})
        length = len(acl.resource_name)
        lengths[length] = lengths.get(length, 0) + change
        if not lengths[length]:
            del lengths[length]

    def decide(
        self, principal: str, host: str, operation: Operation, resource_type: int, name: str
    ) -> Decision:
        """Return what the rules say; one that denies counts more than all that allow."""
        is_allowed: bool | None = None
        has_rules = False
        for rules in self._about(resource_type, name):
            has_rules = True
            for who in (principal, WILDCARD_PRINCIPAL):
                for acl in rules.get(who, ()):
                    said = acl.decides(host, operation)
                    if said is False:
                        return Decision(False, has_rules=True)
                    is_allowed = is_allowed or said
        return Decision(is_allowed, has_rules)

    def _about(self, resource_type: int, name: str) -> Iterator[_Rules]:
        found = self._literal.get((resource_type, name))
        if found is not None:
            yield found
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name):
                found = self._prefixed.get((resource_type, name[:length]))
                if found is not None:
                    yield found
        found = self._literal.get((resource_type, WILDCARD))
        if found is not None and name != WILDCARD:
            yield found

    def allows_any(
        self, principal: str, host: str, operation: Operation, resource_type: int
    ) -> bool:
        """
        Tell whether rules leave some resource of a type with which the principal may do that.

        Implied operations do not count.
        """
        allowed: list[Acl] = []
        denied: set[tuple[int, str]] = set()
        for acl in self._of_type(resource_type):
            if acl.principal not in (principal, WILDCARD_PRINCIPAL):
                continue
            if acl.host not in (WILDCARD, host) or acl.operation not in (operation, Operation.ALL):
                continue
            if acl.permission == Permission.ALLOW:
                allowed.append(acl)
            else:
                denied.add((acl.pattern_type, acl.resource_name))
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(_is_open(acl, denied) for acl in allowed)

    def _of_type(self, resource_type: int) -> Iterator[Acl]:
        for table in (self._literal, self._prefixed):
            for (kind, _), rules in table.items():
                if kind == resource_type:
                    for acls in rules.values():
                        yield from acls


def _is_open(acl: Acl, denied: set[tuple[int, str]]) -> bool:
    """Tell whether nothing that is denied covers all that the rule allows."""
    name = acl.resource_name
    is_literal = acl.pattern_type == PatternType.LITERAL
    if is_literal and name == WILDCARD:
        return True
    if is_literal and (PatternType.LITERAL, name) in denied:
        return False
    return not any(
        (PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1)
    )
