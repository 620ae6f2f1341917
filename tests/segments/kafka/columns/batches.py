"""Runs of batches of every kind, drawn by chance, and the records that are in them."""

from __future__ import annotations

import attrs
from hypothesis import strategies as st

from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record import Record, TimestampType, decode_records, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch, iterate_batches

NOW_MS = 1_700_000_000_000

_bytes = st.one_of(st.none(), st.binary(max_size=12), st.binary(min_size=60, max_size=300))
_names = st.one_of(st.text(max_size=5), st.sampled_from(["\udcff", "ä\udc80", "naïve"]))
_headers = st.lists(st.tuples(_names, _bytes), max_size=3).map(tuple)


@attrs.frozen
class Run:
    """The bytes of some batches, one behind the other."""

    data: bytes

    @property
    def batches(self) -> list[RecordBatch]:
        """The batches."""
        return list(iterate_batches(memoryview(self.data)))

    @property
    def records(self) -> list[Record]:
        """All records, by the decoder that knows nothing of columns."""
        return [record for batch in self.batches for record in decode_records(batch.data)]


@st.composite
def _batch(draw: st.DrawFn, base_offset: int) -> bytes:
    """One batch, as a producer, a leader, a coordinator or a cleaner would leave it."""
    gaps = draw(st.lists(st.integers(0, 3), max_size=8))
    records: list[Record] = []
    offset = base_offset
    for gap in gaps:
        offset += gap
        timestamp_ms = draw(st.one_of(st.just(-1), st.integers(0, 2 * NOW_MS)))
        record = Record(offset, timestamp_ms, draw(_bytes), draw(_bytes), draw(_headers))
        records.append(record)
        offset += 1
    has_producer = draw(st.booleans())
    return bytes(
        encode_batch(
            records,
            base_offset=base_offset,
            codec=draw(st.sampled_from(Codec)),
            producer_id=draw(st.integers(0, 2**62)) if has_producer else -1,
            producer_epoch=draw(st.integers(0, 2**15 - 1)) if has_producer else -1,
            base_sequence=draw(st.sampled_from([0, 7, 2**31 - 3])) if has_producer else -1,
            is_transactional=draw(st.booleans()),
            is_control=draw(st.booleans()),
            leader_epoch=draw(st.integers(0, 2**31 - 1)),
            timestamp_type=draw(st.sampled_from(TimestampType)),
            last_offset=max(offset - 1, base_offset) + draw(st.integers(0, 3)),
            delete_horizon_ms=draw(st.one_of(st.none(), st.integers(0, NOW_MS))),
        )
    )


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Up to five batches with rising offsets and holes between them."""
    pieces: list[bytes] = []
    offset = draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(0, 5))):
        piece = draw(_batch(offset))
        pieces.append(piece)
        offset = RecordBatch(piece, len(piece)).next_offset + draw(st.integers(0, 5))
    return Run(b"".join(pieces))
