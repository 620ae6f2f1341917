"""Several data directories of one cluster, read as one store."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from logstore.errors import ForeignDirectoryError
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.directory_name import METADATA_DIRECTORY
from logstore.segments.kafka.gathered_store import GatheredStore
from logstore.segments.kafka.meta_properties import FILE_NAME as META_PROPERTIES
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from tests.segments.kafka.golden_case import GOLDEN
from tests.segments.kafka.split_directories import split_in_two

NOW_MS = 1_700_000_000_000
Ends = dict[tuple[str, int], tuple[int, int]]


def gathered(*directories: Path) -> GatheredStore:
    """Open directories as one."""
    return GatheredStore(system_host(), map(str, directories))


def ends_of(store: KafkaStore) -> Ends:
    """Return where every partition starts and ends, and let go of the store."""
    found = {
        (topic, index): (partition.start_offset, partition.end_offset)
        for topic, partitions in store.topics().items()
        for index, partition in partitions.items()
    }
    store.close()
    return found


def opened(directory: Path, *, is_writable: bool = False) -> KafkaStore:
    """Open one directory."""
    return KafkaStore(system_host(), str(directory), StoreOptions(is_writable=is_writable))


def append(directory: Path, count: int) -> None:
    """Start on a directory, append batches to ``t-0`` in a new epoch, and stop cleanly."""
    store = opened(directory, is_writable=True)
    if "t" not in store.topics():
        store.create_topic("t", 2, {"retention.ms": "-1"})
    store.lead_anew()
    for _ in range(count):
        store.partition("t", 0).append_records([Record(b"k", b"v", NOW_MS)])
    store.close()


@pytest.mark.parametrize("name", ["kafka-4.3", "kafka-3.9"])
@pytest.mark.parametrize("is_reversed", [True, False])
def test_a_node_with_two_directories_is_whole(
    name: str, tmp_path: Path, *, is_reversed: bool
) -> None:
    """What stood in one directory and stands in two is the same, in whatever order they come."""
    parts = split_in_two(GOLDEN / name / "data", tmp_path)
    store = gathered(*(reversed(parts) if is_reversed else parts))
    settings = {name: topic.settings for name, topic in store.topics_by_name.items()}
    whole = opened(GOLDEN / name / "data")
    assert settings == {name: topic.settings for name, topic in whole.topics_by_name.items()}
    assert store.was_clean == whole.was_clean
    wanted = ends_of(whole)
    assert ends_of(store) == wanted
    assert len(wanted) > max(len(ends_of(opened(part))) for part in parts)


def test_one_that_did_not_stop_cleanly_is_enough(tmp_path: Path) -> None:
    """What stands behind the end of its logs may be half a batch."""
    append(tmp_path / "one", 1)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert gathered(tmp_path / "one", tmp_path / "two").was_clean
    (tmp_path / "two/.kafka_cleanshutdown").unlink()
    assert not gathered(tmp_path / "one", tmp_path / "two").was_clean


def test_of_two_copies_the_one_of_the_latest_epoch_counts(tmp_path: Path) -> None:
    """Then the longest: those are the ones that Kafka lets lead."""
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    append(one, 2)
    shutil.copytree(one, two)
    append(one, 5)  # in epoch 2
    shutil.copytree(two, three)
    append(two, 1)  # in epoch 2
    append(three, 0)
    append(three, 1)  # in epoch 4
    for directories, end in (((one, two), 7), ((two, one), 7), ((one, two, three), 3)):
        assert ends_of(gathered(*directories))["t", 0] == (0, end), directories


def test_the_same_directory_twice_is_one(tmp_path: Path) -> None:
    """Nothing is read twice."""
    append(tmp_path / "one", 3)
    assert ends_of(gathered(tmp_path / "one", tmp_path / "one")) == {
        ("t", 0): (0, 3),
        ("t", 1): (0, 0),
    }


def test_another_cluster_is_refused(tmp_path: Path) -> None:
    """Its partitions would stand in for those of the first."""
    for name in ("one", "two"):
        append(tmp_path / name, 1)
    with pytest.raises(ForeignDirectoryError, match=r"two: is of cluster .*, and .*one of "):
        gathered(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize("has_metadata", [True, False])
def test_a_topic_that_was_made_anew_is_not_the_one_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, has_metadata: bool
) -> None:
    """What the metadata know counts; where there are none, nobody can tell which one went."""
    append(tmp_path / "one", 3)
    append(tmp_path / "two", 7)
    shutil.copy(tmp_path / "one" / META_PROPERTIES, tmp_path / "two" / META_PROPERTIES)
    shutil.rmtree(tmp_path / "two" / METADATA_DIRECTORY)
    if has_metadata:
        assert ends_of(gathered(tmp_path / "two", tmp_path / "one"))["t", 0] == (0, 3)
        assert "two: its topic t has the id " in caplog.text
        return
    shutil.rmtree(tmp_path / "one" / METADATA_DIRECTORY)
    with pytest.raises(ForeignDirectoryError, match="two: its topic t has the id "):
        gathered(tmp_path / "one", tmp_path / "two")


def test_what_is_no_data_directory_is_refused(tmp_path: Path) -> None:
    """Also where the others are fine."""
    append(tmp_path / "one", 1)
    with pytest.raises(ForeignDirectoryError, match="there is no such directory"):
        gathered(tmp_path / "one", tmp_path / "nowhere")
