"""The clients of a life: each does one thing at a time, and writes down what it was told."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

import attrs

from logstore.compat.kafka.broker import Broker
from logstore.segments.kafka.compression import Codec
from tests.compat.kafka.batches import batch
from tests.compat.kafka.lives.chronicle import Chronicle, OffsetTruth, Outcome, Place, Told
from tests.compat.kafka.peer import Peer, produce_fields
from tests.compat.kafka.transactions.producer import GROUP, TransactionalClient

KEYS = (b"red", b"green", b"blue", None)
CODECS = (Codec.NONE, Codec.NONE, Codec.GZIP, Codec.ZSTD, Codec.LZ4)
#: what a producer is told of when another goes on in its place, or its transaction was ended
FENCED = {47, 48, 90}
#: a transaction is just being ended: ask again
CONCURRENT_TRANSACTIONS = 51


@attrs.define
class World:
    """What clients share: chance, the truth, the broker of the day, and numbers for values."""

    dice: random.Random
    chronicle: Chronicle
    broker: Broker
    count: int = 0

    def values(self) -> list[bytes]:
        """Return values that nobody else writes."""
        found: list[bytes] = []
        for _ in range(self.dice.choice((1, 1, 2, 5))):
            self.count += 1
            found.append(b"%d" % self.count + b"." * self.dice.choice((0, 0, 30, 300)))
        return found

    def now_ms(self) -> int:
        """Return the time, as a producer stamps its records."""
        return self.broker.host.clock.wall_ms()

    def place(self) -> Place | None:
        """Return any partition; None if there is none."""
        places = self.chronicle.places()
        return self.dice.choice(places) if places else None


class Client(Protocol):
    """Does one thing whenever it is its turn."""

    def act(self) -> None:
        """Do the next thing."""
        ...

    def reconnect(self) -> None:
        """Another broker of the same life runs from now on."""
        ...

    def forget(self, topic: str) -> None:
        """A topic is gone; one of that name may come again."""
        ...


@attrs.define
class PlainProducer:
    """Sends each batch once."""

    world: World

    def reconnect(self) -> None:
        """Nothing lasts from one batch to the next."""

    def forget(self, topic: str) -> None:
        """Whom it writes to is drawn anew each time."""

    def act(self) -> None:
        """Send one batch."""
        world = self.world
        place = world.place()
        if place is None:
            return
        values, key = world.values(), world.dice.choice(KEYS)
        if key is None and world.chronicle.partitions[place].is_compacted:
            key = b"white"
        data = batch(*values, key=key, timestamp_ms=world.now_ms(), codec=world.dice.choice(CODECS))
        world.chronicle.ask(place, values)
        fields = produce_fields([(place[0], [(place[1], data)])], 9, -1)
        part = Peer(world.broker).ask("Produce", 9, fields).partition
        if not part["error_code"]:
            world.chronicle.tell(place, part["base_offset"], values, key)


@attrs.define
class HastyProducer:
    """Has several requests under way on one connection, which arrive there together."""

    world: World
    peer: Peer | None = None

    def reconnect(self) -> None:
        """Its connection is gone."""
        self.peer = None

    def forget(self, topic: str) -> None:
        """Whom it writes to is drawn anew each time."""

    def act(self) -> None:
        """Send some batches to one partition."""
        world = self.world
        place = world.place()
        if place is None:
            return
        if self.peer is None or self.peer.connection.is_closing:
            self.peer = Peer(world.broker, "hasty")
        key = world.dice.choice(KEYS[:3])
        sent: list[list[bytes]] = []
        for _ in range(world.dice.randint(2, 8)):
            sent.append(world.values())
            world.chronicle.ask(place, sent[-1])
        batches = [batch(*values, key=key, timestamp_ms=world.now_ms()) for values in sent]
        requests = [produce_fields([(place[0], [(place[1], data)])], 9, -1) for data in batches]
        answers = self.peer.send_together("Produce", 9, requests).answers()
        assert len(answers) == len(sent), "a plain request is answered at once"
        for values, answer in zip(sent, answers, strict=True):
            if not answer.partition["error_code"]:
                world.chronicle.tell(place, answer.partition["base_offset"], values, key)


@attrs.define
class IdempotentProducer:
    """Sends a batch until it is told, and now and then once more."""

    world: World
    producer: tuple[int, int] = (-1, -1)
    sequences: dict[Place, int] = attrs.field(factory=dict[Place, int])
    #: place, values, first sequence, data of what was not told yet
    waiting: tuple[Place, list[bytes], int, bytes] | None = None
    #: what was told last, and its offset
    last: tuple[Place, bytes, int] | None = None

    def reconnect(self) -> None:
        """It remembers all that it needs."""

    def forget(self, topic: str) -> None:
        """The topic is gone; one of that name may come again."""
        self.sequences = {p: s for p, s in self.sequences.items() if p[0] != topic}
        if self.waiting is not None and self.waiting[0][0] == topic:
            self.waiting = None
        if self.last is not None and self.last[0][0] == topic:
            self.last = None

    def begin_anew(self) -> None:
        """
        Go on under another id.

        What was deleted a recovery does not look at, in Kafka either: it may not know any more
        which batch comes next, nor which was there already.
        """
        self.producer = (-1, -1)
        self.sequences.clear()
        self.waiting = self.last = None

    def act(self) -> None:
        """Send what waits, or the last batch once more, or the next one."""
        world = self.world
        if self.producer[0] < 0 and not self._begin():
            return
        if self.waiting is None and self.last is not None and world.dice.random() < 0.2:
            self._repeat()
            return
        if self.waiting is None:
            place = world.place()
            if place is None or world.chronicle.partitions[place].may_shrink:
                return
            values, sequence = world.values(), self.sequences.get(place, 0)
            data = batch(*values, timestamp_ms=world.now_ms(), producer=(*self.producer, sequence))
            world.chronicle.ask(place, values)
            self.waiting = (place, values, sequence, data)
        place, values, sequence, data = self.waiting
        code, base_offset = self._send(place, data)
        assert code not in (45, 46, 59), f"{place}: a batch that goes on is refused with {code}"
        if not code:
            world.chronicle.tell(place, base_offset, values, b"key")
            self.sequences[place] = sequence + len(values)
            self.waiting, self.last = None, (place, data, base_offset)

    def _begin(self) -> bool:
        answer = Peer(self.world.broker).ask(
            "InitProducerId", 4,
            {
                "transactional_id": None, "transaction_timeout_ms": 60_000,
                "producer_id": -1, "producer_epoch": -1,
            },
        ).message  # fmt: skip
        self.producer = (answer["producer_id"], answer["producer_epoch"])
        return not answer["error_code"]

    def _repeat(self) -> None:
        assert self.last is not None
        place, data, base_offset = self.last
        told = self._send(place, data)
        assert told[0] or told == (0, base_offset), f"{place}: {base_offset} again is {told}"

    def _send(self, place: Place, data: bytes) -> tuple[int, int]:
        fields = produce_fields([(place[0], [(place[1], data)])], 9, -1)
        part = Peer(self.world.broker).ask("Produce", 9, fields).partition
        return part["error_code"], part["base_offset"]


class TransactionalProducer:
    """Writes transactions over several partitions, with a group's offsets, and ends them."""

    def __init__(self, world: World, name: str, speaks: int) -> None:
        self.world = world
        self.client = TransactionalClient(world.broker, speaks, name)
        self.transaction: Told | None = None
        self._is_ready = False

    def reconnect(self) -> None:
        """Whatever was open is given up: the next that it does is to begin anew."""
        self.client.peer = Peer(self.world.broker)
        self._give_up(Outcome.ABORTED)

    def forget(self, topic: str) -> None:
        """A topic is gone, with what was written there."""
        del topic
        self._give_up(Outcome.ABORTED)

    def _give_up(self, outcome: Outcome) -> None:
        transaction, self.transaction = self.transaction, None
        self._is_ready = False
        if transaction is not None:
            transaction.outcome = Outcome.UNKNOWN if transaction.wants_commit else outcome

    def begin(self) -> bool:
        """Get an id and an epoch, which ends what an earlier life left; tell whether that went."""
        code = self.client.init(timeout_ms=60_000)
        self._is_ready = not code
        return self._is_ready

    def act(self) -> None:
        """Begin, write, add an offset, or end."""
        if not self._is_ready and not self.begin():
            return
        deeds: list[Callable[[], None]] = [self._write, self._write, self._offset, self._end]
        self.world.dice.choice(deeds)()

    def _write(self) -> None:
        world, place = self.world, self.world.place()
        if place is None or world.chronicle.partitions[place].is_compacted:
            return
        if self.transaction is None:
            self.transaction = Told()
        values = world.values()
        world.chronicle.ask(place, values, self.transaction)
        if self.client.speaks == 1:
            (code,) = self.client.add(*place)
            if code:
                self._failed(code)
                return
        part = self._produced(place, values)
        if part["error_code"]:
            self._failed(part["error_code"])
        else:
            self.client.sequences[place] = self.client.sequences.get(place, 0) + len(values)
            world.chronicle.tell(place, part["base_offset"], values, b"key")

    def _produced(self, place: Place, values: list[bytes]) -> dict[str, int]:
        client = self.client
        producer = (client.producer_id, client.epoch, client.sequences.get(place, 0))
        data = batch(
            *values, timestamp_ms=self.world.now_ms(), producer=producer, is_transactional=True
        )
        version = 12 if client.speaks == 2 else 9
        fields = produce_fields([(place[0], [(place[1], data)])], version, -1)
        fields["transactional_id"] = client.transactional_id
        return client.peer.ask("Produce", version, fields).partition

    def _failed(self, code: int) -> None:
        """What is half written must not be committed: begin anew, which aborts it."""
        assert code not in (45, 46, 59), f"a batch that goes on is refused with {code}"
        self._give_up(Outcome.ABORTED)

    def _offset(self) -> None:
        world, place = self.world, self.world.place()
        if place is None:
            return
        if self.transaction is None:
            self.transaction = Told()
        offset = world.dice.randrange(1000)
        world.count += 1
        if self.client.send_offset(*place, offset):
            self._give_up(Outcome.ABORTED)
        else:
            self.transaction.offsets[world.count, place] = offset

    def _end(self) -> None:
        transaction = self.transaction
        if transaction is None:
            return
        transaction.wants_commit = self.world.dice.random() < 0.6
        if transaction.wants_commit:
            for (number, place), offset in transaction.offsets.items():
                self._offsets(place).ask(number, offset)
        code = self.client.end(is_commit=transaction.wants_commit)
        if code in FENCED:  # ended meanwhile, because it took too long: not as it was asked for
            transaction.wants_commit = False
        if code:
            self._give_up(Outcome.ABORTED)
            return
        self.transaction = None
        transaction.outcome = Outcome.ABORTED
        if transaction.wants_commit:
            transaction.outcome = Outcome.COMMITTED
            for (number, place), offset in transaction.offsets.items():
                self._offsets(place).tell(number, offset)

    def _offsets(self, place: Place) -> OffsetTruth:
        return self.world.chronicle.offsets.setdefault((GROUP, *place), OffsetTruth())


