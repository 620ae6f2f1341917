"""The shipped contracts fail as readably as tests do."""

import pytest

for module in ("segment_contract", "recovery_contract", "witnessed_log"):
    pytest.register_assert_rewrite(f"logstore.testing.{module}")
