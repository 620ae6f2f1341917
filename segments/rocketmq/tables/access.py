"""
Who may do what: ``config/auth.json``, a file of our own.

A real broker keeps the same in two RocksDB directories beside it, ``users`` and ``acls``, which are
not read here. What stands in the file are the values that it tells its administrators: ``UserInfo``
and ``AclInfo``, as in the answers to AUTH_LIST_USER and AUTH_LIST_ACL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from logstore.host import Host
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.tables.json_fields import as_list, as_object, as_text
from logstore.segments.rocketmq.tables.json_table import JsonTable

#: kinds of users: one may do everything, one what policies say
SUPER, NORMAL = "Super", "Normal"
ENABLED, DISABLED = "enable", "disable"
#: what is looked at first, and what where nothing of it fits
CUSTOM, DEFAULT = "Custom", "Default"
ALLOW, DENY = "Allow", "Deny"


@attrs.frozen
class User:
    """Somebody who signs with a password."""

    username: str
    password: str
    user_type: str = NORMAL
    user_status: str = ENABLED

    def to_json(self) -> dict[str, Any]:
        """Return the fields by Java's names."""
        return {
            "password": self.password,
            "userStatus": self.user_status,
            "userType": self.user_type,
            "username": self.username,
        }

    @classmethod
    def from_json(cls, fields: Mapping[Any, Any]) -> User:
        """Return the user of these fields. Raises JsonTypeError."""
        names = ("username", "password", "userType", "userStatus")
        return cls(*(as_text(fields.get(name)) for name in names))


@attrs.frozen
class PolicyEntry:
    """What may or may not be done with the resources of one key, like ``Topic:orders*``."""

    resource: str
    actions: tuple[str, ...]
    decision: str
    #: addresses and networks from which that holds; None is everywhere
    source_ips: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields by Java's names."""
        fields: dict[str, Any] = {
            "actions": list(self.actions),
            "decision": self.decision,
            "resource": self.resource,
        }
        if self.source_ips is not None:
            fields["sourceIps"] = list(self.source_ips)
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[Any, Any]) -> PolicyEntry:
        """Return the entry of these fields. Raises JsonTypeError."""
        ips = fields.get("sourceIps")
        return cls(
            as_text(fields.get("resource")),
            tuple(as_text(action) for action in as_list(fields.get("actions"))),
            as_text(fields.get("decision")),
            None if ips is None else tuple(as_text(ip) for ip in as_list(ips)),
        )


@attrs.frozen
class Policy:
    """
    Entries of one type.

    What came first for a subject stands as it was given: there may be several entries of one
    resource then, of which changes look at the first. So it is with an ACL's policies of one type.
    """

    policy_type: str
    entries: tuple[PolicyEntry, ...]

    def updated(self, entries: Iterable[PolicyEntry]) -> Policy:
        """Return the policy with these entries, in the places of those of the same resource."""
        found = list(self.entries)
        for entry in entries:
            known = (place for place, one in enumerate(found) if one.resource == entry.resource)
            place = next(known, len(found))
            found[place : place + 1] = [entry]
        return Policy(self.policy_type, tuple(found))

    def without(self, resource: str) -> Policy:
        """Return the policy without the first entry of that resource."""
        gone = next((one for one in self.entries if one.resource == resource), None)
        return Policy(self.policy_type, tuple(one for one in self.entries if one is not gone))

    def to_json(self) -> dict[str, Any]:
        """Return the fields by Java's names."""
        entries = [entry.to_json() for entry in self.entries]
        return {"entries": entries, "policyType": self.policy_type}

    @classmethod
    def from_json(cls, fields: Mapping[Any, Any]) -> Policy:
        """Return the policy of these fields. Raises JsonTypeError."""
        entries = as_list(fields.get("entries"))
        return cls(
            as_text(fields.get("policyType")),
            tuple(PolicyEntry.from_json(as_object(entry)) for entry in entries),
        )


@attrs.frozen
class Acl:
    """All policies of one subject, like ``User:alice``."""

    subject: str
    policies: tuple[Policy, ...]

    def policy(self, policy_type: str) -> Policy | None:
        """Return the policy of that type, if there is one."""
        return next((one for one in self.policies if one.policy_type == policy_type), None)

    def updated(self, policies: Iterable[Policy]) -> Acl:
        """Return the rules with these policies, joined with those of the same type."""
        found = list(self.policies)
        for policy in policies:
            types = [one.policy_type for one in found]
            if policy.policy_type in types:
                place = types.index(policy.policy_type)
                found[place] = found[place].updated(policy.entries)
            else:
                found.append(policy)
        return Acl(self.subject, tuple(found))

    def without(self, policy_type: str, resource: str) -> Acl:
        """Return the rules without that resource's entry; a policy without entries is gone."""
        before = self.policy(policy_type)
        if before is None:
            return self
        after = before.without(resource)
        left = (after if one is before else one for one in self.policies)
        return Acl(self.subject, tuple(one for one in left if one.entries or one is not after))

    def to_json(self) -> dict[str, Any]:
        """Return the fields by Java's names."""
        return {
            "policies": [policy.to_json() for policy in self.policies],
            "subject": self.subject,
        }

    @classmethod
    def from_json(cls, fields: Mapping[Any, Any]) -> Acl:
        """Return the rules of these fields. Raises JsonTypeError."""
        policies = as_list(fields.get("policies"))
        return cls(
            as_text(fields.get("subject")),
            tuple(Policy.from_json(as_object(policy)) for policy in policies),
        )


class AccessTable(JsonTable):
    """Users by name, and their rules by subject."""

    file_name = "auth.json"

    def __init__(self, host: Host, directory: str, release: Release = Release.V5) -> None:
        super().__init__(host, directory, release)
        self.users: dict[str, User] = {}
        self.acls: dict[str, Acl] = {}

    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it: as a real broker's keys are sorted."""
        return {
            "acls": [acl.to_json() for acl in self.sorted_acls()],
            "users": [user.to_json() for user in self.sorted_users()],
        }

    def sorted_users(self) -> list[User]:
        """Return all users in the order of their names' bytes."""
        return [self.users[name] for name in sorted(self.users, key=_bytes)]

    def sorted_acls(self) -> list[Acl]:
        """Return all rules in the order of their subjects' bytes."""
        return [self.acls[subject] for subject in sorted(self.acls, key=_bytes)]

    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file, or leave it. Raises JsonTypeError."""
        users = [User.from_json(as_object(one)) for one in as_list(content.get("users"))]
        acls = [Acl.from_json(as_object(one)) for one in as_list(content.get("acls"))]
        self.users = {user.username: user for user in users}
        self.acls = {acl.subject: acl for acl in acls}


def _bytes(key: str) -> bytes:
    return key.encode("utf-8", "replace")
