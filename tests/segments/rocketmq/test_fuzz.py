"""
Every decoder of RocketMQ's files against damage: it answers, or raises an error of ours, in time.

`./dev test` does this for a short time with the same damages each time, `./dev fuzz SECONDS` for
as long as you like with new ones. A failure names the seed and the input.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import attrs
import pytest

from logstore.segments.rocketmq.columns import decode_columns, scan_records, to_arrow
from logstore.segments.rocketmq.columns.record_scan import ScanStop
from logstore.segments.rocketmq.filters.record_properties import properties_of_record
from logstore.segments.rocketmq.filters.sql_parser import compile_sql
from logstore.segments.rocketmq.ha.epoch_file import EpochEntry, decode_epochs, encode_epochs
from logstore.segments.rocketmq.ha.frames import FrameReader
from logstore.segments.rocketmq.messages.body_compression import (
    CompressionType,
    compress_body,
    decompress_body,
)
from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.dispatch_request import (
    DispatchRequest,
    read_dispatch_request,
)
from logstore.segments.rocketmq.messages.message import decode_message, encode_message
from logstore.segments.rocketmq.messages.message_batch import (
    BatchItem,
    count_batch_items,
    decode_batch_body,
    draft_batch,
    encode_batch_body,
)
from logstore.segments.rocketmq.messages.message_id import parse_offset_message_id, parse_unique_key
from logstore.segments.rocketmq.messages.properties import (
    encode_properties,
    find_property,
    parse_properties,
    property_needle,
)
from logstore.segments.rocketmq.opening.checkpoint import StoreCheckpoint
from logstore.segments.rocketmq.queues.consume_queue_ext import ConsumeQueueExtUnit
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from logstore.segments.rocketmq.tables.java_json import parse_json
from logstore.segments.rocketmq.timer.timer_checkpoint import TimerCheckpoint
from logstore.segments.rocketmq.timer.timer_unit import TimerUnit
from logstore.testing.simulated_host import SimulatedHost
from tests.damage import damaged
from tests.fuzzing import complaint, rounds
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.golden_records import stored_records

OUTPUT_BYTES_MAX = 16 << 20
DIRECTORY = "/store"


@attrs.frozen
class Decoder:
    """Something that reads bytes, and honest examples of what it reads."""

    name: str
    read: Callable[[bytes], object]
    examples: Callable[[], list[bytes]]


@cache
def golden_messages() -> list[bytes]:
    """Return single records of all kinds."""
    cases = golden_cases("properties", "ipv6", "version-2", "property-crc", "batch-queue", "delay")
    return [record.data for case in cases for record in stored_records(case.store)][::11]


@cache
def golden_runs() -> list[bytes]:
    """Return a few messages behind each other, up to the end of a file."""
    runs: list[bytes] = []
    for case in golden_cases("plain", "transactions"):
        first = min((case.store / "commitlog").iterdir())
        data = first.read_bytes()
        ends = [
            one.position + len(one.data) for one in stored_records(case.store) if one.file == first
        ]
        runs += [data[: ends[3]], data[ends[-4] :][:20_000]]
    return runs


def golden_tables() -> list[bytes]:
    """Return the tables of all stores."""
    cases = golden_cases("groups", "delay", "filters", "timer")
    paths = [path for case in cases for path in (case.store / "config").glob("*.json")]
    return [path.read_bytes() for path in paths if path.stat().st_size]


def golden_replication() -> list[bytes]:
    """Return what masters sent to slaves."""
    cases = golden_cases("replication-sync", "replication-async")
    return [
        path.read_bytes()[:4000] for case in cases for path in sorted(case.folder.glob("ha-*.bin"))
    ]


def read_message(data: bytes) -> object:
    """Read one message in every way there is; what is accepted must be written again."""
    try:
        message = decode_message(data)
    except CorruptMessageError:
        decode_message(data, verify_crc=False)
        raise
    if "\ufffd" not in message.topic:
        again = decode_message(encode_message(message), verify_crc=False)
        assert attrs.evolve(again, size_bytes=message.size_bytes) == message
    message.plain_body(OUTPUT_BYTES_MAX)
    return message.properties, message.offset_message_id, message.tags_code


def read_request(data: bytes) -> object:
    """Read a request; what the whole decoder accepts is accepted, with the same meaning."""
    try:
        message = decode_message(data)
    except CorruptMessageError:
        message = None
    found = read_dispatch_request(data, verify_crc=True)
    if message is not None:
        assert isinstance(found, DispatchRequest)
        assert (found.topic, found.size_bytes) == (message.topic, message.size_bytes)
        assert found.properties == message.properties
    if isinstance(found, DispatchRequest):
        return found.keys, found.unique_key, found.batch_size, found.message_base_offset
    return found


def scan_run(data: bytes) -> object:
    """Scan many records; what the scan accepts are the requests that are read one by one."""
    scan = scan_records(data, verify_crc=True)
    position = 0
    for row in range(len(scan)):
        one, other = scan.request(row), read_dispatch_request(data, position, verify_crc=True)
        assert isinstance(other, DispatchRequest)
        assert (one.topic, one.tags_code, one.properties_text) == (
            other.topic,
            other.tags_code,
            other.properties_text,
        )
        position += other.size_bytes
    assert position == scan.end_position
    if scan.stop is ScanStop.BLANK:
        assert int.from_bytes(data[position + 4 : position + 8]) == 0xCBD43194
    units = b"".join(run.units for run in scan.queue_runs())
    return units, scan.index_entries(has_tag_keys=True)


def read_columns(data: bytes) -> object:
    """Decode to columns and to Arrow, or be told of damage."""
    return to_arrow(decode_columns(data))


def read_batch(data: bytes) -> object:
    """Take a batch body apart; what is accepted gives the same body again but for unused fields."""
    items = decode_batch_body(data)
    assert decode_batch_body(encode_batch_body(items)) == items
    host = decode_message(golden_messages()[0]).born_host
    batch = draft_batch(
        topic="t", body=data, queue_id=0, born_timestamp_ms=1, born_host=host, store_host=host
    )
    batch.stamp(0, 0)
    assert len(memoryview(batch.stamped(0).data)) == batch.size_bytes
    return count_batch_items(data)


def read_properties(data: bytes) -> object:
    """Parse a text; single properties are found as the parser finds them, and written again."""
    properties = parse_properties(data)
    value = find_property(data, property_needle("TAGS"))
    assert (value or b"").decode("utf-8", "replace") == properties.get("TAGS", "")
    return parse_properties(encode_properties(properties, capacity=16)) == properties


def read_frames(data: bytes) -> object:
    """Read a master's stream."""
    reader = FrameReader()
    reader.receive(data)
    return list(reader.frames())


