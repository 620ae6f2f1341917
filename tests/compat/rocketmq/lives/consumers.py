"""Those who consume: they pull and commit, and give back what they could not deal with."""

from __future__ import annotations

import attrs

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from tests.compat.rocketmq.broker_peer import Peer, decoded
from tests.compat.rocketmq.frames import Answer
from tests.compat.rocketmq.lives.chronicle import OffsetTruth
from tests.compat.rocketmq.lives.world import World

#: the groups that pull
CONSUMERS = ("a", "b")


@attrs.define
class Consumer:
    """One group: pulls from where it was, commits how far it came."""

    world: World
    group: str
    peer: Peer = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.reconnect()

    def reconnect(self) -> None:
        """What it has committed the broker knows."""
        self.peer = self.world.peer()

    def act(self) -> None:
        """Pull from a queue, and commit, or give a message back."""
        world = self.world
        place = world.place(may_be_batch=False)
        if place is None:
            return
        truth = world.chronicle.offsets.setdefault((self.group, *place), OffsetTruth())
        start = max(truth.newest, 0)
        asked = self.peer.pull_fields(*place, start, self.group, sysFlag=4,
                                      maxMsgNums=world.dice.choice((1, 4, 32)))  # fmt: skip
        world.ask(self.peer, RequestCode.PULL_MESSAGE, asked, b"",
                  lambda answer: self._pulled(truth, place, answer))  # fmt: skip

    def _pulled(self, truth: OffsetTruth, place: tuple[str, int], answer: Answer) -> None:
        world = self.world
        messages = decoded(answer.body) if answer.code == ResponseCode.SUCCESS else []
        if messages and world.dice.random() < 0.4:
            one = world.dice.choice(messages)
            self._give_back(one.physical_offset, bytes(one.body))
        offset = int((answer.fields or {}).get("nextBeginOffset", -1))
        if offset < 0:
            return
        fields = {"consumerGroup": self.group, "topic": place[0], "queueId": place[1],
                  "commitOffset": offset}  # fmt: skip
        told = (world.broker.host.clock.monotonic_ms(), offset)
        truth.told.append(told)

        def committed(answer: Answer) -> None:
            if answer.code != ResponseCode.SUCCESS:
                truth.told.remove(told)

        world.ask(self.peer, RequestCode.UPDATE_CONSUMER_OFFSET, fields, b"", committed)

    def _give_back(self, physical_offset: int, body: bytes) -> None:
        """Have a message come again, or be a dead letter."""
        world = self.world
        told = world.chronicle.given_back.setdefault((self.group, body), [0])
        told[0] += 1
        fields = {"group": self.group, "offset": physical_offset, "originTopic": "",
                  "delayLevel": world.dice.choice((-1, 1, 2)), "originMsgId": "",
                  "unitMode": "false", "maxReconsumeTimes": 16}  # fmt: skip

        def taken(answer: Answer) -> None:
            if answer.code == ResponseCode.SUCCESS:
                told.append(world.log_end)

        world.ask(self.peer, RequestCode.CONSUMER_SEND_MSG_BACK, fields, b"", taken)
