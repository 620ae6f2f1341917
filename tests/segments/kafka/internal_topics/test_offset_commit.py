"""Committed offsets are written by hand as their schemas have them."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.kafka.internal_topics.codec import decode_versioned, encode_versioned
from logstore.segments.kafka.internal_topics.offset_commit import (
    KEY_TYPE,
    VALUE_VERSION,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from logstore.segments.kafka.internal_topics.schema import NO_ID

LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
INTS = st.integers(-(1 << 31), (1 << 31) - 1)
#: also where the length of the length changes
TEXTS = st.one_of(
    st.text(max_size=20),
    st.integers(100, 200).map("m".__mul__),
    st.sampled_from(["é" * 63, "a" * 9]),
)
IDS = st.one_of(st.just(NO_ID), st.uuids())


@given(LONGS, INTS, TEXTS, LONGS, IDS)
def test_a_value_is_as_its_schema_has_it(
    offset: int, leader_epoch: int, metadata: str, commit_timestamp: int, topic_id: uuid.UUID
) -> None:
    """And comes back from it."""
    data = encode_value(offset, leader_epoch, metadata, commit_timestamp, topic_id)
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=commit_timestamp,
        topic_id=topic_id,
    )
    assert data == encode_versioned(value, VALUE_VERSION)
    assert decode_versioned(OffsetCommitValue, data) == (VALUE_VERSION, value)


@given(st.text(max_size=20), st.text(max_size=20), INTS)
def test_a_key_is_as_its_schema_has_it(group: str, topic: str, partition: int) -> None:
    """Also the second time, when its start is known."""
    key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    for _ in range(2):
        assert encode_key(group, topic, partition) == encode_versioned(key, KEY_TYPE)