def read_checkpoint(data: bytes) -> object:
    """Read the file of a checkpoint."""
    host = SimulatedHost()
    write(host, f"{DIRECTORY}/checkpoint", data)
    return StoreCheckpoint(host, f"{DIRECTORY}/checkpoint").min_timestamp_ms


def write(host: SimulatedHost, path: str, data: bytes) -> None:
    """Put a file onto the simulated disk."""
    host.fs.make_directory(path.rpartition("/")[0])
    file = host.fs.open(path, create=True)
    file.write(0, data)
    file.close()


def compressed(kind: CompressionType) -> Callable[[], list[bytes]]:
    """Return a function that compresses texts of several sizes."""
    return lambda: [compress_body(kind, b"fuzz me, " * count) for count in (1, 20, 5000)]


BATCH = [
    BatchItem(b"one", b"TAGS\x01a\x02"),
    BatchItem(b"", b""),
    BatchItem(b"three" * 9, b"x\x01y"),
]
TEXTS = [b"TAGS\x01TagA\x02KEYS\x01k1 k2\x02UNIQ_KEY\x01u1", "名\x01值\x02TAGS\x01标签".encode()]
DECODERS = (
    Decoder("message", read_message, golden_messages),
    Decoder("dispatch request", read_request, golden_messages),
    Decoder("scan", scan_run, golden_runs),
    Decoder("columns", read_columns, golden_runs),
    Decoder("batch body", read_batch, lambda: [encode_batch_body(BATCH)]),
    Decoder("properties", read_properties, lambda: TEXTS),
    Decoder("properties of a record", properties_of_record, golden_messages),
    Decoder(
        "message id",
        lambda data: parse_offset_message_id(data.decode("latin-1")),
        lambda: [b"0A00000100002A9F0000000000000400"],
    ),
    Decoder(
        "unique key",
        lambda data: parse_unique_key(data.decode("latin-1")),
        lambda: [b"FD0000000000000000000000000000027D1F4E0E2F2A67CFB9270002"],
    ),
    Decoder("table", lambda data: parse_json(data.decode("utf-8", "replace")), golden_tables),
    Decoder("replication stream", read_frames, golden_replication),
    Decoder(
        "epoch file",
        decode_epochs,
        lambda: [encode_epochs([EpochEntry(1, 0), EpochEntry(2, 4096)])],
    ),
    Decoder("checkpoint", read_checkpoint, lambda: [bytes(range(48)) + bytes(4048)]),
    Decoder("timer checkpoint", TimerCheckpoint.decode, lambda: [bytes(range(56)) + bytes(40)]),
    Decoder("timer unit", TimerUnit.decode, lambda: [bytes(range(52))]),
    Decoder(
        "queue extension",
        ConsumeQueueExtUnit.decode,
        lambda: [ConsumeQueueExtUnit(5, 6, b"\1\2\3").encode()],
    ),
    Decoder(
        "SQL expression",
        lambda data: compile_sql(data.decode("latin-1")),
        lambda: [b"a IS NOT NULL AND b BETWEEN 0 AND 3 OR c IN ('x', 'y')", b"NOT (a > 5.5)"],
    ),
    *(
        Decoder(
            f"{kind.name} body",
            partial(decompress_body, kind, size_bytes_max=OUTPUT_BYTES_MAX),
            compressed(kind),
        )
        for kind in (CompressionType.ZLIB, CompressionType.LZ4, CompressionType.ZSTD)
    ),
)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
def test_decoders_survive_damage(decoder: Decoder) -> None:
    """Honest bytes are read; damaged ones are read or refused, never answered by a crash."""
    examples = decoder.examples()
    assert examples
    for example in examples:
        decoder.read(example)
    for seed, chance in rounds(len(DECODERS) + 4):
        data = damaged(chance.choice(examples), chance)
        assert complaint(seed, data, partial(decoder.read, data)) == ""


