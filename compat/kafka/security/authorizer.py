"""
The authorizer: who may do what, by the rules that are kept in the metadata log.

Kafka's ``StandardAuthorizer``. A broker has one if ``authorizer.class.name`` says so; super users
may do everything, and what no rule is about is denied unless ``allow.everyone.if.no.acl.found``.

Source: ``StandardAuthorizer``, ``StandardAuthorizerData``, ``AclControlManager``, ``AuthHelper``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from logstore.compat.kafka.security.acl import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    Operation,
    ResourceType,
)
from logstore.compat.kafka.security.acl_index import AclIndex
from logstore.segments.kafka.cluster_metadata.access_records import RemoveAccessControlEntryRecord
from logstore.segments.kafka.config_keys import ConfigError

if TYPE_CHECKING:
    import random

    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.produce.route import ProduceRoute
    from logstore.compat.kafka.security.principal import Principal
    from logstore.segments.kafka.broker_config import BrokerConfig
    from logstore.segments.kafka.cluster_metadata.cluster_metadata import ClusterMetadata

_log = logging.getLogger("kafka.authorizer.logger")
CLASS_NAME = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_SUPER_USERS, _ALLOW_EVERYONE = "super.users", "allow.everyone.if.no.acl.found"
_ID_BYTES = 16
#: how many answers are remembered
_REMEMBERED_MAX = 10_000
#: a name that nobody gives: whoever may do something with it may do so with any
_ANY_NAME = "hardcode"
#: principal, host, operation, resource type, and name or None for any
_Question = tuple[str, str, int, int, str | None]


class Authorizer:
    """Decides, and keeps the rules that it decides by."""

    def __init__(
        self,
        metadata: ClusterMetadata,
        rng: random.Random,
        super_users: frozenset[str],
        *,
        is_open: bool,
    ) -> None:
        self._metadata = metadata
        self._rng = rng
        self._super_users = super_users
        #: what no rule is about is allowed
        self._is_open = is_open
        self._index = AclIndex()
        self._acls: dict[Acl, bytes] = {}
        #: answers that were given since the last change
        self._remembered: dict[_Question, bool] = {}
        #: who may write to where, as far as it is known: principal, host, start of the request
        self._routes: set[tuple[Principal, str, bytes]] = set()
        for entry_id, record in metadata.image.access_entries.items():
            self._enter(Acl.of(record), entry_id)

    @classmethod
    def of(
        cls, config: BrokerConfig, metadata: ClusterMetadata, rng: random.Random
    ) -> Authorizer | None:
        """
        Return the authorizer that a broker's settings ask for, if any.

        Raises:
            ConfigError: it is of a class that there is not here, or a super user is no principal.

        """
        name = str(config["authorizer.class.name"]).strip()
        if not name:
            return None
        if name != CLASS_NAME:
            raise ConfigError("authorizer.class.name", name, f"there is only {CLASS_NAME}")
        text = config.settings.get(_ALLOW_EVERYONE, "")
        super_users = _super_users(config.settings.get(_SUPER_USERS, ""))
        return cls(metadata, rng, super_users, is_open=text.strip().lower() == "true")

    # deciding

    def allows(
        self,
        client: Client,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        is_logged: bool = True,
    ) -> bool:
        """Tell whether a client may do that with a resource; refusals are logged."""
        principal = str(client.principal)
        if principal in self._super_users:
            return True
        key = principal, client.host, operation, resource_type, name
        is_allowed = self._remembered.get(key)
        if is_allowed is None:
            said, has_rules = self._index.decide(*key[:2], operation, resource_type, name)
            is_allowed = (self._is_open and not has_rules) if said is None else said
            self._remember(key, is_allowed)
        if is_logged and not is_allowed:
            _log.info(
                "Principal = %s is Denied operation = %s from host = %s on resource = "
                "%s:LITERAL:%s",
                principal, operation.name, client.host, resource_type.name, name,
            )  # fmt: skip
        return is_allowed

    def allows_cluster(self, client: Client, operation: Operation) -> bool:
        """Tell whether a client may do that with the cluster."""
        return self.allows(client, operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def allows_any(self, client: Client, operation: Operation, resource_type: ResourceType) -> bool:
        """Tell whether there may be a resource of that type with which a client may do that."""
        if self.allows(client, operation, resource_type, _ANY_NAME, is_logged=False):
            return True  # super users, and where everybody may
        key = str(client.principal), client.host, operation, resource_type, None
        is_allowed = self._remembered.get(key)
        if is_allowed is None:
            is_allowed = self._index.allows_any(*key[:2], operation, resource_type)
            self._remember(key, is_allowed)
        return is_allowed

    def _remember(self, key: _Question, is_allowed: bool) -> None:
        if len(self._remembered) >= _REMEMBERED_MAX:
            self._remembered.clear()
        self._remembered[key] = is_allowed

    # producers

    def knows_route(self, client: Client, route: ProduceRoute) -> bool:
        """Tell whether a client was found to be allowed what it sends by that way."""
        return (client.principal, client.host, route.prefix) in self._routes

    def note_route(self, client: Client, route: ProduceRoute) -> None:
        """Remember that a client may write what it sends by that way, until a rule changes."""
        if len(self._routes) >= _REMEMBERED_MAX:
            self._routes.clear()
        self._routes.add((client.principal, client.host, route.prefix))

    # rules

    def matching(self, wanted: AclFilter) -> list[Acl]:
        """Return the rules that are meant, in order."""
        return sorted(acl for acl in self._acls if wanted.matches(acl))

    def create(self, acls: Iterable[Acl]) -> None:
        """
        Let rules hold, durably; those that hold already do so once.

        Raises:
            WriteFailedError, OSError: the disk refused, and nothing has changed.

        """
        fresh = [acl for acl in dict.fromkeys(acls) if acl not in self._acls]
        ids = [self._rng.getrandbits(8 * _ID_BYTES).to_bytes(_ID_BYTES, "big") for _ in fresh]
        self._metadata.change_access(
            acl.record(entry_id) for acl, entry_id in zip(fresh, ids, strict=True)
        )
        for acl, entry_id in zip(fresh, ids, strict=True):
            self._enter(acl, entry_id)

    def delete(self, acls: Sequence[Acl]) -> None:
        """
        Let rules hold no more, durably; each is there.

        Raises as :meth:`create` does.
        """
        self._metadata.change_access(
            RemoveAccessControlEntryRecord(self._acls[acl]) for acl in acls
        )
        for acl in acls:
            del self._acls[acl]
            self._index.remove(acl)
        self._changed()

    def _enter(self, acl: Acl, entry_id: bytes) -> None:
        if acl not in self._acls:
            self._index.add(acl)
        self._acls[acl] = entry_id
        self._changed()

    def _changed(self) -> None:
        self._remembered.clear()
        self._routes.clear()


def _super_users(text: str) -> frozenset[str]:
    """Return the principals of a list with semicolons."""
    names = [name.strip() for name in text.split(";")]
    for name in names:
        if name and ":" not in name:
            raise ConfigError(
                _SUPER_USERS, text, f"expected a list as User:a;User:b, found {name!r}"
            )
    return frozenset(name for name in names if name)
