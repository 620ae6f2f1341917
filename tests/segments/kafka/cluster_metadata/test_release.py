"""Releases, metadata versions and their features."""

from __future__ import annotations

import pytest

from logstore.segments.kafka.cluster_metadata.release import (
    NEWEST,
    MetadataVersion,
    UnknownReleaseError,
    parse_release,
)


@pytest.mark.parametrize(
    ("text", "level"),
    [("3.3", 7), ("3.7", 19), ("3.9", 21), ("4.0", 25), ("4.0-IV1", 23), ("4.3", 30)],
)
def test_a_release_is_its_newest_metadata_version(text: str, level: int) -> None:
    """Both forms of ``kafka-storage format --release-version`` are understood."""
    assert parse_release(text) == MetadataVersion(level)
    assert parse_release(MetadataVersion(level).name) == MetadataVersion(level)


@pytest.mark.parametrize("text", ["", "4", "4.", "3.2", "4.3-IV1", "4.3.1", "5.0", "30"])
def test_what_is_no_release(text: str) -> None:
    """Anything else is refused, with what would do."""
    with pytest.raises(UnknownReleaseError, match=r"from 3\.3-IV3 to 4\.3-IV0, such as 4\.3$"):
        parse_release(text)


def test_features_follow_the_release() -> None:
    """A feature is on from the version on that made it the default for new clusters."""
    assert NEWEST.features == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert list(parse_release("3.9").features) == ["metadata.version"]
    assert list(parse_release("4.0").features) == [
        "metadata.version",
        "group.version",
        "transaction.version",
    ]


def test_versions_of_records() -> None:
    """Directories came with 3.7-IV2, eligible leader replicas with 4.0-IV1."""
    names = ("3.3", "3.7-IV1", "3.7-IV2", "3.9", "4.0-IV0", "4.0-IV1", "4.3")
    versions = [parse_release(name).partition_record_version for name in names]
    assert versions == [0, 0, 1, 1, 1, 2, 2]
    assert not parse_release("3.6-IV0").has_transactions
    assert parse_release("3.6-IV1").has_transactions


def test_a_level_that_nobody_knows() -> None:
    """A newer cluster's level is told as it is."""
    assert MetadataVersion(99).name == "level 99"
