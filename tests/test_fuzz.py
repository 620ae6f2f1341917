"""
Every decoder against damaged input: it answers, or it raises one of our own errors, and in time.

`./dev test` does this for a few seconds, always with the same damages; `./dev fuzz SECONDS` for as
long as you like, with new ones each time. A failure names the seed and the input.
"""

from __future__ import annotations

import base64
import json
import random
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs
import pytest

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.delegation_tokens.delegation_tokens import TokenLogin
from logstore.compat.kafka.groups.offsets_log import (
    decode_group_metadata_value,
    decode_key,
    decode_offset_commit_value,
)
from logstore.compat.kafka.groups.share import records as share_groups
from logstore.compat.kafka.groups.share.group import ShareGroup
from logstore.compat.kafka.groups.subscription import subscribed_topics
from logstore.compat.kafka.security.distinguished_name import subject_of
from logstore.compat.kafka.security.jaas import parse_jaas
from logstore.compat.kafka.security.java_keystore import JavaKeystore
from logstore.compat.kafka.security.principal import Principal
from logstore.compat.kafka.security.principal_mapping import mapped, parse_rules
from logstore.compat.kafka.security.sasl.oauthbearer import OAuthBearerExchange
from logstore.compat.kafka.security.sasl.plain import PlainExchange
from logstore.compat.kafka.security.sasl.scram import ScramExchange
from logstore.compat.kafka.security.sasl.scram_mechanism import ScramMechanism
from logstore.compat.kafka.security.sasl.unsecured_token import TokenRules
from logstore.compat.kafka.share_state import records as share_state
from logstore.compat.kafka.share_state.share_partition import SharePartition, StateUpdate
from logstore.host import FileSystem
from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.checkpoints import read_offset_checkpoint
from logstore.segments.kafka.compression import Codec, compress, decompress
from logstore.segments.kafka.directory_name import parse_directory_name
from logstore.segments.kafka.java_properties import parse_properties
from logstore.segments.kafka.leader_epochs import LeaderEpochs
from logstore.segments.kafka.legacy.down_conversion import down_convert
from logstore.segments.kafka.legacy.up_conversion import up_convert, up_convert_produced
from logstore.segments.kafka.meta_properties import MetaProperties
from logstore.segments.kafka.partition_metadata import PartitionMetadata
from logstore.segments.kafka.producer_snapshot import decode_snapshot
from logstore.segments.kafka.record import check_structure, decode_records
from logstore.segments.kafka.record_batch import RecordBatch, iterate_batches
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.groups.streams.rehearsal import (
    StreamsRehearsal,
    internal,
    subtopology,
    topology,
)
from tests.damage import damaged
from tests.fuzzing import complaint, rounds
from tests.token_readers import KEYS, SIGNED, key_set, signed_token

GOLDEN = Path(__file__).resolve().parent / "golden"
DATA = GOLDEN / "kafka-4.3" / "data"
LEGACY_DATA = GOLDEN / "legacy-3.9" / "data"
OUTPUT_BYTES_MAX = 16 << 20
DIRECTORY = "/data"


def der(tag: int, *parts: bytes) -> bytes:
    """Return one element of a certificate."""
    body = b"".join(parts)
    return bytes((tag, len(body))) + body


def named(kind: bytes, value: bytes) -> bytes:
    """Return one part of a name."""
    return der(0x31, der(0x30, der(6, kind), der(12, value)))


_NAME = named(b"\x55\4\3", b"a, b") + named(b"\x55\4\x0a", b" o ") + named(b"\x55\4\5", b"1")
_TIMES = der(0x30, der(0x17, b"240101000000Z"), der(0x17, b"340101000000Z"))
CERTIFICATE = der(
    0x30,
    der(0x30, der(0xA0, der(2, b"\2")), der(2, b"\1"), der(0x30), der(0x30), _TIMES,
        der(0x30, _NAME)),
)  # fmt: skip
KEY_STORE = (GOLDEN / "java-keystore" / "key.jks").read_bytes()
JAAS = b"org.example.Module required user_a=\"b\\\\c\" /* d */ e='f'; // g"
SCRAM_FIRST = b"n,,n=user,r=abc"
SHA_256 = ScramMechanism.SCRAM_SHA_256
BEARER = b"n,,\1auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwiZXhwIjoxfQ.\1\1"


def scram_exchange(data: bytes) -> object:
    """Take `data` for either message of a client of SCRAM."""
    salted = SHA_256.salted_password("pencil", b"salt", 4096)
    known = SHA_256.credential("user", salted, b"salt", 4096)
    token = TokenLogin(known, Principal("User", "owner"), 0)
    exchange = ScramExchange(SHA_256, lambda _: known, lambda _: token, random.Random(1))
    if not data.startswith(b"n"):
        exchange.evaluate(SCRAM_FIRST)
    return exchange.evaluate(data)