@attrs.define
class Committer:
    """Commits offsets of groups without members."""

    world: World

    def reconnect(self) -> None:
        """Nothing lasts from one commit to the next."""

    def forget(self, topic: str) -> None:
        """Whom it writes to is drawn anew each time."""

    def act(self) -> None:
        """Commit one offset."""
        world, place = self.world, self.world.place()
        if place is None:
            return
        group, offset = world.dice.choice(("a", "b")), world.dice.randrange(1000)
        commit_offset(world, group, place, offset)


def commit_offset(
    world: World,
    group: str,
    place: Place,
    offset: int,
    member: tuple[str, int] = ("", -1),
    version: int = 7,
) -> int:
    """Commit as a member in its generation or epoch, take note of it, and return the error code."""
    found = world.chronicle.offsets.setdefault((group, *place), OffsetTruth())
    world.count += 1
    found.ask(world.count, offset)
    asked = {
        "partition_index": place[1], "committed_offset": offset,
        "committed_leader_epoch": -1, "committed_metadata": "",
    }  # fmt: skip
    fields = {
        "group_id": group, "member_id": member[0], "generation_id_or_member_epoch": member[1],
        "topics": [{"name": place[0], "partitions": [asked]}],
    }  # fmt: skip
    answer = Peer(world.broker).ask("OffsetCommit", version, fields).message
    ((part,),) = [one["partitions"] for one in answer["topics"]]
    code: int = part["error_code"]
    if not code:
        found.tell(world.count, offset)
    return code


def committed_offset(broker: Broker, group: str, place: Place) -> int:
    """Return what a group has committed; -1 for nothing."""
    asked = {"name": place[0], "partition_indexes": [place[1]]}
    fields = {"group_id": group, "require_stable": False, "topics": [asked]}
    answer = Peer(broker).ask("OffsetFetch", 7, fields).message
    ((part,),) = [one["partitions"] for one in answer["topics"]]
    assert not part["error_code"], f"OffsetFetch of {group}, {place}: {part}"
    offset: int = part["committed_offset"]
    return offset
