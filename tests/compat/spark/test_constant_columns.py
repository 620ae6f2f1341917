"""Columns of one value: right for every batch, whatever came before."""

from __future__ import annotations

import importlib
import io
from typing import Any

import pytest

from logstore.compat.spark.constant_columns import ConstantColumns

#: it carries no types
pa: Any = importlib.import_module("pyarrow")
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


@pytest.mark.parametrize(
    ("value", "kind"),
    [("täglich", pa.string()), (7, pa.int32()), (None, pa.string()), (None, HEADERS)],
)
def test_lengths_may_go_up_and_down(value: object, kind: Any) -> None:
    """Each column is as long as its batch, a longer one before or not, and survives Arrow's IPC."""
    constants = ConstantColumns()
    for count in (3, 1, 0, 5):
        array = constants.column("name", value, kind, count)
        assert array.type == kind
        assert array.to_pylist() == [value] * count

        sent = io.BytesIO()
        batch = pa.record_batch([array], names=["name"])
        with pa.ipc.new_stream(sent, batch.schema) as writer:
            writer.write_batch(batch)
        assert pa.ipc.open_stream(sent.getvalue()).read_all()["name"].to_pylist() == [value] * count


def test_a_new_value_takes_the_place_of_the_old_one() -> None:
    """Names do not mix, and what was given out before stays as it was."""
    constants = ConstantColumns()
    first = constants.column("topic", "a", pa.string(), 2)
    other = constants.column("file", "b", pa.string(), 2)
    second = constants.column("topic", "c", pa.string(), 1)
    null = constants.column("topic", None, pa.string(), 1)
    assert [first.to_pylist(), other.to_pylist()] == [["a", "a"], ["b", "b"]]
    assert [second.to_pylist(), null.to_pylist()] == [["c"], [None]]
    assert constants.column("topic", "a", pa.string(), 1).to_pylist() == ["a"]


def test_a_column_is_made_once() -> None:
    """Batches that are no longer than one before have their rows from the same memory."""
    constants = ConstantColumns()
    first = constants.column("topic", "a", pa.string(), 100)
    second = constants.column("topic", "a", pa.string(), 40)
    assert second.buffers()[2].address == first.buffers()[2].address