def scram_final() -> bytes:
    """Return the second message of a client who knows the password."""
    challenge = scram_exchange(SCRAM_FIRST)
    assert isinstance(challenge, bytes)
    unproved = b"c=biws," + challenge.split(b",")[0]
    salted = SHA_256.salted_password("pencil", b"salt", 4096)
    key = SHA_256.hmac(salted, b"Client Key")
    said = b",".join((SCRAM_FIRST[3:], challenge, unproved))
    signature = SHA_256.hmac(SHA_256.hash(key), said)
    proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
    return unproved + b",p=" + base64.b64encode(proof)


def bearer_exchange(data: bytes) -> object:
    """Read a client's message with a token."""
    return OAuthBearerExchange(lambda token: TokenRules().identity(token, -5000)).evaluate(data)


@attrs.frozen
class Decoder:
    """Something that reads bytes, and honest examples of what it reads."""

    name: str
    read: Callable[[bytes], object]
    examples: Callable[[], list[bytes]]


def golden_files(pattern: str) -> Callable[[], list[bytes]]:
    """Return a function that reads all golden files of a name."""

    def read() -> list[bytes]:
        found = sorted(DATA.glob(pattern))
        return [data for path in found if 0 < len(data := path.read_bytes()) < 100_000]

    return read


def golden_batches() -> list[bytes]:
    """Return single record batches, in all codecs."""
    return [
        bytes(batch.data)
        for data in golden_files("*/*.log")()
        for batch in iterate_batches(memoryview(bytearray(data)))
    ][::3]


def golden_messages() -> list[bytes]:
    """Return single messages and wrappers of magic 0 and 1, in all codecs, and batches."""
    return [
        bytes(entry.data)
        for path in sorted(LEGACY_DATA.glob("magic*/*.log"))
        for entry in iterate_entries(memoryview(path.read_bytes()))
    ][::2]


def with_right_crc(data: bytes) -> bytes:
    """Return a message whose outer CRC hides no damage."""
    return data if len(data) < 17 else data[:12] + zlib.crc32(data[16:]).to_bytes(4) + data[16:]


def read_message(data: bytes) -> object:
    """Walk over a segment's bytes, read every message, and convert what can be read."""
    found: list[object] = []
    for entry in iterate_entries(memoryview(data)):
        records = decode_records(entry.data, size_bytes_max=OUTPUT_BYTES_MAX)
        if entry.magic < 2 and records:
            batch = up_convert(entry.data, size_bytes_max=OUTPUT_BYTES_MAX)
            found.append(down_convert([RecordBatch(batch, len(batch))], entry.magic))
    return found


def produce_messages(data: bytes) -> object:
    """Read a message set as a leader does."""
    if len(data) > 16 and data[16] > 1:
        return None
    return up_convert_produced(memoryview(with_right_crc(data)), size_bytes_max=OUTPUT_BYTES_MAX)


def group_records(key_version: int) -> list[tuple[bytes, bytes]]:
    """Return keys and values of a kind: 1 are committed offsets, 2 is what a group looks like."""
    (log,) = (DATA / "__consumer_offsets-0").glob("*.log")
    pairs = [
        (record.key, record.value)
        for batch in iterate_batches(memoryview(bytearray(log.read_bytes())))
        if not batch.is_control
        for record in decode_records(batch.data)
    ]
    return [
        (bytes(key), bytes(value))
        for key, value in pairs
        if key and value and int.from_bytes(key[:2]) == key_version
    ]


def group_keys() -> list[bytes]:
    """Return keys of both kinds."""
    return [key for version in (1, 2) for key, _ in group_records(version)]


def share_records(topic: str) -> list[bytes]:
    """Return records about a share group: the length of the key in a byte, the key, the value."""
    log = GOLDEN / "share-4.3" / "data" / f"{topic}-0" / "00000000000000000000.log"
    pairs = [
        (bytes(record.key or b""), bytes(record.value or b""))
        for batch in iterate_batches(memoryview(bytearray(log.read_bytes())))
        for record in decode_records(batch.data)
    ]
    return [bytes([len(key)]) + key + value for key, value in pairs]


def cut_in_two(data: bytes) -> tuple[bytes, bytes | None]:
    """Return key and value of what :func:`share_records` returns; without a value None."""
    end = 1 + data[0] if data else 0
    return data[1:end], data[end:] or None


def share_state_records() -> list[bytes]:
    """Return records of ``__share_group_state``."""
    return share_records("__share_group_state")


def share_group_records() -> list[bytes]:
    """Return records of ``__consumer_offsets``."""
    return share_records("__consumer_offsets")


def read_share_state(data: bytes) -> object:
    """Read a record, and lay what it says over itself."""
    change = share_state.decoded(*cut_in_two(data))
    content = None if change is None else change.content
    if isinstance(content, StateUpdate):
        return SharePartition.from_update(content).updated(content)
    return content


