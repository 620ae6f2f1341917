"""``--preserve``: Kafka's segments come back byte for byte, and what changed comes back right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
from tests.segments.kafka.golden_case import GOLDEN

SMALL = {
    "mappedFileSizeCommitLog": "1048576",
    "maxHashSlotNum": "1000",
    "maxIndexNum": "4000",
    "mappedFileSizeConsumeQueue": "6000",
}
SETS = (
    "kafka-4.3",
    "kafka-3.9",
    "transactions-4.3",
    "legacy-3.9",
    "epochs-4.3",
    "tiered-4.3",
)


def made(source: Path, target: Path, layout: str, **wishes: Any) -> dict[str, Any]:
    """Convert with ``--preserve`` and return the report."""
    options = ConvertOptions(str(source), str(target), layout, preserve=True, **wishes)
    report: dict[str, Any] = convert(HereRunner(), options)
    return report


def logs_of(directory: Path) -> dict[str, bytes]:
    """Return every segment's data by partition and name, without those of internal topics."""
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in sorted(directory.glob("*/*.log"))
        if not path.parent.name.startswith("__")
    }


@pytest.mark.parametrize("name", SETS)
def test_segments_come_back_byte_for_byte(name: str, tmp_path: Path) -> None:
    """Every ``.log`` of every converted topic is there again, whatever stands in it."""
    source = GOLDEN / name / "data"
    there = made(source, tmp_path / "rocketmq", "rocketmq", settings=SMALL)
    back = made(tmp_path / "rocketmq", tmp_path / "kafka", "kafka")
    before, after = logs_of(source), logs_of(tmp_path / "kafka")
    assert before
    assert after.keys() == before.keys()
    assert [path for path, data in before.items() if after[path] != data] == []
    assert back["restored"] == {"unchanged": len(before), "changed": []}
    assert there["kept"]["files"] == len(before)
