"""``logstore salvage`` keeps every readable message of a damaged RocketMQ store, at its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logstore.os_host import system_host
from logstore.segments.rocketmq.messages.message import Message
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from logstore.tools.inspection.rebuilding.new_directory import WORK_FOLDER
from logstore.tools.inspection.rocketmq.rebuilding.store_salvage import StoreSalvage
from tests.segments.rocketmq.golden_case import GoldenCase, RecoveredPair, golden_cases
from tests.segments.rocketmq.golden_records import stored_records
from tests.tools.command_line import CommandLine

PAIRS = [
    pytest.param(case, pair, id=f"{case.id}-{pair.name}")
    for case in golden_cases("damage", "crash", "crash-pool")
    for pair in case.pairs
]
STORED = [
    pytest.param(case, id=case.id)
    for case in golden_cases(
        "plain", "properties", "filters", "batch-queue", "multi-dispatch", "timer"
    )
]


def opened(case: GoldenCase, path: Path) -> RocketMQStore:
    """Open a store as the release that wrote it."""
    release = Release.V4 if case.version == "4.9.8" else Release.V5
    return RocketMQStore(
        system_host(), str(path), StoreOptions(settings=case.settings, release=release)
    )


def messages_of(store: RocketMQStore) -> dict[tuple[str, int, int], Message]:
    """Return all messages of all queues."""
    return {
        (name, number, message.queue_offset): message
        for name, queues in store.topics().items()
        for number, queue in queues.items()
        for message in queue.messages(queue.start_offset, 1 << 20)
    }


def content(message: Message) -> tuple[Any, ...]:
    """Return what must be kept of a message."""
    return message.physical_offset, message.body, message.properties_text


def sizes_of(case: GoldenCase) -> list[str]:
    """Return the settings that a damaged store may not tell."""
    names = ("maxHashSlotNum", "maxIndexNum", "mappedFileSizeConsumeQueue")
    return [f"--set={name}={case.settings[name]}" for name in names if name in case.settings]


@pytest.mark.parametrize(("case", "pair"), PAIRS)
def test_all_that_a_broker_brought_back_and_more(
    case: GoldenCase, pair: RecoveredPair, tmp_path: Path, logstore: CommandLine
) -> None:
    """Every message that the real broker could still serve, and those behind the damage."""
    target = tmp_path / "saved"
    outcome = logstore(
        "salvage", pair.copy_before(tmp_path / "store"), "--into", target, *sizes_of(case)
    )
    assert outcome.exit_code == 0, outcome.err
    store = opened(case, target)
    found = messages_of(store)
    for expected in pair.expected:
        message = found[expected["topic"], expected["queueId"], expected["queueOffset"]]
        assert message.plain_body() == expected["body"]
        assert message.properties == expected["properties"]
    if pair.name.startswith("flipped-body"):
        before = opened(case, case.copy_store(tmp_path / "base", "base"))
        whole = messages_of(before)
        lost = [key for key, message in whole.items() if content(found[key]) != content(message)]
        assert len(lost) == 1
        assert found[lost[0]].tags == "LOST"
        assert len(found) > len(pair.expected)
        before.close()
    store.close()


@pytest.mark.parametrize("case", STORED)
def test_a_sound_store_is_copied(case: GoldenCase, tmp_path: Path, logstore: CommandLine) -> None:
    """Same commit log, queues and index; nothing is said to be lost."""
    target = tmp_path / "saved"
    outcome = logstore("salvage", case.store, "--into", target)
    assert outcome.exit_code == 0, outcome.err
    assert "nothing was lost" in outcome.lines[-1]
    for folder in ("commitlog", "consumequeue", "consumequeue_ext", "batchconsumequeue"):
        for path in (case.store / folder).rglob("*"):
            if path.is_file() and any(path.read_bytes()):
                assert (target / path.relative_to(case.store)).read_bytes() == path.read_bytes()
    index = [path.read_bytes() for path in sorted((case.store / "index").iterdir())]
    assert [path.read_bytes() for path in sorted((target / "index").iterdir())] == index
    assert (target / "config/topics.json").read_bytes() == (
        case.store / "config/topics.json"
    ).read_bytes()


def damage(store: Path, kind: str, case: GoldenCase) -> set[int]:
    """Damage the commit log of a plain store; return the physical offsets that are lost."""
    places = [record.physical_offset for record in stored_records(case.store)]
    size = int(case.settings["mappedFileSizeCommitLog"])
    second = store / f"commitlog/{size:020}"
    if kind == "missing file":
        second.unlink()
        return {place for place in places if size <= place < 2 * size}
    if kind == "short file":
        with second.open("r+b") as file:
            file.truncate(50_000)
        records = list(stored_records(case.store))
        return {
            record.physical_offset
            for record in records
            if record.file.name == second.name and record.position + len(record.data) > 50_000
        }
    if kind == "overwritten pages":
        with second.open("r+b") as file:
            file.seek(40_000)
            file.write(b"\x55" * 8192)
        return {
            record.physical_offset
            for record in stored_records(case.store)
            if record.file.name == second.name
            and record.position < 48_192
            and record.position + len(record.data) > 40_000
        }
    data = bytearray(second.read_bytes())
    end = len(data) - int.from_bytes(data.rstrip(b"\0")[-8:-4])
    assert data[end + 4 : end + 8] == bytes.fromhex("cbd43194")
    data[end : end + 8] = bytes(8)
    second.write_bytes(data)
    return set()


@pytest.mark.parametrize("kind", ["missing file", "short file", "overwritten pages", "no blank"])
@pytest.mark.parametrize("version", ["4.9.8", "5.5.0"])
def test_what_is_behind_the_damage_keeps_its_place(
    version: str, kind: str, tmp_path: Path, logstore: CommandLine
) -> None:
    """Physical and queue offsets stay; for each lost message an empty one with a tag stands in."""
    (case,) = golden_cases("plain", version=version)
    source = case.copy_store(tmp_path / "store")
    lost = damage(source, kind, case)
    outcome = logstore("salvage", "--json", source, "--into", tmp_path / "saved")
    assert outcome.exit_code == 0, outcome.err
    told = {
        message["physicalOffset"] for line in outcome.json_lines for message in line["messages"]
    }
    assert told == lost
    assert {line["file"] for line in outcome.json_lines} == {
        f"commitlog/{int(case.settings['mappedFileSizeCommitLog']):020}"
    }
    before, after = (
        opened(case, case.copy_store(tmp_path / "whole")),
        opened(case, tmp_path / "saved"),
    )
    whole, found = messages_of(before), messages_of(after)
    assert whole.keys() == found.keys()
    for key, message in whole.items():
        if message.physical_offset in lost:
            assert found[key].tags == "LOST"
            assert found[key].physical_offset == message.physical_offset
        else:
            assert content(found[key]) == content(message)
    before.close()
    after.close()


@pytest.mark.parametrize("is_there", [False, True])
def test_a_salvage_that_is_stopped_leaves_nothing(
    is_there: bool, tmp_path: Path, logstore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the messages are no store: after Ctrl-C there is none, and kill -9 is made good."""

    def stop(self: StoreSalvage) -> None:
        raise KeyboardInterrupt

    (case,) = golden_cases("plain", version="5.5.0")
    target = tmp_path / "saved"
    if is_there:
        target.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(StoreSalvage, "_copy_rest", stop)
        outcome = logstore("salvage", case.store, "--into", target)
    assert outcome.exit_code == 130
    assert outcome.err.split() == ["Aborted!"]
    assert target.exists() == is_there
    assert not is_there or not list(target.iterdir())
    # What a killed run has left is no store for anybody, and goes.
    (target / WORK_FOLDER / "commitlog").mkdir(parents=True)
    assert logstore("ls", target).exit_code == 1
    assert logstore("salvage", case.store, "--into", target).exit_code == 0
    assert not (target / WORK_FOLDER).exists()
    assert logstore("verify", target).exit_code == 0


def test_where_it_may_not_go(tmp_path: Path, logstore: CommandLine) -> None:
    """Into a directory that is not empty, or into the store itself."""
    (case,) = golden_cases("plain", version="5.5.0")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    assert "is not empty" in logstore("salvage", case.store, "--into", tmp_path / "full").err
    inside = logstore("salvage", case.store, "--into", case.store / "new")
    assert inside.exit_code != 0
    assert not (case.store / "new").exists()
