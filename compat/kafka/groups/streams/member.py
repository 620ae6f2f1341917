"""One member of a streams group: what it runs, what it has and what it must give back."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.compat.kafka.groups.modern_group import JOINING
from logstore.compat.kafka.groups.streams.states import MemberState
from logstore.compat.kafka.groups.streams.tasks import HeldTasks
from logstore.segments.kafka.internal_topics.streams_group import Endpoint


@attrs.frozen
class StreamsMember:
    """
    A member as it is after the records that were applied; a change is a new one.

    Members of one process share its `process_id` and its disk: it never has a task twice.
    `instance_id` is that of a static member, of which release 4.3 lets nobody be one.
    Source: ``StreamsGroupMember``.
    """

    member_id: str
    member_epoch: int = JOINING
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    #: where it answers interactive queries
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = attrs.field(factory=dict[str, str])
    assigned: HeldTasks = attrs.field(factory=HeldTasks)
    pending_revocation: HeldTasks = attrs.field(factory=HeldTasks)

    def in_epoch(self, epoch: int) -> StreamsMember:
        """Return it in another epoch, the one before noted."""
        return attrs.evolve(self, member_epoch=epoch, previous_member_epoch=self.member_epoch)

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Tell whether it has come as far as the target assignment."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch
