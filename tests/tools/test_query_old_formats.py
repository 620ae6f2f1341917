"""``logstore query`` on logs of before there were batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.os_host import system_host
from logstore.segments.kafka.legacy.message_set import encode_message_set
from logstore.segments.kafka.record import Record
from logstore.tools.inspection.explanation import explain_offset, explain_time
from logstore.tools.inspection.stored_partition import StoredPartition
from tests.segments.kafka.golden_case import GOLDEN
from tests.segments.kafka.legacy.legacy_case import SET, LegacyCase, legacy_cases
from tests.tools.command_line import CommandLine


@pytest.mark.parametrize("case", legacy_cases(), ids=lambda case: case.name)
def test_every_offset_and_time_is_explained_as_the_consumer_saw_it(case: LegacyCase) -> None:
    """Each record is found where it is, inside of its wrapper if it has one, also by its time."""
    partition = StoredPartition(system_host().fs, str(case.golden_folder))
    assert partition.end_offset == len(case.expected)
    for record in case.expected:
        found = explain_offset(partition, record["offset"])
        assert (found.outcome, found.verdict) == ("found", f"offset {record['offset']}")
        if record["timestamp_type"] is not None:
            by_time = explain_time(partition, record["timestamp"])
            first = next(r for r in case.expected if r["timestamp"] >= record["timestamp"])
            assert by_time.verdict.startswith(f"offset {first['offset']}")


def test_people_read_what_such_an_entry_is(logstore: CommandLine) -> None:
    """A wrapper tells its last offset only, and magic 0 no time."""
    lines = {
        0: "position 0: magic 0, messages up to offset 2, 186 bytes, codec gzip, no time, ",
        15: "position 951: magic 1, messages up to offset 17, 220 bytes, codec gzip, CreateTime "
        "up to 2023-11-14T22:29:02.472Z, ",
    }
    data = GOLDEN / SET / "data"
    for offset, line in lines.items():
        done = logstore(
            "query", data, "--topic", "magic-upgrade", "--partition", 0, "--offset", offset
        )
        assert line in done.out
    alone = logstore("query", data, "--topic", "magic0-none", "--partition", 0, "--offset", 3)
    assert "magic 0, a message at offset 3, " in alone.out
    assert "record     offset 3, no time, key " in alone.out


def test_a_hole_inside_of_a_wrapper_is_explained(tmp_path: Path) -> None:
    """Compaction may take messages out of one; the next one is named."""
    data = encode_message_set([Record(0, -1), Record(5, -1)], magic=0)
    (tmp_path / f"{0:020}.log").write_bytes(data)
    found = explain_offset(StoredPartition(system_host().fs, str(tmp_path)), 3)
    assert found.outcome == "hole"
    assert found.verdict == "no message has offset 3: compaction removed it; the next one has 5"
