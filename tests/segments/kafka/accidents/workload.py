"""The scripted life of a store: everything that changes files happens in it at least once."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.segments.kafka.compression import Codec
from logstore.testing import SimulatedHost
from tests.segments.kafka.accidents.witnessed_store import StoreTestimony, WitnessedStore

SMALL = {
    "internal.segment.bytes": "420",
    "index.interval.bytes": "100",
    "segment.index.bytes": "240",
    "file.delete.delay.ms": "1000",
}
PLAIN = {**SMALL, "retention.bytes": "900", "retention.ms": "-1"}
MONEY = {**SMALL, "retention.ms": "-1"}
KEYED = {**SMALL, "cleanup.policy": "compact", "min.compaction.lag.ms": "0"}
#: transactional producers
ONE, TWO = 1, 2


class Workload:
    """Does the script on a host; `testimony` is right at every moment of it."""

    def __init__(self, host: SimulatedHost) -> None:
        self.host = host
        self.testimony = StoreTestimony()
        self.number = 0

    def run(self) -> None:
        """Live."""
        store = WitnessedStore(self.host, self.testimony)
        self.create(store)
        self.append_and_roll(store)
        self.transact(store)
        store.checkpoint()
        self.compact(store)
        self.give_up(store)
        store.stop()
        store.start()
        self.truncate(store)
        self.change_topics(store)
        self.transact(store)
        store.flush("plain", 1)
        store.stop()

    def values(self, count: int, keys: int = 3) -> Iterator[tuple[bytes, bytes]]:
        """Yield records that no other batch has."""
        for _ in range(count):
            self.number += 1
            yield b"key-%d" % (self.number % keys), b"value %d" % self.number

    def create(self, store: WitnessedStore) -> None:
        """Create topics, and write before the first flush."""
        store.create("plain", 2, PLAIN)
        store.create("money", 1, MONEY)
        store.create("empty", 1, SMALL)
        store.append("plain", 0, self.values(2))
        store.take_producer_ids()

    def append_and_roll(self, store: WitnessedStore) -> None:
        """Append with flushes in between, over several segments, with a change of leader."""
        for turn in range(4):
            codec = Codec.GZIP if turn % 2 else Codec.NONE
            store.append("plain", 0, self.values(3), codec=codec)
            store.append("plain", 0, self.values(1), producer_id=7)
            store.append("plain", 1, self.values(2), producer_id=7)
            if turn == 1:
                store.become_leader("plain", 0, 3)
                store.flush("plain", 0)
            if turn == 2:
                store.checkpoint()
                self.host.clock.advance(500)
        store.flush("plain", 0)

    def transact(self, store: WitnessedStore) -> None:
        """Two transactions beside each other, one aborted across a roll, one left open."""
        store.append("money", 0, self.values(2), producer_id=ONE, is_transactional=True)
        store.append("money", 0, self.values(1))
        store.append("money", 0, self.values(2), producer_id=TWO, is_transactional=True)
        store.end_transaction("money", 0, ONE, is_commit=True)
        store.append("money", 0, self.values(3), producer_id=TWO, is_transactional=True)
        store.flush("money", 0)
        store.end_transaction("money", 0, TWO, is_commit=False)
        store.append("money", 0, self.values(1))
        store.append("money", 0, self.values(1), producer_id=ONE, is_transactional=True)
        store.end_transaction("money", 0, ONE, is_commit=False)
        store.append("money", 0, self.values(1), producer_id=TWO, is_transactional=True)
        store.flush("money", 0)
        store.end_transaction("money", 0, TWO, is_commit=True)

    def compact(self, store: WitnessedStore) -> None:
        """Write few keys often, let the cleaner run, write on."""
        store.create("keyed", 1, KEYED)
        for turn in range(4):
            codec = Codec.LZ4 if turn == 1 else Codec.NONE
            store.append("keyed", 0, self.values(3), codec=codec)
            store.append("keyed", 0, self.values(2), producer_id=ONE, is_transactional=True)
            store.end_transaction("keyed", 0, ONE, is_commit=turn != 2)
        store.append("keyed", 0, [(b"key-0", None)])
        store.flush("keyed", 0)
        partition = store.partition("keyed", 0)[0]
        before = len(partition.log.segments)
        store.configure("keyed", {**KEYED, "internal.segment.bytes": "2000"})
        assert store.compact("keyed", 0) < before, "nothing was compacted"
        self.host.clock.advance(1500)
        store.store.purge()
        store.append("keyed", 0, self.values(1))
        store.flush("keyed", 0)

    def give_up(self, store: WitnessedStore) -> None:
        """Delete records, then old segments, then their files."""
        partition = store.partition("plain", 0)[0]
        store.delete_records("plain", 0, partition.log.segments.peekitem(1)[0] + 1)
        store.checkpoint()
        assert store.retain(), "nothing was given up"
        store.append("plain", 0, self.values(1))
        self.host.clock.advance(1500)
        store.store.purge()

    def truncate(self, store: WitnessedStore) -> None:
        """Cut within a segment, then across segments and transactions; append after each cut."""
        log = store.partition("plain", 0)[0].log
        last = [batch.base_offset for batch in log.active.entries()]
        store.truncate("plain", 0, last[-1])
        store.append("plain", 0, self.values(2))
        log = store.partition("money", 0)[0].log
        inner = list(log.segments.values()[-2].entries())
        store.truncate("money", 0, inner[-1].base_offset)
        store.append("money", 0, self.values(1))
        store.flush("money", 0)

    def change_topics(self, store: WitnessedStore) -> None:
        """Grow, change, delete and create anew; write to all of it."""
        store.create("short", 1, SMALL)
        store.append("short", 0, self.values(2))
        store.flush("short", 0)
        store.grow("plain", 3)
        store.append("plain", 2, self.values(2))
        store.flush("plain", 2)
        store.configure("plain", {**PLAIN, "max.message.bytes": "2000"})
        store.delete("short")
        self.host.clock.advance(1500)
        store.store.purge()
        store.create("short", 1, {**SMALL, "retention.ms": "5000"})
        store.append("short", 0, self.values(1))
        store.flush("short", 0)
