"""Members of a classic group: each has what the leader gave it, and commits in its generation."""

from __future__ import annotations

from typing import Any

import attrs

from tests.compat.kafka.lives.chronicle import Place
from tests.compat.kafka.lives.clients import World, commit_offset
from tests.compat.kafka.peer import Peer

CLASSIC_GROUP = "classics"
SESSION_MS = 45_000
REBALANCE_MS = 60_000
UNKNOWN_MEMBER, ILLEGAL_GENERATION = 25, 22
REBALANCING = 27
MEMBER_ID_REQUIRED = 79
#: JoinGroup, SyncGroup, Heartbeat, LeaveGroup
_JOIN, _SYNC, _BEAT, _LEAVE = 5, 5, 4, 3


@attrs.define
class Plans:
    """What leaders gave to whom: by generation and member, everything that was ever sent."""

    sent: dict[tuple[int, str], set[bytes]] = attrs.field(factory=dict[tuple[int, str], set[bytes]])

    def send(self, generation: int, member_id: str, share: bytes) -> None:
        """Take note of a member's share; a crash may let a generation come twice."""
        self.sent.setdefault((generation, member_id), set()).add(share)


@attrs.define(eq=False)
class ClassicMember:
    """Joins, syncs, beats and commits; one request at a time, whose answer may take a while."""

    world: World
    plans: Plans
    member_id: str = ""
    generation: int = -1
    #: what it has; None until it is told
    share: list[Place] | None = None
    _peer: Peer | None = None
    #: what it waits for an answer to
    _asked: str = ""
    #: when it asked, and when it last asked something that was answered well
    _asked_ms: int = 0
    _told_ms: int = 0
    #: it may be out of the group without having been late
    _is_unsure: bool = True

    def reconnect(self) -> None:
        """What was asked of the broker before is not answered any more."""
        self._is_unsure = self._is_unsure or bool(self._asked)
        self._peer, self._asked = None, ""

    def forget(self, topic: str) -> None:
        """A member may have a partition that is gone."""
        if self.share is not None:
            self.share = [place for place in self.share if place[0] != topic]

    def act(self) -> None:
        """Do the next thing, or see whether it is answered."""
        if self._asked:
            self._look()
        elif self.share is None:
            self._join()
        elif self.world.dice.random() < 0.5:
            self._beat()
        elif self.world.dice.random() < 0.05:
            self._leave()
        else:
            self._commit()

    # joining

    def _join(self) -> None:
        self._send("JoinGroup", _JOIN, {
            "group_id": CLASSIC_GROUP, "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS, "member_id": self.member_id,
            "group_instance_id": None, "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b"\0\0"}],
        })  # fmt: skip

    def _joined(self, answer: dict[str, Any]) -> None:
        code = answer["error_code"]
        if code == MEMBER_ID_REQUIRED:
            self.member_id = answer["member_id"]
        elif code in (UNKNOWN_MEMBER, ILLEGAL_GENERATION):
            self.member_id = ""
        elif not code:
            before, self.generation = self.generation, answer["generation_id"]
            assert self._is_unsure or self.generation > before, f"{self.generation} after {before}"
            self.member_id = answer["member_id"]
            shares: list[tuple[str, bytes]] = []
            if answer["leader"] == self.member_id:
                shares = self._divided([one["member_id"] for one in answer["members"]])
            self._sync(shares)

    def _divided(self, member_ids: list[str]) -> list[tuple[str, bytes]]:
        places = self.world.chronicle.places()
        found: list[tuple[str, bytes]] = []
        for index, member_id in enumerate(member_ids):
            mine = places[index :: len(member_ids)]
            share = b" ".join(b"%s/%d" % (topic.encode(), number) for topic, number in mine)
            self.plans.send(self.generation, member_id, share)
            found.append((member_id, share))
        return found

    def _sync(self, shares: list[tuple[str, bytes]]) -> None:
        self._send("SyncGroup", _SYNC, {
            "group_id": CLASSIC_GROUP, "generation_id": self.generation,
            "member_id": self.member_id, "group_instance_id": None,
            "protocol_type": "consumer", "protocol_name": "range",
            "assignments": [{"member_id": one, "assignment": share} for one, share in shares],
        })  # fmt: skip

    def _synced(self, answer: dict[str, Any]) -> None:
        if answer["error_code"]:
            self._go_out(answer["error_code"])
            return
        share = answer["assignment"]
        sent = self.plans.sent.get((self.generation, self.member_id), set())
        assert share in sent, f"{self.member_id} has {share}, which no leader gave it: {sent}"
        places = [one.rpartition(b"/") for one in share.split()]
        known = self.world.chronicle.partitions
        self.share = [
            place
            for topic, _, number in places
            if (place := (topic.decode(), int(number))) in known
        ]
        # A sync of a stable group is answered from what is there and does not prolong the session,
        # which began when the group became stable. So only a heartbeat tells how long there is.

    # a member

    def _beat(self) -> None:
        self._send("Heartbeat", _BEAT, {
            "group_id": CLASSIC_GROUP, "generation_id": self.generation,
            "member_id": self.member_id, "group_instance_id": None,
        })  # fmt: skip

    def _beaten(self, answer: dict[str, Any]) -> None:
        code = answer["error_code"]
        if code:
            self._check_out(code)
            self._go_out(code)
        else:
            self._is_told()

    def _leave(self) -> None:
        member = {"member_id": self.member_id, "group_instance_id": None}
        self._send("LeaveGroup", _LEAVE, {"group_id": CLASSIC_GROUP, "members": [member]})

    def _left(self, answer: dict[str, Any]) -> None:
        del answer
        self._go_out(UNKNOWN_MEMBER)

    def _commit(self) -> None:
        world = self.world
        if not self.share:
            return
        place, offset = world.dice.choice(self.share), world.dice.randrange(1000)
        member = self.member_id, self.generation
        code = commit_offset(world, CLASSIC_GROUP, place, offset, member)
        if code:
            self._check_out(code)
        else:
            self._told_ms = world.now_ms()

    # what the steps are made of

    def _send(self, api: str, version: int, fields: dict[str, Any]) -> None:
        if self._peer is None:
            self._peer = Peer(self.world.broker)
        self._asked, self._asked_ms = api, self.world.now_ms()
        self._peer.send(api, version, fields)
        self._look()

    def _look(self) -> None:
        assert self._peer is not None
        for answer in self._peer.answers():
            asked, self._asked = self._asked, ""
            taken = {
                "JoinGroup": self._joined, "SyncGroup": self._synced,
                "Heartbeat": self._beaten, "LeaveGroup": self._left,
            }  # fmt: skip
            taken[asked](answer.message)

    def _is_told(self) -> None:
        self._told_ms, self._is_unsure = self._asked_ms, False

    def _check_out(self, code: int) -> None:
        """A member that is alive is not thrown out; that others join it may be told."""
        is_late = self.world.now_ms() - self._told_ms >= SESSION_MS
        is_out = code in (UNKNOWN_MEMBER, ILLEGAL_GENERATION)
        assert not is_out or is_late or self._is_unsure, (
            f"{self.member_id} in generation {self.generation} is thrown out: {code}"
        )

    def _go_out(self, code: int) -> None:
        """Join again, as whoever it was or, if nobody knows it, as somebody else."""
        self.share, self._is_unsure = None, True
        if code == UNKNOWN_MEMBER:
            self.member_id, self.generation = "", -1