def stored(case: GoldenCase) -> dict[str, bytes]:
    """Return the files of a golden store by their paths; preallocated ones behind the end go."""
    files = {
        str(path.relative_to(case.store)): path.read_bytes()
        for path in sorted(case.store.rglob("*"))
        if path.is_file() and path.stat().st_size < 1 << 20
    }
    return {name: data for name, data in files.items() if any(data) or "/" not in name}


def read_everything(files: dict[str, bytes], settings: dict[str, str]) -> None:
    """Open a store over these files, and read it by queue offset, time and key."""
    host = SimulatedHost()
    for name, data in files.items():
        write(host, f"{DIRECTORY}/{name}", data)
    store = RocketMQStore(host, DIRECTORY, StoreOptions(settings=settings))
    try:
        for topic, queues in store.topics().items():
            for queue_id in queues:
                end = store.max_queue_offset(topic, queue_id)
                store.queue_offset_for_time(topic, queue_id, 1_795_232_140_000)
                for queue_offset in range(
                    store.min_queue_offset(topic, queue_id), min(end, 200), 32
                ):
                    store.get_message("g", topic, queue_id, queue_offset, 32)
            store.query_message(topic, "key1", 32, 0, 1 << 62)
        store.dispatch()
        store.tick()
    finally:
        store.abandon()


STORES = golden_cases("properties", "transactions", "batch-queue")


@pytest.mark.timeout(0)
@pytest.mark.parametrize("case", STORES, ids=lambda case: case.id)
def test_a_store_survives_damaged_files(case: GoldenCase) -> None:
    """Whatever happened to one file, after either kind of stop: it opens, or says why not."""
    whole = stored(case)
    read_everything(whole, case.settings)
    for seed, chance in rounds(len(DECODERS) + 4, share=2):
        files = dict(whole)
        if chance.random() < 0.5:
            files["abort"] = b"1"
        name = chance.choice(sorted(files))
        if chance.random() < 0.1:
            del files[name]
        else:
            position = chance.randrange(max(1, len(files[name].rstrip(b"\0"))))
            files[name] = damaged(files[name], chance, first=max(0, position - 200))
        about = f"{name}: {sorted(files)}".encode()
        assert complaint(seed, about, partial(read_everything, files, case.settings)) == ""
