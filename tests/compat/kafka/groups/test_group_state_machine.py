"""One group under random members, time, full disks and restarts, against what must always hold."""

from __future__ import annotations

from functools import partial

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
)

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.exchange import Join, Joined, MemberIdentity, Synced
from logstore.compat.kafka.groups.states import GroupState
from logstore.compat.waiting import Later
from tests.compat.kafka.groups.rehearsal import GROUP, REBALANCE_MS, SESSION_MS, Rehearsal

NONE = ErrorCode.NONE
TOPICS = st.sampled_from([("t",), ("t", "u")])
NAMES = st.sampled_from([("range",), ("range", "sticky"), ("sticky", "range")])
INSTANCES = st.sampled_from([None, None, "red", "blue"])


@attrs.define(eq=False)
class Actor:
    """A client as it sees itself: what it was told last, and what it waits for."""

    instance: str | None
    member_id: str = ""
    generation_id: int = -1
    is_leader: bool = False
    told_members: tuple[str, ...] = ()


class GroupMachine(RuleBasedStateMachine):
    """Members come, go, forget and repeat themselves; the group must keep its promises."""

    actors = Bundle("actors")

    def __init__(self) -> None:
        super().__init__()
        self.stage = Rehearsal()
        self.generation_seen = 0
        #: who was told to lead, and which sharing-out was told, by generation
        self.leader_of: dict[int, str] = {}
        self.sharing_of: dict[int, bytes] = {}
        self.sharings = 0
        self.offsets: dict[tuple[str, int], int] = {}
        #: requests that nobody has answered yet, the newest of each member id
        self.open: dict[tuple[str, str], Later[Joined] | Later[Synced]] = {}

    # members

    @rule(target=actors, instance=INSTANCES, names=NAMES, topics=TOPICS, must=st.booleans())
    def come(
        self, instance: str | None, names: tuple[str, ...], topics: tuple[str, ...], must: bool
    ) -> Actor:
        """A client without an id joins; one of a known instance takes its place."""
        actor = Actor(instance)
        self._join(
            actor,
            self.stage.asked_join(
                instance=instance, names=names, topics=topics, must_know_member_id=must
            ),
        )
        return actor

    @rule(actor=actors, names=NAMES, topics=TOPICS)
    def come_again(self, actor: Actor, names: tuple[str, ...], topics: tuple[str, ...]) -> None:
        """A client joins with the id that it has, changed or not."""
        self._join(
            actor,
            self.stage.asked_join(
                actor.member_id, instance=actor.instance, names=names, topics=topics
            ),
        )

    @rule(actor=actors)
    def sync(self, actor: Actor) -> None:
        """A client asks for its share; if it leads, it brings shares that it numbers."""
        shares: dict[str, bytes] = {}
        if actor.is_leader:
            self.sharings += 1
            shares = dict.fromkeys(actor.told_members, b"%d" % self.sharings)
        joined = Joined(NONE, actor.member_id, actor.generation_id)
        later = self.stage.sync(joined, shares, group_instance_id=actor.instance)
        self._expect("sync", actor.member_id, later)
        later.then(partial(self._synced, actor.generation_id))

    @rule(actor=actors)
    def heartbeat(self, actor: Actor) -> None:
        """A client says that it is alive."""
        joined = Joined(NONE, actor.member_id, actor.generation_id)
        error = self.stage.heartbeat(joined, actor.instance)
        is_current = actor.generation_id == self._generation() and self._is_member(actor)
        assert (error in (NONE, ErrorCode.REBALANCE_IN_PROGRESS)) == is_current

    @rule(actor=consumes(actors))
    def leave(self, actor: Actor) -> None:
        """A client leaves; afterwards its id is worth nothing."""
        self.stage.groups.leave(GROUP, [MemberIdentity(actor.member_id, actor.instance)])
        assert not self._is_member(actor)

    @rule(actor=actors, offset=st.integers(0, 99), partition=st.integers(0, 2))
    def commit(self, actor: Actor, offset: int, partition: int) -> None:
        """A client commits an offset; it counts exactly if it was told so."""
        (error,) = self.stage.commit(
            ("t", partition),
            offset=offset,
            member_id=actor.member_id,
            generation_id=actor.generation_id,
            group_instance_id=actor.instance,
        )
        if error is NONE:
            self.offsets["t", partition] = offset

    # the world

    @rule(delay_ms=st.sampled_from([1, 1_000, 3_000, SESSION_MS, REBALANCE_MS]))
    def wait(self, delay_ms: int) -> None:
        """Time passes."""
        self.stage.wait(delay_ms)

    @rule(is_full=st.booleans())
    def fill(self, is_full: bool) -> None:
        """The disk fills up, or has room again."""
        self.stage.log.is_full = is_full

    @precondition(lambda self: not self.stage.log.is_full)
    @rule()
    def restart(self) -> None:
        """The broker crashes: what waits is lost, what was acknowledged is not."""
        self.stage.restart()
        self.open.clear()
        self.generation_seen = self._generation_kept()
        assert self.generation_seen >= max(self.sharing_of, default=0), "told, but not kept"
        # A generation that was never shared out is not in the log, so its number comes again.
        for told in (self.leader_of, self.sharing_of):
            for generation in [one for one in told if one > self.generation_seen]:
                del told[generation]

    # what must hold

    @invariant()
    def offsets_are_what_was_acknowledged(self) -> None:
        """Every acknowledged commit can be fetched, and nothing else."""
        _, found = self.stage.groups.fetch_offsets(GROUP, None)
        assert {key: one.offset for key, one in found.items() if one is not None} == self.offsets

    @invariant()
    def the_generation_never_goes_back(self) -> None:
        """Within the life of a group, generations only grow; one removed for being empty ends."""
        if GROUP not in self.stage.groups.groups:
            assert all(later.done for later in self.open.values())
            assert self.offsets == {}
            self.generation_seen = 0
            self.leader_of.clear()
            self.sharing_of.clear()
        assert self._generation() >= self.generation_seen
        self.generation_seen = self._generation()

    @invariant()
    def the_state_fits_the_members(self) -> None:
        """Nobody is in an empty group, somebody in others, and one of them leads."""
        group = self.stage.groups.groups.get(GROUP)
        if group is None:
            return
        roster = group.roster
        if group.state is GroupState.EMPTY:
            assert len(roster) == 0
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            assert len(roster) > 0
            assert group.protocol_name is not None
        members: list[str | None] = [member.member_id for member in roster]
        assert roster.leader_id in (members or [None])
        assert roster.pending_syncs <= set(members)

    @invariant()
    def nobody_waits_in_the_wrong_state(self) -> None:
        """Joins wait only while the members come together, syncs only for the leader's shares."""
        group = self.stage.groups.groups.get(GROUP)
        for member in group.roster if group else ():
            assert group is not None
            if member.awaiting_join is not None:
                assert group.state is GroupState.PREPARING_REBALANCE
            if member.awaiting_sync is not None:
                assert group.state is GroupState.COMPLETING_REBALANCE
            is_watched = member.session_timer is not None and member.session_timer.is_pending
            assert is_watched or member.is_excused

    def teardown(self) -> None:
        """Left alone for long enough, everyone is answered and the group is empty."""
        self.stage.log.is_full = False
        self.stage.wait(SESSION_MS + 2 * REBALANCE_MS + 300_000)
        group = self.stage.groups.groups.get(GROUP)
        assert group is None or group.state is GroupState.EMPTY
        assert [key for key, later in self.open.items() if not later.done] == []

    # what the rules are made of

    def _generation_kept(self) -> int:
        group = self.stage.groups.groups.get(GROUP)
        return 0 if group is None else group.generation_id

    def _generation(self) -> int:
        group = self.stage.groups.groups.get(GROUP)
        return self.generation_seen if group is None else group.generation_id

    def _is_member(self, actor: Actor) -> bool:
        group = self.stage.groups.groups.get(GROUP)
        return group is not None and group.roster.check(actor.member_id, actor.instance) is NONE

    def _expect(self, kind: str, member_id: str, later: Later[Joined] | Later[Synced]) -> None:
        # A repeated request takes the place of the one before, whose connection is gone.
        self.open[kind, member_id or str(id(later))] = later

    def _join(self, actor: Actor, join: Join) -> None:
        later = self.stage.groups.join(join)
        self._expect("join", join.member_id, later)
        later.then(partial(self._joined, actor))

    def _joined(self, actor: Actor, joined: Joined) -> None:
        actor.member_id = joined.member_id or actor.member_id
        if joined.error_code is not NONE:
            return
        actor.generation_id = joined.generation_id
        is_told_to_lead = joined.leader_id == joined.member_id
        assert is_told_to_lead == bool(joined.members)
        actor.is_leader = is_told_to_lead and not joined.can_skip_assignment
        actor.told_members = tuple(one.member_id for one in joined.members)
        if is_told_to_lead:
            assert joined.member_id in actor.told_members
        if actor.is_leader:
            leader = self.leader_of.setdefault(joined.generation_id, joined.member_id)
            assert leader == joined.member_id, "two members were told to lead one generation"

    def _synced(self, generation_id: int, synced: Synced) -> None:
        if synced.error_code is NONE and synced.assignment:
            sharing = self.sharing_of.setdefault(generation_id, synced.assignment)
            assert sharing == synced.assignment, "two sharings-out were told in one generation"


TestGroup = GroupMachine.TestCase
TestGroup.settings = settings(stateful_step_count=60)
