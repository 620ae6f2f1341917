"""Kinds of damage to a RocketMQ store, each drawn from a seed and told in a few words."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

MAGICS = (0xDAA320A7, 0xDAA320AB)
UNIT_BYTES = 20
INDEX_HEADER_BYTES = 40
#: what the fields before a body take, a little more or less
HEADER_BYTES = 92
PHYSICAL_OFFSET_POSITION = 28
NOTHING = "nothing"


class Place(NamedTuple):
    """A store, and the chance that chooses."""

    store: Path
    chance: Random

    def files(self, folder: str) -> list[Path]:
        """Return the files below a folder of the store, those that hold something first chosen."""
        found = sorted(one for one in (self.store / folder).rglob("*") if one.is_file())
        return [one for one in found if used_bytes(one)] or found

    def any_file(self, folder: str) -> Path | None:
        """Return any file below a folder of the store."""
        found = self.files(folder)
        return self.chance.choice(found) if found else None

    def any_record(self) -> tuple[Path, int, int]:
        """Return file, position and size of a record, often of one of the last."""
        found = records(self.store / "commitlog")
        return self.chance.choice(found[-12:] if self.chance.random() < 0.5 else found)

    def name_of(self, file: Path) -> str:
        """Return what a file is called in what is told."""
        return str(file.relative_to(self.store))


Kind = Callable[[Place], str]


def records(folder: Path) -> list[tuple[Path, int, int]]:
    """Return file, position and size of every record of a commit log, in order."""
    found: list[tuple[Path, int, int]] = []
    for file in sorted(one for one in folder.iterdir() if one.is_file() and one.name.isdigit()):
        data, position = file.read_bytes(), 0
        while position + 8 <= len(data):
            size, magic = struct.unpack_from(">iI", data, position)
            if magic not in MAGICS:
                break
            found.append((file, position, size))
            position += size
    return found


def used_bytes(file: Path) -> int:
    """Return how far something else than zeros stands in a file."""
    return len(file.read_bytes().rstrip(b"\0"))


def put(file: Path, position: int, data: bytes) -> None:
    """Overwrite some bytes, as far as the file goes."""
    with file.open("r+b") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(position)
        stream.write(data[: max(0, size - position)])


def flip_record(place: Place) -> str:
    """A bit of a record is wrong, in its header or anywhere."""
    if not records(place.store / "commitlog"):
        return NOTHING
    file, position, size = place.any_record()
    chance = place.chance
    within = chance.choice((chance.randrange(size), chance.randrange(min(size, HEADER_BYTES))))
    byte = file.read_bytes()[position + within] ^ 1 << chance.randrange(8)
    put(file, position + within, bytes([byte]))
    return f"flip record {place.name_of(file)} {position}+{within}"


def misplace_record(place: Place) -> str:
    """A record says that it stands elsewhere; no CRC covers that."""
    if not records(place.store / "commitlog"):
        return NOTHING
    file, position, _ = place.any_record()
    count = place.chance.choice((1, 2, 8))
    place_bytes = place.chance.randbytes(count)
    put(file, position + PHYSICAL_OFFSET_POSITION + 8 - count, place_bytes)
    return f"misplace record {place.name_of(file)} {position} {place_bytes.hex()}"


def blank_record(place: Place) -> str:
    """Zeros stand in a record."""
    if not records(place.store / "commitlog"):
        return NOTHING
    file, position, size = place.any_record()
    within = place.chance.randrange(size)
    count = place.chance.choice((1, 8, size - within, 200))
    put(file, position + within, bytes(count))
    return f"blank record {place.name_of(file)} {position}+{within} {count}"


def blank_tail(place: Place) -> str:
    """All from a record on, or from within one, is zeros."""
    if not records(place.store / "commitlog"):
        return NOTHING
    file, position, size = place.any_record()
    position += place.chance.choice((0, 0, place.chance.randrange(size)))
    for later in file.parent.iterdir():
        if later.is_file() and later.name > file.name and later.name.isdigit():
            put(later, 0, bytes(later.stat().st_size))
    put(file, position, bytes(file.stat().st_size))
    return f"blank tail {place.name_of(file)} {position}"


def add_garbage(place: Place) -> str:
    """Garbage follows the last record."""
    found = records(place.store / "commitlog")
    if not found:
        return NOTHING
    file, position, size = found[-1]
    count = place.chance.choice((4, 8, 20, 100, 500))
    put(file, position + size, place.chance.randbytes(count))
    return f"add garbage {place.name_of(file)} {position + size} {count}"


def remove_file(place: Place) -> str:
    """A file of the commit log, of a queue or of the index is missing."""
    file = place.any_file(place.chance.choice(("commitlog", "consumequeue", "index")))
    if file is None:
        return NOTHING
    file.unlink()
    return f"remove {place.name_of(file)}"


def resize_file(place: Place) -> str:
    """A file has another length, or none."""
    folder = place.chance.choice(("commitlog", "consumequeue", "consumequeue", "index"))
    file = place.any_file(folder)
    if file is None:
        return NOTHING
    size = file.stat().st_size
    wanted = place.chance.choice((0, place.chance.randrange(size + 200)))
    os.truncate(file, wanted)
    return f"resize {place.name_of(file)} {size}->{wanted}"


def add_file(place: Place) -> str:
    """A file is there that nobody has written."""
    folder = place.chance.choice(("commitlog", "consumequeue", "index"))
    name = place.chance.choice(
        (".nfs01", "00000000000000000000.bak", "note.txt", "99999999999999999999",
         "00000000000000999999")
    )  # fmt: skip
    inner = place.any_file(folder)
    if inner is None:
        return NOTHING
    file = inner.parent / name
    file.write_bytes(place.chance.choice((b"", b"x", bytes(inner.stat().st_size))))
    return f"add {place.name_of(file)}"


def remove_queue(place: Place) -> str:
    """A queue, or all queues of a topic, are missing."""
    file = place.any_file("consumequeue")
    if file is None:
        return NOTHING
    folder = place.chance.choice((file.parent, file.parent.parent))
    shutil.rmtree(folder)
    return f"remove {place.name_of(folder)}"


def blank_units(place: Place) -> str:
    """Units of a queue are zeros."""
    file = place.any_file("consumequeue")
    if file is None:
        return NOTHING
    count = used_bytes(file) // UNIT_BYTES + 1
    first = place.chance.randrange(count)
    blanked = place.chance.choice((1, 2, count - first, count - first))
    put(file, first * UNIT_BYTES, bytes(blanked * UNIT_BYTES))
    return f"blank units {place.name_of(file)} {first}+{blanked}"


def garble_unit(place: Place) -> str:
    """A unit of a queue, or a field of it, is garbage."""
    file = place.any_file("consumequeue")
    if file is None:
        return NOTHING
    first = place.chance.randrange(used_bytes(file) // UNIT_BYTES + 2)
    within, count = place.chance.choice(((0, 8), (8, 4), (12, 8), (0, 20)))
    put(file, first * UNIT_BYTES + within, place.chance.randbytes(count))
    return f"garble unit {place.name_of(file)} {first} {within}+{count}"


def flip_unit(place: Place) -> str:
    """A bit of a queue's file is wrong."""
    file = place.any_file("consumequeue")
    if file is None or not (used := used_bytes(file)):
        return NOTHING
    position = place.chance.randrange(used)
    byte = file.read_bytes()[position] ^ 1 << place.chance.randrange(8)
    put(file, position, bytes([byte]))
    return f"flip unit {place.name_of(file)} {position}"


