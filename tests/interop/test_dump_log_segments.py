"""``logstore dump --format kafka`` beside Kafka's own DumpLogSegments, on the same files."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from logstore.checksum import crc32c
from logstore.os_host import system_host
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.control_record import ControlType, encode_control
from logstore.segments.kafka.internal_topics.codec import encode_message, encode_versioned
from logstore.segments.kafka.internal_topics.record_types import (
    GROUP_RECORDS,
    SHARE_RECORDS,
    TRANSACTION_RECORDS,
    RecordTypes,
)
from logstore.segments.kafka.internal_topics.schema import (
    ArrayOf,
    Message,
    Width,
    WireType,
    fields_of,
)
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import HEADER_BYTES, RecordBatch
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.tools.dev.maven import PeerUnavailable
from logstore.tools.inspection.kafka_dump import KafkaDump, KafkaDumpOptions
from logstore.tools.inspection.log_dump import LogSelection
from tests.interop.conftest import missing
from tests.interop.tool_session import ToolSession
from tests.segments.kafka.golden_case import GOLDEN

pytestmark = pytest.mark.interop

SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


@attrs.frozen
class Printed:
    """What a tool left behind, without Java's stack traces."""

    out: list[str]
    err: list[str]
    status: int


Kafkas = Callable[..., Printed]


@pytest.fixture(scope="module")
def kafkas() -> Iterator[Kafkas]:
    """A function that runs Kafka's tool on files of a folder."""
    sessions: dict[str, ToolSession] = {}

    def run(folder: Path, files: list[str], *options: str, version: str = "4") -> Printed:
        session = sessions.setdefault(version, ToolSession(version))
        try:
            done = session.run("DumpLogSegments", *options, "--files", named(folder, files))
        except PeerUnavailable as reason:
            missing(str(reason))
        return Printed(done.stdout.split("\n"), without_traces(done.stderr), done.status)

    yield run
    for session in sessions.values():
        session.close()


def named(folder: Path, files: list[str], between: str = ",") -> str:
    """Return the files' whole names: Kafka's tool does not run in their folder."""
    return between.join(str(folder / name) for name in files)


def ours(folder: Path, files: list[str], *options: str, version: str = "4") -> Printed:
    """Run ``logstore dump`` on files of `folder`."""
    release = "3.9" if version == "3.9" else "4.3"
    command = [sys.executable, "-m", "logstore.tools.cli", "dump", "--format", "kafka"]
    command += ["--release", release, *options, *named(folder, files, "\n").split("\n")]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, capture_output=True, env=environment, timeout=90)
    out, err = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    return Printed(out.split("\n"), without_traces(err), done.returncode)


def without_traces(err: str) -> list[str]:
    """Return the lines of what a tool complained about."""
    return [line for line in err.split("\n") if not is_trace(line)]