def read_share_group(data: bytes) -> object:
    """Read a record, and let a group take it in."""
    change = share_groups.KIND.decoded(*cut_in_two(data))
    if change is not None:
        ShareGroup("readers", lambda: 0).apply(change)
    return change


def committed_offsets() -> list[bytes]:
    """Return values of committed offsets."""
    return [value for _, value in group_records(1)]


def group_metadata() -> list[bytes]:
    """Return values that say what a group looks like."""
    return [value for _, value in group_records(2)]


def subscriptions() -> list[bytes]:
    """Return what members said that they subscribe to."""
    groups = [decode_group_metadata_value(value) for value in group_metadata()]
    return [member.subscription for group in groups for member in group.members]


def compressed(codec: Codec) -> Callable[[], list[bytes]]:
    """Return a function that compresses texts of several sizes."""
    return lambda: [compress(codec, b"fuzz me, " * count) for count in (1, 20, 5000)]


def reads_file(name: str, read: Callable[[FileSystem, str], object]) -> Callable[[bytes], object]:
    """Return a decoder of bytes from a reader of a file in a directory."""

    def decode(data: bytes) -> object:
        host = SimulatedHost()
        host.fs.make_directory(DIRECTORY)
        write(host, f"{DIRECTORY}/{name}", data)
        return read(host.fs, DIRECTORY)

    return decode


def write(host: SimulatedHost, path: str, data: bytes) -> None:
    """Put a file onto the simulated disk."""
    file = host.fs.open(path, create=True)
    file.write(0, data)
    file.close()


def decode_all_batches(data: bytes) -> object:
    """Walk over a segment's bytes, and into every batch's records."""
    found: list[object] = []
    for batch in iterate_batches(memoryview(bytearray(data))):
        if batch.codec == Codec.NONE:
            check_structure(batch.data)
        found += decode_records(batch.data, size_bytes_max=OUTPUT_BYTES_MAX)
    return found


def read_recovery_points(fs: FileSystem, directory: str) -> object:
    """Read the checkpoint of recovery points in a directory."""
    return read_offset_checkpoint(fs, f"{directory}/{CHECKPOINT}")


def streams_records() -> list[bytes]:
    """Return the records that a streams group leaves, the length of its key before each."""
    stage = StreamsRehearsal({"t": 2, "log": 2})
    logged = subtopology("0", "t", state_changelog_topics=(internal("log"),))
    members = [stage.member(name, topology(logged)) for name in ("A", "B")]
    stage.rest(*members)
    return [bytes([len(key)]) + key + (value or b"") for key, value in stage.log.records]


def replay_streams_record(data: bytes) -> object:
    """Let a coordinator take over one record of a streams group."""
    key, value = data[1 : 1 + data[0]], data[1 + data[0] :]
    groups = StreamsRehearsal({}).groups.streams
    groups.replay(key, value)
    return groups


