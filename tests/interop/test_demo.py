"""`./dev demo`, the first thing that a new person sees."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from logstore.tools.dev.demo import ORDERS, READ_FIRST, lacking_for_spark

pytestmark = pytest.mark.interop


def test_the_demo_shows_the_main_job(tmp_path: Path) -> None:
    """A client writes and reads, the files are listed, the index is asked, the group resumes."""
    done = subprocess.run(
        [sys.executable, "-m", "logstore.tools.dev.demo", "--data", str(tmp_path / "demo")],
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Java itself says so of a module that Spark asks for.
    assert done.stderr in ("", "WARNING: Using incubator modules: jdk.incubator.vector\n")
    assert re.search(rf"orders +0 +0 +{ORDERS} ", done.stdout)
    assert "answer     offset 4711" in done.stdout
    # 09:00 is 3,600 seconds after the first order.
    assert "answer     offset 3600" in done.stdout
    assert f"it was given offset {READ_FIRST}" in done.stdout
    assert (tmp_path / "demo" / "orders-0").is_dir()
    if lacking_for_spark():
        assert "are left out" in done.stdout
    else:
        assert f"demo-converted: {ORDERS:,} records" in done.stdout
        assert re.search(r"customer-\d+  12\n", done.stdout)
        assert (tmp_path / "demo-converted" / "commitlog").is_dir()
