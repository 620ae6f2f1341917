"""What a server process has cost so far: CPU time and memory, its children included."""

from __future__ import annotations

import os
import time
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """
    Return the CPU seconds, user and system, that the process tree has used.

    All threads count, and children that have ended. To the nanosecond, but for the latter.
    """
    return sum(_own_cpu_seconds(one) + _ended_children_seconds(one) for one in tree(pid))


def resident_mib(pid: int) -> float:
    """Return the resident memory of the process tree in MiB (VmRSS)."""
    return sum(_memory_kib(one, "VmRSS") for one in tree(pid)) / 1024


def anonymous_mib(pid: int) -> float:
    """Return the resident memory that no file stands behind, of the process tree, in MiB."""
    return sum(_memory_kib(one, "RssAnon") for one in tree(pid)) / 1024


def tree(pid: int) -> list[int]:
    """Return a process and all that descend from it, as it is now."""
    found = [pid]
    for parent in found:  # grows while it is walked
        try:
            tasks = os.listdir(f"/proc/{parent}/task")
            for task in tasks:
                children = Path(f"/proc/{parent}/task/{task}/children").read_text()
                found.extend(int(child) for child in children.split())
        except OSError:
            continue  # it ended while we looked, or the kernel does not list children
    return found


def _own_cpu_seconds(pid: int) -> float:
    """Read the CPU clock of another process, whose id is made as clock_getcpuclockid(3) does."""
    cpu_clock_of_all_threads = 2
    try:
        return time.clock_gettime((~pid << 3) | cpu_clock_of_all_threads)
    except OSError:
        return 0


def _ended_children_seconds(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    fields = text.rpartition(")")[2].split()  # the name, in brackets, may hold blanks
    return (int(fields[13]) + int(fields[14])) / _TICKS_PER_SECOND  # cutime, cstime


def _memory_kib(pid: int, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)
