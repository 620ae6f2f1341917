"""A store, and a witness who knows what was put and what was made durable."""

from __future__ import annotations

import attrs

from logstore.segments.rocketmq.messages.message_batch import MessageBatchDraft
from logstore.segments.rocketmq.messages.message_draft import MessageDraft
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.testing import SimulatedHost
from tests.segments.rocketmq.drafts import batch, draft
from tests.segments.rocketmq.small_store import small_store

QUEUES = [("TopicA", 0), ("TopicA", 1), ("TopicB", 0)]


@attrs.frozen
class Put:
    """One message as it was acknowledged."""

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    next_physical_offset: int
    body: bytes


@attrs.define
class StoreTestimony:
    """What was put, in the order of the log; all below `durable` was flushed."""

    puts: list[Put] = attrs.field(factory=list[Put])
    durable: int = 0
    #: what is being put just now: it may be there or not
    in_flux: list[bytes] = attrs.field(factory=list[bytes])
    #: files below this may be gone
    removed_below: int = 0

    def check(self, store: RocketMQStore) -> None:
        """Hold a recovered store to it."""
        end = store.commit_log.max_physical_offset
        assert end >= self.durable, f"the log ends at {end}, {self.durable} was durable"
        known = {put.body: put for put in self.puts}
        for topic, queue_id in QUEUES:
            queue = store.queue(topic, queue_id)
            found = queue.messages(queue.start_offset, 1 << 20)
            offsets = [message.queue_offset for message in found]
            assert offsets == list(range(queue.start_offset, queue.end_offset))
            bodies = [message.body for message in found]
            for message in found:
                put = known.get(message.body)
                if put is None:
                    assert message.body in self.in_flux, f"{message.body!r} was never put"
                else:
                    assert (put.topic, put.queue_id) == (topic, queue_id)
                    assert put.queue_offset == message.queue_offset
                    assert put.physical_offset == message.physical_offset
            expected = [put.body for put in self.of_queue(topic, queue_id) if self._stands(put)]
            kept = [body for body in expected if body in set(bodies)]
            assert kept == expected, f"{topic}-{queue_id} lost {set(expected) - set(kept)}"
            for put in self.of_queue(topic, queue_id):
                if put.next_physical_offset <= end and put.physical_offset >= self.removed_below:
                    assert put.body in bodies, f"{put} stands in the log, but not in its queue"

    def _stands(self, put: Put) -> bool:
        is_kept = put.physical_offset >= self.removed_below
        return is_kept and put.next_physical_offset <= self.durable

    def of_queue(self, topic: str, queue_id: int) -> list[Put]:
        """Return what was put into one queue."""
        return [put for put in self.puts if (put.topic, put.queue_id) == (topic, queue_id)]

    def copy(self) -> StoreTestimony:
        """Return one that goes on on its own."""
        return attrs.evolve(self, puts=list(self.puts), in_flux=list(self.in_flux))


class WitnessedStore:
    """Does things to a store and notes what was promised."""

    def __init__(self, host: SimulatedHost, testimony: StoreTestimony) -> None:
        self.host = host
        self.testimony = testimony
        self.number = len(testimony.puts)
        self.store = small_store(host)

    def put(self, count: int = 1, size_bytes: int = 500) -> None:
        """Put messages into the queues in turn."""
        for _ in range(count):
            topic, queue_id = QUEUES[self.number % len(QUEUES)]
            body = b"%06d" % self.number + b"x" * (size_bytes - 6)
            properties = {"KEYS": f"k{self.number % 5}", "UNIQ_KEY": f"U{self.number:06d}"}
            self._put(draft(topic, body, queue_id, properties=properties), [body])

    def put_batch(self, count: int) -> None:
        """Put a batch into one queue."""
        topic, queue_id = QUEUES[self.number % len(QUEUES)]
        found = [b"%06d/%d" % (self.number, index) + bytes(400) for index in range(count)]
        self._put(batch(*found, topic=topic, queue_id=queue_id), found)

    def _put(self, what: MessageDraft | MessageBatchDraft, found: list[bytes]) -> None:
        self.number += 1
        testimony = self.testimony
        testimony.in_flux = found
        self.host.clock.advance(7)
        if isinstance(what, MessageDraft):
            result = self.store.put_message(what)
        else:
            result = self.store.put_batch(what)
        assert result.is_ok, result
        places = result.physical_offsets or [result.physical_offset]
        ends = [*places[1:], result.next_physical_offset]
        for index, body in enumerate(found):
            testimony.puts.append(
                Put(
                    what.topic,
                    what.queue_id,
                    result.queue_offset + index,
                    places[index],
                    ends[index],
                    body,
                )
            )
        testimony.in_flux = []

    def flush(self) -> None:
        """Make durable what was put: what SYNC_FLUSH waits for."""
        self.store.commit_log.flush()
        self.testimony.durable = self.store.commit_log.flushed_where

    def tick(self, delay_ms: int) -> None:
        """Let time pass and the services work."""
        self.host.clock.advance(delay_ms)
        self.store.tick()
        self.testimony.durable = max(self.testimony.durable, self.store.commit_log.flushed_where)

    def remove_oldest(self) -> None:
        """Remove the oldest commit log file, as cleaning does."""
        second = self.store.commit_log.files()[1].base_offset
        self.testimony.removed_below = second
        self.store.commit_log.delete_below(second)
        self.store.cleaning.follow_commit_log()

    def close(self) -> None:
        """Stop cleanly."""
        end = self.store.commit_log.wrote_where
        self.store.close()
        self.testimony.durable = max(self.testimony.durable, end)

    def kill(self) -> None:
        """End without a word, and start again: the disk has all that was written."""
        self.store.abandon()
        self.store = small_store(self.host)
        self.testimony.check(self.store)

    def restart(self) -> None:
        """Stop cleanly and start again."""
        self.close()
        self.store = small_store(self.host)
        self.testimony.check(self.store)


def live(host: SimulatedHost, testimony: StoreTestimony) -> None:
    """Live a short life: rolls of every kind of file, ticks, stops, kills, a removal."""
    witnessed = WitnessedStore(host, testimony)
    witnessed.put(4)
    witnessed.tick(600)
    witnessed.put_batch(3)
    witnessed.flush()
    witnessed.put(5, 900)
    witnessed.tick(1100)
    witnessed.restart()
    witnessed.put(4, 700)
    witnessed.tick(61_000)
    witnessed.put(3)
    witnessed.kill()
    witnessed.put_batch(2)
    witnessed.remove_oldest()
    witnessed.put(3, 800)
    witnessed.tick(61_000)
    witnessed.put(2)
    witnessed.flush()
    witnessed.kill()
    witnessed.put(7, 1100)
    witnessed.kill()
    witnessed.tick(1100)
    witnessed.remove_oldest()
    witnessed.put_batch(4)
    witnessed.flush()
    witnessed.restart()
    witnessed.put(1)
    witnessed.tick(61_000)
    witnessed.close()
