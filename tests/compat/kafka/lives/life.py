"""
A life of a broker: clients, administrators, time, bad disks and crashes, as the dice fall.

The same seed is the same life. What clients were told is in the chronicle, and after every start of
the broker, and now and then in between, everything that can be read is held against it.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

from logstore.compat.kafka.broker import Broker
from logstore.errors import LogStoreError
from logstore.testing.disk_faults import FaultKind
from logstore.testing.power_loss import KEEP_EVERYTHING, LOSE_UNSYNCED, PowerLoss, PowerLost
from logstore.testing.simulated_host import SimulatedHost
from logstore.tools.inspection.verification.directory_check import DirectoryCheck
from logstore.tools.inspection.verification.finding import Finding
from tests.compat.kafka.conversation import DIRECTORY
from tests.compat.kafka.lives.chronicle import Chronicle, Place
from tests.compat.kafka.lives.classic_member import ClassicMember, Plans
from tests.compat.kafka.lives.clients import (
    Client,
    Committer,
    HastyProducer,
    IdempotentProducer,
    PlainProducer,
    TransactionalProducer,
    World,
    committed_offset,
)
from tests.compat.kafka.lives.group_member import GroupMember
from tests.compat.kafka.lives.reader import EARLIEST, LATEST, Reader
from tests.compat.kafka.lives.share_member import LOCK_MS, SHARE_GROUP, ShareMember, ShareTruth
from tests.compat.kafka.peer import Peer, a_broker

SETTINGS: dict[str, object] = {
    "offsets_topic_num_partitions": 2,
    "transaction_state_log_num_partitions": 2,
    "share_coordinator_state_topic_num_partitions": 2,
    "log_index_size_max_bytes": 4096,
    "log_index_interval_bytes": 256,
    "log_cleaner_dedupe_buffer_size": (1 << 20) + 1,  # more than 1 MiB, as Kafka insists
}
TOPICS: tuple[dict[str, str], ...] = (
    {"internal.segment.bytes": "2000"},
    {"internal.segment.bytes": "20000", "compression.type": "lz4"},
    {"internal.segment.bytes": "1500", "message.timestamp.type": "LogAppendTime"},
    {
        "internal.segment.bytes": "1500",
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
    },
    {"internal.segment.bytes": "1500", "retention.ms": "300000"},
)
#: an acknowledged batch of a broker that flushes each survives any loss of power
_DURABLE = "log_flush_interval_messages"
_OPERATIONS_MAX = 120


class Life:
    """One life; :meth:`run` leads it to its end, or to the first thing that must not be."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.host = SimulatedHost(seed)
        self.is_durable = self.dice.random() < 0.6
        self.settings = {**SETTINGS, **({_DURABLE: 1} if self.is_durable else {})}
        self.events: list[str] = []
        broker = a_broker(self.host, **self.settings)
        broker.start_housekeeping()
        self.world = World(self.dice, Chronicle(), broker)
        self.transactional = [
            TransactionalProducer(self.world, f"tx-{speaks}", speaks) for speaks in (1, 2)
        ]
        self.idempotent = IdempotentProducer(self.world)
        self.clients: list[Client] = [
            PlainProducer(self.world), HastyProducer(self.world), self.idempotent,
            self.idempotent, *self.transactional, *self.transactional, Committer(self.world),
        ]  # fmt: skip
        self.shares = ShareTruth()
        self.sharers = [ShareMember(self.world, self.shares, name) for name in "AB"]
        self.members = [GroupMember(self.world, name) for name in "CDE"]
        self._enter_groups()
        self._topic_count = 0
        self._faulty_steps = 0

    def _enter_groups(self) -> None:
        for sharer in self.sharers:
            sharer.others = [one for one in self.sharers if one is not sharer]
        for member in self.members:
            member.others = [one for one in self.members if one is not member]
        plans = Plans()
        classics = [ClassicMember(self.world, plans) for _ in range(3)]
        self.clients += [*self.sharers, *self.members, *classics]
        isolation = self.dice.choice(("read_committed", "read_uncommitted"))
        settings = {"share.auto.offset.reset": "earliest", "share.isolation.level": isolation}
        self.broker.store.metadata.change_resource(32, SHARE_GROUP, settings)

    @property
    def broker(self) -> Broker:
        """The broker of the day."""
        return self.world.broker

    @property
    def chronicle(self) -> Chronicle:
        """What clients were told."""
        return self.world.chronicle

    @property
    def told_count(self) -> int:
        """How many records were acknowledged in topics that are still there."""
        return sum(len(truth.told) for truth in self.chronicle.partitions.values())

    def run(self, step_count: int) -> None:
        """Lead the life, and look at its end; raises AssertionError that tells the way there."""
        try:
            for _ in range(step_count):
                self._step()
            self._come_back(KEEP_EVERYTHING, is_last=True)
            self._restart_cleanly()
            self._end()
        except Exception as error:
            error.add_note(f"durable: {self.is_durable}; " + ", ".join(self.events[-40:]))
            raise

    def _step(self) -> None:
        rare: dict[Callable[[], None], float] = {
            self._create_topic: 0.03 if self.chronicle.partitions else 1,
            self._delete_topic: 0.005,
            self._delete_records: 0.02,
            self._pass_time: 0.06,
            self._break_disk: 0.01,
            self._plan_crash: 0.03,
            self._restart_cleanly: 0.01,
            self._audit: 0.02,
        }
        deed: Callable[[], None] = self.dice.choice(self.clients).act
        for candidate, chance in rare.items():
            if self.dice.random() < chance:
                deed = candidate
                break
        owner = getattr(deed, "__self__", self)
        self.events.append(getattr(deed, "__name__", "") + (
            "" if owner is self else f" of {type(owner).__name__}"))  # fmt: skip
        try:
            deed()
            self.broker.timers.run()
        except PowerLost:
            self._come_back()
        if self._faulty_steps:
            self._faulty_steps -= 1
            if not self._faulty_steps:
                self._mend()

    # administrators

    def _create_topic(self) -> None:
        if len(self.chronicle.topics()) >= 6:
            return
        settings = self.dice.choice(TOPICS)
        count = self.dice.randrange(1, 4)
        self._topic_count += 1
        name = f"t{self._topic_count}"
        self.chronicle.uncertain_topics.add(name)
        try:
            self.broker.create_topic(name, count, settings)
        except (LogStoreError, OSError):
            return
        self.chronicle.uncertain_topics.discard(name)
        self.chronicle.add_topic(name, count, settings)

    def _delete_topic(self) -> None:
        topics = self.chronicle.topics()
        if len(topics) < 2:
            return
        name = self.dice.choice(topics)
        self.chronicle.drop_topic(name)
        self.chronicle.uncertain_topics.add(name)
        for client in self.clients:
            client.forget(name)
        fields = {"topic_names": [name], "timeout_ms": 1000}
        (told,) = Peer(self.broker).ask("DeleteTopics", 5, fields).message["responses"]
        if not told["error_code"]:
            self.chronicle.uncertain_topics.discard(name)

    def _delete_records(self) -> None:
        place = self.world.place()
        if place is None or self.chronicle.partitions[place].is_compacted:
            return
        partition = self.broker.topics[place[0]].partitions[place[1]]
        offset = self.dice.randint(partition.start_offset, partition.end_offset)
        truth = self.chronicle.partitions[place]
        truth.start = max(truth.start, offset)
        self.idempotent.begin_anew()
        asked = {"partition_index": place[1], "offset": offset}
        fields = {"topics": [{"name": place[0], "partitions": [asked]}], "timeout_ms": 1000}
        Peer(self.broker).ask("DeleteRecords", 1, fields)

    # time, disks and crashes

    def _pass_time(self) -> None:
        self.host.clock.advance(self.dice.choice((1, 100, 5_000, 20_000, 70_000, 400_000)))

    def _wait_a_moment(self) -> None:
        self.host.clock.advance(1_100)
        self.broker.timers.run()

    def _break_disk(self) -> None:
        kinds: list[FaultKind] = ["write", "write", "write", "sync", "open", "rename"]
        kind = self.dice.choice(kinds)
        code = self.dice.choice((errno.ENOSPC, errno.EIO))
        self.host.fs.faults.fail_next(
            kind, code, after=self.dice.randrange(6), count=self.dice.choice((1, 1, 3)),
            partial_bytes=self.dice.choice((0, 10, 70)) if kind == "write" else 0,
        )  # fmt: skip
        self.events[-1] += f" {kind} {errno.errorcode[code]}"
        self._faulty_steps = self.dice.randrange(1, 8)

    def _mend(self) -> None:
        """Get a good disk, and a broker that starts on it: a failed sync is final for the old."""
        self.events.append("mended, crash")
        self._faulty_steps = 0
        self.host.fs.faults.clear()
        self._come_back(KEEP_EVERYTHING)

    def _plan_crash(self) -> None:
        self.host.fs.cut_power_after(self.dice.randrange(_OPERATIONS_MAX))

    def _come_back(self, loss: PowerLoss | None = None, *, is_last: bool = False) -> None:
        """Start again after a crash, which may come again at once."""
        self.host.fs.faults.clear()
        self._faulty_steps = 0
        for _ in range(3):
            if loss is None:
                random_loss = PowerLoss.random(self.dice.getrandbits(30))
                loss = self.dice.choice((LOSE_UNSYNCED, random_loss, KEEP_EVERYTHING))
                loss = loss if self.is_durable else KEEP_EVERYTHING
            self.events.append(f"crash {loss}")
            self.host.power_loss(loss)
            if not is_last and self.dice.random() < 0.2:
                self._plan_crash()
            try:
                self._start()
                self._audit()
            except PowerLost:
                loss = None
                continue
            return
        self.host.power_loss(KEEP_EVERYTHING)
        self._start()
        self._audit()

    def _restart_cleanly(self) -> None:
        if self.host.fs.faults.planned:
            return
        try:
            self.broker.close()
        except (LogStoreError, OSError):  # a failed sync is final
            self._come_back(KEEP_EVERYTHING)
            return
        self.host.fs.process_death()
        self._start()
        self._audit()

    def _start(self) -> None:
        self.world.broker = a_broker(self.host, **self.settings)
        self.broker.start_housekeeping()
        for client in self.clients:
            client.reconnect()

    # the truth

    def _audit(self) -> None:
        """Read everything, and hold it against the chronicle; on a bad disk some of it is late."""
        if self.host.fs.faults.planned or self._faulty_steps:
            return
        chronicle = self.chronicle
        reader = Reader(self.broker, self.dice)
        for topic in chronicle.topics():
            assert topic in self.broker.topics, f"topic {topic} is lost"
        for place in chronicle.places():
            self._audit_partition(reader, place)
        for (group, topic, index), truth in chronicle.offsets.items():
            found = committed_offset(self.broker, group, (topic, index))
            text = f"group {group}, {topic}-{index}: {found}, not one of {truth.allowed}"
            assert found in truth.allowed, text

    def _audit_partition(self, reader: Reader, place: Place) -> None:
        earliest = reader.offset_at(*place, EARLIEST)
        seen = reader.read(*place)
        self.chronicle.check(place, earliest, seen)
        stable = reader.offset_at(*place, LATEST, 1)
        committed = reader.read(*place, is_committed=True)
        self.chronicle.check_committed(place, stable, seen, committed)
        if seen:
            wanted = self.dice.choice(seen).timestamp_ms
            found = reader.offset_at(*place, wanted)
            first = next(one.offset for one in seen if one.timestamp_ms >= wanted)
            is_marker = found < first and all(one.offset != found for one in seen)
            assert found == first or is_marker, f"{place}: {wanted} is at {first}, not {found}"

    def _end(self) -> None:
        """End all transactions; everything is settled then, and no file lies."""
        for producer in self.transactional:
            while not producer.begin():
                self.host.clock.advance(100)
                self.broker.timers.run()
        reader = Reader(self.broker, self.dice)
        visible: list[bytes] = []
        for place in self.chronicle.places():
            assert reader.offset_at(*place, LATEST) == reader.offset_at(*place, LATEST, 1)
            visible += [one.value or b"" for one in reader.read(*place, is_committed=True)]
        self.chronicle.settle(visible)
        self._audit()
        self._drain_shares()
        self.broker.close()
        self.host.fs.process_death()
        try:
            found = list(DirectoryCheck(self.host.fs, DIRECTORY).findings())
        except LogStoreError as error:
            raise AssertionError(f"verify: {error}") from error
        damage = [one for one in found if one.is_damage and not _is_excused(one)]
        assert not damage, f"verify: {damage}"

    def _drain_shares(self) -> None:
        """Every record comes to the end of its deliveries."""
        reader = Reader(self.broker, self.dice)
        for member in self.sharers:
            member.leave()
        self.host.clock.advance(LOCK_MS)
        self.broker.timers.run()
        self.sharers[0].drain(self._wait_a_moment)
        for place in self.chronicle.places():
            truth = self.chronicle.partitions[place]
            if truth.may_shrink:
                continue
            partition = self.broker.topics[place[0]].topic_id, place[1]
            begin = max(truth.start, reader.offset_at(*place, EARLIEST))
            left = [
                (offset, value) for offset, value in truth.told.items()
                if offset >= begin and not self.shares.is_over(partition, value)
                and not self.chronicle.is_aborted(value)
            ]  # fmt: skip
            assert not left, f"{place}: {left} never came to a member of a share group"


def _is_excused(finding: Finding) -> bool:
    """
    Tell whether a finding may be true.

    Lives are short, and intervals too: what a crash did not index looks like a lost entry. And a
    power loss may empty what is derived and was not synced: older snapshots, of which nobody needs
    to know, and entries of a time index, which then lead to the start of their segment.
    """
    is_emptied = finding.kind == "time-index-entry" and "says 1970" in finding.text
    is_emptied |= finding.kind == "snapshot" and "cannot be read" in finding.text
    return is_emptied or finding.kind == "index-misses"
