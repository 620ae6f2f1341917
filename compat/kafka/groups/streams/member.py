"""One member of a streams group: what it runs, what it has and what it must give back."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.compat.kafka.groups.modern.member import GroupMember
from logstore.compat.kafka.groups.streams.states import MemberState
from logstore.compat.kafka.groups.streams.tasks import HeldTasks
from logstore.segments.kafka.internal_topics.streams_group import Endpoint


@attrs.frozen
class StreamsMember(GroupMember):
    """
    A member that is given tasks.

    Members of one process share its `process_id` and its disk: it never has a task twice.
    `instance_id` is that of a static member, of which release 4.3 lets nobody be one.
    Source: ``StreamsGroupMember``.
    """

    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    topology_epoch: int = -1
    process_id: str = ""
    #: where it answers interactive queries
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = attrs.field(factory=dict[str, str])
    assigned: HeldTasks = attrs.field(factory=HeldTasks)
    pending_revocation: HeldTasks = attrs.field(factory=HeldTasks)

    @property
    def is_giving_back(self) -> bool:
        """Tell whether it was told to give tasks back and has not done so."""
        return self.state is MemberState.UNREVOKED_TASKS

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Tell whether it has come as far as the target assignment."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch
