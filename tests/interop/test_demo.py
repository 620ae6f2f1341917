"""`./dev demo`, the first thing that a new person sees."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from logstore.tools.dev.demo import ORDERS, READ_FIRST, lacking_for_spark

pytestmark = pytest.mark.interop


#: what Spark's scripts call; Java, which they would find, is not there
_TOOLS = ("bash", "sh", "dirname", "basename", "ps", "nice", "env", "uname", "cat", "grep")


#: of modules and packages that Spark asks for, one of which newer ones lack
_SAID_BY_JAVA = {
    "WARNING: Using incubator modules: jdk.incubator.vector",
    "WARNING: package sun.security.action not in java.base",
}


def _environment_without_java(directory: Path) -> dict[str, str]:
    """Return one in which only the runtime of the extra `java` is left."""
    directory.mkdir()
    for tool in _TOOLS:
        for folder in ("/bin", "/usr/bin"):
            if os.path.exists(f"{folder}/{tool}") and not (directory / tool).exists():
                (directory / tool).symlink_to(f"{folder}/{tool}")
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return kept | {"PATH": str(directory)}


def test_the_demo_shows_the_main_job(tmp_path: Path) -> None:
    """
    A client writes and reads, the files are listed, the index is asked, the group resumes.

    It needs no Java on the machine: if Spark is there, so is the runtime that comes with it.
    """
    environment = _environment_without_java(tmp_path / "bin")
    assert shutil.which("java", path=environment["PATH"]) is None
    done = subprocess.run(
        [sys.executable, "-m", "logstore.tools.dev.demo", "--data", str(tmp_path / "demo")],
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stderr.splitlines()) <= _SAID_BY_JAVA
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
