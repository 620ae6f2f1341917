"""`logstore serve` as a process of its own, the way a user runs it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 120


class StartRefusedError(Exception):
    """The server ended instead of serving."""

    def __init__(self, status: int, stderr: str) -> None:
        super().__init__(f"exit status {status}: {stderr}")
        self.status = status
        self.stderr = stderr


class OurBroker:
    """
    A `logstore serve` on `data`, restartable on the same port.

    Its stdout is one JSON line; its stderr goes to `log`, so that a failing test can show it.
    """

    name = "ours"

    def __init__(
        self,
        directory: Path,
        settings: dict[str, object] | None = None,
        data: Path | None = None,
        arguments: tuple[str, ...] = (),
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.data = directory / "data" if data is None else data
        self.log = directory / "serve.log"
        self.port = 0
        self.bootstrap = ""
        #: the addresses of its listeners by name, if there is more than a plain one
        self.listeners: dict[str, str] = {}
        self._settings = settings or {}
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """Return the command line; the port is kept once the system has chosen it."""
        command = [sys.executable, "-m", "logstore.tools.cli", "serve", "--json"]
        command += ["--data", str(self.data), "--port", str(self.port), *self._arguments]
        for key, value in self._settings.items():
            command += ["--set", f"{key}={value}"]
        return command

    def start(self) -> Self:
        """Start and return once it says where it listens. Raises StartRefusedError if it ends."""
        self.spawn()
        told = json.loads(self._first_line())
        self.bootstrap, self.listeners = told["bootstrap"], told.get("listeners", {})
        self.port = int(self.bootstrap.rpartition(":")[2])
        return self

    def spawn(self) -> None:
        """Start without waiting for it."""
        assert self._process is None, "it runs already"
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self.command(), stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL
            )

    def _first_line(self) -> bytes:
        assert self._process is not None
        stdout = self._process.stdout
        assert stdout is not None
        line = b""
        deadline = time.monotonic() + START_SECONDS_MAX
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([stdout], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(stdout.fileno(), 65536) if ready else b""
            if not piece:
                process, self._process = self._process, None
                process.kill()
                status = process.wait()
                stdout.close()
                raise StartRefusedError(status, self.log.read_text(errors="replace"))
            line += piece
        return line

    @property
    def pid(self) -> int:
        """The process id, 0 while it is down."""
        return self._process.pid if self._process else 0

    def is_alive(self) -> bool:
        """Tell whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self, kill: bool = False) -> None:
        """End it by SIGTERM, which must be clean, or by SIGKILL; fine if it does not run."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        self.wait(kill=kill)

    def wait(self, kill: bool = False) -> None:
        """Return once it has ended, clean unless it was killed."""
        process, self._process = self._process, None
        assert process is not None, "it does not run"
        try:
            status = process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"SIGTERM did not end the server; see {self.log}") from None
        finally:
            if process.stdout is not None:
                process.stdout.close()
        if not kill:
            assert status == 0, f"exit status {status}: {self.log.read_text(errors='replace')}"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop(kill=error is not None)
