"""A store is known by its directory; a third party's layout counts like a built-in one."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import attrs
import pytest

from logstore.errors import ForeignDirectoryError, LockedError
from logstore.host import Host
from logstore.os_host import system_host
from logstore.partition import LAYOUT_GROUP, PartitionLog, Record, Store
from logstore.segments import (
    BUILT_IN_LAYOUTS,
    UnknownLayoutError,
    find_layout,
    layout_names,
    open_store,
    recognise_layout,
)
from logstore.segments.kafka.store import LAYOUT, KafkaStore
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.segments.rocketmq.store import StoreOptions as RocketMQOptions
from logstore.testing import SimulatedHost


@attrs.frozen
class EmptyStore:
    """A store of a layout that somebody else wrote."""

    directory: str

    def topics(self) -> Mapping[str, Mapping[int, PartitionLog]]:
        """There are none."""
        return {}

    def close(self) -> None:
        """Nothing is open."""


@attrs.frozen
class ForeignLayout:
    """Knows a directory by a file called ``foreign``."""

    name: str = "foreign"

    def recognises(self, host: Host, directory: str) -> bool:
        """Tell whether the file is there."""
        return host.fs.exists(f"{directory}/foreign")

    def open(self, host: Host, directory: str, *, writable: bool = True) -> Store:
        """Open it."""
        del host, writable
        return EmptyStore(directory)


FOREIGN = ForeignLayout()


def register(monkeypatch: pytest.MonkeyPatch, *entries: EntryPoint) -> None:
    """Let these be all the entry points that are installed."""

    def entry_points(*, group: str) -> EntryPoints:
        return EntryPoints(entry for entry in entries if entry.group == group)

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody have looked yet for what is installed."""

    def registered() -> tuple[EntryPoint, ...]:
        return tuple(importlib.metadata.entry_points(group=LAYOUT_GROUP))

    monkeypatch.setattr("logstore.segments._registered", cache(registered))


@pytest.fixture
def kafka_directory(tmp_path: Path) -> Path:
    """A Kafka data directory with one record, closed."""
    store = KafkaStore(system_host(), str(tmp_path / "kafka"))
    store.create_topic("greetings", 1).partitions[0].append_records([Record(b"k", b"hello", 7)])
    store.close()
    return tmp_path / "kafka"


