"""What two brokers left of one damaged directory, file by file, and what may be different."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.interop.damage.kafka_base import SEGMENT_INDEX_BYTES, TOPIC
from tests.interop.damage.kafka_kinds import batches

KEPT_ASIDE = ".cut-at-"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
EPOCHS = "leader-epoch-checkpoint"
CLEAN_STOP = ".kafka_cleanshutdown"
TIME_ENTRY_BYTES = 12
HEADER = struct.Struct(">qiib6xi")  # baseOffset, batchLength, leaderEpoch, magic, lastOffsetDelta
MAGIC_MAX = 2
RELATIVE_OFFSET_MAX = (1 << 31) - 1
#: a lone broker's second start leads in this epoch
EPOCH_MAX = 2
#: of one start alone; high watermarks Kafka takes from batches whose offsets cannot be right, too
LEFT_OUT = {".lock", CLEAN_STOP, "replication-offset-checkpoint"}

Sides = tuple[bytes | None, bytes | None]


class Outcome(NamedTuple):
    """A damaged directory, what came of it, and what was done to each partition."""

    damaged: Path
    real: Path
    ours: Path
    done: Mapping[int, list[str]]


class Different(NamedTuple):
    """
    The files of a partition that are different: first the real one's content, then ours.

    `damaged` is the partition's directory as both found it, `real` as the real one left it, `end`
    where the log ended for that.
    """

    damaged: Path
    real: Path
    end: int
    files: dict[str, Sides]


def is_header_believed(different: Different) -> bool:
    """
    A batch says in what no checksum covers what cannot be right: base offset, magic, leader epoch.

    Kafka believes it, or empties the whole segment because its index takes no such offset, or its
    epochs because its own is smaller. Ours keeps it where Kafka does, with a warning, or ends the
    log before it and keeps the rest aside.
    """
    return any(
        magic > MAGIC_MAX or not 0 <= epoch <= EPOCH_MAX or offset != following
        for file in different.damaged.glob("*.log*")
        for offset, following, epoch, magic in headers(file)
    )


def headers(file: Path) -> Iterator[tuple[int, int, int, int]]:
    """Yield base offset, the one that was to come, leader epoch and magic of every batch."""
    data, base_offset = file.read_bytes(), int(file.name.partition(".")[0])
    following = -1
    for position, _ in batches(data):
        offset, _, epoch, magic, delta = HEADER.unpack_from(data.ljust(position + 61), position)
        if following < 0:  # a segment may begin with a hole, but with none that is too large for it
            is_within = 0 <= offset - base_offset <= RELATIVE_OFFSET_MAX
            following = offset if is_within else base_offset
        yield offset, following, epoch, magic
        following = offset + delta + 1


def is_index_of_zeros(different: Different) -> bool:
    """
    A segment came back from ``.swap`` without its index.

    Kafka makes one of nothing but zeros, which it takes for good then; ours recovers the segment,
    and with it the states of producers.
    """
    zeros = bytes(SEGMENT_INDEX_BYTES)
    return any(
        real == zeros and ours != zeros
        for name, (real, ours) in different.files.items()
        if name.endswith(".index")
    )


def is_time_found_again(different: Different) -> bool:
    """
    A time index ends within an entry, and nothing recovers its segment.

    Kafka leaves it without that entry, and finds too little by time; ours puts the last one there.
    """
    return all(
        name.endswith(".timeindex")
        and real is not None
        and ours is not None
        and ours[:-TIME_ENTRY_BYTES] == real[: len(real) - len(real) % TIME_ENTRY_BYTES]
        for name, (real, ours) in different.files.items()
    )


def is_end_lost(different: Different) -> bool:
    """
    The newest segment has an index that leads nowhere, after a clean stop.

    Kafka takes the log to end where that segment begins, and writes its offsets a second time;
    ours does without the index and finds the end.
    """
    newest = max(different.real.glob("*.log"))
    is_lost = different.end == int(newest.stem) and newest.stat().st_size > 0
    return is_lost and all(is_snapshot(name) for name in different.files)


def is_index_untrimmed(different: Different) -> bool:
    """
    An index that is full of zeros behind its entries has come to a sealed segment.

    Kafka leaves it as it is, and takes the zeros for entries from then on; ours trims it.
    """
    return all(
        name.endswith((".index", ".timeindex"))
        and ours is not None
        and real is not None
        and len(real) > len(ours)
        and real.rstrip(b"\0") == ours.rstrip(b"\0")
        for name, (real, ours) in different.files.items()
    )


def is_tear_kept(different: Different) -> bool:
    """
    The log ends within a batch, after a clean stop.

    Kafka does not look, and appends behind the tear, where nobody can read it; ours recovers the
    newest segment and keeps aside what it cuts off.
    """
    newest = max(different.real.glob("*.log"))
    data, (_, ours) = newest.read_bytes(), different.files.get(newest.name, (None, None))
    end = sum(size for _, size in batches(data))
    return (
        end < len(data)
        and ours is not None
        and data.startswith(ours)
        and all(name.startswith(newest.stem) or is_snapshot(name) for name in different.files)
    )


def is_end_doubtful(different: Different) -> bool:
    """
    After a clean stop the log ends below its recovery point, or with an old message that is none.

    Kafka looks at neither; ours recovers the newest segment and keeps aside what it cuts off.
    """
    data, newest = different.damaged.parent, max(different.damaged.glob("*.log"))
    topic, _, number = different.damaged.name.rpartition("-")
    is_early = different.end < entries_of(data / RECOVERY_POINTS).get(f"{topic} {number}", 0)
    is_old = any(magic < MAGIC_MAX for *_, magic in list(headers(newest))[-1:])
    return (
        (data / CLEAN_STOP).exists()
        and (is_early or is_old)
        and all(name.startswith(newest.stem) or is_snapshot(name) for name in different.files)
    )


def is_snapshot(name: str) -> bool:
    """Tell whether a file is one of the states of producers, of which each end has its own."""
    return name.endswith(".snapshot")


EXCUSES: tuple[Callable[[Different], bool], ...] = (
    is_header_believed,
    is_index_of_zeros,
    is_time_found_again,
    is_end_lost,
    is_tear_kept,
    is_end_doubtful,
    is_index_untrimmed,
)


def differences(outcome: Outcome) -> list[str]:
    """Return a line for each partition and checkpoint that is different and not excused."""
    excused: set[str] = set()
    found: list[str] = []
    for number, done in outcome.done.items():
        partition = f"{TOPIC}-{number}"
        if lost := lost_batches(outcome, partition):
            found.append(f"{partition} {done}: {lost} batches that the real one has are nowhere")
        different = Different(
            outcome.damaged / partition,
            outcome.real / partition,
            end_of(outcome.real, partition),
            different_files(outcome, partition),
        )
        if not different.files:
            continue
        if any(is_excuse(different) for is_excuse in EXCUSES):
            excused.add(f"{TOPIC} {number}")
        else:
            found.append(f"{partition} {done}: {sizes(different.files)}")
    return [*found, *different_checkpoints(outcome, excused)]


def different_files(outcome: Outcome, partition: str) -> dict[str, Sides]:
    """Return the files of a partition that are not the same."""
    real = contents(outcome.real / partition, end_of(outcome.real, partition))
    ours = contents(outcome.ours / partition, end_of(outcome.ours, partition))
    names = sorted(real.keys() | ours.keys())
    sides = {name: (real.get(name), ours.get(name)) for name in names}
    return {name: (one, other) for name, (one, other) in sides.items() if one != other}


def contents(folder: Path, end: int) -> dict[str, bytes]:
    """Return what is compared of a partition that ends at that offset."""
    found = {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.is_file() and KEPT_ASIDE not in file.name and not file.name.endswith(".deleted")
    }
    if EPOCHS in found:
        found[EPOCHS] = epochs_before(found[EPOCHS], end)
    return found


def epochs_before(data: bytes, end: int) -> bytes:
    """
    Return the leader epochs that have records.

    A lone Kafka raises its epoch by two at every start and notes that at the end of the log; ours
    goes on in the epoch that it finds.
    """
    lines = data.decode().splitlines()[2:]
    return "\n".join(line for line in lines if int(line.split()[1]) < end).encode()


def end_of(data: Path, partition: str) -> int:
    """Return where a partition ends: after a clean stop all of it is flushed."""
    topic, _, number = partition.rpartition("-")
    return entries_of(data / RECOVERY_POINTS)[f"{topic} {number}"]


def entries_of(file: Path) -> dict[str, int]:
    """Return the offsets of a checkpoint by partition."""
    lines = file.read_text().splitlines()[2:] if file.exists() else []
    return {key: int(offset) for key, _, offset in (line.rpartition(" ") for line in lines)}


def lost_batches(outcome: Outcome, partition: str) -> int:
    """Count the batches that the real one still has and ours has neither kept nor put aside."""
    ours = b"".join(
        file.read_bytes()
        for file in (outcome.ours / partition).iterdir()
        if file.suffix == ".log" or KEPT_ASIDE in file.name
    )
    found = 0
    for file in (outcome.real / partition).glob("*.log"):
        data = file.read_bytes()
        found += sum(data[at : at + size] not in ours for at, size in batches(data))
    return found


def different_checkpoints(outcome: Outcome, excused: set[str]) -> list[str]:
    """Return a line for each checkpoint in the data directory with other entries."""
    found: list[str] = []
    real, ours = (
        {file.name for file in side.glob("*-offset-checkpoint")} - LEFT_OUT
        for side in (outcome.real, outcome.ours)
    )
    for name in sorted(real | ours):
        sides = [set(entries_of(side / name).items()) for side in (outcome.real, outcome.ours)]
        real_only, ours_only = (
            {(key, offset) for key, offset in one - other if key not in excused}
            for one, other in (sides, reversed(sides))
        )
        if real_only or ours_only:
            found.append(f"{name}: real {sorted(real_only)} ours {sorted(ours_only)}")
    return found


def sizes(files: Mapping[str, Sides]) -> list[str]:
    """Tell how long each side's files are."""
    told = {
        name: [None if one is None else len(one) for one in both] for name, both in files.items()
    }
    return [f"{name} real {real} ours {ours}" for name, (real, ours) in told.items()]
