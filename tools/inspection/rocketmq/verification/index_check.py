"""Index files held against the messages: headers, slots, chains, entries."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import groupby
from sys import byteorder
from typing import TYPE_CHECKING, NamedTuple

import attrs

from logstore.segments.rocketmq.index.index_file import ENTRY, HEADER, SLOT_BYTES, IndexSizes
from logstore.segments.rocketmq.index.index_keys import index_hashes
from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
from logstore.segments.rocketmq.messages.system_flags import (
    TRANSACTION_MASK,
    TRANSACTION_ROLLBACK,
)
from logstore.tools.inspection.rocketmq.stored_store import StoredStore
from logstore.tools.inspection.verification.finding import Finding, Severity

if TYPE_CHECKING:
    from logstore.tools.inspection.rocketmq.verification.followed_log import FollowedLog

_STEP_COUNT = 50_000
_FAR = 2**63 - 1
#: what an entry says of a message that is younger than the begin by more
_SECONDS_MAX = 2**31 - 1
_REMEDY = "logstore reindex makes the index anew"


@attrs.frozen
class Header:
    """The 40 bytes at the start of an index file."""

    begin_ms: int
    end_ms: int
    begin_physical_offset: int
    end_physical_offset: int
    slot_count_used: int
    next_number: int


class Entry(NamedTuple):
    """One entry, and in which file it stands; there are millions of them."""

    file: int
    number: int
    key_hash: int
    physical_offset: int
    seconds: int


class IndexCheck:
    """Follows the commit log; entries are read along, in the order in which they were made."""

    def __init__(self, store: StoredStore, sizes: IndexSizes) -> None:
        self.store = store
        self.sizes = sizes
        self.paths = store.index_paths
        self.names = [path.removeprefix(f"{store.directory}/") for path in self.paths]
        self.headers: list[Header] = []
        self._found: list[Finding] = []
        self._read_headers()
        self._groups = groupby(self._entries(), key=lambda entry: entry.physical_offset)
        self._group: list[Entry] = self._pull()
        self._following: list[Entry] = self._pull()
        #: keyed messages that the index lacks, since the last one that it has
        self._missing: list[DispatchRequest] = []
        self._missing_count = 0
        self._begin = self.headers[0].begin_physical_offset if self.headers else _FAR
        #: whether the last tagged message with entries had one of its tags: so since 5.4
        self._indexes_tags = False

    # the files alone

    def _read_headers(self) -> None:
        fs = self.store.fs
        for path, name in zip(self.paths, self.names, strict=True):
            file = fs.open(path, writable=False)
            try:
                data = file.read(0, HEADER.size).ljust(HEADER.size, b"\0")
                size_bytes = file.size()
            finally:
                file.close()
            self.headers.append(Header(*HEADER.unpack(data)))
            if size_bytes != self.sizes.file_size_bytes:
                said = (
                    f"is {size_bytes} bytes long, {self.sizes.slot_count} slots and "
                    f"{self.sizes.entry_count} entries make {self.sizes.file_size_bytes}; {_REMEDY}"
                )
                self._found.append(Finding("size", name, said))

    def _entries(self) -> Iterator[Entry]:
        """Yield the entries of all files, and check each file by itself on the way."""
        for number, path in enumerate(self.paths):
            file = self.store.fs.open(path, writable=False)
            try:
                slots: dict[int, int] = {}
                header = self.headers[number]
                count = min(max(header.next_number, 1), self.sizes.entry_count)
                last: tuple[int, ...] | None = None
                for start in range(1, count, _STEP_COUNT):
                    wanted = min(_STEP_COUNT, count - start) * ENTRY.size
                    data = file.read(self._position(start), wanted).ljust(wanted, b"\0")
                    for index, entry in enumerate(ENTRY.iter_unpack(data), start):
                        self._check_chain(number, index, entry, slots)
                        last = entry
                        yield Entry(number, index, *entry[:3])
                self._check_header(number, len(slots), None if last is None else last[1])
                self._check_slots(
                    number, slots, file.read(HEADER.size, SLOT_BYTES * self.sizes.slot_count)
                )
            finally:
                file.close()

    def _position(self, number: int) -> int:
        return self.sizes.entries_position + ENTRY.size * number

    def _check_chain(
        self, file: int, number: int, entry: tuple[int, ...], slots: dict[int, int]
    ) -> None:
        key_hash, physical_offset, _, previous = entry
        slot = key_hash % self.sizes.slot_count
        expected = slots.get(slot, 0)
        slots[slot] = number
        if previous != expected:
            self._say_chain(file, number, slot, previous, expected, physical_offset)

    def _say_chain(
        self,
        file: int,
        number: int,
        slot: int,
        previous: int,
        expected: int,
        physical_offset: int,
    ) -> None:
        if previous >= number:
            said = f"entry {number} leads to entry {previous}: the chain of slot {slot} is a loop"
        else:
            said = f"entry {number} leads to entry {previous}, before it in slot {slot} is "
            said += f"{expected}" if expected else "none"
        self._say("index-chain", file, self._position(number), said, physical_offset)

    def _check_header(self, file: int, slot_count_used: int, last_offset: int | None) -> None:
        """Hold the header against the slots in use and where the last entry leads, if any."""
        header = self.headers[file]
        if header.next_number > self.sizes.entry_count or header.next_number < 0:
            said = f"the header says {header.next_number} entries of {self.sizes.entry_count}"
            self._say("index-header", file, 36, said)
        # Releases of before 4.7 count a slot as often as it gets an entry.
        if header.slot_count_used not in (slot_count_used, header.next_number - 1):
            said = f"the header says {header.slot_count_used} slots in use, it is {slot_count_used}"
            self._say("index-header", file, 32, said)
        if last_offset is not None and header.end_physical_offset != last_offset:
            said = f"the header says end at {header.end_physical_offset}, the last entry "
            said += str(last_offset)
            self._say("index-header", file, 24, said)

    def _check_slots(self, file: int, slots: dict[int, int], data: bytes) -> None:
        expected = array("i", bytes(SLOT_BYTES * self.sizes.slot_count))
        for slot, number in slots.items():
            expected[slot] = number
        if byteorder == "little":
            expected.byteswap()
        if expected.tobytes() == data:
            return
        found = array("i", data[: len(data) // SLOT_BYTES * SLOT_BYTES])
        if byteorder == "little":
            found.byteswap()
        for slot, number in enumerate(found):
            right = slots.get(slot, 0)
            if number != right:
                self._say_slot(file, slot, number, right)

    def _say_slot(self, file: int, slot: int, number: int, right: int) -> None:
        said = f"slot {slot} says entry {number}, its newest one is {right or 'none'}"
        self._say("index-slot", file, HEADER.size + SLOT_BYTES * slot, said)

    # with the messages

    def _pull(self) -> list[Entry]:
        try:
            return list(next(self._groups)[1])
        except StopIteration:
            return []

    def _advance(self) -> None:
        self._group, self._following = self._following, self._pull()

    def take(self, request: DispatchRequest) -> None:
        """Hold the entries of a message against it."""
        if request.sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK:
            return
        place = request.physical_offset
        self._dangles_before(place)
        hashes = index_hashes(request.topic, request.properties_text, has_tag_entry=True)
        if self._group and self._group[0].physical_offset == place:
            self._compare(request, hashes)
            self._advance()
        elif hashes and place >= self._begin and self._has_keys(request, hashes):
            if not self._missing:
                self._missing.append(request)
            self._missing_count += 1

    def _dangles_before(self, place: int) -> None:
        """Judge the entries that lead to no message before `place`, or not in order."""
        while self._group and (self._group[0].physical_offset < place or self._is_astray()):
            self._dangles(self._group)
            self._advance()

    def _has_keys(self, request: DispatchRequest, hashes: list[int]) -> bool:
        """Tell whether the message has an entry where it stands: before 5.4 tags have none."""
        return self._indexes_tags or len(hashes) > (request.tags is not None)

    def _is_astray(self) -> bool:
        """Tell whether an entry leads further than the next one: it is not where it must be."""
        group, following = self._group, self._following
        return bool(following) and following[0].physical_offset < group[0].physical_offset

    def _compare(self, request: DispatchRequest, hashes: list[int]) -> None:
        self._say_missing(is_end=False)
        found = [entry.key_hash for entry in self._group]
        without_tag = hashes[:-1] if request.tags is not None else hashes
        if request.tags is not None and found in (hashes, without_tag):
            self._indexes_tags = found == hashes
        first = self._group[0]
        if found not in (hashes, without_tag):
            is_twice = set(found) in (set(hashes), set(without_tag))
            said = (
                "a recovery put in again what was there"
                if is_twice
                else f"the entries have the hashes {found}, the message's keys have {hashes}"
            )
            self._say(
                "index-twice" if is_twice else "index-entry",
                first.file,
                self._position(first.number),
                f"entries {first.number} and on: {said}",
                request.physical_offset,
                is_harmless=is_twice,
            )
        for entry in self._group:
            self._check_time(entry, request)

    def _check_time(self, entry: Entry, request: DispatchRequest) -> None:
        header = self.headers[entry.file]
        stored_ms = request.store_timestamp_ms
        if entry.number == 1:
            if (header.begin_ms, header.begin_physical_offset) != (
                stored_ms, request.physical_offset,
            ):  # fmt: skip
                said = (
                    f"the header says begin at {header.begin_physical_offset}, {header.begin_ms}; "
                    f"the first message is at {request.physical_offset}, {stored_ms}"
                )
                self._say("index-header", entry.file, 0, said, request.physical_offset)
        else:
            seconds = min(max((stored_ms - header.begin_ms) // 1000, 0), _SECONDS_MAX)
            if entry.seconds != seconds:
                said = f"entry {entry.number} says {entry.seconds} seconds, the message {seconds}"
                place = self._position(entry.number)
                self._say("index-entry", entry.file, place, said, request.physical_offset)
        if entry.number == header.next_number - 1 and header.end_ms != stored_ms:
            said = f"the header says end at {header.end_ms}, the last message {stored_ms}"
            self._say("index-header", entry.file, 8, said, request.physical_offset)

    def _dangles(self, group: list[Entry]) -> None:
        first = group[0]
        if first.physical_offset < self.store.commit_log.start and first.physical_offset >= 0:
            return  # its message was deleted
        said = f"entry {first.number} leads to physical offset {first.physical_offset}, where no "
        said += "message starts"
        self._say("index-entry", first.file, self._position(first.number), said,
                  first.physical_offset)  # fmt: skip

    def _say_missing(self, *, is_end: bool) -> None:
        if not self._missing:
            return
        request = self._missing[0]
        is_late = is_end and not self.store.was_clean
        rest = "the next start adds them" if is_late else _REMEDY
        said = f"{self._missing_count} messages from physical offset {request.physical_offset} on "
        self._found.append(
            Finding(
                "index-missing",
                "index",
                f"{said}have keys and no entry; {rest}",
                severity=Severity.NOTE if is_late else Severity.DAMAGE,
                physical_offset=request.physical_offset,
            )
        )
        self._missing.clear()
        self._missing_count = 0

    def _say(
        self,
        kind: str,
        file: int,
        position: int,
        text: str,
        physical_offset: int | None = None,
        *,
        is_harmless: bool = False,
    ) -> None:
        is_young = file == len(self.paths) - 1 and not self.store.was_clean
        if is_young and self.store.process is not None:
            return  # a broker is writing to it: entries come between the looks at file and log
        rest = "; the next start makes this file anew" if is_young else f"; {_REMEDY}"
        text += "" if is_harmless else rest
        severity = Severity.NOTE if is_young or is_harmless else Severity.DAMAGE
        name = self.names[file]
        self._found.append(Finding(kind, name, text, position, None, severity, physical_offset))

    def findings(self, log: FollowedLog) -> Iterator[Finding]:
        """Yield what is wrong, once the whole log was walked."""
        ahead: list[Entry] = []
        while self._group:
            if log.end <= self._group[0].physical_offset and not self._is_astray():
                ahead += self._group
            else:
                self._dangles(self._group)
            self._advance()
        self._say_missing(is_end=True)
        yield from sorted(self._found, key=lambda found: (found.file, found.position or 0))
        if ahead:
            first = ahead[0]
            yield Finding(
                "index-ahead",
                self.names[first.file],
                f"{len(ahead)} entries lead behind the end of the commit log, {log.end}: remains "
                "of a recovery, or the log has lost its end",
                self._position(first.number),
                severity=Severity.NOTE,
                physical_offset=first.physical_offset,
            )
