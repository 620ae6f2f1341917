"""Stores that a real broker found damaged or was killed over: ours finds in them what it found."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from logstore.host import Host
from logstore.os_host import SystemFileSystem
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from logstore.testing import ManualClock
from tests.segments.rocketmq.golden_case import (
    GoldenCase,
    RecoveredPair,
    golden_cases,
    stored_cases,
)

PAIRS = [
    pytest.param(case, pair, id=f"{case.id}-{pair.name}")
    for case in golden_cases("crash", "crash-pool", "damage")
    for pair in case.pairs
]


def opened(case: GoldenCase, directory: Path, *, is_writable: bool = True) -> RocketMQStore:
    """Open a copy of a store as the release that wrote it would."""
    release = Release.V4 if case.version == "4.9.8" else Release.V5
    options = StoreOptions(is_writable=is_writable, settings=case.settings, release=release)
    host = Host(SystemFileSystem(), ManualClock(), random.Random(0))
    return RocketMQStore(host, str(directory), options)


def read_all(store: RocketMQStore) -> list[tuple[Any, ...]]:
    """Return every message of every queue: where it is in its queue, body, properties."""
    found = [
        (name, number, message.queue_offset, message.plain_body(), message.properties)
        for name, queues in store.topics().items()
        for number, queue in queues.items()
        for message in queue.messages(queue.start_offset, 1 << 20)
    ]
    return sorted(found, key=lambda one: one[:3])


def content(message: dict[str, Any]) -> tuple[Any, ...]:
    """Return an expected message as :func:`read_all` has it."""
    return (
        message["topic"],
        message["queueId"],
        message["queueOffset"],
        message["body"],
        message["properties"],
    )


def derived(directory: Path, case: GoldenCase) -> dict[tuple[str, int], bytes]:
    """Return the units of every queue of a store that was stopped cleanly, without opening it."""
    store = opened(case, directory, is_writable=False)
    units = {
        (queue.topic, queue.queue_id): bytes(queue.units(queue.min_queue_offset, 1 << 20))
        for queue in store.consume_queues
    }
    store.close()
    return {key: data for key, data in units.items() if data}


@pytest.mark.parametrize(("case", "pair"), PAIRS)
def test_recovery_brings_back_what_the_broker_brought_back(
    case: GoldenCase, pair: RecoveredPair, tmp_path: Path
) -> None:
    """Every message that its consumer read is there, in its place, and no other."""
    store = opened(case, pair.copy_before(tmp_path / "store"))
    expected = [content(message) for message in pair.expected]
    topics = {message["topic"] for message in pair.expected}
    assert [one for one in read_all(store) if one[0] in topics] == expected
    store.close()


@pytest.mark.parametrize(("case", "pair"), PAIRS)
def test_the_recovered_queues_are_the_brokers(
    case: GoldenCase, pair: RecoveredPair, tmp_path: Path
) -> None:
    """Every unit of every queue is the one of the real broker's store after its recovery."""
    directory = pair.copy_before(tmp_path / "store")
    opened(case, directory).close()
    assert derived(directory, case) == derived(pair.after, case)


@pytest.mark.parametrize(("case", "pair"), PAIRS)
def test_the_recovered_index_is_the_brokers(
    case: GoldenCase, pair: RecoveredPair, tmp_path: Path
) -> None:
    """Index files that were removed are made anew with the same content; others are untouched."""
    directory = pair.copy_before(tmp_path / "store")
    opened(case, directory).close()

    def files(store: Path) -> list[bytes]:
        folder = store / "index"
        return [file.read_bytes() for file in sorted(folder.iterdir())] if folder.exists() else []

    assert files(directory) == files(pair.after)


@pytest.mark.parametrize(("case", "pair"), PAIRS)
def test_a_second_start_changes_nothing(
    case: GoldenCase, pair: RecoveredPair, tmp_path: Path
) -> None:
    """What a recovery made is clean: opened and closed again, every file is the same."""
    directory = pair.copy_before(tmp_path / "store")
    opened(case, directory).close()

    def files() -> dict[str, bytes]:
        return {
            str(path.relative_to(directory)): path.read_bytes()
            for path in sorted(directory.rglob("*"))
            if path.is_file()
        }

    before = files()
    second = opened(case, directory)
    assert second.was_clean
    second.close()
    assert files() == before


@pytest.mark.parametrize(("case", "pair"), PAIRS)
def test_reading_alone_finds_the_same_and_writes_nothing(
    case: GoldenCase, pair: RecoveredPair, tmp_path: Path
) -> None:
    """Opened to be read, a damaged store shows what a recovery would bring back, unchanged."""
    directory = pair.copy_before(tmp_path / "store")

    def files() -> dict[str, bytes]:
        return {
            str(path.relative_to(directory)): path.read_bytes()
            for path in sorted(directory.rglob("*"))
            if path.is_file()
        }

    before = files()
    store = opened(case, directory, is_writable=False)
    expected = [content(message) for message in pair.expected]
    topics = {message["topic"] for message in pair.expected}
    assert [one for one in read_all(store) if one[0] in topics] == expected
    store.close()
    assert files() == before


@pytest.mark.parametrize("case", stored_cases(), ids=lambda case: case.id)
def test_a_clean_start_dispatches_nothing_again(case: GoldenCase, tmp_path: Path) -> None:
    """Log, queues of all kinds and index are those that the real broker left."""
    directory = case.copy_store(tmp_path / "store")
    folders = ("commitlog", "consumequeue", "consumequeue_ext", "batchconsumequeue", "index")

    def files() -> dict[str, bytes]:
        return {
            str(path.relative_to(directory)): path.read_bytes().rstrip(b"\0")
            for folder in folders
            for path in sorted((directory / folder).rglob("*"))
            if path.is_file()
        }

    before = files()
    opened(case, directory).close()
    assert {name: data for name, data in files().items() if data} == {
        name: data for name, data in before.items() if data
    }
