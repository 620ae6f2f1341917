"""Index files, checkpoints, tables and settings against damaged input; see tests/test_fuzz.py."""

from __future__ import annotations

import random
from functools import cache, partial

import pytest

from logstore.segments.rocketmq.index.index_file import IndexFile, IndexSizes
from logstore.segments.rocketmq.index.index_keys import index_hashes
from logstore.segments.rocketmq.opening.checkpoint import StoreCheckpoint
from logstore.segments.rocketmq.settings.broker_config import BrokerSettings
from logstore.segments.rocketmq.tables.access import AccessTable
from logstore.segments.rocketmq.tables.consumer_filters import ConsumerFilterTable
from logstore.segments.rocketmq.tables.consumer_offsets import LightConsumerOffsetTable
from logstore.segments.rocketmq.tables.delay_offsets import DelayOffsetTable
from logstore.segments.rocketmq.tables.json_table import JsonTable
from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupTable
from logstore.segments.rocketmq.tables.topics import TopicTable
from logstore.testing.simulated_host import SimulatedHost
from tests.damage import damaged
from tests.fuzzing import complaint, rounds
from tests.segments.rocketmq.golden_case import golden_cases

DIRECTORY = "/store/config"
PATH = f"{DIRECTORY}/file"
KINDS: tuple[type[JsonTable], ...] = (
    AccessTable,
    TopicTable,
    SubscriptionGroupTable,
    LightConsumerOffsetTable,
    DelayOffsetTable,
    ConsumerFilterTable,
)
TABLES = {kind.file_name: kind for kind in KINDS}
TABLES["consumerOffset.json"] = LightConsumerOffsetTable
#: a table that no real broker writes
AUTH = b"""{"acls":[{"policies":[{"entries":[{"actions":["Pub","Sub"],"decision":"Allow",
"resource":"Topic:t*","sourceIps":["10.0.0.0/8"]}],"policyType":"Custom"}],"subject":"User:a"}],
"users":[{"password":"p","userStatus":"enable","userType":"Super","username":"a"}]}"""


@cache
def golden_files(pattern: str) -> list[tuple[str, bytes]]:
    """Return (name, content) of the golden files of a pattern, those of small stores only."""
    return [
        (path.name, path.read_bytes())
        for case in golden_cases("groups", "filters", "delay", "properties")
        for path in sorted(case.folder.glob(f"store/{pattern}"))
    ]


def read_index(data: bytes, chance: random.Random) -> None:
    """Ask an index file, put into it, and write it."""
    host = world_with(data)
    sizes = IndexSizes(chance.choice((1, 21, 40)), chance.choice((2, 55, 200)))
    file = IndexFile(host, PATH, sizes)
    for _ in range(8):
        file.select(chance.randrange(2**31), 32, 0, 2**63 - 1)
    if not file.put([1, 2**31 - 1], 2**62, 1_800_000_000_000):
        file.write()
        assert file.select(2**31 - 1, 1, 0, 2**63 - 1) in ([2**62], [])


def read_checkpoint(data: bytes, chance: random.Random) -> None:
    """Read a checkpoint and write it with another value."""
    checkpoint = StoreCheckpoint(world_with(data), PATH)
    assert checkpoint.min_timestamp_ms >= 0
    checkpoint.index_msg_timestamp_ms = chance.randrange(2**63)
    checkpoint.flush()


def read_table(name: str, data: bytes) -> None:
    """Read a table's file, persist it, and read that."""
    host = world_with(data, f"{DIRECTORY}/{name}")
    kind = TABLES[name]
    path = f"{DIRECTORY}/{kind.file_name}"
    if path != f"{DIRECTORY}/{name}":
        host.fs.rename(f"{DIRECTORY}/{name}", path)
    table = kind(host, DIRECTORY)
    table.load()
    table.persist()
    again = kind(host, DIRECTORY)
    assert again.load()
    assert again.encoded() == table.encoded()


def world_with(data: bytes, path: str = PATH) -> SimulatedHost:
    """Return a world with one file."""
    host = SimulatedHost()
    host.fs.make_directory(DIRECTORY)
    file = host.fs.open(path, create=True)
    file.write(0, data)
    file.close()
    return host


@pytest.mark.timeout(0)
def test_fuzz_of_index_files() -> None:
    """A damaged index file, read with right or wrong sizes, answers and can go on."""
    files = golden_files("index/*")
    assert len(files) > 10
    for seed, chance in rounds(parts=12):
        data = damaged(chance.choice(files)[1], chance)
        assert complaint(seed, data, partial(read_index, data, chance)) == ""


@pytest.mark.timeout(0)
def test_fuzz_of_checkpoints() -> None:
    """A damaged checkpoint has values, and can be written."""
    files = golden_files("checkpoint")
    for seed, chance in rounds(parts=12):
        data = damaged(chance.choice(files)[1][:64], chance)
        assert complaint(seed, data, partial(read_checkpoint, data, chance)) == ""


@pytest.mark.timeout(0)
def test_fuzz_of_tables() -> None:
    """A damaged table is refused with an error that names it, or reads again as it was written."""
    files = [(name, data) for name, data in golden_files("config/*.json") if name in TABLES]
    files += [("auth.json", AUTH)] * 5
    assert {name for name, _ in files} >= set(TABLES) - {"lmqConsumerOffset.json"}
    for seed, chance in rounds(parts=12):
        name, data = chance.choice(files)
        data = damaged(data, chance)
        assert complaint(seed, data, partial(read_table, name, data)) == ""


@pytest.mark.timeout(0)
def test_fuzz_of_settings_and_keys() -> None:
    """Any text is a setting's value or refused; any properties have hashes that fit an entry."""
    names = sorted(BrokerSettings().keys)
    text = "KEYS\x01a b \x02UNIQ_KEY\x01FD00000000\x02TAGS\x01标签\x02".encode()
    for seed, chance in rounds(parts=12):
        value = damaged(b"1073741824", chance).decode("latin-1")
        name = chance.choice(names)
        assert complaint(seed, value.encode(), partial(BrokerSettings, {name: value})) == ""
        data = damaged(text, chance)
        found = index_hashes("topic", data, has_tag_entry=True)
        assert all(0 <= one < 2**31 for one in found), f"seed {seed}: {data.hex()}"
