"""A well-behaved member of a streams group, without the application."""

from __future__ import annotations

from typing import Any

from logstore.compat.kafka.groups.streams.messages import DescribedGroup, Topology
from logstore.segments.kafka.internal_topics.streams_group import TaskIds
from tests.interop.eventually import eventually
from tests.interop.streams_wire import StreamsWire, joining, owned

SECONDS_MAX = 60


class RawStreamsMember:
    """A member that has what it is told to have, and says so."""

    def __init__(self, group: str, member_id: str, told: Topology, process: str = "") -> None:
        self.group = group
        self.member_id = member_id
        self.epoch = 0
        self.active: tuple[TaskIds, ...] = ()
        self.standby: tuple[TaskIds, ...] = ()
        self._topology = told
        self._process = process or f"process-{member_id}"

    def live(self, wire: StreamsWire) -> bool:
        """Say that the member lives; tell whether there is nothing that it waits for."""
        fields: dict[str, Any] = owned(self.active, self.standby)
        if self.epoch == 0:
            fields = joining(self._topology, self._process)
        answer = wire.live(self.group, self.member_id, self.epoch, **fields)
        assert answer.error_code == 0, answer
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.active, self.standby = answer.active_tasks, answer.standby_tasks or ()
        return not answer.status

    def leave(self, wire: StreamsWire) -> None:
        """Leave for good."""
        assert wire.live(self.group, self.member_id, -1).error_code == 0
        self.epoch, self.active, self.standby = 0, (), ()


def rested(wire: StreamsWire, *members: RawStreamsMember) -> DescribedGroup:
    """Let members live until nothing moves any more; return their group as it is described."""

    def is_at_rest() -> list[DescribedGroup]:
        waiting = [member for member in members if not member.live(wire)]
        (group,) = wire.describe_streams(members[0].group)
        is_whole = all(member.assignment == member.target_assignment for member in group.members)
        return [group] if not waiting and is_whole and group.group_state == "Stable" else []

    return eventually(is_at_rest, what="a stable group", seconds=SECONDS_MAX)[0]
