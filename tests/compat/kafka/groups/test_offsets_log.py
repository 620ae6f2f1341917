"""The records of ``__consumer_offsets``, against what real brokers wrote."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.kafka.groups.offsets_log import (
    CommittedOffset,
    GroupMetadata,
    GroupMetadataKey,
    GroupRecordError,
    MemberMetadata,
    OffsetCommitKey,
    decode_group_metadata_value,
    decode_key,
    decode_offset_commit_value,
    encode_group_metadata_key,
    encode_group_metadata_value,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from logstore.compat.kafka.groups.partitioning import partition_of

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(max_size=200)
TOPIC_ID = st.none() | st.uuids(version=4)

GOLDEN_SETS = ["kafka-3.9", "kafka-4.3"]


def golden_records(golden: Path, name: str) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield key and value of each record that a real broker left in its ``__consumer_offsets``."""
    path = golden / name / "cases" / "consumer_offsets" / "expected.jsonl"
    for line in path.read_text().splitlines():
        record = json.loads(line)
        value = record["value"]
        yield base64.b64decode(record["key"]), None if value is None else base64.b64decode(value)


def version_of(value: bytes) -> int:
    """Return the version that a value starts with."""
    return int.from_bytes(value[:2], "big")


@pytest.mark.parametrize("name", GOLDEN_SETS)
def test_real_records_are_rewritten_byte_for_byte(golden: Path, name: str) -> None:
    """Every offset and group record of a real broker is read and written back unchanged."""
    seen = {"offset": 0, "group": 0, "tombstone": 0}
    for key, value in golden_records(golden, name):
        about = decode_key(key)
        if isinstance(about, OffsetCommitKey):
            assert encode_offset_commit_key(about) == key
            if value is not None:
                committed = decode_offset_commit_value(value)
                assert encode_offset_commit_value(committed, version_of(value)) == value
                seen["offset"] += 1
        elif about is not None:
            assert encode_group_metadata_key(about) == key
            if value is not None:
                kept = decode_group_metadata_value(value)
                assert encode_group_metadata_value(kept, version_of(value)) == value
                seen["group"] += 1
        seen["tombstone"] += about is not None and value is None
    assert min(seen.values()) > 0


def test_records_are_written_in_the_versions_of_release_4_3(golden: Path) -> None:
    """Left to itself, the encoder chooses the versions that a 4.3 broker wrote."""
    count = 0
    for key, value in golden_records(golden, "kafka-4.3"):
        about = decode_key(key)
        if value is None or about is None:
            continue
        if isinstance(about, OffsetCommitKey):
            assert encode_offset_commit_value(decode_offset_commit_value(value)) == value
        else:
            assert encode_group_metadata_value(decode_group_metadata_value(value)) == value
        count += 1
    assert count > 10


def test_a_real_group_says_what_its_client_did(golden: Path) -> None:
    """The golden records tell the story of the client that made them."""
    records = list(golden_records(golden, "kafka-4.3"))
    assert decode_key(records[1][0]) == GroupMetadataKey("group-classic")
    group = decode_group_metadata_value(records[1][1] or b"")
    assert (group.protocol_type, group.protocol_name, group.generation_id) == (
        "consumer",
        "range",
        1,
    )
    (member,) = group.members
    assert member.member_id == group.leader_id
    assert (member.client_id, member.client_host) == ("rdkafka", "/127.0.0.1")
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (45_000, 300_000)
    assert decode_key(records[2][0]) == OffsetCommitKey("group-classic", "groups", 0)
    committed = decode_offset_commit_value(records[2][1] or b"")
    assert committed.offset == 1
    assert committed.topic_id == uuid.UUID("66782f5e-7ae8-4daf-9135-71c816c45b18")


def test_kinds_of_other_groups_are_passed_over(golden: Path) -> None:
    """Records of KIP-848 groups are recognised as none of ours, not as damage."""
    keys = [key for key, _ in golden_records(golden, "kafka-4.3")]
    others = {int.from_bytes(key[:2], "big") for key in keys if decode_key(key) is None}
    assert others == {3, 5, 6, 7, 8}


@given(st.sampled_from([0, 1]), TEXT, TEXT, INT32)
def test_offset_keys_of_both_versions(version: int, group: str, topic: str, index: int) -> None:
    """Key versions 0 and 1 differ in nothing but their number."""
    key = encode_offset_commit_key(OffsetCommitKey(group, topic, index))
    assert key[:2] == b"\0\1"
    older = version.to_bytes(2, "big") + key[2:]
    assert decode_key(older) == OffsetCommitKey(group, topic, index)


@given(st.integers(0, 4), INT64, INT64, INT32, TEXT, INT64, TOPIC_ID)
def test_offsets_survive_in_every_version(
    version: int,
    offset: int,
    time_ms: int,
    epoch: int,
    metadata: str,
    expire_ms: int,
    topic_id: uuid.UUID | None,
) -> None:
    """A committed offset comes back as it was, but for what its version cannot hold."""
    committed = CommittedOffset(
        offset=offset,
        commit_timestamp_ms=time_ms,
        leader_epoch=epoch if version >= 3 else -1,
        metadata=metadata,
        expire_timestamp_ms=expire_ms if version == 1 else -1,
        topic_id=topic_id if version >= 4 else None,
    )
    data = encode_offset_commit_value(committed, version)
    assert version_of(data) == version
    assert decode_offset_commit_value(data) == committed


