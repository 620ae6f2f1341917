"""Conversions on a cluster of which any process is killed: whole or not there, then finished."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import attrs
import pytest

from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.store import KafkaStore
from tests.interop.eventually import eventually
from tests.interop.spark_cluster import WORKERS, Cluster


def rounds_wanted() -> int:
    """Return how often to kill: LOGSTORE_KILL_ROUNDS, else 3."""
    return int(os.environ.get("LOGSTORE_KILL_ROUNDS", "3"))


pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.timeout(1200 + 300 * rounds_wanted()),
]

COMMAND_SECONDS_MAX = 600
#: the driver more often than others: only it leaves work to somebody else
VICTIMS = ("driver", "driver", "driver", "worker", "executor", "python")
#: of the conversions that were killed, how many are killed again by the next round
AGAIN_SHARE = 0.5
RANDOM_FILES = ("meta.properties", "bootstrap.checkpoint", "partition.metadata")
SETTINGS = {
    "mappedFileSizeCommitLog": "16777216",
    "maxHashSlotNum": "1000",
    "maxIndexNum": "4000",
    "mappedFileSizeConsumeQueue": "20000",
}


@attrs.frozen
class Conversion:
    """One command, which is given again and again."""

    source: Path
    target: Path
    layout: str
    settings: Mapping[str, str]
    master: str

    @property
    def work_folder(self) -> Path:
        """Where it works until it is done."""
        return self.target.with_name(f"{self.target.name}.converting")

    @property
    def log(self) -> Path:
        """What the command has said, in all its runs."""
        return self.target.with_name(f"{self.target.name}.log")

    def start(self) -> subprocess.Popen[bytes]:
        """Start it in a process of its own, which is Spark's driver."""
        command = [sys.executable, "-m", "logstore.tools.cli", "convert"]
        command += [str(self.source), str(self.target), "--to", self.layout]
        command += ["--master", self.master]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        with self.log.open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def run(self) -> float:
        """Let it run to its end; return how many seconds there was something half done."""
        process = self.start()
        began = self.await_work(process)
        assert process.wait(COMMAND_SECONDS_MAX) == 0, self.told()
        return time.monotonic() - began

    def await_work(self, process: subprocess.Popen[bytes]) -> float:
        """Return when it has begun to work."""
        eventually(
            lambda: self.work_folder.exists() or process.poll() is not None,
            COMMAND_SECONDS_MAX,
            what="a conversion that works",
        )
        return time.monotonic()

    def told(self) -> str:
        """Return the end of what it has said."""
        return self.log.read_text(errors="replace")[-3000:]


