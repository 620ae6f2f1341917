"""kill -9 under load: every message that was acknowledged is there after the restart."""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from pathlib import Path

import attrs
import pytest

from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_programs import create_topic
from tests.interop.rocketmq_wire import (
    CLOSED_ERRORS,
    FLUSH_DISK_TIMEOUT,
    GET_MAX_OFFSET,
    GET_MIN_OFFSET,
    PULL_MESSAGE,
    PULL_NOT_FOUND,
    SEND_BATCH_MESSAGE,
    SEND_MESSAGE_V2,
    SUCCESS,
    Wire,
    batch_body,
    pull_fields,
    pulled,
    send_fields,
)
from tests.interop.test_kill import payload, proves_itself

pytestmark = pytest.mark.interop

TOPIC = "under-load"
QUEUES = 4
OUTSTANDING_MAX = 200
LOAD_SECONDS_MAX = 0.6
#: of the rounds, how many may end before anything was acknowledged
EARLY_SHARE = 0.2
STARTUP_SECONDS_MAX = 0.4
BATCH_SHARE = 0.2
SETTINGS: dict[str, object] = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 20_000,
    "maxHashSlotNum": 1000,
    "maxIndexNum": 4000,
}


def rounds_wanted() -> int:
    """Return how often to kill: LOGSTORE_KILL_ROUNDS, else 30 (3 in CI, whose time is short)."""
    return int(os.environ.get("LOGSTORE_KILL_ROUNDS", "3" if os.environ.get("CI") else "30"))


@attrs.define
class Ledger:
    """What the broker acknowledged, over all rounds: bodies by queue and queue offset."""

    bodies: dict[tuple[int, int], bytes] = attrs.field(factory=dict[tuple[int, int], bytes])

    def acknowledge(self, queue_id: int, queue_offset: int, bodies: list[bytes]) -> None:
        """Note a message, or those of a batch one behind the other."""
        for number, body in enumerate(bodies):
            place = (queue_id, queue_offset + number)
            assert place not in self.bodies, "an offset was given twice"
            self.bodies[place] = body


@attrs.define
class Sender:
    """One producer that has many sends under way."""

    wire: Wire
    ledger: Ledger
    chance: random.Random
    under_way: dict[int, tuple[int, list[bytes]]] = attrs.field(
        factory=dict[int, tuple[int, list[bytes]]]
    )

    def send(self, name: str) -> None:
        """Send a message, with a key to be found by, or a small batch."""
        queue_id = self.chance.randrange(QUEUES)
        if self.chance.random() < BATCH_SHARE:
            bodies = [payload(f"{name}-{number}") for number in range(self.chance.randint(1, 8))]
            fields = send_fields(TOPIC, queue_id, "")
            opaque = self.wire.send(SEND_BATCH_MESSAGE, fields | {"m": "true"}, batch_body(bodies))
        else:
            bodies = [payload(name)]
            fields = send_fields(TOPIC, queue_id, f"KEYS\1{name}\2UNIQ_KEY\1U{name}\2")
            opaque = self.wire.send(SEND_MESSAGE_V2, fields, bodies[0])
        self.under_way[opaque] = queue_id, bodies

    def receive(self) -> None:
        """Take one answer; FLUSH_DISK_TIMEOUT is no acknowledgement, and nothing else is told."""
        answer = self.wire.receive()
        queue_id, bodies = self.under_way.pop(answer.opaque)
        assert answer.code in (SUCCESS, FLUSH_DISK_TIMEOUT), answer
        if answer.code == SUCCESS:
            assert int(answer.fields["queueId"]) == queue_id
            self.ledger.acknowledge(queue_id, int(answer.fields["queueOffset"]), bodies)


