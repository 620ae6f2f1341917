"""A query over a live store that is killed again and again: every record once, the lag in sight."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import confluent_kafka
import pytest
from confluent_kafka import Producer

from logstore.compat.spark import lag
from logstore.os_host import system_host
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.kafka.store import StoreOptions as KafkaOptions
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.segments.rocketmq.store import StoreOptions as RocketMQOptions
from tests.interop import spark_follower
from tests.interop.clients import settings
from tests.interop.conftest import SETTINGS, new_topic
from tests.interop.eventually import eventually
from tests.interop.our_broker import OurBroker
from tests.interop.spark_follower import TOPIC


def rounds_wanted() -> int:
    """Return how often to kill: LOGSTORE_KILL_ROUNDS, else 3."""
    return int(os.environ.get("LOGSTORE_KILL_ROUNDS", "3"))


pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.timeout(1200 + 300 * rounds_wanted()),
]

PARTITIONS = 3
#: how long a query needs to start on a busy machine
QUERY_SECONDS_MAX = 600
SLOW_START = "Python worker failed to connect back"
#: of the queries, how many are killed before they have done anything
EARLY_SHARE = 0.2
EARLY_SECONDS_MAX = 8
LATE_SECONDS_MAX = 2
#: of the kills, how many hit the driver's Python alone, and leave its JVM to find out
ALONE_SHARE = 0.5
FILES: dict[str, object] = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 20_000,
    "maxHashSlotNum": 1000,
    "maxIndexNum": 4000,
}


class Load:
    """Somebody who goes on producing."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: dict[tuple[int, int], str] = {}
        self._errors: list[object] = []
        self._is_over = threading.Event()
        self._producer = Producer(
            settings(bootstrap) | {"enable.idempotence": True, "linger.ms": 5}
        )
        self._thread = threading.Thread(target=self._produce, name="load")
        self._thread.start()

    def _produce(self) -> None:
        number = 0
        while not self._is_over.wait(0.1):
            for _ in range(20):
                value = f"{number:08d}" * 12
                self._producer.produce(
                    TOPIC, value, partition=number % PARTITIONS, on_delivery=self._told
                )
                number += 1
            self._producer.poll(0)

    def _told(self, error: object, message: confluent_kafka.Message) -> None:
        partition, offset, value = message.partition(), message.offset(), message.value()
        if error is not None:
            self._errors.append(error)
        elif partition is not None and offset is not None and isinstance(value, bytes):
            self.acknowledged[partition, offset] = value.decode()

    def stop(self) -> dict[tuple[int, int], str]:
        """Stop producing; return what is stored, by partition and offset."""
        self._is_over.set()
        self._thread.join()
        self._producer.flush(30)
        assert self._errors == []
        return self.acknowledged


@attrs.define
class Follower:
    """The query, which goes on where its checkpoint says."""

    folder: Path
    store: Path
    kind: str
    process: subprocess.Popen[bytes] | None = None

    @property
    def sink(self) -> Path:
        """Where the records go."""
        return self.folder / "sink"

    @property
    def log(self) -> Path:
        """What it says, in all its lives."""
        return self.folder / "query.log"

    def start(self) -> None:
        """Start it in a process group of its own."""
        self.folder.joinpath("sink").mkdir(parents=True, exist_ok=True)
        words = [self.store, self.sink, self.folder / "checkpoint", self.folder / "progress.jsonl"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, spark_follower.__file__, *map(str, words), self.kind],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def kill(self, *, is_alone: bool = False) -> None:
        """Kill it by SIGKILL: the driver's Python, and with it all of its processes or not."""
        process, self.process = self.process, None
        if process is None:
            return
        assert process.poll() is None or SLOW_START in self.told(), self.told()
        if is_alone:
            process.kill()
        else:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def told(self) -> str:
        """Return the end of what it has said."""
        return self.log.read_text(errors="replace")[-4000:]

    def progress(self) -> list[dict[str, Any]]:
        """Return what Spark said of the micro-batches; a kill may have torn a line."""
        found: list[dict[str, Any]] = []
        path = self.folder / "progress.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            with suppress(json.JSONDecodeError):
                found.append(json.loads(line))
        return found

    def batches(self) -> int:
        """Return how many micro-batches the checkpoint has as done."""
        folder = self.folder / "checkpoint" / "commits"
        return len([path for path in folder.glob("*") if path.name.isdigit()])

    def has_done(self, batches: int) -> bool:
        """Tell whether it has done more than so many."""
        return self.batches() > batches

    def await_that(self, is_so: Callable[[], bool]) -> None:
        """Wait while it goes forward; a query that Spark gives up itself is started again."""
        while not is_so():
            if self.has_ended():
                # Spark's own ten seconds for a Python process to start can be too few.
                assert SLOW_START in self.told(), self.told()
                self.start()
            self._await_a_step(is_so)

    def _await_a_step(self, is_so: Callable[[], bool]) -> None:
        done = self.batches()
        eventually(
            lambda: is_so() or self.has_done(done) or self.has_ended(),
            QUERY_SECONDS_MAX,
            what="the query",
        )

    def has_ended(self) -> bool:
        """Tell whether it has ended by itself."""
        return self.process is not None and self.process.poll() is not None


