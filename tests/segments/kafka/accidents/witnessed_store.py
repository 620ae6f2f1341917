"""A store, and a witness who knows what was acknowledged and what was flushed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from logstore.segments.kafka.compaction import (
    Compaction,
    CompactionLimits,
    compact,
    find_cleanable,
)
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.control_record import ControlType, encode_control
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.kafka.topic import Topic
from logstore.testing import SimulatedHost
from tests.segments.kafka.accidents.partition_testimony import PartitionTestimony

DATA = "/data"


@attrs.define
class TopicTestimony:
    """What was acknowledged of a topic; `settings` are those that it may have."""

    topic_id: bytes
    settings: list[dict[str, str]]
    partitions: list[PartitionTestimony]
    #: numbers that a topic lacks of which a power loss left a part, before it was acknowledged
    holes: frozenset[int] = frozenset()

    def present(self) -> list[tuple[int, PartitionTestimony]]:
        """Return the partitions that are there, by number."""
        return [pair for pair in enumerate(self.partitions) if pair[0] not in self.holes]

    def copy(self) -> TopicTestimony:
        """Return one that goes on on its own."""
        partitions = [partition.copy() for partition in self.partitions]
        return TopicTestimony(self.topic_id, list(self.settings), partitions, self.holes)


@attrs.define
class StoreTestimony:
    """What was acknowledged of a whole store."""

    topics: dict[str, TopicTestimony] = attrs.field(factory=dict[str, TopicTestimony])
    #: topics that are just being created or deleted: there or not
    in_flux: set[str] = attrs.field(factory=set[str])
    #: producer ids below are given out
    producer_id_min: int = 0
    #: next sequence by (topic, partition, producer)
    sequences: dict[tuple[str, int, int], int] = attrs.field(
        factory=dict[tuple[str, int, int], int]
    )

    def copy(self) -> StoreTestimony:
        """Return one that goes on on its own."""
        topics = {name: topic.copy() for name, topic in self.topics.items()}
        return attrs.evolve(
            self, topics=topics, in_flux=set(self.in_flux), sequences=dict(self.sequences)
        )

    def check(self, store: KafkaStore) -> None:
        """Compare a store with what was acknowledged."""
        found = set(store.topics_by_name)
        missing = set(self.topics) - self.in_flux - found
        assert not missing, f"topics are gone: {missing}"
        unknown = found - set(self.topics) - self.in_flux
        assert not unknown, f"topics came back: {unknown}"
        next_id = store.metadata.image.next_producer_id
        assert next_id >= self.producer_id_min, f"producer id {next_id} is given out again"
        for name, topic in store.topics_by_name.items():
            self.check_topic(name, topic)

    def check_topic(self, name: str, topic: Topic) -> None:
        """Compare one topic."""
        known = self.topics.get(name)
        if known is None:  # on its way in: nothing was said about it, so nothing may be in it
            assert all(p.end_offset == 0 for p in topic.partitions.values()), name
            return
        assert topic.topic_id == known.topic_id, f"{name} has another id"
        assert topic.settings in known.settings, f"{name} has the settings {topic.settings}"
        missing = set(range(len(known.partitions))) - set(topic.partitions) - known.holes
        assert not missing, f"{name} lost partitions {missing}"
        for index, partition in topic.partitions.items():
            if index < len(known.partitions):
                try:
                    known.partitions[index].check(partition)
                except Exception as error:
                    error.add_note(f"partition {name}-{index}")
                    raise

    def adopt(self, store: KafkaStore) -> None:
        """Go on from what a recovery left."""
        for name in self.in_flux - set(store.topics_by_name):
            self.topics.pop(name, None)
        self.in_flux.clear()
        for name, topic in store.topics_by_name.items():
            known = self.topics.setdefault(
                name, TopicTestimony(topic.topic_id, [topic.settings], [])
            )
            known.settings = [topic.settings]
            if not known.partitions:
                known.holes = frozenset(range(max(topic.partitions))) - set(topic.partitions)
            for index, partition in topic.partitions.items():
                while index >= len(known.partitions):
                    known.partitions.append(PartitionTestimony())
                known.partitions[index].adopt(partition)
                self.adopt_sequences(name, index, partition)

    def adopt_sequences(self, name: str, index: int, partition: KafkaPartition) -> None:
        """Let producers go on from what the partition knows of them."""
        for key in [key for key in self.sequences if key[:2] == (name, index)]:
            del self.sequences[key]
        for entry in partition.producers:
            self.sequences[name, index, entry.producer_id] = entry.last_sequence + 1


class WitnessedStore:
    """Does things to a store and keeps the testimony: before what may be, afterwards what is."""

    def __init__(self, host: SimulatedHost, testimony: StoreTestimony) -> None:
        self.host = host
        self.testimony = testimony
        self.store = KafkaStore(host, DATA)

    def partition(self, name: str, index: int) -> tuple[KafkaPartition, PartitionTestimony]:
        """Return a partition, and what is known of it."""
        known = self.testimony.topics[name].partitions[index]
        return self.store.partition(name, index), known

    # topics

    def create(self, name: str, count: int, settings: Mapping[str, str]) -> None:
        """Create a topic."""
        self.testimony.in_flux.add(name)
        topic = self.store.create_topic(name, count, settings)
        self.testimony.topics[name] = TopicTestimony(
            topic.topic_id, [dict(settings)], [PartitionTestimony() for _ in range(count)]
        )
        self.testimony.in_flux.discard(name)

    def grow(self, name: str, count: int) -> None:
        """Add partitions."""
        self.store.add_partitions(self.store.topics_by_name[name], count)
        known = self.testimony.topics[name].partitions
        known += [PartitionTestimony() for _ in range(count - len(known))]

    def configure(self, name: str, settings: Mapping[str, str]) -> None:
        """Change the settings of a topic."""
        known = self.testimony.topics[name]
        known.settings.append(dict(settings))
        self.store.change_settings(self.store.topics_by_name[name], settings)
        known.settings = [dict(settings)]

    def delete(self, name: str) -> None:
        """Delete a topic."""
        self.testimony.in_flux.add(name)
        self.store.delete_topic(self.store.topics_by_name[name])
        del self.testimony.topics[name]
        self.testimony.in_flux.discard(name)
        for key in [key for key in self.testimony.sequences if key[0] == name]:
            del self.testimony.sequences[key]

    def take_producer_ids(self) -> int:
        """Return a producer id that nobody had."""
        ids = self.store.metadata.take_producer_ids()
        assert ids.start >= self.testimony.producer_id_min
        self.testimony.producer_id_min = ids.stop
        return ids.start

    # records

    def append(
        self,
        name: str,
        index: int,
        values: Iterable[tuple[bytes | None, bytes | None]],
        *,
        producer_id: int = -1,
        codec: Codec = Codec.NONE,
        is_transactional: bool = False,
    ) -> None:
        """Append one batch with these keys and values."""
        partition, known = self.partition(name, index)
        now_ms = self.host.clock.wall_ms()
        records = [Record(n, now_ms + n, key, value) for n, (key, value) in enumerate(values)]
        place = (name, index, producer_id)
        sequence = self.testimony.sequences.get(place, 0)
        data = encode_batch(
            records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
            is_transactional=is_transactional,
        )
        self._offer(partition, known, data)
        appended = partition.append_produced(memoryview(data), now_ms)
        assert not appended.is_duplicate
        if producer_id >= 0:
            self.testimony.sequences[place] = sequence + len(records)

    def _offer(self, partition: KafkaPartition, known: PartitionTestimony, data: bytearray) -> None:
        batch = RecordBatch(bytearray(data), len(data))
        known.offer(batch.stamped(partition.end_offset, partition.leader_epoch))

    def end_transaction(self, name: str, index: int, producer_id: int, *, is_commit: bool) -> None:
        """Append the marker of a producer's transaction."""
        partition, known = self.partition(name, index)
        now_ms = self.host.clock.wall_ms()
        data = encode_control(
            ControlType.COMMIT if is_commit else ControlType.ABORT,
            timestamp_ms=now_ms,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
        )
        self._offer(partition, known, data)
        partition.append_marker(
            producer_id, 0, is_commit=is_commit, coordinator_epoch=0, now_ms=now_ms
        )

    def become_leader(self, name: str, index: int, epoch: int) -> None:
        """Let a partition be led in a new epoch."""
        self.partition(name, index)[0].become_leader(epoch)

    # what lasts

    def flush(self, name: str, index: int) -> None:
        """Flush: from now on all so far is promised."""
        partition, known = self.partition(name, index)
        partition.flush()
        known.promise(partition.end_offset)

    def checkpoint(self) -> None:
        """Write the checkpoints."""
        self.store.write_checkpoints()
        self.store.write_high_watermarks()
        for name, topic in self.testimony.topics.items():
            for index, known in topic.present():
                known.start_min = self.store.partition(name, index).start_offset

    def delete_records(self, name: str, index: int, offset: int) -> None:
        """Move the log start."""
        partition, known = self.partition(name, index)
        known.start_max = max(known.start_max, offset)
        partition.delete_records(offset)

    def retain(self) -> int:
        """Apply retention; what it may give up is not promised until it is done."""
        before: list[tuple[KafkaPartition, PartitionTestimony]] = [
            self.partition(name, index)
            for name, topic in self.testimony.topics.items()
            for index, _ in topic.present()
        ]
        for partition, known in before:
            if partition.config.is_deleting:
                known.start_max = partition.end_offset
        count = self.store.retain()
        for partition, known in before:
            if partition.config.is_deleting:
                known.start_max = partition.start_offset
        return count

    def truncate(self, name: str, index: int, offset: int) -> None:
        """Cut a log, as a follower does, and say so in the checkpoints."""
        partition, known = self.partition(name, index)
        known.promised_end = min(known.promised_end, offset)
        partition.truncate(offset)
        known.facts = {at: fact for at, fact in known.facts.items() if at < offset}
        self.testimony.adopt_sequences(name, index, partition)
        self.store.write_checkpoints()

    def compact(self, name: str, index: int) -> int:
        """Run the cleaner once; return how many segments there are afterwards."""
        partition, known = self.partition(name, index)
        known.dispensable = known.superseded()
        now_ms = self.host.clock.wall_ms()
        compact(Compaction(find_cleanable(partition, None, now_ms), now_ms, CompactionLimits()))
        return len(partition.log.segments)

    def stop(self) -> None:
        """Stop cleanly: all is promised."""
        self.store.close()
        for name, topic in self.testimony.topics.items():
            for index, known in topic.present():
                partition = self.store.partition(name, index)
                known.promise(partition.end_offset)
                known.start_min = partition.start_offset

    def start(self) -> None:
        """Start again after a clean stop."""
        self.store = KafkaStore(self.host, DATA)
        assert self.store.was_clean
