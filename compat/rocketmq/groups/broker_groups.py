"""The consumer groups of a broker: found, made when somebody needs them, changed and deleted."""

from __future__ import annotations

import logging

from logstore.compat.rocketmq.settings import Settings
from logstore.compat.rocketmq.topics import names
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.segments.rocketmq.tables.subscription_groups import (
    SubscriptionGroupConfig,
    SubscriptionGroupTable,
)

_log = logging.getLogger(__name__)

_READ_BIT = 2
#: groups of the broker itself, which are made where others are not (``isSysConsumerGroup``)
_OWN_PREFIX = "CID_RMQ_SYS_"


class BrokerGroups:
    """Finds, makes and changes groups. Source: ``SubscriptionGroupManager``."""

    def __init__(self, table: SubscriptionGroupTable, settings: Settings) -> None:
        self.table = table
        self._settings = settings

    def add_system_groups(self) -> None:
        """Make the groups that every broker has at its start."""
        for name in names.SYSTEM_GROUPS:
            if self.table.get(name) is None:
                self.table.put_system(SubscriptionGroupConfig(name))

    def find(self, group: str) -> SubscriptionGroupConfig | None:
        """Return a group, made just now if that is allowed; None if it is not."""
        if self._is_light(group):
            return SubscriptionGroupConfig(group)
        found = self.table.get(group)
        if found is not None:
            return found
        settings = self._settings
        is_own = settings.creates_own_groups and group.startswith(_OWN_PREFIX)
        if not (settings.auto_creates_groups or is_own):
            return None
        if names.flaw_of_group(group) is not None:
            return None
        config = SubscriptionGroupConfig(group)
        self.put(config)
        return config

    def _is_light(self, group: str) -> bool:
        """Tell whether a group is one of light queues, of which nothing is kept."""
        return self._settings.has_light_queues and group.startswith(names.LMQ_PREFIX)

    def require(self, group: str) -> SubscriptionGroupConfig:
        """
        Return a group, made just now if that is allowed.

        Raises:
            RefusedError: SUBSCRIPTION_GROUP_NOT_EXIST.

        """
        found = self.find(group)
        if found is None:
            raise RefusedError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group not exist, {group} {names.SEE_FAQ}",
            )
        return found

    def contains(self, group: str) -> bool:
        """Tell whether a group is there, without making it."""
        return self._is_light(group) or self.table.get(group) is not None

    def is_forbidden(self, group: str, topic: str) -> bool:
        """Tell whether a group may not read a topic (``updateForbidden``)."""
        masks = self.table.forbidden.get(group)
        return masks is not None and bool(masks.get(topic, 0) >> _READ_BIT & 1)

    def forbid(self, group: str, topic: str, *, is_forbidden: bool) -> None:
        """Forbid a group to read a topic, or let it."""
        known = self.table.forbidden.get(group, {}).get(topic, 0)
        bit = 1 << _READ_BIT
        self.table.set_forbidden(group, topic, known | bit if is_forbidden else known & ~bit)
        self.table.persist()

    def put(self, config: SubscriptionGroupConfig) -> None:
        """Add or change a group, on the disk too. Raises OSError; nothing has changed then."""
        if self._is_light(config.group_name):
            return
        known = self.table.get(config.group_name)
        self.table.put(config)
        self._persist(config.group_name, known)
        _log.info("group %s: %s", config.group_name, config)

    def remove(self, group: str) -> bool:
        """Forget a group; tell whether it was there. Raises OSError; it is still there then."""
        removed = self.table.remove(group)
        if removed is not None:
            self._persist(group, removed)
        return removed is not None

    def _persist(self, group: str, known: SubscriptionGroupConfig | None) -> None:
        """Write what has changed of a group, or take it back."""
        try:
            self.table.persist()
        except OSError:
            self.table.restore(group, known)
            raise
