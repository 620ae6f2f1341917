"""What Java's store and ours made of one damage, and what may be different."""

from __future__ import annotations

import hashlib
import random
import struct
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import attrs

from logstore.host import Host
from logstore.os_host import SystemFileSystem
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from logstore.testing import ManualClock
from tests.interop.damage.rocketmq_kinds import (
    INDEX_HEADER_BYTES,
    PHYSICAL_OFFSET_POSITION,
    UNIT_BYTES,
    records,
)
from tests.segments.rocketmq.golden_case import GoldenCase

PLACE_BYTES = 12  # of a unit: where the record stands, and its size
INDEX_ENTRY = struct.Struct(">iq")  # hash and physical offset, of 20 bytes
INT_MIN = -(1 << 31)
REFUSAL = "!! "
#: a refusal of ours says what to do about the file that it names
REMEDIES = (
    "move the file away",
    "move it out of the directory",
    "former value",
    "move the files behind it away",
)
Queues = Mapping[tuple[str, int], list[bytes]]


@attrs.frozen(slots=False)
class Outcome:
    """A damaged store as it was, what both left, what was done, and what both read."""

    case: GoldenCase
    before: Path
    real: Path
    ours: Path
    done: list[str]
    real_read: list[str]
    ours_read: list[str]

    @cached_property
    def real_index(self) -> list[bytes]:
        """Java's index files, without those in which it finds nothing: ours removes them."""
        return [data for data in used_files(self.real, "index") if count_of(data) > 1]

    @cached_property
    def our_index(self) -> list[bytes]:
        """Our index files, as far as something is in them."""
        return [data for data in used_files(self.ours, "index") if count_of(data) > 1]

    def is_about(self, *words: str) -> bool:
        """Tell whether something of that kind was done."""
        return any(what.startswith(words) for what in self.done[1:])

    @property
    def exchanged(self) -> set[tuple[str, int]]:
        """Queues that have each other's units: Java keeps more of what is not theirs."""
        names = [name for what in self.done if what.startswith("exchange") for name in what.split()]
        places = [name.split("/")[1:3] for name in names if "/" in name]
        return {(topic, int(number)) for topic, number in places}

    @property
    def has_bad_units(self) -> bool:
        """Tell whether units of queues were damaged."""
        return any("consumequeue" in what for what in self.done[1:])

    def units(self, store: Path) -> Queues:
        """
        Return the units of each queue of a store that was stopped.

        Where the extension holds what a unit says of tags its address there is left out: Java puts
        that of a message there once more when it dispatches it again, and then leaves it unused.
        """
        release = Release.V4 if self.case.version == "4.9.8" else Release.V5
        options = StoreOptions(is_writable=False, settings=self.case.settings, release=release)
        opened = RocketMQStore(
            Host(SystemFileSystem(), ManualClock(), random.Random(0)), str(store), options
        )
        found: dict[tuple[str, int], list[bytes]] = {}
        for queue in opened.consume_queues:
            data, start = b"", queue.min_queue_offset
            while piece := bytes(queue.units(start + len(data) // UNIT_BYTES, 1 << 20)):
                data += piece  # each is of one file
            if data:
                found[queue.topic, queue.queue_id] = [
                    without_address(data[at : at + UNIT_BYTES])
                    for at in range(0, len(data), UNIT_BYTES)
                ]
        opened.close()
        return found


def without_address(unit: bytes) -> bytes:
    """Return a unit without the address of what the extension holds."""
    tags = int.from_bytes(unit[PLACE_BYTES:], "big", signed=True)
    return unit[:PLACE_BYTES] if tags < INT_MIN else unit


def used_files(store: Path, folder: str) -> list[bytes]:
    """Return the files of a folder that hold something; names of index files are times."""
    found = [one for one in (store / folder).glob("*") if one.is_file() and one.name.isdigit()]
    return [data for data in (one.read_bytes().rstrip(b"\0") for one in sorted(found)) if data]


def differences(outcome: Outcome) -> list[str]:
    """Return a line for everything that is different and not excused."""
    real, ours = outcome.real_read, outcome.ours_read
    if real and real[0].startswith(REFUSAL):
        return []  # where Java does not start ours may, and loses nothing by it
    if ours and ours[0].startswith(REFUSAL):
        has_remedy = any(remedy in ours[0] for remedy in REMEDIES)
        is_about_files = outcome.is_about("add", "resize", "remove commitlog")
        return [] if has_remedy and is_about_files else [ours[0]]
    if is_older_file_bad(outcome):
        return []
    if is_place_wrong(outcome):
        return lost_records(outcome)
    found = [*different_messages(outcome), *different_units(outcome)]
    if used_files(outcome.real, "commitlog") != used_files(outcome.ours, "commitlog"):
        found.append("commitlog")
    if outcome.real_index != outcome.our_index and not is_index_excused(outcome):
        sizes = [[len(one) for one in side] for side in (outcome.real_index, outcome.our_index)]
        found.append(f"index real {sizes[0]} ours {sizes[1]}")
    return found


def is_older_file_bad(outcome: Outcome) -> bool:
    """Tell whether a record is bad in a file that others follow: 4.9.8 cuts those, too."""
    real, ours = (used_files(side, "commitlog") for side in (outcome.real, outcome.ours))
    return outcome.case.version == "4.9.8" and len(real) < len(ours) and real == ours[: len(real)]


def is_place_wrong(outcome: Outcome) -> bool:
    """
    Tell whether a record says that it stands elsewhere.

    Java believes it, and may lead readers of the queue astray; ours takes its place for it.
    """
    for file, position, size in records(outcome.before / "commitlog"):
        at = position + PHYSICAL_OFFSET_POSITION
        if size >= PHYSICAL_OFFSET_POSITION + 8:
            said = int.from_bytes(file.read_bytes()[at : at + 8], "big")
            if said != int(file.name) + position:
                return True
    return False


def lost_records(outcome: Outcome) -> list[str]:
    """Return a line if Java hands out whole records of the log that ours does not."""
    stored = {
        hashlib.sha256(file.read_bytes()[position : position + size]).hexdigest()
        for file, position, size in records(outcome.before / "commitlog")
    }
    real = {one for one in map(content, outcome.real_read) if one[2] in stored}
    ours = {content(one) for one in outcome.ours_read}
    lost = sorted(one for one in real - ours if (one[0], int(one[1])) not in outcome.exchanged)
    return [f"messages lacking {lost[:3]}"] if lost else []


def is_index_excused(outcome: Outcome) -> bool:
    """
    Tell whether Java's index has nothing that ours lacks, and may have less, or the same twice.

    It names files by the millisecond: two that are made within one are one file. A file of no bytes
    makes it put everything in again. Behind garbage units it begins to dispatch elsewhere. What
    leads behind the last message of all is not looked at.
    """
    before = {file.name: file.stat().st_size for file in (outcome.before / "index").glob("*")}
    is_made_anew = any(
        file.name not in before
        for side in (outcome.real, outcome.ours)
        for file in (side / "index").glob("*")
    )
    if not (is_made_anew or outcome.has_bad_units or 0 in before.values()):
        return False
    slots = int(outcome.case.settings["maxHashSlotNum"])
    units = [unit for queue in outcome.units(outcome.real).values() for unit in queue]
    last = max((int.from_bytes(unit[:8], "big", signed=True) for unit in units), default=-1)
    real, ours = (entries_of(side, slots) for side in (outcome.real_index, outcome.our_index))
    return {entry for entry in real if entry[1] <= last} <= ours


def entries_of(files: list[bytes], slots: int) -> set[tuple[int, int]]:
    """Return hash and physical offset of every entry of some index files."""
    found: set[tuple[int, int]] = set()
    for data in files:
        entries = data[INDEX_HEADER_BYTES + 4 * slots :]
        count = min(count_of(data), len(entries) // UNIT_BYTES + 1)
        entries = entries.ljust(count * UNIT_BYTES, b"\0")
        found |= {INDEX_ENTRY.unpack_from(entries, n * UNIT_BYTES) for n in range(1, count)}
    return found


def count_of(data: bytes) -> int:
    """Return the number that the next entry of an index file will have."""
    (count,) = struct.unpack_from(">i", data.ljust(INDEX_HEADER_BYTES, b"\0"), 36)
    return int(count)


def different_messages(outcome: Outcome) -> list[str]:
    """
    Return a line if readers of a queue get different messages; some of no bytes are none.

    Where a queue has them its units tell: who asks for one that is gone gets the next one there is.
    Where units are garbage Java's queue may end at them until its next start: ours has more then.
    """
    real = {content(one) for one in outcome.real_read if one.rsplit(" ", 2)[1] != "0"}
    ours = {content(one) for one in outcome.ours_read}
    lost = sorted(one for one in real - ours if (one[0], int(one[1])) not in outcome.exchanged)
    more = [] if outcome.has_bad_units else sorted(ours - real)
    return [f"messages lacking {lost[:3]} more {more[:3]}"] if lost or more else []


def content(line: str) -> tuple[str, str, str]:
    """Return topic, queue and digest of a message."""
    topic, queue, _, _, digest = line.rsplit(" ", 4)
    return topic, queue, digest


def different_units(outcome: Outcome) -> list[str]:
    """Return a line for each queue with other units; damaged ones may have more than Java's."""
    real, ours = outcome.units(outcome.real), outcome.units(outcome.ours)
    found: list[str] = []
    for key in sorted(real.keys() | ours.keys()):
        one, other = real.get(key, []), ours.get(key, [])
        if one == other or key in outcome.exchanged:
            continue
        if outcome.has_bad_units and set(one) <= set(other):
            continue
        found.append(f"units {key} {len(one)}/{len(other)}")
    return found
