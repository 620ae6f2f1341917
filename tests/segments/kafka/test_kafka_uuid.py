"""Kafka's UUIDs."""

from __future__ import annotations

import random
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.kafka.kafka_uuid import (
    UuidTextError,
    random_uuid,
    uuid_from_text,
    uuid_to_text,
)


def test_golden_text() -> None:
    """The id of the reference has the text that Kafka gives it."""
    topic_id = bytes.fromhex("0123456789abcdef0fedcba987654321")
    assert uuid_to_text(topic_id) == "ASNFZ4mrze8P7cuph2VDIQ"
    assert uuid_from_text("ASNFZ4mrze8P7cuph2VDIQ") == topic_id
    assert uuid_from_text("ASNFZ4mrze8P7cuph2VDIQ==") == topic_id


@given(st.binary(min_size=16, max_size=16))
def test_round_trip(value: bytes) -> None:
    """Any 16 bytes read back from their 22 characters."""
    assert len(uuid_to_text(value)) == 22
    assert uuid_from_text(uuid_to_text(value)) == value


@pytest.mark.parametrize(
    "text", ["", "A" * 21, "A" * 23, "A" * 21 + "+", "A" * 22 + "=", "A" * 21 + "Ä"]
)
def test_bad_text(text: str) -> None:
    """Another length, other characters, half a padding: no UUID."""
    with pytest.raises(UuidTextError):
        uuid_from_text(text)


def test_random_uuids() -> None:
    """Drawn ids are of version 4, never look like an option, and follow from the seed."""
    rng = random.Random(5)
    drawn = [random_uuid(rng) for _ in range(500)]
    assert all(uuid.UUID(bytes=value).version == 4 for value in drawn)
    assert all(uuid.UUID(bytes=value).variant == uuid.RFC_4122 for value in drawn)
    assert not any(uuid_to_text(value).startswith("-") for value in drawn)
    assert len(set(drawn)) == 500
    assert random_uuid(random.Random(5)) == drawn[0]