def make_kafka(directory: Path, partitions: int, count: int, value_bytes: int) -> Path:
    """Make a Kafka store with `count` records in each partition, ten in a batch."""
    store = KafkaStore(system_host(), str(directory))
    chance = random.Random(1)
    for partition in store.create_topic("t", partitions).partitions.values():
        for first in range(0, count, 10):
            partition.append_records(
                [
                    Record(b"k%d" % number, chance.randbytes(value_bytes), 1000 + number)
                    for number in range(first, first + 10)
                ]
            )
    store.close()
    return directory


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A standalone cluster of two workers."""
    found = Cluster(tmp_path)
    yield found
    found.stop()


@pytest.fixture(params=["rocketmq", "kafka"])
def conversion(request: pytest.FixtureRequest, tmp_path: Path, cluster: Cluster) -> Conversion:
    """One of several tasks in each direction; to RocketMQ that takes more than 64 MiB for each."""
    source, target = tmp_path / "source", tmp_path / "target"
    if request.param == "rocketmq":
        make_kafka(source, 4, 350, 64 * 1024)
        return Conversion(source, target, "rocketmq", SETTINGS, cluster.url)
    kafka = make_kafka(tmp_path / "kafka", 12, 300, 1000)
    options = ConvertOptions(str(kafka), str(source), "rocketmq", settings=SETTINGS)
    convert(HereRunner(), options)
    return Conversion(source, target, "kafka", {}, cluster.url)


def fingerprints(target: Path) -> dict[str, str]:
    """Return a digest of every file, as far as it must be the same in each conversion."""
    found: dict[str, str] = {}
    for path in sorted(target.rglob("*")):
        if path.is_file() and not has_random_ids(path):
            name = str(path.relative_to(target))
            if path.parent.name == "index":  # RocketMQ names these by the time of day
                name = f"index/{len([one for one in found if one.startswith('index/')])}"
            found[name] = hashlib.sha256(content_of(path)).hexdigest()
    return found


def content_of(path: Path) -> bytes:
    """Return what stands in a file, but for the time at which a table was changed."""
    if path.name != "topics.json":
        return path.read_bytes()
    table = json.loads(path.read_bytes())
    return json.dumps(
        {name: part for name, part in table.items() if name != "dataVersion"}
    ).encode()


def has_random_ids(path: Path) -> bool:
    """Tell whether a file of a Kafka store has ids that are drawn anew each time, or times."""
    return path.parent.name == "__cluster_metadata-0" or path.name in RANDOM_FILES


def kill_somebody(
    victim: str, process: subprocess.Popen[bytes], cluster: Cluster, chance: random.Random
) -> str:
    """Kill a process of that kind, if there is one right now; return who it was."""
    number = chance.randint(1, WORKERS)
    if process.poll() is not None:
        return "nobody"
    if victim == "driver":
        process.kill()
        return "the driver"
    if victim == "worker":
        cluster.kill(number)
        return f"worker {number} with its executors"
    found = cluster.executors(number) if victim == "executor" else cluster.python_workers(number)
    if not found or not chance.choice(found).kill():
        return "nobody"
    return f"an executor of worker {number}" if victim == "executor" else "a Python worker"


def listed(target: Path) -> tuple[int, str]:
    """Return the exit status of ``logstore ls``, and what it said about the target."""
    done = subprocess.run(
        [sys.executable, "-m", "logstore.tools.cli", "ls", str(target)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.returncode, done.stderr


def check_absent(conversion: Conversion) -> None:
    """Check that nobody can take what is there for a store."""
    status, said = listed(conversion.target)
    assert status != 0
    assert ("is not finished" in said) == conversion.work_folder.exists(), said


@pytest.fixture
def chance() -> random.Random:
    """What the kills follow from."""
    seed = int(os.environ.get("LOGSTORE_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"LOGSTORE_SEED={seed}")  # noqa: T201 - shown when the test fails
    return random.Random(seed)


def test_a_conversion_is_whole_or_not_there_whoever_is_killed(
    conversion: Conversion, cluster: Cluster, chance: random.Random, tmp_path: Path
) -> None:
    """The same files at the end as without a kill; whoever lists them before is told to wait."""
    seconds = conversion.run()
    expected = fingerprints(conversion.target)
    conversion.target.rename(tmp_path / "undisturbed")
    killed = 0
    while killed < rounds_wanted():
        process = conversion.start()
        began = conversion.await_work(process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0, seconds))
        after = time.monotonic() - began
        if process.poll() is not None:
            seconds = after  # this time it was faster
        who = kill_somebody(chance.choice(VICTIMS), process, cluster, chance)
        killed += who != "nobody"
        status = process.wait(COMMAND_SECONDS_MAX)
        is_there = conversion.target.exists()
        print(f"{killed}: {who} after {after:.2f} s: status {status}, {is_there}")  # noqa: T201
        assert status in ((-9, 0) if who == "the driver" else (0,)), conversion.told()
        assert is_there or who == "the driver", "Spark does the work of others again"
        for worker in range(1, WORKERS + 1):
            if cluster.processes[worker].poll() is not None:
                cluster.restart_worker(worker)
        if not is_there:
            check_absent(conversion)
            if chance.random() < AGAIN_SHARE and killed < rounds_wanted():
                continue
            conversion.run()
        assert fingerprints(conversion.target) == expected
        assert listed(conversion.target)[0] == 0
        shutil.rmtree(conversion.target)
    assert killed == rounds_wanted()