def exchange_queues(place: Place) -> str:
    """Two queues have each other's files."""
    one, other = (place.any_file("consumequeue") for _ in range(2))
    if one is None or other is None or one.stat().st_size != other.stat().st_size:
        return NOTHING
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)
    return f"exchange {place.name_of(one)} {place.name_of(other)}"


def garble_index(place: Place) -> str:
    """Some bytes of an index file are garbage."""
    file = place.any_file("index")
    if file is None or not (size := file.stat().st_size):
        return NOTHING
    position = place.chance.choice(
        (place.chance.randrange(INDEX_HEADER_BYTES), place.chance.randrange(size))
    )
    count = place.chance.choice((1, 4, 8, 40))
    put(file, position, place.chance.randbytes(count))
    return f"garble index {place.name_of(file)} {position}+{count}"


def change_checkpoint(place: Place) -> str:
    """A time of the checkpoint is another one, or it is missing or too short."""
    file, chance = place.store / "checkpoint", place.chance
    how = chance.choice(("change", "change", "change", "remove", "cut"))
    if not file.exists():
        return NOTHING
    if how == "remove":
        file.unlink()
        return "remove checkpoint"
    if how == "cut":
        size = chance.choice((0, 10, 24, 4095, 8192))
        os.truncate(file, size)
        return f"cut checkpoint {size}"
    position = chance.choice((0, 8, 16))
    (old,) = struct.unpack(">q", file.read_bytes()[position : position + 8])
    wanted = chance.choice(
        (0, -1, old - chance.randrange(1, 60_000), old + chance.randrange(1, 10**7), 1 << 62)
    )
    put(file, position, struct.pack(">q", wanted))
    return f"change checkpoint {position} {old}->{wanted}"


def garble_extension(place: Place) -> str:
    """Some bytes of a consume queue's extension are another's, or it is gone."""
    file = place.any_file("consumequeue_ext")
    if file is None:
        return NOTHING
    how = place.chance.choice(("flip", "blank", "remove"))
    if how == "remove":
        file.unlink()
        return f"remove {place.name_of(file)}"
    position = place.chance.randrange(used_bytes(file) + 1)
    put(file, position, bytes(30) if how == "blank" else place.chance.randbytes(4))
    return f"{how} {place.name_of(file)} {position}"


KINDS: tuple[Kind, ...] = (
    flip_record, flip_record, flip_record, misplace_record, blank_record, blank_record, blank_tail,
    blank_tail, add_garbage, remove_file, resize_file, add_file, remove_queue, blank_units,
    blank_units, garble_unit, flip_unit, exchange_queues, garble_index, change_checkpoint,
    garble_extension,
)  # fmt: skip


def damage(place: Place) -> list[str]:
    """Do one or two things to a store; return what was done."""
    done = [place.chance.choice(KINDS)(place) for _ in range(place.chance.choice((1, 1, 1, 2)))]
    return [what for what in done if what != NOTHING]