@pytest.fixture(params=["kafka", "rocketmq"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OurBroker]:
    """A broker of its own on either layout, with a topic of small segments, or small files."""
    over = ("--protocol", "kafka", "--layout", request.param)
    own = OurBroker(tmp_path / "broker", SETTINGS | FILES, arguments=over).start()
    config = {"internal.segment.bytes": "100000", "index.interval.bytes": "2000"}
    new_topic(own.bootstrap, TOPIC, PARTITIONS, config)
    yield own
    own.stop(kill=True)


def in_files(sink: Path) -> list[tuple[int, int, str]]:
    """Return (partition, offset, value) of all that stands in the batches' files."""
    return [
        tuple(row) for path in sorted(sink.glob("*.json")) for row in json.loads(path.read_text())
    ]


def in_store(sink: Path, layout: str) -> list[tuple[int, str]]:
    """Return (partition, value) of all that stands in a store, partition by partition."""
    if layout == "kafka":
        kafka = KafkaStore(system_host(), str(sink), KafkaOptions(is_writable=False))
        found = [
            (index, record.value or b"")
            for index, partition in sorted(kafka.topics()[TOPIC].items())
            for record in partition.read_records(0, 10**6)
        ]
        kafka.close()
    else:
        files = {"mappedFileSizeCommitLog": str(1 << 20)}
        options = RocketMQOptions(is_writable=False, settings=files)
        store = RocketMQStore(system_host(), str(sink), options)
        found = [
            (index, message.body)
            for index, queue in sorted(store.topics()[TOPIC].items())
            for message in queue.messages(0, 10**6)
        ]
        store.close()
    return [(index, value.decode()) for index, value in found]


@pytest.fixture
def chance() -> random.Random:
    """What the kills follow from."""
    seed = int(os.environ.get("LOGSTORE_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"LOGSTORE_SEED={seed}")  # noqa: T201 - shown when the test fails
    return random.Random(seed)


def kill_again_and_again(follower: Follower, chance: random.Random) -> None:
    """Start the query and kill it at a random time, mostly when it has done something."""
    for number in range(rounds_wanted()):
        done = follower.batches()
        follower.start()
        assert follower.process is not None
        is_early = chance.random() < EARLY_SHARE
        if not is_early:
            follower.await_that(partial(follower.has_done, done))
        seconds = chance.uniform(0, EARLY_SECONDS_MAX if is_early else LATE_SECONDS_MAX)
        with suppress(subprocess.TimeoutExpired):
            follower.process.wait(seconds)
        is_alone = chance.random() < ALONE_SHARE
        follower.kill(is_alone=is_alone)
        print(f"{number}: {done} to {follower.batches()} batches, early {is_early}, {is_alone}")  # noqa: T201


def behind(follower: Follower) -> list[int]:
    """Return the lag of every micro-batch, -1 before the first."""
    return [-1, *(sum(lag(one).values()) for one in follower.progress())]


def taken(follower: Follower) -> int:
    """Return how many offsets the micro-batches that are done have had together."""
    found = follower.progress()
    places = found[-1]["sources"][0]["endOffset"] if found else {}
    return sum(places.get(TOPIC, {}).values())


def followed(
    broker: OurBroker, follower: Follower, chance: random.Random
) -> dict[tuple[int, int], str]:
    """Kill the query under load, then let it catch up; return what it must have seen."""
    load = Load(broker.bootstrap)
    try:
        kill_again_and_again(follower, chance)
        stored = load.stop()
        follower.start()
        follower.await_that(lambda: taken(follower) >= len(stored))
    finally:
        load.stop()
        follower.kill()
    return stored


def test_every_record_comes_once(broker: OurBroker, chance: random.Random, tmp_path: Path) -> None:
    """In files of an idempotent sink; the progress shows what is still to come, at last nothing."""
    follower = Follower(tmp_path / "query", broker.data, "files")
    stored = followed(broker, follower, chance)
    found = in_files(follower.sink)
    assert sorted(found) == sorted((*place, value) for place, value in stored.items())
    assert len(found) > 100 * rounds_wanted()
    assert max(behind(follower)) > 0
    assert behind(follower)[-1] == 0


@pytest.mark.parametrize("broker", ["kafka"], indirect=True)
@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_a_store_gets_every_record_once(
    layout: str, broker: OurBroker, chance: random.Random, tmp_path: Path
) -> None:
    """In its partition, in the order of the source, however often who writes it was killed."""
    follower = Follower(tmp_path / "query", broker.data, layout)
    stored = followed(broker, follower, chance)
    found = in_store(follower.sink, layout)
    assert found == [(partition, value) for (partition, _), value in sorted(stored.items())]
    assert len(found) > 100 * rounds_wanted()
