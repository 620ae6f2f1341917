"""
How messages are found by key or unique key: hash, slot, chain, and the key in the message itself.

The index knows hashes only. Java's answer may hold messages of another key with the same hash; here
each one is looked at. Where there is no index that can be read, the commit log is read instead.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from logstore.host import File
from logstore.segments.rocketmq.index.index_file import ENTRY, HEADER, SLOT_BYTES, IndexSizes
from logstore.segments.rocketmq.index.index_keys import index_hash
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.tools.inspection.road import Explanation, Fields
from logstore.tools.inspection.rocketmq.log_scan import LogScan, Run
from logstore.tools.inspection.rocketmq.message_road import (
    add_message,
    message_content,
    message_sentence,
    read_message,
)
from logstore.tools.inspection.rocketmq.stored_store import StoredStore
from logstore.tools.inspection.times import iso_time

_FAR_MS = 2**63 - 1


@attrs.frozen
class KeyQuestion:
    """What is asked: a key of a topic, in a range of store times; the newest `count_max`."""

    topic: str
    key: str
    is_unique: bool = False
    begin_ms: int = 0
    end_ms: int = _FAR_MS
    count_max: int = 32

    def is_answered_by(self, message: Message) -> bool:
        """Tell whether a message is one of those that are looked for."""
        if message.topic != self.topic:
            return False
        if not self.begin_ms <= message.store_timestamp_ms <= self.end_ms:
            return False
        if self.is_unique:
            return message.unique_key == self.key
        return self.key in message.keys or self.key == message.unique_key


def explain_key(store: StoredStore, question: KeyQuestion) -> tuple[Explanation, list[Message]]:
    """Return the road and the messages found, newest first."""
    found = Explanation()
    sizes = store.index_sizes
    if not store.index_paths or sizes is None:
        return found, _search_log(found, store, question)
    key_hash = index_hash(f"{question.topic}#{question.key}")
    slot = key_hash % sizes.slot_count
    found.add(
        "hash",
        {"text": f"{question.topic}#{question.key}", "hash": key_hash, "slot": slot},
        f'"{question.topic}#{question.key}" has hash {key_hash}: slot {slot} of {sizes.slot_count}',
    )
    messages: list[Message] = []
    seen: set[int] = set()
    for path in reversed(store.index_paths):
        for physical_offset in _look_into(found, store, path, sizes, key_hash):
            if physical_offset in seen:
                continue
            seen.add(physical_offset)
            road = Explanation()
            message = read_message(road, store, physical_offset)
            if message is None:
                found.add("dangling", {"physicalOffset": physical_offset}, road.verdict)
            elif question.is_answered_by(message):
                messages.append(message)
            elif message.topic != question.topic or question.key not in message.keys:
                said = f"has the same hash and another key: {message_sentence(message)}"
                found.add("collision", {"physicalOffset": physical_offset}, said)
            if len(messages) >= question.count_max:
                return _ended(found, question, messages), messages
    return _ended(found, question, messages), messages


def _ended(found: Explanation, question: KeyQuestion, messages: list[Message]) -> Explanation:
    if not messages:
        what = "unique key" if question.is_unique else "key"
        return found.end(
            "missing", f"no message of {question.topic} has the {what} {question.key!r}"
        )
    if len(messages) == 1:
        return add_message(found, messages[0])
    for message in messages:
        found.add("message", message_content(message), message_sentence(message))
    places = ", ".join(str(message.physical_offset) for message in messages)
    return found.end("found", f"{len(messages)} messages, at physical offsets {places}")


def _look_into(
    found: Explanation, store: StoredStore, path: str, sizes: IndexSizes, key_hash: int
) -> list[int]:
    """Add what one index file says; return the physical offsets of its matches, newest first."""
    name = path.removeprefix(f"{store.directory}/")
    file = store.fs.open(path, writable=False)
    try:
        head = file.read(0, HEADER.size).ljust(HEADER.size, b"\0")
        begin_ms, end_ms, _, _, _, next_number = HEADER.unpack(head)
        slot = key_hash % sizes.slot_count
        data = file.read(HEADER.size + SLOT_BYTES * slot, SLOT_BYTES).ljust(SLOT_BYTES, b"\0")
        newest = int.from_bytes(data, "big", signed=True)
        chain = list(_chain(file, sizes, newest, next_number))
    finally:
        file.close()
    matches = [entry[1] for _, entry in chain if entry[0] == key_hash]
    fields: Fields = {
        "file": name,
        "newest": newest,
        "chain": [number for number, _ in chain],
        "physicalOffsets": matches,
    }
    said = (
        f"{name} ({iso_time(begin_ms)} to {iso_time(end_ms)}): the slot says {newest}, the chain "
        f"has {len(chain)} entries, {len(matches)} with that hash"
    )
    if chain and chain[-1][1][3] > 0:
        fields["isBroken"] = True
        number, entry = chain[-1]
        said += f"; it is broken: entry {number} leads to {entry[3]}; logstore reindex mends it"
    found.add("index file", fields, said)
    return matches


def _chain(
    file: File, sizes: IndexSizes, newest: int, next_number: int
) -> Iterator[tuple[int, tuple[int, int, int, int]]]:
    """Yield (number, entry) along a chain, which must go down: one that does not ends there."""
    number, below = newest, next_number
    while 0 < number < below:
        data = file.read(sizes.entries_position + ENTRY.size * number, ENTRY.size)
        if len(data) < ENTRY.size:
            return
        entry = ENTRY.unpack(data)
        yield number, entry
        number, below = entry[3], number


def _search_log(found: Explanation, store: StoredStore, question: KeyQuestion) -> list[Message]:
    """Read the whole commit log."""
    why = "there is none" if not store.index_paths else "how many slots it has is not known (--set)"
    found.add("index", {}, f"no index can tell ({why}): the commit log is read instead")
    needle = question.key.encode()
    messages: list[Message] = []
    scan, log = LogScan(), store.commit_log
    for file in log.files:
        for piece in scan.pieces(log.open(file), file.path, file.base):
            if not isinstance(piece, Run):
                continue
            position = 0
            while position < len(piece.data):
                size_bytes = int.from_bytes(piece.data[position : position + 4])
                if needle in bytes(piece.data[position : position + size_bytes]):
                    message = decode_message(piece.data, position, verify_crc=False)
                    if question.is_answered_by(message):
                        messages.append(message)
                position += size_bytes
    newest = messages[: -question.count_max - 1 : -1]
    _ended(found, question, newest)
    return newest
