"""Kinds of damage to one partition of Kafka's, each drawn from a seed and told in a few words."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

#: what may stand where files of the partition do, beside its segments
OTHERS = ("partition.metadata", "leader-epoch-checkpoint")
SEGMENT_ENDINGS = (".log", ".index", ".timeindex", ".txnindex")
PREFIX_BYTES = 12
HEADER_BYTES = 61
MAGIC_POSITION = 16
#: sizes by which files grow: within an entry of each index, of one, within a batch header, a page
EXTENSIONS = (1, 7, 8, 12, 24, 60, 61, 100, 4096)


class Place(NamedTuple):
    """The directory of a partition, those beside it, and the chance that chooses."""

    folder: Path
    others: Sequence[Path]
    chance: Random

    def logs(self) -> list[Path]:
        """Return the data files of the segments, in order."""
        return sorted(self.folder.glob("*.log"))

    def any_file(self) -> Path:
        """Return any file of its segments: often a log, and often one of the newest."""
        chance = self.chance
        ending = chance.choice(
            (".log", ".log", ".log", ".index", ".timeindex", ".snapshot", ".txnindex", "")
        )
        every = [f for f in sorted(self.folder.iterdir()) if f.is_file() and f.name not in OTHERS]
        found = [file for file in every if file.name.endswith(ending)] or every
        return chance.choice(found[-8:] if chance.random() < 0.5 else found)

    def any_batch(self, log: Path) -> tuple[int, int]:
        """Return position and size of a batch; (0, 0) if there is none."""
        return self.chance.choice(batches(log.read_bytes()) or [(0, 0)])


Kind = Callable[[Place], str]
NOTHING = "nothing"


def batches(data: bytes) -> list[tuple[int, int]]:
    """Return position and size of every batch."""
    position, found = 0, list[tuple[int, int]]()
    while position + PREFIX_BYTES <= len(data):
        (length,) = struct.unpack_from(">i", data, position + 8)
        size = PREFIX_BYTES + length
        if length <= 0 or position + size > len(data):
            break
        found.append((position, size))
        position += size
    return found


def put(file: Path, position: int, data: bytes) -> None:
    """Overwrite some bytes."""
    whole = bytearray(file.read_bytes())
    whole[position : position + len(data)] = data
    file.write_bytes(whole)


def grow(file: Path, data: bytes) -> None:
    """Append some bytes."""
    with file.open("ab") as stream:
        stream.write(data)


def flip(place: Place) -> str:
    """One or three bits of a file are wrong."""
    file, chance = place.any_file(), place.chance
    data = bytearray(file.read_bytes())
    if not data:
        return NOTHING
    positions = [chance.randrange(len(data)) for _ in range(chance.choice((1, 1, 3)))]
    for position in positions:
        data[position] ^= 1 << chance.randrange(8)
    file.write_bytes(data)
    return f"flip {file.name} {positions}"


def change_header(place: Place) -> str:
    """A byte of a batch header, behind its offset and size, is another one."""
    log = place.chance.choice(place.logs())
    position, size = place.any_batch(log)
    if not size:
        return NOTHING
    within = PREFIX_BYTES + place.chance.randrange(HEADER_BYTES - PREFIX_BYTES)
    put(log, position + within, bytes([place.chance.randrange(256)]))
    return f"change header {log.name} {position}+{within}"


def change_active(place: Place) -> str:
    """A byte of a batch of the newest segment is another one: its size, header or records."""
    log = place.logs()[-1]
    position, size = place.any_batch(log)
    if not size:
        return NOTHING
    within = place.chance.randrange(8, min(size, 81))
    put(log, position + within, bytes([place.chance.randrange(256)]))
    return f"change active {log.name} {position}+{within}"


def change_offset(place: Place) -> str:
    """The base offset of a batch, which no checksum covers, is another one."""
    log = place.chance.choice(place.logs()[-2:])
    position, size = place.any_batch(log)
    if not size:
        return NOTHING
    within = place.chance.choice((3, 4, 5, 6, 7, 7, 7))
    put(log, position + within, bytes([place.chance.randrange(256)]))
    return f"change offset {log.name} {position}+{within}"


def change_magic(place: Place) -> str:
    """The last batch has the magic of an old message, which no checksum covers."""
    log = place.logs()[-1]
    found = batches(log.read_bytes())
    if not found:
        return NOTHING
    magic = place.chance.randrange(2)
    put(log, found[-1][0] + MAGIC_POSITION, bytes([magic]))
    return f"change magic {log.name} {found[-1][0]} {magic}"


def cut(place: Place) -> str:
    """A file ends early."""
    file = place.any_file()
    size = file.stat().st_size
    kept = place.chance.randrange(size + 1)
    os.truncate(file, kept)
    return f"cut {file.name} {size}->{kept}"


def cut_last_batch(place: Place) -> str:
    """The newest segment ends within its last batch."""
    log = place.logs()[-1]
    found = batches(log.read_bytes())
    if not found:
        return NOTHING
    position, size = found[-1]
    kept = place.chance.randrange(size)
    os.truncate(log, position + kept)
    return f"cut last batch {log.name} {position}+{kept}"


def extend(place: Place) -> str:
    """Zeros or garbage stand behind a file."""
    file, chance = place.any_file(), place.chance
    count, is_zero = chance.choice(EXTENSIONS), chance.random() < 0.5
    grow(file, bytes(count) if is_zero else chance.randbytes(count))
    return f"extend {file.name} {count} {'zeros' if is_zero else 'garbage'}"


def remove(place: Place) -> str:
    """A file is missing."""
    file = place.any_file()
    file.unlink()
    return f"remove {file.name}"


def remove_segment(place: Place) -> str:
    """All files of a segment are missing."""
    log = place.chance.choice(place.logs())
    for file in place.folder.glob(f"{log.stem}.*"):
        file.unlink()
    return f"remove segment {log.stem}"


def empty(place: Place) -> str:
    """A file has nothing in it."""
    file = place.any_file()
    file.write_bytes(b"")
    return f"empty {file.name}"


def blank(place: Place) -> str:
    """Zeros stand in the middle of a file."""
    file, chance = place.any_file(), place.chance
    size = file.stat().st_size
    if not size:
        return NOTHING
    position = chance.randrange(size)
    count = min(size - position, chance.choice((1, 8, 12, 64, 4096)))
    put(file, position, bytes(count))
    return f"blank {file.name} {position}+{count}"


def garbage(place: Place) -> str:
    """A file holds random bytes, as many as before."""
    file = place.any_file()
    file.write_bytes(place.chance.randbytes(file.stat().st_size))
    return f"garbage {file.name}"


def leave_over(place: Place) -> str:
    """A file, or a copy of it, has an ending that only a running broker uses."""
    file = place.any_file()
    ending = place.chance.choice((".deleted", ".cleaned", ".swap"))
    target = file.with_name(file.name + ending)
    if place.chance.random() < 0.5:
        shutil.copy(file, target)
        return f"copy {target.name}"
    file.rename(target)
    return f"rename {target.name}"


def leave_swap(place: Place) -> str:
    """A segment waits to be renamed at the end of a compaction; an index may be missing."""
    log = place.chance.choice(place.logs())
    renamed: list[str] = []
    for ending in SEGMENT_ENDINGS:
        file = log.with_suffix(ending)
        if file.exists() and (ending == ".log" or place.chance.random() < 0.8):
            file.rename(file.with_name(file.name + ".swap"))
            renamed.append(ending)
    return f"swap {log.stem} {renamed}"


def repeat(place: Place) -> str:
    """A batch stands there twice."""
    log = place.logs()[-1]
    position, size = place.any_batch(log)
    grow(log, log.read_bytes()[position : position + size])
    return f"repeat {log.name} {position}+{size}"


def exchange(place: Place) -> str:
    """Two segments have each other's index, or two snapshots each other's content."""
    ending = place.chance.choice((".index", ".timeindex", ".txnindex", ".snapshot"))
    found = sorted(place.folder.glob(f"*{ending}"))
    if len(found) < 2:
        return NOTHING
    one, other = place.chance.sample(found, 2)
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)
    return f"exchange {one.name} {other.name}"


def take_from_another(place: Place) -> str:
    """A file has the content of one of the same kind of another partition."""
    file = place.any_file()
    if file.suffix == ".log":
        return NOTHING  # a log of another partition is a sound one, of which nobody can know
    found = [one for folder in place.others for one in sorted(folder.glob(f"*{file.suffix}"))]
    if not found:
        return NOTHING
    source = place.chance.choice(found)
    file.write_bytes(source.read_bytes())
    return f"take {file.name} from {source.parent.name}/{source.name}"


def add_file(place: Place) -> str:
    """A file is there that belongs to nobody, or to no segment."""
    name = place.chance.choice(
        ("note.txt", ".nfs0001", "00000000000000000000.bak", f"{10**6:020d}.index",
         f"{10**6:020d}.timeindex", f"{3:020d}.txnindex", f"{10**6:020d}.snapshot")
    )  # fmt: skip
    (place.folder / name).write_bytes(place.chance.choice((b"", b"x", bytes(24))))
    return f"add {name}"


def add_directory(place: Place) -> str:
    """A directory stands beside the files."""
    (place.folder / "lost+found").mkdir(exist_ok=True)
    return "add lost+found"


KINDS: tuple[Kind, ...] = (
    flip, flip, change_header, change_active, change_active, change_offset, change_magic, cut,
    cut, cut_last_batch, extend, extend, remove, remove_segment, empty, blank, garbage, leave_over,
    leave_swap, repeat, exchange, take_from_another, add_file, add_directory,
)  # fmt: skip


def damage(place: Place) -> list[str]:
    """Do one to three things to a partition; return what was done."""
    done: list[str] = []
    for _ in range(place.chance.choice((1, 1, 1, 2, 3))):
        if not place.logs():
            break
        done.append(place.chance.choice(KINDS)(place))
    return [what for what in done if what != NOTHING]