def test_what_is_installed_is_looked_through_once(
    kafka_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many stores are opened: it takes longer than opening a small one."""
    looks: list[str] = []

    def entry_points(*, group: str) -> EntryPoints:
        looks.append(group)
        return EntryPoints()

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    forget(monkeypatch)
    for _ in range(3):
        open_store(kafka_directory).close()
    assert looks == [LAYOUT_GROUP]


def test_a_layout_that_was_installed_later_is_found_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a notebook somebody asks for it, installs it, and asks again."""
    installed: list[EntryPoint] = []

    def entry_points(*, group: str) -> EntryPoints:
        return EntryPoints(entry for entry in installed if entry.group == group)

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    forget(monkeypatch)
    with pytest.raises(UnknownLayoutError, match="foreign"):
        find_layout("foreign")
    installed.append(EntryPoint("foreign", f"{__name__}:FOREIGN", LAYOUT_GROUP))
    assert find_layout("foreign").name == "foreign"


def test_a_kafka_directory_opens_by_its_path_alone(kafka_directory: Path) -> None:
    """Nobody says which layout it is; topics and records are there."""
    store = open_store(kafka_directory)
    partition = store.topics()["greetings"][0]
    (record,) = partition.read_records(0, 10)
    assert (record.key, record.value, record.timestamp_ms) == (b"k", b"hello", 7)
    assert store.directory == str(kafka_directory)
    store.close()


def test_a_rocketmq_directory_opens_by_its_path_alone(tmp_path: Path) -> None:
    """A store of RocketMQ's layout is known by its commit log, and read without its settings."""
    settings = {"mappedFileSizeCommitLog": "65536", "mappedFileSizeConsumeQueue": "2000"}
    broker = RocketMQStore(system_host(), str(tmp_path), RocketMQOptions(settings=settings))
    broker.queue("TopicTest", 1).append_records([Record(b"k", b"v", 1_700_000_000_000)])
    store = open_store(tmp_path)
    assert recognise_layout(system_host(), str(tmp_path)).name == "rocketmq"
    (record,) = store.topics()["TopicTest"][1].read_records(0, 10)
    assert (record.key, record.value) == (b"k", b"v")
    store.close()
    broker.close()
    with_lock = open_store(tmp_path, writable=True)
    with pytest.raises(LockedError, match="stop that broker"):
        open_store(tmp_path, writable=True)
    with_lock.close()


def test_opened_to_read_it_takes_no_lock_and_writes_nothing(kafka_directory: Path) -> None:
    """By default a running broker's directory may be opened beside it, again and again."""
    broker = KafkaStore(system_host(), str(kafka_directory))
    before = {path: path.read_bytes() for path in kafka_directory.rglob("*") if path.is_file()}
    for _ in range(2):
        open_store(str(kafka_directory)).close()
    after = {path: path.read_bytes() for path in kafka_directory.rglob("*") if path.is_file()}
    assert after == before
    with pytest.raises(LockedError, match="another broker serves this directory"):
        open_store(kafka_directory, writable=True)
    broker.close()


def test_opened_to_write_it_keeps_what_is_appended(kafka_directory: Path) -> None:
    """A writable store goes on where the log ends."""
    store = open_store(kafka_directory, writable=True)
    appended = store.topics()["greetings"][0].append_records([Record(None, b"again", 8)])
    assert (appended.base_offset, appended.next_offset) == (1, 2)
    store.close()
    reopened = open_store(kafka_directory)
    assert [r.value for r in reopened.topics()["greetings"][0].read_records(0, 9)] == [
        b"hello",
        b"again",
    ]
    reopened.close()


def test_a_relative_path_is_fine(kafka_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths count from the working directory."""
    monkeypatch.chdir(kafka_directory.parent)
    store = open_store("kafka")
    assert store.directory == str(kafka_directory)
    store.close()


def test_an_own_host_is_used_instead_of_the_real_one() -> None:
    """The world is an argument: a store in a simulated world touches nothing real."""
    host = SimulatedHost()
    KafkaStore(host, "/data").close()
    store = open_store("/data", host=host)
    assert isinstance(store, KafkaStore)
    assert store.host is host
    store.close()


def test_what_no_layout_knows_is_refused(tmp_path: Path) -> None:
    """Missing, a file, empty or foreign: the error names the path and what to do."""
    (tmp_path / "notes.txt").write_text("")
    for path, reason in (
        (tmp_path / "nix", "there is no such directory"),
        (tmp_path / "notes.txt", "is a file; name the store's directory"),
        (tmp_path, r"no store of a known layout \(.*kafka.*\); name a directory that a broker"),
    ):
        with pytest.raises(ForeignDirectoryError, match=reason) as refused:
            open_store(path)
        assert str(refused.value).startswith(f"{path}: ")


def test_a_layout_may_be_named(kafka_directory: Path) -> None:
    """Named, a layout is not guessed; an unknown name is refused with those that there are."""
    open_store(kafka_directory, layout="kafka").close()
    with pytest.raises(UnknownLayoutError, match=r"'pulsar' is not known; there are: .*kafka"):
        open_store(kafka_directory, layout="pulsar")


def test_built_in_layouts_need_no_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a checkout without package metadata the built-in layouts are known all the same."""
    register(monkeypatch)
    assert layout_names() == sorted(BUILT_IN_LAYOUTS)
    assert find_layout("kafka") is LAYOUT


def test_every_built_in_layout_is_registered_and_real() -> None:
    """The table here and the entry points of the distribution say the same, and load."""
    installed = {
        entry.name: entry.value for entry in importlib.metadata.entry_points(group=LAYOUT_GROUP)
    }
    assert BUILT_IN_LAYOUTS.items() <= installed.items()
    for name in BUILT_IN_LAYOUTS:
        assert find_layout(name).name == name


def test_a_third_party_layout_plugs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered under the entry-point group, a layout recognises and opens its directories."""
    register(monkeypatch, EntryPoint("foreign", f"{__name__}:FOREIGN", LAYOUT_GROUP))
    (tmp_path / "foreign").write_text("")
    assert layout_names() == sorted(["foreign", *BUILT_IN_LAYOUTS])
    assert recognise_layout(system_host(), str(tmp_path)) is FOREIGN
    assert open_store(tmp_path) == EmptyStore(str(tmp_path))


def test_a_registered_layout_replaces_a_built_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever registers under a built-in name means to."""
    register(monkeypatch, EntryPoint("kafka", f"{__name__}:FOREIGN", LAYOUT_GROUP))
    assert find_layout("kafka") is FOREIGN


@pytest.mark.parametrize("value", ["no.such.module:LAYOUT", "logstore.segments:NO_SUCH_LAYOUT"])
def test_a_layout_that_cannot_be_imported_is_named(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """A broken plug-in is blamed by name and module, not by a bare ImportError."""
    register(monkeypatch, EntryPoint("broken", value, LAYOUT_GROUP))
    with pytest.raises(UnknownLayoutError, match=f"'broken' \\({value}\\) cannot be imported: "):
        find_layout("broken")


def test_an_unfinished_conversion_is_no_store(tmp_path: Path) -> None:
    """Neither its folder nor the target that is not there yet: both say how to go on."""
    (tmp_path / "store.converting" / "data" / "commitlog").mkdir(parents=True)
    with pytest.raises(ForeignDirectoryError, match="is not finished; run it again"):
        open_store(tmp_path / "store.converting")
    with pytest.raises(ForeignDirectoryError, match=r"not finished, in .*store\.converting"):
        open_store(tmp_path / "store")
    with pytest.raises(ForeignDirectoryError, match="there is no such directory"):
        open_store(tmp_path / "other")
