"""The messages of a golden store, put again into an empty one with the same hosts and times."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import attrs

from logstore.host import Host
from logstore.os_host import SystemFileSystem
from logstore.segments.rocketmq.filters.bloom_filter import BloomFilter
from logstore.segments.rocketmq.filters.sql_filter import FilterBitMaps
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.segments.rocketmq.messages.message_batch import (
    BatchItem,
    MessageBatchDraft,
    draft_batch,
    encode_batch_body,
)
from logstore.segments.rocketmq.messages.message_draft import MessageDraft, draft_message
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from logstore.testing import ManualClock
from tests.segments.rocketmq.golden_case import GoldenCase
from tests.segments.rocketmq.golden_records import stored_records

CRC_BYTES = 20


@attrs.frozen
class Rewriter:
    """Puts what a golden store holds into `target`; its clock shows when each was stored."""

    case: GoldenCase
    source: Path
    target: Path
    clock: ManualClock = attrs.field(factory=ManualClock)

    def host(self) -> Host:
        """Return the real disk with that clock."""
        return Host(SystemFileSystem(), self.clock, random.Random(0))

    def open(self) -> RocketMQStore:
        """Open the target; it has topics and filters of the source, and nothing else."""
        config = self.target / "config"
        if not config.exists():
            config.mkdir(parents=True)
            for name in ("topics.json", "consumerFilter.json"):
                if (self.source / "config" / name).exists():
                    shutil.copy(self.source / "config" / name, config)
        release = Release.V4 if self.case.version == "4.9.8" else Release.V5
        options = StoreOptions(settings=self.case.settings, release=release)
        store = RocketMQStore(self.host(), str(self.target), options)
        if self.case.settings.get("enableCalcFilterBitMap") == "true":
            bit_maps = FilterBitMaps(store.consumer_filters, BloomFilter.sized())
            store.consume_queues.bit_map_of = bit_maps.bit_map_of
        return store

    def run(self, *, dispatch_each: bool = False) -> RocketMQStore:
        """Put everything; the store is left open."""
        store = self.open()
        for draft, stored_ms in self._drafts():
            self.clock.jump_wall(stored_ms - self.clock.wall_ms())
            if isinstance(draft, MessageDraft):
                result = store.put_message(draft, is_delivery=True)
            else:
                result = store.put_batch(draft)
            assert result.is_ok, result
            if dispatch_each:
                store.dispatch()
        return store

    def _drafts(self) -> Iterator[tuple[MessageDraft | MessageBatchDraft, int]]:
        """Yield drafts and when they were stored; what moved to the next file as a batch is one."""
        messages = [decode_message(record.data) for record in stored_records(self.source)]
        file_bytes = int(self.case.settings["mappedFileSizeCommitLog"])
        position = number = 0
        while number < len(messages):
            first = messages[number]
            rest = file_bytes - position % file_bytes
            fits = first.size_bytes + 8 <= rest
            count = 1
            if fits and first.physical_offset != position:
                count = self._batch_at(messages, number, rest)
                yield self._batch(messages[number : number + count]), first.store_timestamp_ms
            else:
                yield self._single(first), first.store_timestamp_ms
            number += count
            position = messages[number - 1].next_physical_offset

    def _batch_at(self, messages: list[Message], number: int, rest: int) -> int:
        """Return how many messages from there on would not have fitted, taken together."""
        size_bytes = count = 0
        while size_bytes + 8 <= rest:
            size_bytes += messages[number + count].size_bytes
            count += 1
        return count

    def _text(self, message: Message) -> bytes:
        text = message.properties_text
        return text[:-CRC_BYTES] if self.has_crc else text

    @property
    def has_crc(self) -> bool:
        """Whether every record ends with a CRC of all of it."""
        return self.case.settings.get("enabledAppendPropCRC") == "true"

    def _single(self, message: Message) -> MessageDraft:
        return draft_message(
            topic=message.topic,
            body=message.body,
            queue_id=message.queue_id,
            properties_text=self._text(message),
            flag=message.flag,
            sys_flag=message.sys_flag,
            born_timestamp_ms=message.born_timestamp_ms,
            born_host=message.born_host,
            store_host=message.store_host,
            reconsume_times=message.reconsume_times,
            prepared_transaction_offset=message.prepared_transaction_offset,
            has_property_crc=self.has_crc,
            version=message.version,
        )

    def _batch(self, messages: list[Message]) -> MessageBatchDraft:
        first = messages[0]
        items = [BatchItem(one.body, self._text(one), one.flag) for one in messages]
        return draft_batch(
            topic=first.topic,
            body=encode_batch_body(items),
            queue_id=first.queue_id,
            sys_flag=first.sys_flag,
            born_timestamp_ms=first.born_timestamp_ms,
            born_host=first.born_host,
            store_host=first.store_host,
            has_property_crc=self.has_crc,
            version=first.version,
        )


def log_bytes(store: Path) -> bytes:
    """Return all of a store's commit log that is not preallocated."""
    files = sorted((store / "commitlog").iterdir())
    return b"".join(file.read_bytes() for file in files).rstrip(b"\0")


def queue_bytes(store: Path) -> dict[str, bytes]:
    """Return every file of the queues by its path, the zeros behind its units left out."""
    found: dict[str, bytes] = {}
    for folder in ("consumequeue", "batchconsumequeue", "consumequeue_ext"):
        for file in sorted((store / folder).rglob("*")):
            if file.is_file() and (data := file.read_bytes().rstrip(b"\0")):
                found[str(file.relative_to(store))] = data
    return found


def index_bytes(store: Path) -> list[bytes]:
    """Return the content of the index files in order; their names are clock times."""
    folder = store / "index"
    return [file.read_bytes() for file in sorted(folder.iterdir())] if folder.exists() else []
