"""
Which entry of a subject's policies decides about a request (``AclAuthorizationHandler``).

Of the entries that fit, custom ones before default ones, the most precise one decides, and of two
equally precise ones that which denies.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from functools import cmp_to_key
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.auth.resources import ANY, LITERAL, PREFIXED, Resource, resource_of
from logstore.compat.rocketmq.auth.wants import ALL
from logstore.segments.rocketmq.tables.access import CUSTOM, DEFAULT, DENY, Acl, PolicyEntry

if TYPE_CHECKING:
    from logstore.compat.rocketmq.auth.asked import Asked

_PRECISION = {LITERAL: 0, PREFIXED: 1}
_LEAST_PRECISE = 2
_Fitting = tuple[Resource, PolicyEntry]


def deciding(acl: Acl, asked: Asked, source_ip: str) -> PolicyEntry | None:
    """Return the entry that decides, None where none fits."""
    for policy_type in (CUSTOM, DEFAULT):
        policy = acl.policy(policy_type)
        fitting = [] if policy is None else list(_fitting(policy.entries, asked, source_ip))
        if fitting:
            return min(fitting, key=cmp_to_key(_compare))[1]
    return None


def _fitting(entries: Iterable[PolicyEntry], asked: Asked, source_ip: str) -> Iterable[_Fitting]:
    for entry in entries:
        resource = resource_of(entry.resource)
        if resource is None or not resource.covers(asked.resource):
            continue
        if ALL not in entry.actions and not set(asked.actions) & set(entry.actions):
            continue
        ips = entry.source_ips
        if not ips or (source_ip and any(is_within(source_ip, ip) for ip in ips)):
            yield resource, entry


def _compare(one: _Fitting, other: _Fitting) -> int:
    by_resource = _compare_resources(one[0], other[0])
    if by_resource or one[1].decision == other[1].decision:
        return by_resource
    return -1 if one[1].decision == DENY else 1


def _compare_resources(one: Resource, other: Resource) -> int:
    if one.kind != other.kind:
        return 1 if one.kind == ANY else -1
    precision = _PRECISION.get(one.pattern, _LEAST_PRECISE)
    if one.pattern != other.pattern:
        return precision - _PRECISION.get(other.pattern, _LEAST_PRECISE)
    if one.pattern == PREFIXED:
        return len(other.name or "") - len(one.name or "")
    return 0


def is_within(ip: str, network: str) -> bool:
    """Tell whether an address is that one, or in that network."""
    address = ip.strip("[]")
    if "/" not in network:
        return address == network or ip == network
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def is_address_or_network(text: str) -> bool:
    """Tell whether a policy may name it as where requests come from."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True