def load_until_killed(
    broker: OurRocketMQ, ledger: Ledger, number: int, chance: random.Random
) -> None:
    """
    Send until the broker is killed at a random time, then take the answers still on their way.

    Most often that time counts from the first acknowledgement of the round.
    """
    sender = Sender(Wire(broker.broker_address), ledger, chance)
    delay = chance.uniform(0, LOAD_SECONDS_MAX)
    killer = threading.Timer(delay, broker.stop, kwargs={"kill": True})
    acknowledged = len(ledger.bodies)
    is_early = chance.random() < EARLY_SHARE
    sent = 0
    with contextlib.suppress(*CLOSED_ERRORS):
        while True:
            if killer.ident is None and (is_early or len(ledger.bodies) > acknowledged):
                killer.start()
            while len(sender.under_way) < OUTSTANDING_MAX:
                sender.send(f"{number}-{sent}")
                sent += 1
            sender.receive()
    with contextlib.suppress(*CLOSED_ERRORS):
        while sender.under_way:
            sender.receive()
    assert killer.ident is not None, "the broker closed before it was killed"
    killer.join()
    sender.wire.close()


def kill_while_starting(broker: OurRocketMQ, chance: random.Random) -> None:
    """Kill the broker somewhere on its way up: while it imports, recovers or answers."""
    broker.spawn()
    time.sleep(chance.uniform(0, STARTUP_SECONDS_MAX))
    broker.stop(kill=True)


def read_queue(wire: Wire, queue_id: int, start: int) -> dict[int, bytes]:
    """Return all bodies of a queue from that offset on; they have no holes and prove themselves."""
    where = {"topic": TOPIC, "queueId": queue_id}
    assert int(wire.ask(GET_MIN_OFFSET, where).fields["offset"]) == 0
    end = int(wire.ask(GET_MAX_OFFSET, where).fields["offset"])
    assert end >= start, f"queue {queue_id} ends at {end}, {start} was seen"
    found: dict[int, bytes] = {}
    at = start
    while at < end:
        answer = wire.ask(PULL_MESSAGE, pull_fields(TOPIC, queue_id, at))
        assert answer.code == SUCCESS, answer
        found.update(pulled(answer.body))
        assert found.keys() == set(range(start, int(answer.fields["nextBeginOffset"])))
        at = int(answer.fields["nextBeginOffset"])
    assert wire.ask(PULL_MESSAGE, pull_fields(TOPIC, queue_id, end)).code == PULL_NOT_FOUND
    assert all(proves_itself(body) for body in found.values())
    return found


def verify(broker: OurRocketMQ, ledger: Ledger, starts: dict[int, int]) -> dict[int, int]:
    """Check all queues from `starts` on; return where they end."""
    wire = Wire(broker.broker_address)
    found = {queue_id: read_queue(wire, queue_id, start) for queue_id, start in starts.items()}
    wire.close()
    wrong = {
        place
        for place, body in ledger.bodies.items()
        if place[1] >= starts[place[0]] and found[place[0]].get(place[1]) != body
    }
    assert wrong == set(), "acknowledged, and then lost or changed"
    names = [body.split(b"|", 1)[0] for bodies in found.values() for body in bodies.values()]
    assert len(names) == len(set(names)), "a message stands there twice"
    return {queue_id: start + len(found[queue_id]) for queue_id, start in starts.items()}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("flush", "layout"),
    [
        ("SYNC_FLUSH", "rocketmq"),
        ("ASYNC_FLUSH", "rocketmq"),
        pytest.param("SYNC_FLUSH", "kafka", marks=pytest.mark.slow),
        pytest.param("ASYNC_FLUSH", "kafka", marks=pytest.mark.slow),
    ],
)
def test_no_acknowledged_message_is_lost(tmp_path: Path, flush: str, layout: str) -> None:
    """After each of many kills at random times every acknowledged message is at its offset."""
    seed = int(os.environ.get("LOGSTORE_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"LOGSTORE_SEED={seed}")  # noqa: T201 - shown when the test fails
    chance = random.Random(seed)
    broker = OurRocketMQ(tmp_path, SETTINGS | {"flushDiskType": flush}, layout=layout).start()
    try:
        create_topic(broker, TOPIC, QUEUES)
        ledger = Ledger()
        starts = dict.fromkeys(range(QUEUES), 0)
        for number in range(rounds_wanted()):
            load_until_killed(broker, ledger, number, chance)
            if chance.random() < 0.3:
                kill_while_starting(broker, chance)
            broker.start()
            starts = verify(broker, ledger, starts)
        assert len(ledger.bodies) > 20 * rounds_wanted(), "the load was too small to mean much"
        verify(broker, ledger, dict.fromkeys(range(QUEUES), 0))
    finally:
        broker.stop(kill=True)
