"""Ext fields by type: Java's numbers and flags, and what happens without them."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.wire.fields import (
    as_fields,
    read_flag,
    read_int,
    read_long,
    read_text,
)
from logstore.compat.rocketmq.wire.refusals import RefusedError

FIELDS = {
    "text": "t", "empty": "", "int": "-2147483648", "long": "9223372036854775807",
    "true": "true", "TRUE": "TRUE", "one": "1", "zero": "0", "false": "false", "word": "x1",
}  # fmt: skip


def test_values_by_type() -> None:
    """What parses is what Java parses."""
    assert (read_text(FIELDS, "text"), read_text(FIELDS, "empty")) == ("t", "")
    assert read_int(FIELDS, "int") == -(2**31)
    assert read_long(FIELDS, "long") == 2**63 - 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("true", True), ("TRUE", True), ("one", False), ("zero", False), ("false", False),
     ("word", False), ("empty", False)],
)  # fmt: skip
def test_flags(name: str, value: bool) -> None:
    """True is `true` in any case, or the C++ client's 1."""
    assert read_flag(FIELDS, name) is value


def test_defaults() -> None:
    """A missing field has its default, where it has one."""
    assert (read_int(FIELDS, "no", 4), read_long(FIELDS, "no", 5)) == (4, 5)
    assert read_flag(FIELDS, "no", default=True) is True


@pytest.mark.parametrize("read", [read_text, read_int, read_long, read_flag])
def test_what_must_not_be_missing(read: object) -> None:
    """Is refused as Java names it, with SYSTEM_ERROR."""
    assert callable(read)
    with pytest.raises(RefusedError, match="the custom field <no> is null") as caught:
        read(FIELDS, "no")
    assert caught.value.code == 1


@pytest.mark.parametrize("value", ["", "x", "1.5", "1_000", " 1", "2147483648", "٣x", "--1"])
def test_what_is_no_number(value: str) -> None:
    """Is refused by name; a default does not hide it."""
    with pytest.raises(RefusedError, match="the custom field <n> is no number"):
        read_int({"n": value}, "n", 3)


def test_values_as_java_writes_them() -> None:
    """Decimal numbers, true and false, and nothing for null."""
    assert as_fields(a=1, b=True, c=False, d="x", e=None, f=-(2**63)) == {
        "a": "1",
        "b": "true",
        "c": "false",
        "d": "x",
        "f": "-9223372036854775808",
    }
