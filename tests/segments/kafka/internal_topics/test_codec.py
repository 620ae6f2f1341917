"""Messages of the brokers' own topics: versions, what does not fit, what cannot be read."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.segments.kafka.internal_topics import consumer_protocol
from logstore.segments.kafka.internal_topics.codec import (
    MessageError,
    decode_message,
    decode_versioned,
    encode_message,
    encode_versioned,
)
from logstore.segments.kafka.internal_topics.consumer_group import (
    ConsumerGroupMemberMetadataValue,
)
from logstore.segments.kafka.internal_topics.group_metadata import (
    GroupMetadataValue,
    MemberMetadata,
)
from logstore.segments.kafka.internal_topics.offset_commit import OffsetCommitValue
from logstore.segments.kafka.internal_topics.record_types import (
    GROUP_RECORDS,
    SHARE_RECORDS,
    TRANSACTION_RECORDS,
    UnknownRecordTypeError,
    decode_internal_record,
)
from logstore.segments.kafka.internal_topics.schema import (
    ArrayOf,
    Field,
    Message,
    Width,
    WireType,
    fields_of,
)
from logstore.segments.kafka.internal_topics.transaction_log import (
    PartitionsSchema,
    TransactionLogValue,
)

VALUES = sorted(
    {
        value
        for kinds in (GROUP_RECORDS, TRANSACTION_RECORDS, SHARE_RECORDS)
        for _, value in kinds.values()
    }
    | {
        consumer_protocol.ConsumerProtocolSubscription,
        consumer_protocol.ConsumerProtocolAssignment,
    },
    key=lambda kind: kind.__name__,
)
_RANGES = {
    Width.INT8: (-(2**7), 2**7 - 1),
    Width.INT16: (-(2**15), 2**15 - 1),
    Width.UINT16: (0, 2**16 - 1),
    Width.INT32: (-(2**31), 2**31 - 1),
    Width.INT64: (-(2**63), 2**63 - 1),
}


def _contents(wire: WireType, version: int) -> st.SearchStrategy[Any]:
    if isinstance(wire, Width):
        return st.integers(*_RANGES[wire])
    if isinstance(wire, ArrayOf):
        return st.lists(_contents(wire.element, version), max_size=3).map(tuple)
    if wire is uuid.UUID:
        return st.uuids()
    if wire is str:
        return st.text(max_size=20)
    if wire is bytes:
        return st.binary(max_size=20)
    assert issubclass(wire, Message)
    return messages(wire, version)


def _field(field: Field, version: int) -> st.SearchStrategy[Any]:
    if version not in field.held:
        return st.builds(field.make_default)
    found = _contents(field.type, version)
    return found | st.none() if field.is_nullable else found


def messages(kind: type[Message], version: int) -> st.SearchStrategy[Any]:
    """Draw messages that `version` can hold."""
    fields = {field.name: _field(field, version) for field in fields_of(kind)}
    return st.builds(kind, **fields)


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_every_version_keeps_what_it_has_fields_for(
    kind: type[Message], data: st.DataObject
) -> None:
    """A message is read back equal from each of its versions, and needs all its bytes for it."""
    version = data.draw(st.sampled_from(kind.VERSIONS))
    message = data.draw(messages(kind, version))
    encoded = encode_versioned(message, version)
    assert decode_versioned(kind, encoded) == (version, message)
    for end in range(2, len(encoded)):
        try:
            shorter = decode_versioned(kind, encoded[:end])[1]
        except MessageError:
            continue
        pytest.fail(f"{end} of {len(encoded)} bytes are read as {shorter}")


def test_an_offset_in_each_version() -> None:
    """Offset values of versions 0 to 4, byte for byte as the schema says."""
    value = OffsetCommitValue(offset=7, metadata="m", commit_timestamp=9)
    offset, stamp = bytes(7) + b"\7", bytes(7) + b"\x09"
    assert encode_message(value, 0) == offset + b"\0\1m" + stamp
    assert encode_message(value, 1) == offset + b"\0\1m" + stamp + b"\xff" * 8
    assert encode_message(value, 2) == encode_message(value, 0)
    assert encode_message(value, 3) == offset + b"\xff" * 4 + b"\0\1m" + stamp
    assert encode_message(value, 4) == offset + b"\xff" * 4 + b"\2m" + stamp + b"\0"
    topic_id = uuid.UUID(int=5)
    named = OffsetCommitValue(offset=7, metadata="m", commit_timestamp=9, topic_id=topic_id)
    assert encode_message(named, 4)[-19:] == b"\1\0\x10" + topic_id.bytes
    assert encode_message(named, 3) == encode_message(value, 3), "may get lost"


def test_a_member_in_each_version() -> None:
    """Versions 1 and 3 of a group added two fields to its members."""
    member = MemberMetadata(
        member_id="a", group_instance_id="i", client_id="b", client_host="c",
        rebalance_timeout=1, session_timeout=2, subscription=b"s", assignment=b"",
    )  # fmt: skip
    group = GroupMetadataValue(
        protocol_type="p", generation=3, protocol=None, leader="a",
        current_state_timestamp=4, members=(member,),
    )  # fmt: skip
    start = b"\0\1p\0\0\0\3\xff\xff\0\1a"
    ids, sizes = b"\0\1b\0\1c", b"\0\0\0\1s\0\0\0\0"
    assert encode_message(group, 0) == start + b"\0\0\0\1\0\1a" + ids + b"\0\0\0\2" + sizes
    third = start + bytes(7) + b"\4" + b"\0\0\0\1\0\1a\0\1i" + ids
    assert encode_message(group, 3) == third + b"\0\0\0\1\0\0\0\2" + sizes
    assert encode_message(group, 4).startswith(b"\2p\0\0\0\3\0\2a")


def test_a_null_structure_in_a_tagged_field() -> None:
    """A KIP-848 member without classic metadata has the tagged null that Kafka writes."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=None, rack_id=None, client_id="", client_host="", subscribed_topic_names=(),
        subscribed_topic_regex=None, server_assignor=None, classic_member_metadata=None,
    )  # fmt: skip
    encoded = encode_message(value, 0)
    assert encoded.endswith(b"\1\0\1\0")
    assert decode_message(ConsumerGroupMemberMetadataValue, encoded, 0) == value


