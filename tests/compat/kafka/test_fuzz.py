"""
A broker under attack: damaged, cut, spliced and lying requests, over connections in every state.

Beside what ``tests/test_fuzz.py`` asks of every decoder, the whole conversation is watched here:
every answer is a whole frame that answers a request of its connection, in order; after the attack a
clean client is served, and all that was ever acknowledged stands in the log, also after a restart.

`./dev test` does this for some seconds with the same attacks each time, `./dev fuzz SECONDS` for as
long as you like with new ones. A failure names its seed; LOGSTORE_FUZZ_SEED repeats it.
"""

from __future__ import annotations

import gc
import json
import os
import random
import struct
import time
import tracemalloc
import uuid
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.connection import KafkaConnection
from logstore.compat.kafka.registry import APIS
from logstore.segments.kafka.compression import Codec
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import CRC_POSITION, altered, batch
from tests.compat.kafka.conversation import joined
from tests.compat.kafka.peer import Peer, a_broker, fetch_fields, produce_fields
from tests.damage import BAD_INTEGERS, damaged

GOLDEN = Path(__file__).parents[2] / "golden" / "wire"
ASKED_SECONDS = float(os.environ.get("LOGSTORE_FUZZ_SECONDS", "0"))
ASKED_SEED = os.environ.get("LOGSTORE_FUZZ_SEED")
USUAL_ATTACKS = 40
FRAMES_A_ATTACK = 120
ATTACK_SECONDS_MAX = 20.0
MIB = 1024 * 1024
#: a little after the recordings
NOW_MS = 1_795_300_000_000
TOPICS = {
    "wire-librdkafka": {},
    "wire-java": {"message.timestamp.type": "LogAppendTime"},
    "compact": {"cleanup.policy": "compact", "internal.segment.bytes": "2000"},
    "zstd": {"compression.type": "zstd"},
    "t": {},
}
SETTINGS = {"offsets_topic_num_partitions": 1, "group_initial_rebalance_delay_ms": 0}


@cache
def honest_frames() -> list[bytes]:
    """Return what real clients sent of the APIs that are served, as payloads."""
    return [
        bytes.fromhex(event["hex"])
        for path in sorted(GOLDEN.glob("*.jsonl"))
        for event in map(json.loads, path.read_text().splitlines())
        if event["from"] == "client" and event["api_key"] in APIS
    ]


class Attacked:
    """One connection, all that was sent over it, and all that came back."""

    def __init__(self, broker: Broker) -> None:
        self.connection: KafkaConnection = broker.connect("127.0.0.1")
        self.sent = bytearray()
        self.came = bytearray()

    @property
    def is_usable(self) -> bool:
        """Tell whether there is a point in sending more."""
        return not self.connection.is_closing and len(self.sent) < MIB

    def send(self, data: bytes, chance: random.Random) -> None:
        """Send bytes in some pieces."""
        self.sent += data
        cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice((0, 0, 1, 5))))
        for start, end in pairwise([0, *cuts, len(data)]):
            self.came += joined(self.connection.feed(data[start:end]))

    def take(self) -> None:
        """Take what was answered late."""
        self.came += joined(self.connection.output)
        self.connection.output.clear()

    def check(self) -> None:
        """Every answer is a whole frame, and answers some request, in order."""
        self.take()
        asked = iter(correlation_ids(self.sent))
        for answered in correlation_ids(self.came, is_whole=True):
            assert any(answered == number for number in asked), f"nobody asked {answered}"


def correlation_ids(stream: bytes | bytearray, *, is_whole: bool = False) -> list[int]:
    """Return the correlation id of every frame; requests have it at 4, answers at 0."""
    found: list[int] = []
    position, id_position = 0, 0 if is_whole else 4
    while position + 4 <= len(stream):
        (size_bytes,) = struct.unpack_from(">i", stream, position)
        if size_bytes < id_position + 4 or position + 4 + size_bytes > len(stream):
            assert not is_whole, f"an answer of {size_bytes} bytes"
            break
        found.append(struct.unpack_from(">i", stream, position + 4 + id_position)[0])
        position += 4 + size_bytes
    assert position == len(stream) or not is_whole, "an answer is cut short"
    return found


