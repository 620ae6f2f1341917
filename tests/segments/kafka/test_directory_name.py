"""Names of topics and of partition directories."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.kafka.directory_name import (
    DirectoryNameError,
    InvalidTopicError,
    PartitionDirectory,
    Role,
    check_topic_name,
    collision_key,
    is_skipped_directory,
    is_valid_topic_name,
    parse_directory_name,
)

HEX = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders-0", PartitionDirectory("orders", 0)),
        ("a-b.c-12", PartitionDirectory("a-b.c", 12)),
        ("a--1", PartitionDirectory("a-", 1)),
        (".a-1", PartitionDirectory(".a", 1)),
        (f"a-1.{HEX}-delete", PartitionDirectory("a", 1, Role.DELETE, HEX)),
        (f"a.b-1.{HEX}-future", PartitionDirectory("a.b", 1, Role.FUTURE, HEX)),
        (f"a-1.{HEX}-stray", PartitionDirectory("a", 1, Role.STRAY, HEX)),
        ("a-delete-1", PartitionDirectory("a-delete", 1)),
    ],
)
def test_names(name: str, expected: PartitionDirectory) -> None:
    """A name is split at its last dash, after the mark was taken off; and written back."""
    assert parse_directory_name(name) == expected
    assert expected.name == name


@pytest.mark.parametrize(
    "name",
    ["", "orders", "-0", "orders-", "orders-x", "a-2147483648", "a-1-delete", "a-stray", "a-²"],
)
def test_what_is_no_partition(name: str) -> None:
    """No dash, no topic, no number, a mark without its unique part: Kafka would not start."""
    with pytest.raises(DirectoryNameError):
        parse_directory_name(name)


def test_long_topics_are_cut_in_marked_names() -> None:
    """A deleted or stray directory's name has 255 characters at most; a moving one's is whole."""
    directory = PartitionDirectory("t" * 249, 12345)
    assert len(directory.deleted_name(HEX)) == 255
    assert len(directory.stray_name(HEX)) == 255
    parsed = parse_directory_name(directory.deleted_name(HEX))
    assert parsed.role is Role.DELETE
    assert parsed.partition == 12345
    assert not parsed.is_live
    future = PartitionDirectory("t" * 249, 12345, Role.FUTURE, HEX)
    assert future.name.startswith("t" * 249)


def test_directories_of_a_real_broker(golden: Path) -> None:
    """Every directory that a real broker left behind is a partition, or known to be none."""
    names = [path.name for path in golden.glob("*/data/*") if path.is_dir()]
    live = [name for name in names if not is_skipped_directory(name)]
    assert all(parse_directory_name(name).name == name for name in live)
    assert len(live) > 20


def test_topic_names() -> None:
    """Letters, digits, dot, underscore and dash, up to 249, are fine; dots alone are not."""
    for name in ("a", "A.b_c-9", "...", "a" * 249):
        check_topic_name(name)
        assert is_valid_topic_name(name)
    for name in ("", ".", "..", "a" * 250, "a b", "ä", "a/b", "a\n"):
        assert not is_valid_topic_name(name)
        with pytest.raises(InvalidTopicError):
            check_topic_name(name)
    assert collision_key("a.b_c") == collision_key("a_b.c")
    assert collision_key("a.b") != collision_key("a-b")


@given(st.text("ab-.0129defutrsy", max_size=40) | st.text(max_size=20))
def test_fuzz(name: str) -> None:
    """Any name parses to what writes it again, or raises DirectoryNameError."""
    with contextlib.suppress(DirectoryNameError):
        parsed = parse_directory_name(name)
        assert parse_directory_name(parsed.name) == parsed