def test_tagged_fields_of_the_future_are_kept() -> None:
    """A tag that nobody here knows comes back where it was, between those that are known."""
    value = TransactionLogValue(
        producer_id=1, producer_epoch=0, transaction_timeout_ms=1, transaction_status=0,
        transaction_partitions=None, transaction_last_update_timestamp_ms=1,
        transaction_start_timestamp_ms=1, next_producer_epoch=4, unknown_tags=((9, b"new"),),
    )  # fmt: skip
    encoded = encode_message(value, 1)
    assert encoded.endswith(b"\2\3\2\0\4\x09\3new")
    assert decode_message(TransactionLogValue, encoded, 1) == value


def test_what_a_version_cannot_hold_is_refused() -> None:
    """A producer id for the next transaction does not fit version 0, and must not get lost."""
    value = TransactionLogValue(
        producer_id=1, producer_epoch=0, transaction_timeout_ms=1, transaction_status=0,
        transaction_partitions=(PartitionsSchema(topic="t", partition_ids=(0,)),),
        transaction_last_update_timestamp_ms=1, transaction_start_timestamp_ms=1,
        next_producer_id=2,
    )  # fmt: skip
    with pytest.raises(MessageError, match="next_producer_id = 2 does not fit version 0"):
        encode_message(value, 0)
    with pytest.raises(MessageError, match="partition_ids = 4294967296 does not fit INT32"):
        encode_message(PartitionsSchema(topic="t", partition_ids=(2**32,)), 0)
    with pytest.raises(MessageError, match="'topic' field is too long"):
        encode_message(PartitionsSchema(topic="t" * 40000, partition_ids=()), 0)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"", None, "Could not read version from key's buffer."),
        (b"\0\1\0", None, "Could not read record with version 1 from key's buffer due to: null."),
        (b"\0\2\0\1g", b"\0", "Could not read version from value's buffer."),
        (b"\0\2\0\1g", b"\0\5", "Found an unknown record version 5 for 2 type"),
        (b"\0\2\xff\xff", None, "non-nullable field group was serialized as null"),
        (b"\0\2\0\5g", None, "Error reading byte array of 5 byte(s): only 1 byte(s) available"),
        (b"\0\7\0\1g\0\1m", b"\0\0\x0a", "Tried to allocate a collection of size 9, but there"),
    ],
)
def test_what_cannot_be_read_is_said_in_kafkas_words(
    key: bytes, value: bytes | None, reason: str
) -> None:
    """The reasons are those of Kafka's readers, so that its tools' texts can be had."""
    with pytest.raises(MessageError) as caught:
        decode_internal_record(GROUP_RECORDS, key, value)
    assert reason in (caught.value.reason or "")


def test_a_type_that_nobody_knows_is_an_error_of_its_own() -> None:
    """A broker passes over records of unknown types, so they can be told from damaged ones."""
    with pytest.raises(UnknownRecordTypeError) as caught:
        decode_internal_record(GROUP_RECORDS, b"\0\x63", b"")
    assert caught.value.record_type == 99


def test_text_that_is_no_utf8_comes_back() -> None:
    """Bytes that are no UTF-8 survive reading and writing."""
    data = b"\0\2\xff\xfe"
    key_class = GROUP_RECORDS[2][0]
    assert encode_message(decode_message(key_class, data, 0), 0) == data
