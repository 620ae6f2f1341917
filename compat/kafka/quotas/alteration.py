"""
Changes of limits: which entities and limits there can be, and the records that keep them.

Source: ``ClientQuotaControlManager``, ``QuotaConfig``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import NamedTuple

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.hash_order import members_in_sized_order
from logstore.compat.kafka.quotas.client_quotas import CLIENT_ID, ENTITY_TYPES, IP, USER
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.cluster_metadata.access_records import ClientQuotaRecord, QuotaEntity

_LONG_MAX, _INT_MAX = 2**63 - 1, 2**31 - 1
#: the largest value of those that are whole numbers, by name; None where fractions are fine
_OF_CLIENTS: Mapping[str, int | None] = {
    "producer_byte_rate": _LONG_MAX,
    "consumer_byte_rate": _LONG_MAX,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_OF_ADDRESSES: Mapping[str, int | None] = {"connection_creation_rate": _INT_MAX}
_TYPE_NAMES = {_LONG_MAX: "a LONG", _INT_MAX: "an INT"}
_FRACTION_MAX = 1e-6


class Change(NamedTuple):
    """A limit's new value; None takes it back."""

    key: str
    value: float | None


def records_of(
    parts: Sequence[tuple[str, str | None]],
    changes: Sequence[Change],
    known: Mapping[QuotaEntity, Mapping[str, float]],
) -> list[ClientQuotaRecord]:
    """
    Return what says that the limits of an entity change so, where they do.

    Raises:
        RefusedRequestError: there is no such entity, limit or value.

    """
    ordered = _in_order(changes)
    if len(ordered) < len(changes):
        raise named_twice(parts)
    entity = _entity(parts)
    allowed = _OF_ADDRESSES if IP in dict(entity) else _OF_CLIENTS
    for change in ordered:
        _check(allowed, change)
    return list(_records(entity, ordered, known.get(entity, {})))


def named_twice(parts: Sequence[tuple[str, str | None]]) -> RefusedRequestError:
    """Return how an entity is refused that a request names, or a limit of it, more than once."""
    named = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in parts)
    return _refused(f"Ignoring duplicate entity ClientQuotaEntity(entries={{{named}}})")


def as_walked(parts: Sequence[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """Return what an entity is made of as Kafka walks it; of a type that comes twice the last."""
    named = dict(parts)
    return [(kind, named[kind]) for kind in members_in_sized_order(named, len(parts))]


def _in_order(changes: Sequence[Change]) -> list[Change]:
    """Return changes as Kafka walks them: by the hashes of their keys, however they were asked."""
    by_key = {change.key: change for change in changes}
    return [by_key[key] for key in members_in_sized_order(by_key, len(changes))]


def _records(
    entity: QuotaEntity, changes: Sequence[Change], now: Mapping[str, float]
) -> Iterator[ClientQuotaRecord]:
    for key, value in changes:
        if value is None:
            if key in now:
                yield ClientQuotaRecord(entity, key, 0.0, remove=True)
        elif not _is_same(now.get(key), value):
            yield ClientQuotaRecord(entity, key, value)


def _is_same(old: float | None, new: float) -> bool:
    """Tell whether a limit stays what it is; one that is no number is itself, as in Java."""
    return old == new or (old is not None and isnan(old) and isnan(new))


def _entity(parts: Sequence[tuple[str, str | None]]) -> QuotaEntity:
    """Return an entity with its types in order."""
    if not parts:
        raise _refused("Invalid empty client quota entity")
    found: dict[str, str | None] = {}
    for kind, name in parts:
        if kind not in ENTITY_TYPES:
            raise _refused(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _refused(f"Empty {kind} not supported")
        found[kind] = name
    if IP in found and (USER in found or CLIENT_ID in found):
        raise _refused(
            "Invalid quota entity combination, IP entity shouldnot be combined "
            "with User or ClientId"
        )
    if IP in found:
        _check_address(found[IP])
    return tuple(sorted(found.items(), key=_type_of))


def _type_of(part: tuple[str, str | None]) -> str:
    return part[0]


def _check_address(name: str | None) -> None:
    """Insist on an address: host names are not looked up here."""
    try:
        if name is not None and name != "localhost":
            ipaddress.ip_address(name)
    except ValueError:
        raise _refused(f"{name} is not a valid IP or resolvable host.") from None


def _check(allowed: Mapping[str, int | None], change: Change) -> None:
    key, value = change
    if value is None:
        return
    if key not in allowed:
        raise _refused(f"Invalid configuration key {key}")
    if value <= 0:
        raise _refused(f"Quota {key} must be greater than 0")
    largest = allowed[key]
    if largest is None:
        return
    if value > float(largest):  # as Java compares them: 2^63 is not too large
        raise _refused(f"Proposed value for {key} is too large for {_TYPE_NAMES[largest]}.")
    if value % 1.0 > _FRACTION_MAX:
        raise _refused(f"{key} cannot be a fractional value.")


def _refused(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_REQUEST, message)