def files_of(partition: Path) -> list[str]:
    """Return the files of a partition, kind by kind, with the partition's name in front."""
    return [
        f"{partition.name}/{path.name}"
        for suffix in SUFFIXES
        for path in sorted(partition.glob(f"*{suffix}"))
    ]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition that our store wrote: all codecs, headers, nulls, producers, transactions."""
    directory = tmp_path_factory.mktemp("written")
    store = KafkaStore(system_host(), str(directory), StoreOptions())
    configs = {"index.interval.bytes": "200", "internal.segment.bytes": "3000"}
    partition = store.create_topic("ours", 1, configs).partitions[0]
    drawn = random.Random(1)
    for number in range(60):
        start = partition.end_offset
        if number % 10 == 9:
            kind = ControlType.ABORT if number % 20 == 9 else ControlType.COMMIT
            data = encode_control(
                kind, timestamp_ms=1700000000000 + number, producer_id=7, producer_epoch=1,
                coordinator_epoch=3, base_offset=start, leader_epoch=2,
            )  # fmt: skip
        else:
            is_transactional = number % 10 > 4
            data = encode_batch(
                records(drawn, start, number),
                base_offset=start,
                codec=list(Codec)[number % len(Codec)],
                leader_epoch=2,
                producer_id=7 if is_transactional else -1,
                producer_epoch=1 if is_transactional else -1,
                base_sequence=number * 5 if is_transactional else -1,
                is_transactional=is_transactional,
            )
        partition.append_stored(RecordBatch(memoryview(data), len(data)))
    store.close()
    return directory / "ours-0"


def records(drawn: random.Random, start: int, number: int) -> list[Record]:
    """Return a few records; keys and values are text, bytes, empty or null."""
    contents = [None, b"", b"text \xe2\x9c\x93", b"\xed\xa0\x80\xff\x00\n", b"x" * 40]
    return [
        Record(
            start + place,
            1700000000000 + drawn.randrange(10**6),
            drawn.choice(contents),
            drawn.choice(contents),
            (("h\xe4", b"1"), ("h\xe4", None)) if (number + place) % 3 == 0 else (),
        )
        for place in range(drawn.randint(1, 5))
    ]


OPTIONS = (
    (),
    ("--deep-iteration",),
    ("--print-data-log",),
    ("--verify-index-only",),
    ("--print-data-log", "--max-bytes", "1500"),
)
OTHER_OPTIONS = (
    ("--print-data-log", "--skip-record-metadata"),
    ("--index-sanity-check",),
    ("--print-data-log", "--max-message-size", "100"),
)


@pytest.mark.parametrize("version", ["4", pytest.param("3.9", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "options",
    [*OPTIONS, *(pytest.param(one, marks=pytest.mark.slow) for one in OTHER_OPTIONS)],
    ids=" ".join,
)
def test_files_that_we_wrote_are_dumped_alike(
    written: Path, options: tuple[str, ...], version: str, kafkas: Kafkas
) -> None:
    """Every file of a partition in one call, with each combination of options, in both releases."""
    files = files_of(written)
    assert {Path(name).suffix for name in files} == set(SUFFIXES)
    expected = kafkas(written.parent, files, *options, version=version)
    assert ours(written.parent, files, *options, version=version) == expected


def damage_log(partition: Path) -> str:
    """Change the CRC of a batch: it is not valid, and still read."""
    log = sorted(partition.glob("*.log"))[1]
    data = bytearray(log.read_bytes())
    data[17] ^= 0x01
    log.write_bytes(data)
    return log.name


def damage_length(partition: Path) -> str:
    """Make a length negative: the tool ends there."""
    log = sorted(partition.glob("*.log"))[1]
    data = bytearray(log.read_bytes())
    data[8] ^= 0xFF
    log.write_bytes(data)
    return log.name


def damage_tail(partition: Path) -> str:
    """Cut the last batch short."""
    log = sorted(partition.glob("*.log"))[0]
    os.truncate(log, log.stat().st_size - 9)
    return log.name


def damage_zeros(partition: Path) -> str:
    """Leave zeros behind the last batch."""
    log = sorted(partition.glob("*.log"))[0]
    os.truncate(log, log.stat().st_size + 4096)
    return log.name


def damage_indexes(partition: Path) -> str:
    """Change offsets, positions and times of entries."""
    for path in sorted(partition.glob("*index")):
        data = bytearray(path.read_bytes())
        for at in range(3, len(data), 24):
            data[at] ^= 0x01
        path.write_bytes(data)
    return "all indexes"


def damage_index_beyond(partition: Path) -> str:
    """Let an entry lead behind the end of the log."""
    index = max(partition.glob("*.index"), key=lambda path: path.stat().st_size)
    data = bytearray(index.read_bytes())
    data[4] = 0x40
    index.write_bytes(data)
    return index.name


def damage_index_size(partition: Path) -> str:
    """Cut indexes within an entry; one is full of zeros behind the last."""
    indexes = sorted(partition.glob("*.index"))
    os.truncate(indexes[0], indexes[0].stat().st_size - 3)
    os.truncate(indexes[1], indexes[1].stat().st_size + 800)
    return "sizes"


def damage_transaction_index(partition: Path) -> str:
    """Give an entry an unknown version."""
    index = sorted(partition.glob("*.txnindex"))[0]
    index.write_bytes(b"\x05\x00" + index.read_bytes()[2:])
    return index.name


def damage_snapshots(partition: Path) -> str:
    """An unknown version, a wrong CRC, an empty file."""
    first, second, third = sorted(partition.glob("*.snapshot"))[:3]
    first.write_bytes(b"\xff\xfe" + first.read_bytes()[2:])
    second.write_bytes(second.read_bytes()[:-1] + b"\x7f" if second.stat().st_size > 10 else b"")
    third.write_bytes(b"")
    return "snapshots"


def take_log_away(partition: Path) -> str:
    """An index without its log: the tool ends there."""
    log = sorted(partition.glob("*.log"))[0]
    log.unlink()
    return log.name


DAMAGES = (
    damage_log, damage_length, damage_tail, damage_zeros, damage_indexes, damage_index_beyond,
    damage_index_size, damage_transaction_index, damage_snapshots, take_log_away,
)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_complaints_are_alike(written: Path, tmp_path: Path, damage: Any, kafkas: Kafkas) -> None:
    """Each kind of damage: what is printed before, the complaints in their order, the status."""
    partition = tmp_path / "ours-0"
    shutil.copytree(written, partition)
    damage(partition)
    files = files_of(partition)
    expected = kafkas(tmp_path, files, "--deep-iteration")
    found = ours(tmp_path, files, "--deep-iteration")
    assert expected.err != [""], "the damage is one that the tool sees"
    assert found == expected


@pytest.mark.parametrize(
    ("set_name", "version"),
    [
        ("kafka-4.3", "4"),
        ("legacy-3.9", "3.9"),
        pytest.param("transactions-4.3", "4", marks=pytest.mark.slow),
        pytest.param("kafka-3.9", "3.9", marks=pytest.mark.slow),
    ],
)
def test_whole_directories_are_dumped_alike(
    set_name: str, version: str, tmp_path: Path, kafkas: Kafkas
) -> None:
    """All partitions of a broker in one call, stderr in the order of the tool's hash map."""
    data = tmp_path / "data"
    shutil.copytree(GOLDEN / set_name / "data", data)
    files = [name for folder in sorted(data.glob("*-[0-9]*")) for name in files_of(folder)]
    expected = kafkas(data, files, "--deep-iteration", version=version)
    assert ours(data, files, "--deep-iteration", version=version) == expected