MEMBERS = st.builds(
    MemberMetadata,
    member_id=TEXT,
    client_id=TEXT,
    client_host=TEXT,
    session_timeout_ms=INT32,
    subscription=st.binary(max_size=300),
    assignment=st.binary(max_size=300),
    rebalance_timeout_ms=INT32,
    group_instance_id=st.none() | TEXT,
)


@given(
    st.integers(0, 4),
    st.builds(
        GroupMetadata,
        protocol_type=TEXT,
        generation_id=INT32,
        protocol_name=st.none() | TEXT,
        leader_id=st.none() | TEXT,
        state_since_ms=INT64,
        members=st.lists(MEMBERS, max_size=3).map(tuple),
    ),
)
def test_groups_survive_in_every_version(version: int, group: GroupMetadata) -> None:
    """A group comes back as it was, but for what its version cannot hold."""
    data = encode_group_metadata_value(group, version)
    found = decode_group_metadata_value(data)
    assert (found.protocol_type, found.generation_id) == (group.protocol_type, group.generation_id)
    assert (found.protocol_name, found.leader_id) == (group.protocol_name, group.leader_id)
    assert found.state_since_ms == (group.state_since_ms if version >= 2 else -1)
    assert len(found.members) == len(group.members)
    for one, other in zip(found.members, group.members, strict=True):
        assert (one.member_id, one.client_id, one.client_host) == (
            other.member_id,
            other.client_id,
            other.client_host,
        )
        assert (one.subscription, one.assignment) == (other.subscription, other.assignment)
        assert one.session_timeout_ms == other.session_timeout_ms
        assert one.rebalance_timeout_ms == (other.rebalance_timeout_ms if version >= 1 else -1)
        assert one.group_instance_id == (other.group_instance_id if version >= 3 else None)
    assert encode_group_metadata_value(found, version) == data


def test_a_commit_with_its_own_retention_is_written_in_version_1() -> None:
    """Only value version 1 can hold an expiry time, so that is what Kafka writes then."""
    committed = CommittedOffset(5, commit_timestamp_ms=10, expire_timestamp_ms=20)
    data = encode_offset_commit_value(committed)
    assert version_of(data) == 1
    assert decode_offset_commit_value(data).expire_timestamp_ms == 20


def test_unknown_tagged_fields_are_skipped() -> None:
    """A record of a later release may carry more tagged fields; they do no harm."""
    data = encode_offset_commit_value(CommittedOffset(5, commit_timestamp_ms=10))
    assert data.endswith(b"\0")
    more = data[:-1] + b"\1" + b"\x09" + b"\x02" + b"??"
    assert decode_offset_commit_value(more) == decode_offset_commit_value(data)


@pytest.mark.parametrize("version", [-1, 5, 99])
def test_values_of_unknown_versions_are_refused(version: int) -> None:
    """A value whose layout is not known is an error, never a guess."""
    data = version.to_bytes(2, "big", signed=True) + bytes(40)
    with pytest.raises(GroupRecordError, match=f"version {version} "):
        decode_offset_commit_value(data)
    with pytest.raises(GroupRecordError, match=f"version {version} "):
        decode_group_metadata_value(data)


@given(st.integers(0, 4), st.data())
def test_cut_values_are_refused(version: int, data: st.DataObject) -> None:
    """A value that ends early is an error wherever it is cut."""
    member = MemberMetadata("m", "c", "/h", 10, b"sub", b"share", 20, "i")
    group = GroupMetadata("consumer", 3, "range", "m", 5, (member,))
    offset = CommittedOffset(1, 2, 3, "meta", topic_id=uuid.UUID(int=7))
    for whole, decode in (
        (encode_group_metadata_value(group, version), decode_group_metadata_value),
        (encode_offset_commit_value(offset, version), decode_offset_commit_value),
    ):
        cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
        with pytest.raises(GroupRecordError):
            decode(cut)


@given(st.binary(max_size=60))
def test_random_bytes_are_refused_or_read(data: bytes) -> None:
    """Whatever the bytes are, decoding ends with a value or with the one error for that."""
    for decode in (decode_key, decode_offset_commit_value, decode_group_metadata_value):
        with suppress(GroupRecordError):
            decode(data)


def test_the_smallest_hash_has_a_partition_too() -> None:
    """The hash without a positive twin goes to partition 0, not to a negative one."""
    assert partition_of("polygenelubricants", 50) == 0


@given(TEXT, st.integers(1, 100))
def test_every_group_has_a_partition(group_id: str, count: int) -> None:
    """Partitions are within range, whatever the id."""
    assert 0 <= partition_of(group_id, count) < count