class Attack:
    """A broker, and everything that one seed does to it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.host = SimulatedHost(seed, clock=ManualClock(NOW_MS))
        self.broker = a_broker(self.host, **SETTINGS)
        for name, settings in TOPICS.items():
            self.broker.create_topic(name, 2, settings)
        self.topic_ids = [topic.topic_id for topic in self.broker.topics.values()]
        self.acknowledged: list[tuple[int, bytes]] = []
        self._writer = Peer(self.broker)

    def run(self) -> None:
        """Attack, with an honest producer and time passing in between."""
        honest = Peer(self.broker)
        attacked = [Attacked(self.broker) for _ in range(3)]
        for number in range(FRAMES_A_ATTACK):
            index = self.chance.randrange(len(attacked))
            attacked[index].send(self.ammunition(), self.chance)
            if not attacked[index].is_usable:
                attacked[index].check()
                attacked[index].connection.lost()
                attacked[index] = Attacked(self.broker)
            if number % 10 == 0:
                self.produce(honest, b"honest %d" % number)
                self.host.clock.advance(self.chance.choice((0, 10, 1000, 40_000)))
                self.broker.timers.run()
        for one in attacked:
            one.check()
        self.check_broker()

    def ammunition(self) -> bytes:
        """Return the next bytes to send: a frame or several, honest or not."""
        chance = self.chance
        frame = chance.choice(honest_frames())
        match chance.randrange(12):
            case 0:
                payload = frame
            case 4 | 5:
                payload = self.a_produce()
            case 6 | 7:
                payload = self.a_fetch()
            case 1:  # one request's head on another one's body
                other = chance.choice(honest_frames())
                payload = (
                    frame[: chance.randrange(len(frame))] + other[chance.randrange(len(other)) :]
                )
            case 2:  # any API in any version
                api = APIS[chance.choice(list(APIS))]
                version = chance.randrange(api.version_min, api.version_max + 1)
                payload = struct.pack(">hh", api.key, version) + frame[4:]
            case 3:  # an id of a topic that there is
                position = chance.randrange(8, len(frame) + 1)
                payload = frame[:position] + chance.choice(self.topic_ids) + frame[position + 16 :]
            case _:
                payload = damaged(frame, chance, first=chance.choice((0, 8, 8, 8)))
        length = struct.pack(">i", len(payload))
        match chance.randrange(40):
            case 0:  # a lie about the length
                length = struct.pack(">i", max(0, len(payload) + chance.randrange(-20, 20)))
            case 1:
                length = chance.choice(BAD_INTEGERS)[:4]
            case 2:  # no frame at all
                return chance.randbytes(chance.randrange(1, 200))
            case _:
                pass
        return length + payload

    def a_produce(self) -> bytes:
        """Return a Produce that is well formed, of a batch that may be anything but has its CRC."""
        chance = self.chance
        version = chance.randrange(3, 14)
        data = batch(
            *[chance.randbytes(chance.randrange(50)) for _ in range(chance.randrange(1, 4))],
            key=chance.choice((None, b"key")),
            timestamp_ms=self.host.clock.wall_ms(),
            codec=chance.choice(list(Codec)),
            producer=(chance.randrange(-1, 3), chance.randrange(-1, 2), chance.randrange(-1, 4)),
            is_transactional=chance.random() < 0.1,
        )
        if chance.random() < 0.5:
            data = damaged(data, chance, first=chance.choice((0, 12, 61)))
        if chance.random() < 0.9 and len(data) >= 61:
            data = altered(data, CRC_POSITION, "I", 0)
        fields = produce_fields(
            [(self.a_topic(version), [(chance.randrange(3), data)])], version,
            chance.choice((0, 1, -1)),
        )  # fmt: skip
        return self._writer.encoded("Produce", version, fields)[4:]

    def a_fetch(self) -> bytes:
        """Return a Fetch that is well formed and may ask for anything."""
        chance = self.chance
        version = chance.randrange(4, 19)
        numbers = (-1, 0, 1, 2, 100, 2**31 - 1, -(2**31))
        asked: list[dict[str, int]] = []
        for _ in range(chance.randrange(4)):
            one = {
                "partition": chance.choice((0, 1, chance.choice(numbers))),
                "fetch_offset": chance.choice((0, 1, 5, 2**62, -1)),
                "partition_max_bytes": chance.choice(numbers),
            }
            if version >= 9:
                one["current_leader_epoch"] = chance.choice((-1, 0, 1))
            if version >= 12:
                one["last_fetched_epoch"] = chance.choice((-1, 0, 1))
            asked.append(one)
        more: dict[str, int] = {
            "max_wait_ms": chance.choice(numbers),
            "min_bytes": chance.choice(numbers),
            "max_bytes": chance.choice(numbers),
            "isolation_level": chance.randrange(2),
        }
        if version >= 7:
            sessions = self.broker.fetch_sessions.ids()
            more["session_id"] = chance.choice([0, 1, *sessions])
            more["session_epoch"] = chance.choice((-1, 0, 0, 1, 1, 2, 3))
        topics = [(self.a_topic(version), asked) for _ in range(chance.randrange(1, 3))]
        fields = fetch_fields(topics, version, forgotten=[(topics[0][0], [0])], **more)
        return self._writer.encoded("Fetch", version, fields)[4:]

    def a_topic(self, version: int) -> Any:
        """Return a topic as a request of this version names it; perhaps one that is not there."""
        if version >= 13:
            return uuid.UUID(bytes=self.chance.choice([*self.topic_ids, bytes(15) + b"7"]))
        return self.chance.choice([*TOPICS, "nowhere", "__consumer_offsets"])

    def produce(self, peer: Peer, value: bytes) -> None:
        """Produce as an honest client does, and remember what was acknowledged."""
        if "t" not in self.broker.topics:  # an attacker may delete it
            self.broker.create_topic("t", 2)
            self.acknowledged.clear()
        data = batch(value, timestamp_ms=self.host.clock.wall_ms())
        result = peer.produce([("t", [(0, data)])]).partition
        if result["error_code"] == 0:
            self.acknowledged.append((result["base_offset"], value))

    def check_broker(self) -> None:
        """A clean client is served; every log is sound, now and after a restart."""
        peer = Peer(self.broker)
        assert peer.ask("Metadata", 12, {"topics": None}).message["brokers"]
        self.produce(peer, b"the last one")
        check_lists(self.broker)
        self.check_logs(self.broker)
        self.host.fs.process_death()
        again = a_broker(self.host, **SETTINGS)
        for partition in again.store.partitions():
            assert partition.recovery is None or partition.recovery.is_clean
        check_lists(again)
        self.check_logs(again)

    def check_logs(self, broker: Broker) -> None:
        """Every batch has its CRC and its place; what was acknowledged stands where it was said."""
        for partition in broker.store.partitions():
            next_offset = partition.log.start_offset
            for entry in partition.log.entries():
                assert (entry.base_offset, entry.crc) == (next_offset, entry.computed_crc())
                next_offset = entry.next_offset
            assert next_offset == partition.end_offset
        log = broker.topics["t"].partitions[0]
        for offset, value in self.acknowledged:
            if offset >= log.start_offset:  # an attacker may delete records, and the topic
                (record,) = log.read_records(offset, 1)
                assert (record.offset, record.value) == (offset, value)


def check_lists(broker: Broker) -> None:
    """Whatever an attacker left, all of it can be listed and described, by everybody."""
    peer = Peer(broker)
    groups = peer.ask("ListGroups", 4, {"states_filter": []}).message["groups"]
    names = [group["group_id"] for group in groups]
    asked = {"groups": names, "include_authorized_operations": False}
    described = peer.ask("DescribeGroups", 5, asked).message["groups"]
    assert [group["group_id"] for group in described] == names
    filters: dict[str, Any] = {"state_filters": [], "producer_id_filters": []}
    found = peer.ask("ListTransactions", 0, filters).message["transaction_states"]
    ids = [one["transactional_id"] for one in found]
    described = peer.ask("DescribeTransactions", 0, {"transactional_ids": ids}).message
    assert [one["transactional_id"] for one in described["transaction_states"]] == ids


def seeds() -> list[int]:
    """Return the seeds of one run, as many as fit its time."""
    if ASKED_SEED is not None:
        return [int(ASKED_SEED)]
    if ASKED_SECONDS:
        return [random.SystemRandom().randrange(1 << 48) for _ in range(1_000_000)]
    return list(range(USUAL_ATTACKS))


@pytest.mark.timeout(0)
@pytest.mark.parametrize("share", range(2))
def test_a_fuzzed_broker_lives_on(share: int, caplog: pytest.LogCaptureFixture) -> None:
    """No handler breaks, no answer is out of place, nothing that was acknowledged is lost."""
    deadline = time.monotonic() + (ASKED_SECONDS or float("inf"))
    for seed in seeds()[share::2]:
        began = time.monotonic()
        try:
            Attack(seed).run()
            broken = [one for one in caplog.records if one.exc_info]
            assert broken == [], caplog.text
        except Exception as error:
            raise AssertionError(f"LOGSTORE_FUZZ_SEED={seed}: {error!r}") from error
        assert time.monotonic() - began < ATTACK_SECONDS_MAX, f"LOGSTORE_FUZZ_SEED={seed} is slow"
        caplog.clear()
        if time.monotonic() > deadline:
            return
    assert ASKED_SECONDS == 0 or ASKED_SEED


def test_fuzz_takes_no_memory() -> None:
    """Requests that claim to be large, or to hold many things, get no memory for it."""
    broker = a_broker(SimulatedHost(), **SETTINGS)
    for name in TOPICS:
        broker.create_topic(name, 2)
    chance = random.Random(7)
    frames = [frame for frame in honest_frames() if len(frame) < 2000]
    gc.collect()
    tracemalloc.start()
    try:
        for frame in frames[::2]:
            position = chance.randrange(8, len(frame))
            lie = frame[:position] + chance.choice(BAD_INTEGERS) + frame[position + 4 :]
            connection = broker.connect("127.0.0.1")
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            connection.feed(struct.pack(">i", len(lie)) + lie)
            connection.lost()
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before < 16 * MIB, lie.hex()
    finally:
        tracemalloc.stop()


def test_a_fuzzer_would_notice() -> None:
    """An answer to nobody, half an answer, a lost record: each fails the attack."""
    attack = Attack(1)
    attack.acknowledged.append((0, b"never written"))
    with pytest.raises((AssertionError, ValueError)):
        attack.check_logs(attack.broker)
    one = Attacked(attack.broker)
    one.sent += struct.pack(">ihhi", 8, 18, 0, 5)
    for came in (struct.pack(">ii", 4, 6), struct.pack(">ii", 9, 5), b"\0\0"):
        one.came = bytearray(came)
        with pytest.raises(AssertionError):
            one.check()
    one.came = bytearray(struct.pack(">ii", 4, 5))
    one.check()
