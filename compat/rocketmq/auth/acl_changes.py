"""Rules of subjects as administrators make, change, remove and list them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.rocketmq.auth.access_error import AccessError
from logstore.compat.rocketmq.auth.administration import (
    broken,
    done,
    is_blank,
    known_name,
    refusing,
    require_acls,
    text_in,
    user_named,
    whole,
)
from logstore.compat.rocketmq.auth.matching import is_address_or_network
from logstore.compat.rocketmq.auth.resources import resource_of
from logstore.compat.rocketmq.auth.wants import ACTIONS, ANY
from logstore.compat.rocketmq.wire.bodies import objects_in, read_object
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.segments.rocketmq.tables.access import (
    ALLOW,
    CUSTOM,
    DEFAULT,
    DENY,
    Acl,
    Policy,
    PolicyEntry,
    User,
)

if TYPE_CHECKING:
    from logstore.compat.rocketmq.auth.access import Access
    from logstore.compat.rocketmq.wire.remoting import Command, Response

_TYPES, _DECISIONS = (CUSTOM, DEFAULT), (ALLOW, DENY)
_USER = "User"


def put_acl(access: Access, request: Command) -> Response:
    """Set what the body says of a subject's rights; what it does not name stays."""
    content = read_object(request.body) if request.body else {}
    policies = objects_in(content, "policies")
    if not policies:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "The body of acl is null")
    described = [_Policy(one) for one in policies if objects_in(one, "entries")]
    username = _user_of(text_in(content, "subject"))
    if username is None:
        username = _user_of(request.ext_fields.get("subject"))
    if username is None:
        raise broken()
    with refusing():
        if not described:
            raise AccessError("The policies is empty.")
        rules = [one.checked() for one in described]
        if _user(access, username) is None:
            raise AccessError(f"The subject of User:{username} is not exist.")
        require_acls(access)
        subject = f"User:{username}"
        before = access.table.acls.get(subject)
        # As in Java the first rules of a subject stand as they come, also several of one type.
        access.put_acl(Acl(subject, tuple(rules)) if before is None else before.updated(rules))
    return done()


class _Policy:
    """A policy as a request describes it."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._type = known_name(text_in(dict(content), "policyType"), _TYPES) or CUSTOM
        self._entries = [_Entry(one) for one in objects_in(content, "entries")]

    def checked(self) -> Policy:
        """Return it. Raises AccessError: it cannot be."""
        return Policy(self._type, tuple(entry.checked() for entry in self._entries))


class _Entry:
    """An entry of a policy as a request describes it."""

    def __init__(self, content: dict[str, Any]) -> None:
        actions = content.get("actions")
        if not isinstance(actions, list):
            raise RefusedError(ResponseCode.SYSTEM_ERROR, "an entry of a policy has no actions")
        names: list[object] = list(actions)  # pyright: ignore[reportUnknownArgumentType]
        known = [known_name(str(name), ACTIONS) for name in names]
        self._actions = tuple(name for name in known if name is not None)
        self._resource = resource_of(whole(text_in(content, "resource") or ""))
        ips: object = content.get("sourceIps") or []
        if not isinstance(ips, list):
            raise RefusedError(ResponseCode.SYSTEM_ERROR, "the addresses of an entry are no list")
        given: list[object] = list(ips)  # pyright: ignore[reportUnknownArgumentType]
        self._source_ips = tuple("" if ip is None else str(ip) for ip in given)
        self._decision = known_name(text_in(content, "decision"), _DECISIONS)

    def checked(self) -> PolicyEntry:
        """Return it. Raises AccessError: it cannot be."""
        if self._resource is None:
            raise AccessError("The resource is null.")
        if not self._actions:
            raise AccessError("The actions is empty.")
        if ANY in self._actions:
            raise AccessError("The actions can not be Any.")
        for ip in self._source_ips:
            if is_blank(ip):
                raise AccessError("The source ip is empty.")
            if not is_address_or_network(ip):
                raise AccessError("The source ip is invalid.")
        if self._decision is None:
            raise AccessError("The decision is null or illegal.")
        ips = self._source_ips or None
        return PolicyEntry(self._resource.key, self._actions, self._decision, ips)


def delete_acl(access: Access, request: Command) -> Response:
    """Remove a subject's rules, or the entry of one resource."""
    fields = request.ext_fields
    policy_type = known_name(fields.get("policyType"), _TYPES) or CUSTOM
    resource = resource_of(fields.get("resource") or "")
    with refusing():
        subject = _subject(access, fields.get("subject"))
        require_acls(access)
        before = access.table.acls.get(subject)
        if before is None:
            raise AccessError("The acl is not exist.")
        after = Acl(subject, ()) if resource is None else before.without(policy_type, resource.key)
        if after.policies:
            access.put_acl(after)
        else:
            access.remove_acl(subject)
    return done()


def get_acl(access: Access, request: Command) -> Response:
    """Tell the rules of a subject, if there are any."""
    with refusing():
        subject = _subject(access, request.ext_fields.get("subject"))
    require_acls(access)
    found = access.table.acls.get(subject)
    return done(None if found is None else found.to_json())


def list_acls(access: Access, request: Command) -> Response:
    """Tell all rules of subjects and resources whose keys have a text in them."""
    require_acls(access)
    fields = request.ext_fields
    wanted_subject = _filter(fields, "subjectFilter")
    wanted_resource = _filter(fields, "resourceFilter")
    found: list[dict[str, Any]] = []
    for acl in access.table.sorted_acls():
        policies = [
            attrs.evolve(policy, entries=kept)
            for policy in acl.policies
            if (kept := tuple(one for one in policy.entries if wanted_resource in one.resource))
        ]
        if policies and wanted_subject in acl.subject:
            found.append(Acl(acl.subject, tuple(policies)).to_json())
    return done(found or None)


def _filter(fields: Mapping[str, str], name: str) -> str:
    text = fields.get(name) or ""
    return "" if is_blank(text) else text


def _subject(access: Access, text: str | None) -> str:
    """Return the key of a subject that is there. Raises AccessError."""
    username = _user_of(text)
    if username is None:
        raise AccessError("The subject is null.")
    if _user(access, username) is None:
        raise AccessError("The subject is not exist.")
    return f"User:{username}"


def _user(access: Access, username: str) -> User | None:
    """Return a user; nobody has no name."""
    return user_named(access, username) if username.strip() else None


def _user_of(text: str | None) -> str | None:
    """Return the name of the user that a subject's key is of; None if it is no user's."""
    kind, _, name = (text or "").partition(":")
    return whole(name) if kind.lower() == _USER.lower() else None
