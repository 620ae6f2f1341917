"""``logstore serve`` in a process of its own: started, waited for, ended."""

from __future__ import annotations

import compileall
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import logstore
from logstore.tools.bench.frames import BenchError

START_SECONDS_MAX = 60
_STOP_SECONDS_MAX = 30
_SAID_BYTES = 2000


class ServeProcess:
    """One process at a time; what it says goes to `log`."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        # As an installer does: a checkout that was never compiled would start slower.
        compileall.compile_dir(str(Path(logstore.__file__).parent), quiet=2)

    def start(
        self, options: Sequence[str], is_ready: Callable[[], bool], *, look_every_s: float
    ) -> int:
        """
        Start it and return its process id once it is ready.

        Raises:
            BenchError: it ended, or was not ready within a minute; with what it said.

        """
        with open(self._log, "ab") as output:
            process = self._process = subprocess.Popen(
                [sys.executable, "-m", "logstore.tools.cli", "serve", *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C ends the benchmark, which ends the broker
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                self.stop(kill=True)
                said = self._log.read_text(errors="replace")[-_SAID_BYTES:]
                raise BenchError(f"`logstore serve` did not start; it said:\n{said}")
            time.sleep(look_every_s)
        return process.pid

    def stop(self, *, kill: bool) -> None:
        """End it with SIGTERM or SIGKILL and wait. Fine if it does not run."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
