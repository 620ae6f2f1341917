"""Columns as Arrow sees them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given

from logstore.segments.kafka.columns import (
    ARROW_FIELDS,
    Selection,
    arrow_schema,
    decode_columns,
    to_arrow,
)
from logstore.segments.kafka.record import Record, decode_records, encode_batch
from tests.segments.kafka.columns.batches import Run, runs

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows_of(run: Run) -> list[dict[str, Any]]:
    """Return what Arrow's own rows must be, from batches and records."""
    rows: list[dict[str, Any]] = []
    position = 0
    for batch in run.batches:
        for record in decode_records(batch.data):
            headers = [
                (name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), value)
                for name, value in record.headers
            ]
            rows.append(
                {
                    "offset": record.offset,
                    "timestamp": EPOCH + timedelta(milliseconds=record.timestamp_ms),
                    "timestamp_type": int(batch.is_log_append_time),
                    "key": record.key,
                    "value": record.value,
                    "headers": [{"key": name, "value": value} for name, value in headers],
                    "leader_epoch": batch.leader_epoch,
                    "producer_id": batch.producer_id,
                    "producer_epoch": batch.producer_epoch,
                    "sequence": record.sequence,
                    "is_transactional": batch.is_transactional,
                    "is_control": batch.is_control,
                    "batch_position": position,
                }
            )
        position += batch.size_bytes
    return rows


@given(run=runs())
def test_arrow_rows_are_the_records(run: Run) -> None:
    """Every field of every record comes out of Arrow as it went in, and Arrow finds it valid."""
    batch = to_arrow(decode_columns(run.data))
    batch.validate(full=True)
    assert batch.schema == arrow_schema()
    assert batch.to_pylist() == rows_of(run)


def test_fields_can_be_chosen_and_ordered() -> None:
    """Only the fields asked for are made, in the order asked for."""
    columns = decode_columns(bytes(encode_batch([Record(0, 5, b"k", b"v")])))
    batch = to_arrow(columns, ("value", "offset"))
    assert batch.to_pylist() == [{"value": b"v", "offset": 0}]
    assert set(ARROW_FIELDS) > set(batch.schema.names)


def test_a_column_that_was_not_decoded_is_named() -> None:
    """Asking Arrow for what the selection left out is the caller's mistake, and says which."""
    selection = Selection(has_values=False, has_headers=False)
    columns = decode_columns(bytes(encode_batch([Record(0, 5, b"k")])), selection=selection)
    with pytest.raises(KeyError, match="'value' was not decoded"):
        to_arrow(columns, ("key", "value"))
    with pytest.raises(KeyError, match="'headers' was not decoded"):
        to_arrow(columns, ("headers",))


def test_names_cut_inside_of_a_character_are_mended_one_by_one() -> None:
    """Two names that are UTF-8 only together are no UTF-8 each."""
    halves = (("\udcc3", b"1"), ("\udca4", b"2"))
    columns = decode_columns(bytes(encode_batch([Record(0, 5, headers=halves)])))
    (row,) = to_arrow(columns, ("headers",)).to_pylist()
    assert [header["key"] for header in row["headers"]] == ["\ufffd", "\ufffd"]


def test_no_rows_have_the_schema_too() -> None:
    """An empty step can be put together with others."""
    batch = to_arrow(decode_columns(b""))
    assert batch.num_rows == 0
    assert batch.schema == arrow_schema()
