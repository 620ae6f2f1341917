"""A node's directories, named with commas between, are converted as one store."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.spark.convert.committed_offsets import read_committed_offsets
from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.convert.work_folder import TargetError
from logstore.compat.spark.stores import absolute_location, layout_of, open_for_reading
from logstore.errors import ForeignDirectoryError
from logstore.os_host import system_host
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.rocketmq.store import RocketMQStore
from tests.compat.spark.convert.test_preserve_kafka import SMALL, logs_of
from tests.segments.kafka.golden_case import GOLDEN
from tests.segments.kafka.split_directories import split_in_two

SETS = ("kafka-4.3", "transactions-4.3")


def split(name: str, folder: Path) -> str:
    """Return the location of a golden set that is spread over two directories."""
    return ",".join(map(str, split_in_two(GOLDEN / name / "data", folder)))


def converted(source: str, target: Path, layout: str, **wishes: Any) -> dict[str, Any]:
    """Convert and return the report."""
    report: dict[str, Any] = convert(
        HereRunner(), ConvertOptions(source, str(target), layout, **wishes)
    )
    return report


def lines_of(directory: Path) -> list[str]:
    """Return every line of a conversion's files, in order."""
    return sorted(
        line for path in directory.rglob("*.jsonl") for line in path.read_text().splitlines()
    )


@pytest.mark.parametrize("name", SETS)
def test_records_are_those_of_the_whole(name: str, tmp_path: Path) -> None:
    """Lines of JSON from two directories are those from one."""
    converted(split(name, tmp_path), tmp_path / "split", "jsonl")
    converted(str(GOLDEN / name / "data"), tmp_path / "whole", "jsonl")
    lines = lines_of(tmp_path / "whole")
    assert lines
    assert lines_of(tmp_path / "split") == lines


@pytest.mark.parametrize("name", SETS)
def test_they_come_back_as_one_directory(name: str, tmp_path: Path) -> None:
    """With what groups have committed, whichever directory that is kept in."""
    location = split(name, tmp_path)
    converted(location, tmp_path / "rocketmq", "rocketmq", preserve=True, settings=SMALL)
    converted(str(tmp_path / "rocketmq"), tmp_path / "kafka", "kafka", preserve=True)
    assert logs_of(tmp_path / "kafka") == logs_of(GOLDEN / name / "data")
    with open_for_reading(location) as parts, open_for_reading(f"{tmp_path}/kafka") as whole:
        assert isinstance(parts, KafkaStore)
        assert isinstance(whole, KafkaStore)
        assert read_committed_offsets(parts) == read_committed_offsets(whole)


def test_a_target_in_any_of_them_is_refused(tmp_path: Path) -> None:
    """It would be read as a part of the source."""
    location = split("kafka-4.3", tmp_path)
    with pytest.raises(TargetError, match="must not lie in one another"):
        converted(location, tmp_path / "second/out", "jsonl")


def test_a_directory_may_have_a_comma_in_its_name(tmp_path: Path) -> None:
    """What is there by the whole name is meant."""
    shutil.copytree(GOLDEN / "epochs-4.3/data", tmp_path / "a,b")
    assert layout_of(f"{tmp_path}/a,b") == "kafka"
    with open_for_reading(f"{tmp_path}/a,b") as store:
        assert store.directory == f"{tmp_path}/a,b"


def test_names_mean_the_same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers have working directories of their own; blanks around a comma mean nothing."""
    monkeypatch.chdir(tmp_path)
    assert absolute_location("one, two") == f"{tmp_path}{os.sep}one,{tmp_path}{os.sep}two"
    assert absolute_location("memory://one,two") == "memory://one,two"


def test_stores_of_rocketmq_are_read_one_by_one(tmp_path: Path) -> None:
    """One of them has everything; what several have is said not to go together."""
    RocketMQStore(system_host(), str(tmp_path / "rocketmq")).close()
    location = f"{GOLDEN / 'epochs-4.3/data'},{tmp_path / 'rocketmq'}"
    with pytest.raises(ForeignDirectoryError, match="is a rocketmq store, which is read on its"):
        layout_of(location)