def test_metadata_logs_and_snapshots_are_dumped_alike(tmp_path: Path, kafkas: Kafkas) -> None:
    """The control records of KRaft's logs and snapshots, as JSON."""
    data = tmp_path / "data"
    shutil.copytree(GOLDEN / "epochs-4.3/data", data)
    files = ["bootstrap.checkpoint", *files_of(data / "__cluster_metadata-0")]
    for version in ("4", "3.9"):
        expected = kafkas(data, files, "--deep-iteration", version=version)
        assert any("SnapshotHeader" in line for line in expected.out)
        assert ours(data, files, "--deep-iteration", version=version) == expected


def sample(kind: type[Message], version: int, drawn: random.Random) -> Message:
    """Return a message with something in each of its fields."""
    fields: dict[str, Any] = {}
    for field in fields_of(kind):
        if version not in field.held:
            fields[field.name] = field.make_default()
        elif field.is_nullable and drawn.random() < 0.3:
            fields[field.name] = None
        else:
            fields[field.name] = value_of(field.type, version, drawn)
    return kind(**fields)


def value_of(wire: WireType, version: int, drawn: random.Random) -> Any:
    """Return a value for a field."""
    if isinstance(wire, Width):
        bits = wire.value.size * 8
        top = 2 ** (bits if wire is Width.UINT16 else bits - 1)
        return drawn.randrange(top) * (1 if wire is Width.UINT16 else drawn.choice((1, -1)))
    if isinstance(wire, ArrayOf):
        return tuple(value_of(wire.element, version, drawn) for _ in range(drawn.randrange(3)))
    if wire is uuid.UUID:
        return uuid.UUID(int=drawn.getrandbits(128))
    if wire is str:
        return drawn.choice(["", "plain", 'a"\\\n\t\x01', "h\xe4 \N{CHECK MARK}"])
    if wire is bytes:
        return drawn.randbytes(drawn.randrange(5))
    assert issubclass(wire, Message)
    return sample(wire, version, drawn)


DECODERS: dict[str, RecordTypes] = {
    "--offsets-decoder": GROUP_RECORDS,
    "--transaction-log-decoder": TRANSACTION_RECORDS,
    "--share-group-state-decoder": SHARE_RECORDS,
}


