"""``--preserve``: RocketMQ's files come back byte for byte, and what changed comes back right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
from tests.segments.rocketmq.golden_case import GoldenCase, stored_cases

CASES = stored_cases(without=("wire", "wire-cpp"))
#: what must be the same; of the rest the report tells
FOLDERS = ("commitlog", "consumequeue", "consumequeue_ext", "batchconsumequeue", "index")


def made(source: Path, target: Path, layout: str, **wishes: Any) -> dict[str, Any]:
    """Convert with ``--preserve`` and return the report."""
    options = ConvertOptions(str(source), str(target), layout, preserve=True, **wishes)
    report: dict[str, Any] = convert(HereRunner(), options)
    return report


def files_of(directory: Path) -> dict[str, Path]:
    """Return the files of commit log, queues and index by their paths in the store."""
    return {
        str(path.relative_to(directory)): path
        for folder in FOLDERS
        for path in sorted((directory / folder).rglob("*"))
        if path.is_file()
    }


def differing(before: dict[str, Path], after: dict[str, Path]) -> list[str]:
    """Return which files are not there, or not the same."""
    return [
        name
        for name, path in before.items()
        if name not in after or path.read_bytes() != after[name].read_bytes()
    ]


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_files_come_back_byte_for_byte(case: GoldenCase, tmp_path: Path) -> None:
    """Commit log, consume queues of all kinds and index are there again, whatever is in them."""
    there = made(case.store, tmp_path / "kafka", "kafka")
    back = made(tmp_path / "kafka", tmp_path / "rocketmq", "rocketmq", settings=case.settings)
    before, after = files_of(case.store), files_of(tmp_path / "rocketmq")
    # Batch units do not say where their last message ends: opening such a store indexes it again.
    again = {name for name in before if name.startswith("index/") and case.name == "batch-queue"}
    assert any(name.startswith("commitlog/") for name in before)
    assert [name for name in differing(before, after) if name not in again] == []
    assert after.keys() == before.keys()
    assert back["restored"]["unchanged"] >= len(before) - len(again)
    assert back["restored"]["gone"] == []
    assert there["kept"]["files"] >= len(before)
