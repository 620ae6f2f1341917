"""The members of one group: their order, their leader, and what they have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.member import Member
from logstore.compat.kafka.groups.modern.hash_order import members_in_order
from logstore.compat.waiting import Timer


class Roster:
    """
    Members in the order in which they came; the first is the leader until it is gone.

    Whoever is told of them, or follows as leader, is chosen in the order of Kafka's own table.

    Source: the member part of ``ClassicGroup``.
    """

    def __init__(self) -> None:
        self.leader_id: str | None = None
        #: ids that were handed out but have not come back yet, with the time when they lapse
        self.pending_joins: dict[str, Timer] = {}
        #: who is in the generation but has not asked for its share yet
        self.pending_syncs: set[str] = set()
        self._members: dict[str, Member] = {}
        self._member_id_of_instance: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._members.values()))

    def in_order(self) -> list[Member]:
        """Return the members as Kafka walks them."""
        return [self._members[member_id] for member_id in members_in_order(self._members)]

    def __contains__(self, member_id: object) -> bool:
        return member_id in self._members

    def __getitem__(self, member_id: str) -> Member:
        return self._members[member_id]

    def member_id_of(self, group_instance_id: str | None) -> str | None:
        """Return which member id an instance has now."""
        if group_instance_id is None:
            return None
        return self._member_id_of_instance.get(group_instance_id)

    def add(self, member: Member) -> None:
        """Take a member in; the first one leads."""
        instance_id = member.group_instance_id
        assert member.member_id not in self._members, f"{member.member_id} is in already"
        if instance_id is not None:
            assert instance_id not in self._member_id_of_instance, f"{instance_id} is in already"
            self._member_id_of_instance[instance_id] = member.member_id
        self._members[member.member_id] = member
        self.leader_id = self.leader_id or member.member_id
        self.drop_pending(member.member_id)

    def remove(self, member_id: str) -> Member | None:
        """Take a member (or a pending id) out; the first one left in order leads instead."""
        self.drop_pending(member_id)
        self.pending_syncs.discard(member_id)
        member = self._members.pop(member_id, None)
        if member is None:
            return None
        if member.group_instance_id is not None:
            del self._member_id_of_instance[member.group_instance_id]
        if member.session_timer is not None:
            member.session_timer.cancel()
        if self.leader_id == member_id:
            self.leader_id = next(iter(members_in_order(self._members)), None)
        return member

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member that came back its new id; a leader stays the leader."""
        instance_id = member.group_instance_id
        assert instance_id is not None, "only static members change their id"
        del self._members[member.member_id]
        if self.leader_id == member.member_id:
            self.leader_id = member_id
        if member.member_id in self.pending_syncs:
            self.pending_syncs.remove(member.member_id)
            self.pending_syncs.add(member_id)
        member.member_id = member_id
        self._members[member_id] = member
        self._member_id_of_instance[instance_id] = member_id

    def drop_pending(self, member_id: str) -> None:
        """Forget a handed out id; fine if there is none."""
        timer = self.pending_joins.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    @property
    def awaiting_join_count(self) -> int:
        """How many members wait for the next generation."""
        return sum(member.awaiting_join is not None for member in self._members.values())

    @property
    def has_all_joined(self) -> bool:
        """Tell whether nobody is missing, not even one that holds a fresh id."""
        return not self.pending_joins and self.awaiting_join_count == len(self._members)

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the slowest member may take to come back; 0 without members."""
        return max((member.rebalance_timeout_ms for member in self._members.values()), default=0)

    def check(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Return NONE if this is a member under its current id, else what to tell it."""
        if group_instance_id is not None:
            current_id = self._member_id_of_instance.get(group_instance_id)
            if current_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in self._members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader is one who has joined; False if nobody has."""
        if self.leader_id is None:
            return False
        if self._members[self.leader_id].awaiting_join is not None:
            return True
        for member in self.in_order():
            if member.awaiting_join is not None:
                self.leader_id = member.member_id
                return True
        return False

    def supports_one_of(self, protocol_names: Iterable[str]) -> bool:
        """Tell whether every member can follow at least one common protocol of these."""
        counts = self._supporter_counts()
        return any(counts[name] == len(self._members) for name in protocol_names)

    def choose_protocol(self) -> str:
        """
        Return what most members like best among that which all support.

        Of several the first in Java's map of votes is taken, whoever has voted first.
        """
        counts = self._supporter_counts()
        candidates = {name for name, count in counts.items() if count == len(self._members)}
        votes = Counter(member.vote(candidates) for member in self._members.values())
        return max(members_in_order(votes), key=votes.__getitem__)

    def _supporter_counts(self) -> Counter[str]:
        return Counter(
            name
            for member in self._members.values()
            for name in {protocol.name for protocol in member.protocols}
        )
