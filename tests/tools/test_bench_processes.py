"""What the benchmark reads of a process."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from logstore.tools.bench.processes import cpu_seconds, resident_mib

#: Holds 40 MiB, works for a while in a child of its own, says so and waits to be closed.
_PARENT = """
import subprocess, sys
held = bytearray(b"x" * (40 << 20))
child = subprocess.Popen([sys.executable, "-c", '''
import sys, time
while time.process_time() < 0.3: pass
print("worked", flush=True)
sys.stdin.read()
'''])
child.wait()
"""


def test_cpu_time_grows_with_work() -> None:
    """Three milliseconds of work are seen: less than a tick of the kernel's accounting."""
    before = cpu_seconds(os.getpid())
    began = time.process_time()
    while time.process_time() - began < 0.1:
        pass
    assert cpu_seconds(os.getpid()) - before >= 0.08


def test_children_count() -> None:
    """Memory of the parent and work of its child are those of one server."""
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"worked\n"
        assert cpu_seconds(parent.pid) >= 0.3
        assert resident_mib(parent.pid) >= 40 + resident_mib(os.getpid()) / 100


def test_a_process_that_is_gone_costs_nothing() -> None:
    """A broker that died in a cell does not end the benchmark by its accounting."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert (cpu_seconds(gone.pid), resident_mib(gone.pid)) == (0, 0)
