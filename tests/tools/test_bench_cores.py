"""A measurement that is kept to one core."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from logstore.tools.bench.cores import only

_SAYS = "import os, sys; sys.stdin.readline(); print(len(os.sched_getaffinity(0)), flush=True)"


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="wants Linux with two cores",
)
def test_children_that_run_already_are_kept_too() -> None:
    """The JVM of an earlier session stays; it must not have more than was asked for."""
    before = os.sched_getaffinity(0)
    command = [sys.executable, "-c", _SAYS]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as earlier,
        only(1),
    ):
        assert earlier.communicate(b"\n")[0] == b"1\n"
        assert len(os.sched_getaffinity(0)) == 1
        later = subprocess.run(command, input=b"\n", capture_output=True, check=True)
        assert later.stdout == b"1\n"
    assert os.sched_getaffinity(0) == before
    assert subprocess.run(command, input=b"\n", capture_output=True).stdout != b"1\n"
