"""Rows of one form: many together are what each of them is alone."""

from __future__ import annotations

import struct

import pytest

from logstore.segments.rocketmq.messages.equal_rows import pack_rows, unpack_rows

FORM = "2xiq3s"
ROW = struct.Struct(f">{FORM}")


@pytest.mark.parametrize("count", [0, 1, 2, 3, 31, 32, 63, 64, 65, 127, 200])
def test_rows_together_are_rows_one_by_one(count: int) -> None:
    """Values and bytes are the same for counts of every kind."""
    rows = [(number - 7, -number, b"%03d" % number) for number in range(count)]
    data = b"".join(ROW.pack(*row) for row in rows)
    values = [value for row in rows for value in row]
    assert list(unpack_rows(FORM, data, count)) == values
    assert pack_rows(FORM, values, count) == data
