"""Who sends half messages, and says what becomes of them: at once, when asked, or never before."""

from __future__ import annotations

import attrs
import orjson

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from tests.compat.rocketmq.broker_peer import decoded
from tests.compat.rocketmq.frames import Answer
from tests.compat.rocketmq.lives.chronicle import Kind, Outcome, Place, Sent
from tests.compat.rocketmq.lives.senders import Sender

#: a broker hangs up on clients of which it has not heard for two minutes
BEAT_INTERVAL_MS = 60_000
_HALF_FLAG, _COMMIT, _ROLLBACK = 4, 8, 12
GROUP = "producers"


@attrs.define
class TransactionalSender(Sender):
    """Sends half messages, ends some, and answers the broker's questions about the others."""

    #: half messages that stand in the log, of which nothing was said yet
    open: list[Sent] = attrs.field(factory=list[Sent])

    def reconnect(self) -> None:
        """Say who is here; half messages of before are the broker's to ask about."""
        self.peer = self.world.peer()
        self.open = []
        self.beat()

    def beat(self) -> None:
        """Say that it is still there."""
        beat = {"clientID": "c1", "producerDataSet": [{"groupName": GROUP}]}
        self.peer.send(RequestCode.HEART_BEAT, {}, orjson.dumps(beat))

    def act(self) -> None:
        """Send a half message, end one, or answer what the broker has asked."""
        self.answer_questions()
        dice = self.world.dice
        if self.open and dice.random() < 0.5:
            sent = self.open.pop(dice.randrange(len(self.open)))
            if dice.random() < 0.8:  # else it waits for the question
                self._decide(sent)
                self._end(sent, sent.queue_offset, sent.physical_offset, is_checked=False)
            return
        place = self.world.place(may_be_batch=False)
        if place is not None:
            self.send(self.drawn(place), f=_HALF_FLAG)

    def drawn(self, place: Place) -> Sent:
        """Return a half message."""
        return self.world.message(place, Kind.HALF, TRAN_MSG="true", PGROUP=GROUP)

    def told(self, sent: Sent, answer: Answer) -> None:
        """Take note of where a half message stands."""
        super().told(sent, answer)
        if sent.is_told:
            self.open.append(sent)

    def answer_questions(self, *, is_last: bool = False) -> None:
        """Say of everything that was asked what becomes of it; now and then nothing."""
        for asked in self.peer.told(RequestCode.CHECK_TRANSACTION_STATE):
            (half,) = decoded(asked.body)
            sent = self.world.chronicle.sent.get(bytes(half.body))
            if sent is None:  # of a topic that is gone
                continue
            if not is_last and self.world.dice.random() < 0.3:
                continue
            self._decide(sent)
            fields = asked.fields or {}
            self._end(sent, int(fields["tranStateTableOffset"]), int(fields["commitLogOffset"]),
                      is_checked=True)  # fmt: skip

    def _decide(self, sent: Sent) -> None:
        if sent.outcome is Outcome.OPEN:
            is_commit = self.world.dice.random() < 0.6
            sent.outcome = Outcome.COMMIT if is_commit else Outcome.ROLLBACK

    def _end(
        self, sent: Sent, queue_offset: int, physical_offset: int, *, is_checked: bool
    ) -> None:
        is_commit = sent.outcome is Outcome.COMMIT
        sent.commit_count += is_commit
        fields = {
            "producerGroup": GROUP, "tranStateTableOffset": queue_offset,
            "commitLogOffset": physical_offset,
            "commitOrRollback": _COMMIT if is_commit else _ROLLBACK,
            "fromTransactionCheck": str(is_checked).lower(), "msgId": sent.unique_key,
        }  # fmt: skip

        def ended(answer: Answer) -> None:
            if is_commit and answer.code == ResponseCode.SUCCESS:
                sent.commit_log_end = self.world.log_end

        self.world.ask(self.peer, RequestCode.END_TRANSACTION, fields, b"", ended)
