"""Conversions that are killed, tried twice, or run side by side."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.convert.work_folder import TargetError, WorkFolder
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments import UnfinishedConversionError, open_store
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions

#: many small files, so that there is much to be in the middle of
SETTINGS = {
    "mappedFileSizeCommitLog": "8192",
    "maxHashSlotNum": "100",
    "maxIndexNum": "400",
    "mappedFileSizeConsumeQueue": "2000",
}
COUNT = 400
PROGRAM = """
import json, sys
from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
source, target, layout, settings = sys.argv[1:]
options = ConvertOptions(source, target, layout, settings=json.loads(settings), task_bytes=8192)
print("ready", flush=True)
sys.stdin.readline()
convert(HereRunner(), options)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two partitions with four hundred records each."""
    store = KafkaStore(system_host(), str(tmp_path / "source"))
    for partition in store.create_topic("t", 2).partitions.values():
        for number in range(COUNT):
            partition.append_records([Record(b"k", b"%03d" % number * 50, 1000 + number)])
    store.close()
    return tmp_path / "source"


def options_for(source: Path, target: Path) -> ConvertOptions:
    """Return what PROGRAM asks for too."""
    return ConvertOptions(str(source), str(target), "rocketmq", settings=SETTINGS, task_bytes=8192)


def bodies(target: Path) -> list[bytes]:
    """Return the bodies of all messages, queue by queue."""
    options = StoreOptions(is_writable=False, settings=SETTINGS)
    store = RocketMQStore(system_host(), str(target), options)
    found = [
        message.body
        for _, queue in sorted(store.topics()["t"].items())
        for message in queue.messages(0, 10**6)
    ]
    store.close()
    return found


def start(source: Path, target: Path) -> subprocess.Popen[str]:
    """Start a conversion in a process of its own; it has begun when this returns."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, source, target, "rocketmq", json.dumps(SETTINGS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("go\n")
    process.stdin.flush()
    return process


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_killed_conversion_is_whole_or_not_there(seed: int, source: Path, tmp_path: Path) -> None:
    """Killed at any moment, again and again; in the end one run finishes what the others began."""
    target, chance = tmp_path / "target", random.Random(seed)
    kill_count = 3 if seed == 1 else 20
    for _ in range(kill_count):
        process = start(source, target)
        try:
            process.wait(chance.uniform(0, 0.5))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        if not target.exists():
            with pytest.raises(UnfinishedConversionError):
                open_store(target)
    report = convert(HereRunner(), options_for(source, target))
    assert report["messages"] == 2 * COUNT
    expected = [b"%03d" % number * 50 for _ in range(2) for number in range(COUNT)]
    assert bodies(target) == expected
    assert not (tmp_path / "target.converting").exists()
    other = tmp_path / "other"
    convert(HereRunner(), options_for(source, other))
    for path in sorted((other / "commitlog").iterdir()):
        assert (target / "commitlog" / path.name).read_bytes() == path.read_bytes()


def test_what_is_done_is_not_done_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that fails in its third task leaves two; the next one makes only the others."""
    from logstore.compat.spark.convert.commit_log_task import CommitLogTask

    options = options_for(source, tmp_path / "target")
    run, seen = CommitLogTask.run, list[int]()

    def failing(task: CommitLogTask, attempt: object) -> int:
        if task.number == 2 and 2 not in seen:
            seen.append(2)
            raise OSError("the disk is full")
        seen.append(task.number)
        return run(task, attempt)  # type: ignore[arg-type]

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


def test_a_second_run_beside_the_first_is_refused(source: Path, tmp_path: Path) -> None:
    """Two would write the same files."""
    target = tmp_path / "target"
    with WorkFolder(str(target)).locked(), pytest.raises(TargetError, match="is running"):
        convert(HereRunner(), options_for(source, target))
