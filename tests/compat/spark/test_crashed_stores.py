"""Stores that a real broker was killed over, queried as they stood before it recovered them."""

from __future__ import annotations

import json

import pytest

from logstore.errors import CorruptEntryError, CorruptFileError
from tests.compat.spark.test_damaged_logs import query
from tests.segments.kafka.golden_case import GOLDEN, GoldenCase

CASE = GoldenCase("crash-4.3", "crash")
DATA = GOLDEN / "crash-4.3" / "data-before"
DAMAGE: dict[int, str] = {
    entry["partition"]: entry["damage"]
    for entry in json.loads((CASE.folder / "damage.json").read_text())
}
#: what the broker cut away, lost without a word, or could not read either
IN_BATCHES = {"flip_active_middle", "flip_active_offset", "flip_active_size", "flip_sealed"}
ISOLATIONS = ("read_committed", "read_uncommitted")


def offsets(partition: int, isolation: str) -> list[int]:
    """Return what a query finds in a partition."""
    assign = json.dumps({"crash": [partition]})
    found = query(DATA, "failfast", assign=assign, isolation=isolation)
    return [offset for _, _, offset in found.rows]


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("partition", DAMAGE, ids=DAMAGE.get)
def test_answers_are_right_or_an_error(partition: int, isolation: str) -> None:
    """What a consumer read after the broker's recovery, or the file that is damaged."""
    damage = DAMAGE[partition]
    if damage in IN_BATCHES:
        with pytest.raises(CorruptEntryError, match=rf"crash-{partition}/\d+\.log: position \d+"):
            offsets(partition, isolation)
    elif damage == "swap":
        with pytest.raises(
            CorruptFileError, match=rf"crash-{partition}/\d+\.index\.swap: replaces"
        ):
            offsets(partition, isolation)
    elif damage == "garbage_txnindex" and isolation == "read_committed":
        with pytest.raises(CorruptFileError, match=rf"crash-{partition}/\d+\.txnindex"):
            offsets(partition, isolation)
    else:
        assert offsets(partition, isolation) == [
            record["offset"]
            for record in CASE.expected
            if record["partition"] == partition
            and (isolation == "read_uncommitted" or record["read_committed"])
        ]