def internal_records(kinds: RecordTypes) -> list[Record]:
    """Return records of every type and version, tombstones, and what cannot be read."""
    drawn = random.Random(5)
    pairs: list[tuple[bytes, bytes | None]] = []
    for number, (key_kind, value_kind) in kinds.items():
        key, value = b"", b""
        for version in value_kind.VERSIONS:
            for _ in range(4):
                key = number.to_bytes(2, "big") + encode_message(sample(key_kind, 0, drawn), 0)
                value = encode_versioned(sample(value_kind, version, drawn), version)
                pairs.append((key, value))
        pairs += [(key, None), (key, b"\x00\x63"), (key, value[:-1]), (key[:-1], value)]
        pairs += [(key, b"\x00"), (key, value + b"more")]
    pairs += [(b"\x00\x63", b""), (b"\x00", b"")]
    return [Record(place, 1, key, value) for place, (key, value) in enumerate(pairs)]


@pytest.mark.parametrize("decoder", DECODERS)
def test_decoders_print_alike(decoder: str, tmp_path: Path, kafkas: Kafkas) -> None:
    """Records of every type and version that we write are read by Kafka's decoders, and by ours."""
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(encode_batch(internal_records(DECODERS[decoder]), base_offset=0))
    expected = kafkas(tmp_path, [log.name], decoder)
    found = ours(tmp_path, [log.name], decoder)
    different = [pair for pair in zip(expected.out, found.out, strict=True) if pair[0] != pair[1]]
    assert different == []
    assert found == expected
    read = [line for line in expected.out if '"version"' in line and " Error at " not in line]
    assert len(read) >= 4 * len(DECODERS[decoder])


def damaged_batch(drawn: random.Random, start: int) -> bytes:
    """Return a batch with one damage in its header, its stream or its size; often its CRC fits."""
    codec = drawn.choice(list(Codec))
    batch = encode_batch(records(drawn, start, start), base_offset=start, codec=codec)
    kind = drawn.choice(("header", "stream", "body", "cut", "more"))
    if kind == "header":
        at = drawn.choice((*range(8), *range(17, HEADER_BYTES)))
        batch[at] = drawn.choice((0, 0x7F, 0x80, 0xFF, batch[at] ^ 1 << drawn.randrange(8)))
    elif kind == "stream":
        at = HEADER_BYTES + drawn.randrange(min(24, len(batch) - HEADER_BYTES))
        batch[at] = drawn.choice((0, 0x7F, 0x80, 0xFF, batch[at] ^ 1 << drawn.randrange(8)))
    elif kind == "body":
        batch[drawn.randrange(HEADER_BYTES, len(batch))] ^= 1 << drawn.randrange(8)
    elif kind == "cut":
        del batch[drawn.randrange(40, len(batch)) :]
    else:
        batch += drawn.randbytes(drawn.randrange(1, 9))
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    if drawn.random() < 0.8:
        batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch)


def test_damaged_streams_end_alike(tmp_path: Path, kafkas: Kafkas) -> None:
    """Two hundred logs with one damaged batch each, of all codecs: lines, complaint and status."""
    different: list[int] = []
    log = tmp_path / f"{0:020d}.log"
    for seed in range(200):
        drawn = random.Random(seed)
        following = encode_batch(records(drawn, 9, 9), base_offset=9)
        log.write_bytes(damaged_batch(drawn, 0) + following * drawn.randrange(2))
        if printed_here(log) != kafkas(tmp_path, [log.name], "--deep-iteration"):
            different.append(seed)
    assert different == []


def printed_here(log: Path) -> Printed:
    """Return what our dump says of a log, without a process of its own."""
    out: list[str] = []
    err: list[str] = []
    options = KafkaDumpOptions(selection=LogSelection(has_records=True))
    status = KafkaDump(system_host().fs, options, out.append, err.append).run([str(log)])
    return Printed([*out, ""], [*err, ""], status)


def is_trace(line: str) -> bool:
    """Tell whether a line is Java's about where an exception came from."""
    return re.match(r"\tat |Caused by|\t\.\.\. ", line) is not None
