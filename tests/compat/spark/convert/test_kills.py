"""Conversions that are killed, tried twice, or run side by side."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest

from logstore import os_host
from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.derived_parts import Derived
from logstore.compat.spark.convert.job import HereRunner, run_tasks
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.convert.work_folder import (
    Attempt,
    DiskFullError,
    TargetError,
    WorkFolder,
)
from logstore.errors import ForeignDirectoryError
from logstore.os_host import SystemFile, system_host
from logstore.partition import Record
from logstore.segments import open_store
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.kafka.store import StoreOptions as KafkaOptions
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: many small files, so that there is much to be in the middle of
SETTINGS = {
    "mappedFileSizeCommitLog": "8192",
    "maxHashSlotNum": "100",
    "maxIndexNum": "400",
    "mappedFileSizeConsumeQueue": "2000",
}
COUNT = 400
#: a conversion that kills itself at its n-th step on the way, or in the part that completes
PROGRAM = """
import json, os, signal, sys
from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
source, target, layout, settings = sys.argv[1:]
options = ConvertOptions(source, target, layout, settings=json.loads(settings), task_bytes=8192)
STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree"}

def run(stage, step):
    seen = {"stage": "tasks", "steps": 0}

    def look(event, args):
        if event in STEPS and target in str(args[0]):
            if seen["stage"] == stage:
                if seen["steps"] == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                seen["steps"] += 1

    def tell(what, done, total):
        if what == "indexing":
            seen.update(stage="completing", steps=0)

    sys.addaudithook(look)
    convert(HereRunner(), options, tell)
    return seen["steps"] if seen["stage"] == stage else 0

print("ready", flush=True)
for line in sys.stdin:
    stage, step = line.split()
    child = os.fork()
    if child == 0:
        run(stage, int(step))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
