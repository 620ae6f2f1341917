"""What a worker's garbage collections look at."""

from __future__ import annotations

import subprocess
import sys

_WORKER = """
import gc, os
from logstore.compat.spark.worker_process import settle
frozen = [gc.get_freeze_count()]
settle()
frozen.append(gc.get_freeze_count())
kept = [[] for _ in range(1000)]
settle()
frozen.append(gc.get_freeze_count())
if not os.fork():
    settle()
    os._exit(0 if gc.get_freeze_count() >= frozen[-1] + 1000 else 1)
print(*frozen, os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_what_is_there_is_frozen_once_a_process() -> None:
    """The first call leaves out what was imported, the next ones nothing; a fork counts anew."""
    done = subprocess.run([sys.executable, "-c", _WORKER], capture_output=True, text=True)
    assert not done.stderr
    before, first, second, status = map(int, done.stdout.split())
    assert before == 0
    assert first > 1000
    assert second <= first
    assert status == 0
