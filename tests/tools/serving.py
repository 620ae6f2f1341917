"""``logstore serve`` as a process of its own, with whatever arguments a test wants."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from types import TracebackType
from typing import Any, Self

SECONDS_MAX = 30
COMMAND = [sys.executable, "-m", "logstore.tools.cli", "serve"]


class Serving:
    """A broker process that answers; leaving the with statement stops it as Ctrl-C does."""

    def __init__(self, *arguments: object, port: int | None = 0) -> None:
        self._command = [*COMMAND, *(str(argument) for argument in arguments)]
        if port is not None:
            self._command += ["--port", str(port)]
        self.process: subprocess.Popen[str]
        #: the line that says it is ready
        self.line = ""
        self.out = ""
        self.err = ""

    @property
    def ready(self) -> dict[str, Any]:
        """What the line says, with --json."""
        content: dict[str, Any] = json.loads(self.line)
        return content

    @property
    def bootstrap(self) -> str:
        """Where it listens, with --json."""
        address: str = self.ready["bootstrap"]
        return address

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        if not self.line:
            self.stop()
            raise AssertionError(f"it did not start: {self.err}")
        return self

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal; return the exit code. `out` and `err` have what was printed since."""
        if self.process.returncode is None:
            self.process.send_signal(number)
            try:
                self.out, self.err = self.process.communicate(timeout=SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.out, self.err = self.process.communicate()
                raise
        return self.process.wait()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def refused(*arguments: object) -> tuple[int, str]:
    """Return (exit code, stderr) of a start that must not succeed, and prints nothing else."""
    command = [*COMMAND, "--port", "0", *(str(argument) for argument in arguments)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    assert ended.stdout == ""
    return ended.returncode, ended.stderr
