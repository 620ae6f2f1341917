"""Damage of any kind to a RocketMQ store, for verifications to tell alike."""

from __future__ import annotations

import random
from pathlib import Path

FOLDERS = ("commitlog", "consumequeue", "consumequeue_ext", "batchconsumequeue", "index")


def files_in(store: Path) -> list[Path]:
    """Return the files that hold log, units, index entries."""
    paths = (path for folder in FOLDERS for path in sorted((store / folder).rglob("*")))
    return [path for path in paths if path.is_file()]


def damage(store: Path, chance: random.Random) -> None:
    """Change some bytes where something stands, or take a file away, or its end."""
    path = chance.choice(files_in(store))
    data = bytearray(path.read_bytes())
    kind = chance.randrange(12)
    if kind == 0:
        path.unlink()
        return
    used = [at for at in range(0, len(data), 4) if any(data[at : at + 4])] or [0]
    at = chance.choice(used) + chance.randrange(4)
    if kind == 1:
        data = data[:at]
    elif kind < 7:
        data[at : at + 1] = bytes([chance.randrange(256)])
    elif kind < 9:
        size = chance.choice((4, 20, 300))
        data[at : at + size] = bytes(min(size, len(data) - at))
    else:  # what stands elsewhere, as a misdirected write leaves it
        start, size = chance.choice(used), chance.choice((4, 8, 20, 40))
        data[at : at + size] = data[start : start + size]
    path.write_bytes(data)
