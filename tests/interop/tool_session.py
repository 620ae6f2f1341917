"""Kafka's own tools, run one after the other in one JVM: a start costs more than most runs."""

from __future__ import annotations

import os
import struct
import subprocess
import threading
from pathlib import Path
from typing import IO

import attrs

from logstore.tools.dev.kafka_peer import java
from tests.interop.java_programs import kafka_program

_PROGRAM = Path(__file__).with_name("ToolSession.java")
_RUN_SECONDS_MAX = 240
_NUMBER = struct.Struct(">i")


@attrs.frozen
class Done:
    """How one of Kafka's tools ended."""

    status: int
    stdout: str
    stderr: str


class ToolSession:
    """The tools of one release; their JVM is started by the first run, and anew after a failure."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, name: str, *args: str, stdin: str = "") -> Done:
        """
        Run a tool by its short name or the name of its class.

        Raises :class:`PeerUnavailable` where it cannot be fetched, EOFError where it had not ended
        in time or took the JVM down with it.
        """
        words = java(self._version, name, *args)[-1 - len(args) :]
        process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        texts = [word.encode() for word in (*words, stdin)]
        asked = [_NUMBER.pack(len(words)), *(_NUMBER.pack(len(text)) + text for text in texts)]
        patience = threading.Timer(_RUN_SECONDS_MAX, process.kill)
        patience.start()
        try:
            process.stdin.write(b"".join(asked))
            process.stdin.flush()
            (status,) = _NUMBER.unpack(_whole(process.stdout, _NUMBER.size))
            printed = [_text(process.stdout).decode(errors="replace") for _ in range(2)]
        except (OSError, EOFError):
            self.close()
            raise EOFError(f"{' '.join(words)} has not come to its end") from None
        finally:
            patience.cancel()
        return Done(status, *printed)

    def kill(self) -> None:
        """Have the JVM end as it does where a run takes it down."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the JVM, which has nothing to lose."""
        self.kill()
        process, self._process = self._process, None
        if process is not None:
            process.communicate()

    def _started(self) -> subprocess.Popen[bytes]:
        command = kafka_program(_PROGRAM, version=self._version)
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}  # by which Java encodes what it prints
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        return self._process


def _text(stream: IO[bytes]) -> bytes:
    (size,) = _NUMBER.unpack(_whole(stream, _NUMBER.size))
    return _whole(stream, size)


def _whole(stream: IO[bytes], size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise EOFError
    return found