#: how often a conversion is killed; the whole of it is for a quiet hour
KILLS = int(os.environ.get("LOGSTORE_CONVERT_KILLS", "4"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two partitions with four hundred records each."""
    store = KafkaStore(system_host(), str(tmp_path / "source"))
    for partition in store.create_topic("t", 2).partitions.values():
        for number in range(COUNT):
            partition.append_records([Record(b"k", b"%03d" % number * 50, 1000 + number)])
    store.close()
    return tmp_path / "source"


@pytest.fixture
def rocketmq_source(source: Path, tmp_path: Path) -> Path:
    """The same as a RocketMQ store."""
    target = tmp_path / "rocketmq-source"
    convert(HereRunner(), options_for(source, target))
    return target


def options_for(source: Path, target: Path, layout: str = "rocketmq") -> ConvertOptions:
    """Return what PROGRAM asks for too."""
    settings = SETTINGS if layout == "rocketmq" else {}
    return ConvertOptions(str(source), str(target), layout, settings=settings, task_bytes=8192)


def values(target: Path, layout: str) -> list[bytes | None]:
    """Return all bodies or values, queue by queue."""
    if layout == "kafka":
        kafka = KafkaStore(system_host(), str(target), KafkaOptions(is_writable=False))
        found = [
            record.value
            for _, partition in sorted(kafka.topics()["t"].items())
            for record in partition.read_records(0, 10**6)
        ]
        kafka.close()
        return found
    options = StoreOptions(is_writable=False, settings=SETTINGS)
    store = RocketMQStore(system_host(), str(target), options)
    bodies: list[bytes | None] = [
        message.body
        for _, queue in sorted(store.topics()["t"].items())
        for message in queue.messages(0, 10**6)
    ]
    store.close()
    return bodies


class Suicidal:
    """Conversions in processes of their own, each killed at a step of its own choice."""

    def __init__(self, source: Path, target: Path, layout: str) -> None:
        settings = SETTINGS if layout == "rocketmq" else {}
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, source, target, layout, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def run(self, stage: str, step: int) -> bool:
        """Run a conversion up to a step of a stage; tell whether it was killed there."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{stage} {step}\n")
        self._process.stdin.flush()
        code = int(self._line())
        assert code in (0, -signal.SIGKILL)
        return code != 0

    def stop(self) -> None:
        """End the process that starts them."""
        self._process.communicate()


@pytest.mark.parametrize("layout", ["rocketmq", "kafka"])
def test_a_killed_conversion_is_whole_or_not_there(
    layout: str, source: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Killed at any step, in tasks and when completing; some run finishes what others began."""
    if layout == "kafka":
        source = request.getfixturevalue("rocketmq_source")
    target, chance = tmp_path / "target", random.Random(KILLS)
    conversions = Suicidal(source, target, layout)
    killed: list[str] = []
    try:
        while len(killed) < KILLS:
            # Steps of tasks get fewer with every run, which goes on with what is done.
            stage, step_max = ("tasks", 60) if len(killed) % 2 == 0 else ("completing", 40)
            if not conversions.run(stage, chance.randrange(step_max)):
                assert values(target, layout) == expected_values()
                shutil.rmtree(target)
                continue
            killed.append(stage)
            if target.exists():
                assert values(target, layout) == expected_values()
                shutil.rmtree(target)  # killed behind its last step
            else:
                with pytest.raises(ForeignDirectoryError):
                    open_store(target)
    finally:
        conversions.stop()
    assert {"tasks", "completing"} == set(killed)
    report = convert(HereRunner(), options_for(source, target, layout))
    assert report["messages"] == 2 * COUNT
    assert values(target, layout) == expected_values()
    assert not (tmp_path / "target.converting").exists()
    other = tmp_path / "other"
    convert(HereRunner(), options_for(source, other, layout))
    for path in sorted([*other.glob("commitlog/*"), *other.glob("consumequeue/*/*/*")]):
        assert (target / path.relative_to(other)).read_bytes() == path.read_bytes()
    for path in sorted(other.glob("t-*/0*.*")):
        assert (target / path.relative_to(other)).read_bytes() == path.read_bytes()


def expected_values() -> list[bytes]:
    """Return the values of the source, partition by partition."""
    return [b"%03d" % number * 50 for _ in range(2) for number in range(COUNT)]


class TornFile(SystemFile):
    """A file of a disk that is full behind so many bytes; see :class:`FullDisk`."""

    room_bytes = 0

    def write(self, position: int, data: Buffer) -> None:
        """Write what fits."""
        view = memoryview(data).cast("B")
        fitting = view[: max(0, TornFile.room_bytes)]
        TornFile.room_bytes -= len(view)
        super().write(position, fitting)
        if len(fitting) < len(view):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("layout", ["rocketmq", "kafka"])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.97])
def test_a_full_disk_is_told_and_gone_on_with(
    layout: str,
    share: float,
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """One line says what to do; there is no target; the same command finishes it later."""
    if layout == "kafka":
        source = request.getfixturevalue("rocketmq_source")
    measured = tmp_path / "measured"
    monkeypatch.setattr(os_host, "SystemFile", TornFile)
    TornFile.room_bytes = room_bytes = 10**12
    convert(HereRunner(), options_for(source, measured, layout))
    written_bytes = room_bytes - TornFile.room_bytes
    TornFile.room_bytes = int(share * written_bytes)
    target = tmp_path / "target"
    with pytest.raises(DiskFullError, match="make room and run the same command again"):
        convert(HereRunner(), options_for(source, target, layout))
    assert not target.exists()
    assert list((tmp_path / "target.converting" / "attempts").iterdir()) == []
    TornFile.room_bytes = room_bytes
    convert(HereRunner(), options_for(source, target, layout))
    assert values(target, layout) == expected_values()


def test_what_is_done_is_not_done_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that fails in its third task leaves two; the next one makes only the others."""
    from logstore.compat.spark.convert.commit_log_task import CommitLogTask

    options = options_for(source, tmp_path / "target")
    run, seen = CommitLogTask.run, list[int]()

    def failing(task: CommitLogTask, attempt: Attempt) -> Derived | None:
        if task.number == 2 and 2 not in seen:
            seen.append(2)
            raise OSError("the disk is full")
        seen.append(task.number)
        return run(task, attempt)

    monkeypatch.setattr(CommitLogTask, "run", failing)
    with pytest.raises(OSError, match="full"):
        convert(HereRunner(), options)
    assert seen == [0, 1, 2]
    convert(HereRunner(), options)
    assert seen[3:] == list(range(2, max(seen) + 1))


def test_two_tries_of_one_task_do_not_disturb_each_other(tmp_path: Path) -> None:
    """The slow one's half-written files are nobody's until it is done, and then the same."""
    folder = WorkFolder(str(tmp_path / "target"))
    folder.save_plan("wishes", "plan")
    slow, fast = folder.begin_attempt(7), folder.begin_attempt(7)
    (slow.data / "file").write_bytes(b"ha")
    (fast.data / "file").write_bytes(b"half")
    fast.publish(folder)
    assert (folder.data / "file").read_bytes() == b"half"
    (slow.data / "file").write_bytes(b"half")
    slow.publish(folder)
    assert (folder.data / "file").read_bytes() == b"half"


@attrs.frozen
class Overtaken:
    """A task of which another run clears away the try while it is at it."""

    target: str
    number: int = 7
    size_bytes: int = 1

    def run(self, attempt: Attempt) -> None:
        """Write a file, too late."""
        WorkFolder(self.target).clear_attempts()
        assert not attempt.path.exists()


def test_a_try_that_was_cleared_away_is_not_done(tmp_path: Path) -> None:
    """Its worker has outlived its driver; a third run would miss the files it speaks of."""
    folder = WorkFolder(str(tmp_path / "target"))
    folder.save_plan("wishes", "plan")
    with pytest.raises(TargetError, match="another run goes on"):
        run_tasks(HereRunner(), folder, [Overtaken(str(tmp_path / "target"))])
    assert not folder.is_done(7)
    assert list((tmp_path / "target.converting").glob("cleared-*")) == []


def test_a_second_run_beside_the_first_is_refused(source: Path, tmp_path: Path) -> None:
    """Two would write the same files."""
    target = tmp_path / "target"
    with WorkFolder(str(target)).locked(), pytest.raises(TargetError, match="is running"):
        convert(HereRunner(), options_for(source, target))
