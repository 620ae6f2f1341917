"""Everything that can be read of a broker, held against the chronicle."""

from __future__ import annotations

import random

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode
from tests.compat.rocketmq.lives.chronicle import Chronicle, Kind, Place, Sent
from tests.compat.rocketmq.lives.reader import Reader, Seen

#: how many messages one audit looks up by id and by key
_SAMPLE = 12


class Audit:
    """One look at a broker; `seen` are the bodies in all queues of each topic that is known."""

    def __init__(self, broker: Broker, chronicle: Chronicle, dice: random.Random) -> None:
        #: else a crash costs entries of the last index file, in Java too
        self._is_index_kept = broker.store.config.boolean("messageIndexSafe")
        self._broker = broker
        self._chronicle = chronicle
        self._dice = dice
        self._reader = Reader(broker, dice)
        self.log_start: int = broker.store.commit_log.min_physical_offset
        self.seen: dict[str, list[bytes]] = {}

    def run(self, *, is_after_crash: bool = False) -> None:
        """Look at everything."""
        chronicle, topics = self._chronicle, self._broker.topics
        for topic in chronicle.topics():
            assert topics.get(topic) is not None, f"topic {topic} is lost"
        for topic in chronicle.deleted:
            assert topics.get(topic) is None, f"topic {topic} is back"
        for place in sorted(chronicle.places):
            found = self._reader.read(*place)
            chronicle.check(place, self.log_start, found)
            self._check_time(place, found)
            self.seen.setdefault(place[0], []).extend(one.body for one in found)
        for key, truth in chronicle.offsets.items():
            committed = self._reader.committed(*key)
            is_right = truth.go_back(committed) if is_after_crash else committed == truth.newest
            assert is_right, f"{key}: {committed} is committed, and not {truth}"
        self.check_given_back()
        told = [
            one for one in chronicle.sent.values()
            if one.kind is Kind.PLAIN and one.must_be_seen(self.log_start)
        ]  # fmt: skip
        if not self._is_index_kept:
            told = [one for one in told if one.troubles == chronicle.troubles]
        for sent in self._dice.sample(told, min(len(told), _SAMPLE)) + told[-3:]:
            self._look_up(sent)

    def _check_time(self, place: Place, seen: list[Seen]) -> None:
        """Ask for the first message from some time on."""
        if not seen or place[0] in self._chronicle.batch_topics:
            return
        if self._chronicle.has_gone_back:
            return  # a search by halves wants times that go up, in Java too
        wanted = self._dice.choice(seen).stored_ms
        asked = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        found = self._reader.offset(asked, *place, timestamp=wanted)
        first = next(one.queue_offset for one in seen if one.stored_ms >= wanted)
        assert found == first, f"{place}: {wanted} is at {first}, not {found}"

    def check_given_back(self, *, is_settled: bool = False) -> None:
        """
        What consumers gave back stands in their retry topic or among the dead letters.

        Once all time has passed, `is_settled`, all of it does, but what a crash may have cost its
        properties: it does not say then where it belongs, and Java, too, passes by it.
        """
        groups = sorted({group for group, _ in self._chronicle.given_back})
        for group in groups:
            there: list[bytes] = []
            for topic in (f"%RETRY%{group}", f"%DLQ%{group}"):
                if self._broker.topics.get(topic) is not None:
                    there += [one.body for one in self._reader.read(topic, 0)]
            for body in set(there):
                assert (group, body) in self._chronicle.given_back, f"{group}: {body!r} is strange"
            for (owner, body), told in self._chronicle.given_back.items():
                whole = [end for end in told[1:] if not self._chronicle.may_be_torn(end - 1)]
                if is_settled and owner == group and whole and not self.log_start:
                    assert body in there, f"{group}: {body!r} was given back, and never came"

    def _look_up(self, sent: Sent) -> None:
        """Find a message by its id, and by its keys if a crash cannot have cost it those."""
        found = self._reader.at(sent.physical_offset)
        assert found is not None, f"{sent} is not where its id says"
        assert (found.body, found.queue_offset) == (sent.body, sent.queue_offset), f"{sent}"
        if self._chronicle.may_be_torn(sent.physical_offset):
            return
        keys = [sent.unique_key, *sent.properties.get("KEYS", "").split()[:1]]
        for key in keys:
            bodies = [one.body for one in self._reader.by_key(sent.place[0], key)]
            assert sent.body in bodies, f"{sent} is not in the index under {key}"
