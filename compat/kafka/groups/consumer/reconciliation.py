"""
One step of a member towards what it shall have: give back first, get afterwards.

::

                    must give something back
        Stable ------------------------------> Unrevoked partitions
          | ^                                         |
          | |  others have let go                     |  has let go
          v |                                         v
      Unreleased partitions <---------- nothing to give back: gets what is free

A member stays in its epoch until it has given back what it must, and is in the target's epoch as
soon as it has; what others still hold it gets later, in the same epoch.

Source: ``CurrentAssignmentBuilder``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.member import ConsumerMember, HeldPartitions
from logstore.compat.kafka.groups.modern.group import Target, TopicIdPartition
from logstore.compat.kafka.groups.modern.member import MemberState
from logstore.compat.kafka.refused_request import RefusedRequestError

_Held = dict[uuid.UUID, dict[int, int]]


@attrs.frozen
class Reconciliation:
    """
    What a member's next step depends on.

    `owned` is what the member says that it has in its hands, None if it does not say;
    `owner_of` tells who has not let go of a partition. A member reads nothing that it is not
    subscribed to, even if the target is not worked out anew yet.
    """

    target: Target
    target_epoch: int
    subscribed_topic_ids: frozenset[uuid.UUID]
    has_subscription_changed: bool
    owned: frozenset[TopicIdPartition] | None
    owner_of: Callable[[TopicIdPartition], str | None]

    def next_of(self, member: ConsumerMember) -> ConsumerMember:
        """
        Return the member after the step, the same one if there is none to take.

        Raises:
            RefusedRequestError: 110, a newer broker left it in a state that nobody knows here.

        """
        state = member.state
        if state is MemberState.UNKNOWN:
            if self.owned is None or self.owned:
                raise RefusedRequestError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "the member is in an unknown state; it must give up all partitions and rejoin",
                )
            return self._advanced(attrs.evolve(member, member_epoch=self.target_epoch))
        is_waiting = state is MemberState.UNREVOKED_PARTITIONS and self._owns_any(
            member.pending_revocation
        )
        is_there = state is MemberState.STABLE and member.member_epoch == self.target_epoch
        if not (is_waiting or is_there):
            return self._advanced(member)
        return self._without_unsubscribed(member) if self.has_subscription_changed else member

    def _owns_any(self, held: HeldPartitions) -> bool:
        if self.owned is None:
            return True
        return any(index in held.get(topic_id, {}) for topic_id, index in self.owned)

    def _without_unsubscribed(self, member: ConsumerMember) -> ConsumerMember:
        wanted = self.subscribed_topic_ids
        kept = {it: parts for it, parts in member.assigned.items() if it in wanted}
        if len(kept) == len(member.assigned):
            return member
        revoked: _Held = {it: dict(parts) for it, parts in member.pending_revocation.items()}
        for topic_id, partitions in member.assigned.items():
            if topic_id not in wanted:
                revoked.setdefault(topic_id, {}).update(partitions)
        if not self._owns_any(revoked):
            return attrs.evolve(member.in_epoch(member.member_epoch), assigned=kept)
        return attrs.evolve(
            member.in_epoch(member.member_epoch),
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=kept,
            pending_revocation=revoked,
        )

    def _advanced(self, member: ConsumerMember) -> ConsumerMember:
        kept, revoked = self._kept_and_revoked(member.assigned)
        if revoked and self._owns_any(revoked):
            return attrs.evolve(
                member.in_epoch(member.member_epoch),
                state=MemberState.UNREVOKED_PARTITIONS,
                assigned=kept,
                pending_revocation=revoked,
            )
        is_complete = self._give(member, kept)
        return attrs.evolve(
            member.in_epoch(self.target_epoch),
            state=MemberState.STABLE if is_complete else MemberState.UNRELEASED_PARTITIONS,
            assigned=kept,
            pending_revocation={},
        )

    def _wanted(self, topic_id: uuid.UUID) -> frozenset[int]:
        if topic_id not in self.subscribed_topic_ids:
            return frozenset()
        return self.target.get(topic_id, frozenset())

    def _kept_and_revoked(self, assigned: HeldPartitions) -> tuple[_Held, _Held]:
        kept: _Held = {}
        revoked: _Held = {}
        for topic_id, partitions in assigned.items():
            wanted = self._wanted(topic_id)
            for index, epoch in partitions.items():
                side = kept if index in wanted else revoked
                side.setdefault(topic_id, {})[index] = epoch
        return kept, revoked

    def _give(self, member: ConsumerMember, kept: _Held) -> bool:
        """Add what is free to `kept`; return whether that is all that was missing."""
        is_complete = True
        for topic_id in self.target:
            has: Mapping[int, int] = kept.get(topic_id, {})
            for index in sorted(self._wanted(topic_id) - has.keys()):
                owner = self.owner_of((topic_id, index))
                is_own = index in member.pending_revocation.get(topic_id, {})
                if owner is None or is_own:
                    kept.setdefault(topic_id, {})[index] = self.target_epoch
                else:
                    is_complete = False
        return is_complete
