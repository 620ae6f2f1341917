"""The official Java clients as the load: a process each, asked for one measurement at a time."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from logstore.tools.bench.frames import BenchError
from logstore.tools.dev import java_classes
from logstore.tools.dev.rocketmq_jars import VERSION_5, compiled, java, peers_directory
from logstore.tools.dev.rocketmq_proxy_peer import client_jars

#: The JVM's own choice of everything but the heap: this is a client as people run it.
LOAD_JVM = "-Xms256m -Xmx1g"
_SOURCES, _PROXY_SOURCES = (
    [Path(__file__).with_name(f"{name}.java") for name in (main, "LoadLines")]
    for main in ("RocketMQLoad", "ProxyLoad")
)


class Load:
    """
    A JVM with a client, kept for the whole run so that it is compiled for all alike.

    Use :func:`shared_load` or :func:`shared_proxy_load`; it ends with this process, whose pipe it
    reads.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C ends the benchmark, and its pipe ends this
        )

    def measure(self, kind: str, where: str, topic: str, *words: object) -> dict[str, float]:
        """
        Have one measurement taken; return its figures by name, as the Java file tells them.

        Raises :class:`BenchError` with the client's own words where it fails.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        line = " ".join(str(word) for word in (kind, where, topic, *words))
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
    """Return the one load of this process by remoting, started when it is first asked for."""
    classes = compiled(VERSION_5, _SOURCES)
    return Load(java(VERSION_5, "RocketMQLoad", jvm=LOAD_JVM, classes=classes))


@cache
def shared_proxy_load() -> Load:
    """Return the one load of this process by gRPC, started when it is first asked for."""
    jars, cache_directory = client_jars(), peers_directory("grpc-client")
    what = "RocketMQ's gRPC client"
    classes = java_classes.compiled(what, _PROXY_SOURCES, jars, cache_directory)
    return Load(["java", *LOAD_JVM.split(), "-cp", f"{jars}:{classes}", "ProxyLoad"])
