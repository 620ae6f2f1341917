"""
A heartbeat on its way through a group: who speaks, what has changed, what follows from it.

1. The member is new, or says something new about itself; topics may have come or grown. Either
   way the group's epoch grows.
2. If the target assignment is of an older epoch, a new one is worked out.
3. The member goes one step towards its target.

Nothing is changed here: the outcome has the records that do it, once they are on disk.

Source: ``GroupMetadataManager.consumerGroupHeartbeat``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import attrs

from logstore.compat.kafka.groups.consumer import records
from logstore.compat.kafka.groups.consumer.exchange import UNTOLD_MS, ConsumerHeartbeat
from logstore.compat.kafka.groups.consumer.group import ConsumerGroup, names_wanted
from logstore.compat.kafka.groups.consumer.member import ConsumerMember
from logstore.compat.kafka.groups.consumer.membership import Newcomer
from logstore.compat.kafka.groups.consumer.reconciliation import Reconciliation
from logstore.compat.kafka.groups.consumer.records import ResolvedRegex
from logstore.compat.kafka.groups.consumer.regexes import (
    check_regex,
    is_stale,
    regexes_of,
    resolved,
)
from logstore.compat.kafka.groups.consumer.target_assignment import new_target, topic_ids_wanted
from logstore.compat.kafka.groups.modern.cluster import (
    Cluster,
    TopicShape,
    metadata_hash,
    shapes_of,
)
from logstore.compat.kafka.groups.modern.group import Target, TopicIdPartition
from logstore.compat.kafka.groups.modern.records import GroupChange


@attrs.frozen
class Circumstances:
    """What a heartbeat meets besides its group."""

    cluster: Cluster
    default_assignor: str
    assignment_interval_ms: int
    now_ms: int
    #: which topics the client that speaks may see; None if all of them
    may_see: Callable[[str], bool] | None = None


@attrs.frozen
class Outcome:
    """What a heartbeat leads to: the member before and after, and the records in between."""

    before: ConsumerMember
    after: ConsumerMember
    replaced: ConsumerMember | None
    records: list[GroupChange]
    #: that of the group from now on
    epoch: int
    #: the topics that were looked at, for the next heartbeat to see whether they have changed
    shapes: Mapping[str, TopicShape]
    topic_names: frozenset[str] | None


def told(member: ConsumerMember, beat: ConsumerHeartbeat) -> ConsumerMember:
    """Return a member with what a heartbeat says about it."""
    changes: dict[str, Any] = {
        "instance_id": beat.instance_id,
        "rack_id": beat.rack_id,
        "server_assignor": beat.server_assignor,
        "subscribed_topic_names": beat.subscribed_topic_names,
        "subscribed_topic_regex": beat.subscribed_topic_regex,
        "rebalance_timeout_ms": (
            None if beat.rebalance_timeout_ms == UNTOLD_MS else beat.rebalance_timeout_ms
        ),
    }
    return attrs.evolve(
        member,
        client_id=beat.client_id,
        client_host=beat.client_host,
        classic=None,
        **{name: value for name, value in changes.items() if value is not None},
    )


class HeartbeatStep:
    """
    Works out what follows from one member saying something; asked once.

    `updated` is the member of `newcomer` with what it says now.
    """

    def __init__(
        self,
        group: ConsumerGroup,
        newcomer: Newcomer,
        updated: ConsumerMember,
        circumstances: Circumstances,
    ) -> None:
        self._group = group
        self._newcomer = newcomer
        self._updated = updated
        self._world = circumstances
        self._cluster = circumstances.cluster
        self._records: list[GroupChange] = list(newcomer.records)
        self._is_as_before = (
            updated == newcomer.member and newcomer.member.member_id in group.members
        )

    def outcome(
        self, owned: frozenset[TopicIdPartition] | None, *, may_assign: bool = True
    ) -> Outcome:
        """
        Return what follows, if the member still has the partitions `owned` (None: not told).

        If it `may_assign` nothing, no target is worked out, nor approached if it is out of date.

        Raises:
            RefusedRequestError: 110 or 128, with the reason.

        """
        before, updated = self._newcomer.member, self._updated
        if updated != before:
            self._records.append(records.member_metadata(self._group.group_id, updated))
        has_new_names = updated.subscribed_topic_names != before.subscribed_topic_names
        has_new_regex = updated.subscribed_topic_regex != before.subscribed_topic_regex
        has_changed = has_new_names or has_new_regex
        topic_names = frozenset(self._cluster.topic_names())
        regexes = self._regexes(topic_names)
        shapes = self._shapes(regexes)
        # A pattern that nobody had before makes an epoch by what it turns out to mean.
        is_new_epoch = has_new_names or (has_new_regex and self._is_regex_known)
        epoch = self._epoch(regexes, shapes, is_new_epoch=is_new_epoch)
        target_epoch, target = self._group.assignment_epoch, self._group.target_of(updated)
        if epoch > target_epoch and may_assign and not self._is_too_soon:
            target_epoch, target = epoch, self._new_target(epoch, regexes)
        after = updated
        is_there = updated.is_reconciled_to(target_epoch) and not has_changed
        if not is_there and (may_assign or epoch <= target_epoch):
            after = Reconciliation(
                target=target,
                target_epoch=target_epoch,
                subscribed_topic_ids=topic_ids_wanted(updated, regexes, self._cluster),
                has_subscription_changed=has_changed,
                owned=owned,
                owner_of=self._group.owner_of,
            ).next_of(updated)
        if after != updated:
            self._records.append(records.current_assignment(self._group.group_id, after))
        # Who speaks the classic protocol does not look patterns up: the next one does.
        seen = self._group.seen_topic_names if updated.is_classic else topic_names
        return Outcome(before, after, self._newcomer.replaced, self._records, epoch, shapes, seen)

    @property
    def _is_too_soon(self) -> bool:
        """Tell whether the last target holds on, though it is out of date."""
        world = self._world
        return not self._group.may_assign(world.assignment_interval_ms, world.now_ms)

    @cached_property
    def _members(self) -> Mapping[str, ConsumerMember]:
        if self._is_as_before:
            return self._group.members
        return self._group.members_with(self._updated)

    @property
    def _is_regex_known(self) -> bool:
        regex = self._updated.subscribed_topic_regex
        return not regex or regex in self._group.regexes

    def _regexes(self, topic_names: frozenset[str]) -> Mapping[str, ResolvedRegex]:
        """Return what patterns mean now, with the records of what has changed about that."""
        group, updated, world = self._group, self._updated, self._world
        is_due = group.seen_topic_names != topic_names or (
            world.may_see is not None and is_stale(group.regexes, self._cluster, world.now_ms)
        )
        if self._is_as_before and not (group.regexes and is_due):
            return group.regexes
        if updated.subscribed_topic_regex and updated.subscribed_topic_regex not in group.regexes:
            check_regex(updated.subscribed_topic_regex)
        wanted = regexes_of(self._members.values())
        found = {regex: one for regex, one in group.regexes.items() if regex in wanted}
        if not updated.is_classic and (is_due or found.keys() != wanted):
            offset = self._cluster.metadata_offset()
            found = resolved(
                wanted, group.regexes, topic_names, world.now_ms, offset, world.may_see
            )
        self._records += [
            records.no_regex(group.group_id, regex) for regex in group.regexes if regex not in found
        ]
        self._records += [
            records.resolved_regex(group.group_id, regex, one)
            for regex, one in found.items()
            if group.regexes.get(regex) != one
        ]
        return found

    def _shapes(self, regexes: Mapping[str, ResolvedRegex]) -> Mapping[str, TopicShape]:
        if self._is_as_before and regexes is self._group.regexes:
            names = self._group.subscribed_topic_names
        else:
            names = names_wanted(self._members.values(), regexes)
        return shapes_of(self._cluster, names)

    def _epoch(
        self,
        regexes: Mapping[str, ResolvedRegex],
        shapes: Mapping[str, TopicShape],
        *,
        is_new_epoch: bool,
    ) -> int:
        """Return the group's epoch, with the record of a new one."""
        group = self._group
        is_new_epoch = is_new_epoch or _mean_something_else(regexes, group.regexes)
        if not is_new_epoch and shapes == group.seen_shapes:
            return group.epoch
        hashed = metadata_hash(shapes)
        if not is_new_epoch and hashed == group.metadata_hash:
            return group.epoch
        self._records.append(records.group_epoch(group.group_id, group.epoch + 1, hashed))
        if group.has_partition_metadata:
            self._records.append(records.no_partition_metadata(group.group_id))
        return group.epoch + 1

    def _new_target(self, epoch: int, regexes: Mapping[str, ResolvedRegex]) -> Target:
        """Return the member's target of a new epoch, with the records of everybody's."""
        group, world = self._group, self._world
        asked_for = group.assignor_after(self._newcomer.member, self._updated)
        made = new_target(
            group, epoch, self._members, regexes, self._cluster,
            asked_for or world.default_assignor, world.now_ms,
        )  # fmt: skip
        # A target that was handed down stands in the log already, under the new id.
        self._records += made.records
        return made.targets[self._updated.member_id]


def _mean_something_else(
    now: Mapping[str, ResolvedRegex], before: Mapping[str, ResolvedRegex]
) -> bool:
    """Tell whether a pattern has other topics; of a new one, whether it has any."""
    return any(
        one.topics != (before[regex].topics if regex in before else frozenset())
        for regex, one in now.items()
    )
