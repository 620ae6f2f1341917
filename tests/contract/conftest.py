"""The shipped contracts fail as readably as tests do; and which laws the core does not keep yet."""

from __future__ import annotations

import pytest

for module in ("segment_contract", "recovery_contract", "witnessed_log"):
    pytest.register_assert_rewrite(f"logstore.testing.{module}")

_NAMES = (
    "names of files: a reopened log, or one whose directory sync failed, takes them for durable"
)
_GAPS = "recovery passes over a gap between two files, and removals may come back one by one"
_SYNC = "after a failed sync the next one succeeds though the kernel dropped the pages"

#: law -> what in the core breaks it. Strict: a law that is kept again must leave this table.
KNOWN_GAPS: dict[str, str] = {}
#: laws of the table that these keep all the same: files without indexes; logs that may have holes
KEPT = {
    ("TestFixedUnits", "test_every_single_failure_of_appends_and_flushes"),
    ("TestParagraphs", "test_every_single_failure_of_appends_and_flushes"),
    ("TestKafkaLog", "test_a_misdirected_write_is_noticed"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the known gaps to show."""
    for item in items:
        reason = KNOWN_GAPS.get(item.name)
        owner = item.parent.name if item.parent else ""
        is_contract = owner in ("TestFixedUnits", "TestParagraphs", "TestKafkaLog")
        if reason is not None and is_contract and (owner, item.name) not in KEPT:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
