"""A coordinator's batch against the same records encoded one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.coordinator_batch import encode_coordinator_batch
from logstore.segments.kafka.record import Record, decode_records, encode_batch

NOW_MS = 1_700_000_000_000
#: the length of 2,400 has a byte that is a percent sign
SIZES = st.sampled_from([0, 1, 55, 56, 63, 64, 127, 128, 1023, 1024, 2400, 9000])
FIELDS = SIZES.map(lambda size: b"x" * size)
RECORDS = st.lists(st.tuples(FIELDS, st.none() | FIELDS), min_size=1, max_size=80)


def one_by_one(records: list[tuple[bytes, bytes | None]]) -> list[Record]:
    """Return the records as the general encoder takes them."""
    return [
        Record(offset=offset, timestamp_ms=NOW_MS, key=key, value=value)
        for offset, (key, value) in enumerate(records)
    ]


@given(RECORDS)
def test_it_is_the_batch_of_its_records(records: list[tuple[bytes, bytes | None]]) -> None:
    """Byte for byte, tombstones and all."""
    assert encode_coordinator_batch(records, NOW_MS) == encode_batch(one_by_one(records))


@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 2000])
def test_offset_deltas_take_the_bytes_that_they_need(count: int) -> None:
    """A batch of more records than are worked out beforehand is no other."""
    records: list[tuple[bytes, bytes | None]] = [(b"key", b"value")] * count
    assert encode_coordinator_batch(records, NOW_MS) == encode_batch(one_by_one(records))


def test_a_producer_makes_it_part_of_a_transaction() -> None:
    """Id, epoch and sequence are the producer's."""
    records: list[tuple[bytes, bytes | None]] = [(b"key", None)]
    expected = encode_batch(
        one_by_one(records), producer_id=5, producer_epoch=3, base_sequence=0, is_transactional=True
    )
    assert encode_coordinator_batch(records, NOW_MS, producer=(5, 3, 0)) == expected


@pytest.mark.parametrize("codec", list(Codec))
def test_it_is_compressed_if_asked_for(codec: Codec) -> None:
    """Every codec gives the records back."""
    records: list[tuple[bytes, bytes | None]] = [(b"key", b"v" * 500), (b"other", None)]
    batch = encode_coordinator_batch(records, NOW_MS, codec=codec)
    assert [(record.key, record.value) for record in decode_records(batch)] == records
    assert batch == encode_batch(one_by_one(records), codec=codec)
