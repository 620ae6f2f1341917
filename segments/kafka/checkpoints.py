r"""
Checkpoint files: small tables as text, replaced as a whole.

::

    0            version
    2            how many lines follow
    t 0 12       an entry; offset checkpoints: topic, partition, offset
    u 1 0

Five files have this form: ``recovery-point-offset-checkpoint``, ``log-start-offset-checkpoint``,
``replication-offset-checkpoint``, ``cleaner-offset-checkpoint`` in the log directory, and
``leader-epoch-checkpoint`` (epoch, start offset) in each partition's. A missing or empty file is
an empty table, and so is one of zeros only, which a power loss may leave of a file that was not
synced. Fields are written with one space between them and read with any white space.

Source: ``CheckpointFile``, ``OffsetCheckpointFile``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping

from logstore.errors import CorruptFileError
from logstore.host import FileSystem, read_file, write_file

RECOVERY_POINT = "recovery-point-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"
HIGH_WATERMARK = "replication-offset-checkpoint"
CLEANER = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"

_VERSION = 0
_INTEGER = re.compile(r"[+-]?[0-9]+")
#: numbers of fewer digits fit into 32 bits
_SMALL_DIGITS = 10
_WHITE_SPACE = re.compile(r"[ \t\n\x0b\f\r]+")
_ODD_SPACE = re.compile(r"  |[\t\x0b\f\r]")


def read_checkpoint(fs: FileSystem, path: str, field_count: int) -> list[list[str]]:
    """
    Return the fields of every entry.

    Raises:
        CorruptFileError: another version, a line with more or fewer than `field_count` fields, or
            another number of lines than the file says.

    """
    try:
        data = read_file(fs, path)
    except FileNotFoundError:
        return []
    if not any(data):
        return []
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise CorruptFileError(path, "not UTF-8") from None
    is_plain = _ODD_SPACE.search(text) is None  # as it was written
    lines = (text if is_plain else io.StringIO(text, newline=None).read()).split("\n")
    if lines[-1] == "":
        lines.pop()
    if lines and parse_integer(path, lines[0], 32) != _VERSION:
        raise CorruptFileError(path, f"version {lines[0]}, expected {_VERSION}")
    if len(lines) < 2:
        return []
    entries: list[list[str]] = []
    for line in lines[2:]:
        fields = line.split(" ") if is_plain else _WHITE_SPACE.split(line)
        if len(fields) != field_count or not all(fields):
            raise CorruptFileError(path, f"malformed line {line!r}")
        entries.append(fields)
    if parse_integer(path, lines[1], 32) != len(entries):
        raise CorruptFileError(path, f"{len(entries)} entries, expected {lines[1]}")
    return entries


def write_checkpoint(
    fs: FileSystem, path: str, entries: Iterable[Iterable[object]], *, sync: bool = True
) -> None:
    """Replace the file by one with these entries; it is durable on return if `sync`."""
    lines = [" ".join(map(str, fields)) for fields in entries]
    text = "".join(f"{line}\n" for line in (_VERSION, len(lines), *lines))
    write_file(fs, path, text.encode(), sync=sync)


def read_offset_checkpoint(fs: FileSystem, path: str) -> dict[tuple[str, int], int]:
    """Return offsets by (topic, partition). Raises CorruptFileError."""
    return {
        (topic, parse_integer(path, partition, 32)): parse_integer(path, offset, 64)
        for topic, partition, offset in read_checkpoint(fs, path, 3)
    }


def write_offset_checkpoint(
    fs: FileSystem, path: str, offsets: Mapping[tuple[str, int], int], *, sync: bool = True
) -> None:
    """Replace the file by one with these offsets by (topic, partition)."""
    entries = ((topic, partition, offset) for (topic, partition), offset in offsets.items())
    write_checkpoint(fs, path, entries, sync=sync)


def parse_integer(path: str, text: str, bits: int) -> int:
    """Return the integer that Java would read from `text`. Raises CorruptFileError."""
    if text.isdigit() and text.isascii() and len(text) < _SMALL_DIGITS:
        return int(text)
    # No number of 64 bits has more digits; int() takes quadratic time for millions of them.
    if len(text) <= 40 and _INTEGER.fullmatch(text):
        value = int(text)
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return value
    raise CorruptFileError(path, f"{text[:40]!r} is no {bits}-bit integer")