CHECKPOINT = "recovery-point-offset-checkpoint"
DECODERS = (
    Decoder("record batches", decode_all_batches, golden_batches),
    Decoder("messages", read_message, golden_messages),
    Decoder(
        "messages under a right CRC", lambda d: read_message(with_right_crc(d)), golden_messages
    ),
    Decoder("produced messages", produce_messages, golden_messages),
    Decoder("producer snapshot", decode_snapshot, golden_files("*/*.snapshot")),
    Decoder(
        "offset checkpoint",
        reads_file(
            CHECKPOINT, lambda fs, where: read_offset_checkpoint(fs, f"{where}/{CHECKPOINT}")
        ),
        golden_files(CHECKPOINT),
    ),
    Decoder(
        "leader epochs",
        reads_file("leader-epoch-checkpoint", LeaderEpochs.load),
        golden_files("*/leader-epoch-checkpoint"),
    ),
    Decoder(
        "meta.properties",
        reads_file("meta.properties", MetaProperties.read),
        golden_files("meta.properties"),
    ),
    Decoder(
        "partition.metadata",
        reads_file("partition.metadata", PartitionMetadata.read),
        golden_files("*/partition.metadata"),
    ),
    Decoder(
        "properties",
        lambda data: parse_properties(data.decode("latin-1")),
        golden_files("meta.properties"),
    ),
    Decoder(
        "directory name",
        lambda data: parse_directory_name(data.decode("latin-1")),
        lambda: [path.name.encode() for path in DATA.iterdir() if path.is_dir()],
    ),
    Decoder("certificate", subject_of, lambda: [CERTIFICATE]),
    Decoder("key store", lambda data: JavaKeystore.read(data, None), lambda: [KEY_STORE]),
    Decoder("JAAS", lambda data: parse_jaas(data.decode("latin-1")), lambda: [JAAS]),
    Decoder(
        "mapping rules",
        lambda data: mapped(parse_rules(data.decode("latin-1")), "CN=a,O=b"),
        lambda: [b"RULE:^CN=(.*?),O=(.*)$/$1-$2/L, DEFAULT"],
    ),
    Decoder("SCRAM", scram_exchange, lambda: [SCRAM_FIRST, scram_final()]),
    Decoder(
        "PLAIN", lambda data: PlainExchange({"user_a": "b"}).evaluate(data), lambda: [b"\0a\0b"]
    ),
    Decoder("bearer token", bearer_exchange, lambda: [BEARER]),
    Decoder("signed token", signed_token, lambda: [SIGNED]),
    Decoder("keys", key_set, lambda: [KEYS]),
    Decoder("group key", decode_key, group_keys),
    Decoder("share state", read_share_state, share_state_records),
    Decoder("share group", read_share_group, share_group_records),
    Decoder("group metadata", decode_group_metadata_value, group_metadata),
    Decoder("committed offset", decode_offset_commit_value, committed_offsets),
    Decoder("streams group", lambda data: data and replay_streams_record(data), streams_records),
    Decoder("subscription", lambda data: subscribed_topics([data]), subscriptions),
    *(
        Decoder(
            f"{codec.name.lower()} blob",
            partial(decompress, codec, size_bytes_max=OUTPUT_BYTES_MAX),
            compressed(codec),
        )
        for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
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
    for seed, chance in rounds(len(DECODERS) + 2):
        data = damaged(chance.choice(examples), chance)
        assert complaint(seed, data, partial(decoder.read, data)) == ""


def recorded_frames() -> list[bytes]:
    """Return what real clients once sent, a frame each."""
    frames: list[bytes] = []
    for file in sorted((GOLDEN / "wire").glob("*.jsonl")):
        events = [json.loads(line) for line in file.read_text().splitlines()]
        frames += [bytes.fromhex(event["hex"]) for event in events if event["from"] == "client"]
    return frames


@pytest.mark.timeout(0)
def test_the_broker_survives_damaged_requests(caplog: pytest.LogCaptureFixture) -> None:
    """A damaged request is answered, or its connection closed; no handler breaks over it."""
    frames = recorded_frames()
    broker = Broker.open(SimulatedHost(), DIRECTORY, {"offsets.topic.num.partitions": "1"})
    connection = broker.connect("127.0.0.1")
    for seed, chance in rounds(len(DECODERS) + 2, share=4):
        frame = chance.choice(frames)
        if chance.random() < 0.8:
            frame = damaged(frame, chance, first=chance.choice((0, 8)))
        sent = len(frame).to_bytes(4, "big") + frame
        assert complaint(seed, frame, partial(connection.feed, sent)) == ""
        broken = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert broken == [], f"seed {seed}: {frame[:2000].hex()}\n{caplog.text}"
        if connection.is_closing or connection.is_waiting:
            connection.lost()
            connection = broker.connect("127.0.0.1")
    broker.close()


PARTITIONS = ("plain-0", "codec-mixed-0", "idempotent-0", "shapes-0", "delete-records-0")


def stored(partition: str) -> dict[str, bytes]:
    """Return the files of a small data directory by their paths."""
    paths = [path for path in DATA.iterdir() if path.is_file()] + list((DATA / partition).iterdir())
    return {str(path.relative_to(DATA)): path.read_bytes() for path in paths}


def read_everything(files: dict[str, bytes]) -> None:
    """Open a store over these files, and read it by offset and by time."""
    host = SimulatedHost()
    for name, data in files.items():
        path = f"{DIRECTORY}/{name}"
        host.fs.make_directory(path.rpartition("/")[0])
        write(host, path, data)
    store = KafkaStore(host, DIRECTORY, StoreOptions())
    try:
        for partition in store.partitions():
            for timestamp_ms in (0, 1_700_000_500_000):
                partition.find_timestamp(timestamp_ms)
            partition.find_max_timestamp()
            for batch in partition.batches():
                decode_records(batch.data, size_bytes_max=OUTPUT_BYTES_MAX)
    finally:
        store.close()


@pytest.mark.timeout(0)
def test_a_store_survives_damaged_files() -> None:
    """Whatever happened to one file, after either kind of stop: it opens, or says why not."""
    directories = [stored(partition) for partition in PARTITIONS]
    for files in directories:
        read_everything(files)
    for seed, chance in rounds(len(DECODERS) + 2, share=4):
        files = dict(chance.choice(directories))
        if chance.random() < 0.5:
            del files[".kafka_cleanshutdown"]
        name = chance.choice(sorted(files))
        if chance.random() < 0.1:
            del files[name]
        else:
            files[name] = damaged(files[name], chance)
        about = f"{name}: {sorted(files)}".encode()
        assert complaint(seed, about, partial(read_everything, files)) == ""
