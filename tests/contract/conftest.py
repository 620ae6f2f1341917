"""The shipped contracts fail as readably as tests do."""

import pytest

for module in (
    "accidents",
    "failing_disk_contract",
    "recovery_contract",
    "segment_contract",
    "witnessed_log",
):
    pytest.register_assert_rewrite(f"logstore.testing.{module}")
