"""The official Java client as the load: one process that is asked for one measurement at a time."""

from __future__ import annotations

import contextlib
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from logstore.tools.bench.frames import BenchError
from logstore.tools.dev.rocketmq_jars import VERSION_5, compiled, java

#: The JVM's own choice of everything but the heap: this is a client as people run it.
LOAD_JVM = "-Xms256m -Xmx1g"
_SOURCE = Path(__file__).with_name("RocketMQLoad.java")


class Load:
    """
    A JVM with the client of 5.5.0, kept for the whole run so that it is compiled for all alike.

    Use :func:`shared_load`; it ends with this process, whose pipe it reads.
    """

    def __init__(self) -> None:
        classes = compiled(VERSION_5, [_SOURCE])
        self._process = subprocess.Popen(
            java(VERSION_5, "RocketMQLoad", jvm=LOAD_JVM, classes=classes),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C ends the benchmark, and its pipe ends this
        )

    def measure(self, kind: str, name_server: str, topic: str, *words: object) -> dict[str, float]:
        """
        Have one measurement taken; return its figures by name, as RocketMQLoad.java tells them.

        Raises :class:`BenchError` with the client's own words where it fails.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        line = " ".join(str(word) for word in (kind, name_server, topic, *words))
        with contextlib.suppress(BrokenPipeError):
            stdin.write(line + "\n")
            stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise BenchError(f"the Java client ended while it measured: {line}")
        found: dict[str, Any] = json.loads(answer)
        if "error" in found:
            raise BenchError(f"the Java client says: {found['error']}")
        return {name: float(value) for name, value in found.items()}


@cache
def shared_load() -> Load:
    """Return the one load of this process, started when it is first asked for."""
    return Load()
