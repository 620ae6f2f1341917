"""A worker of Kafka Connect, the real one, as a process that is asked by HTTP."""

from __future__ import annotations

import json
import subprocess
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

from logstore.tools.dev.free_ports import free_port
from logstore.tools.dev.kafka_peer import TOOL_JVM, VERSION_4, class_archive, fetch_part, java
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.eventually import eventually

SECONDS_MAX = 120


class ConnectWorker:
    """
    One worker of the Connect cluster `name`, which keeps its configs, offsets and states in topics.

    It forgets a dead member within a second, and source tasks write in transactions.
    """

    def __init__(self, bootstrap: str, name: str, directory: Path) -> None:
        port = free_port()
        if port is None:
            raise PeerUnavailable("no port is free for a Connect worker")
        self._port = port
        self._log = directory / "worker.log"
        self._properties = directory / "worker.properties"
        text = "org.apache.kafka.connect.storage.StringConverter"
        settings: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "listeners": f"http://127.0.0.1:{port}",
            "key.converter": text,
            "value.converter": text,
            "exactly.once.source.support": "enabled",
            "offset.flush.interval.ms": 200,
            "session.timeout.ms": 1000,
            "heartbeat.interval.ms": 100,
            "scheduled.rebalance.max.delay.ms": 0,
            "plugin.discovery": "service_load",
        }
        for kind in ("config", "offset", "status"):
            settings[f"{kind}.storage.topic"] = f"{name}-{kind}"
            settings[f"{kind}.storage.replication.factor"] = 1
        settings |= {"offset.storage.partitions": 2, "status.storage.partitions": 2}
        self._properties.write_text("".join(f"{key}={it}\n" for key, it in settings.items()))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it, and return once it knows its connectors. Raises PeerUnavailable."""
        main, file = "org.apache.kafka.connect.cli.ConnectDistributed", str(self._properties)
        more = fetch_part("connect", VERSION_4)
        jvm = f"{TOOL_JVM} {class_archive(VERSION_4).flags(may_write=False)}"
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                java(VERSION_4, main, file, jvm=jvm, behind=more),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        eventually(lambda: self.ask("GET", "/connectors")[0] == 200, SECONDS_MAX, what="a worker")
        return self

    def kill(self) -> None:
        """End it by SIGKILL; fine if it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Return the status of an answer, 0 if there is none, and what it says."""
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text(errors="replace")[-3000:]
        connection = HTTPConnection("127.0.0.1", self._port, timeout=SECONDS_MAX)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text, kind = answer.read(), answer.getheader("Content-Type", "")
        except OSError:
            return 0, None
        finally:
            connection.close()
        return answer.status, json.loads(text) if kind.startswith("application/json") else None

    def told(self, method: str, path: str, body: object = None) -> Any:
        """Return what it says, asked again while it is busy with a change of its group."""
        answers: list[Any] = []

        def is_done() -> bool:
            status, said = self.ask(method, path, body)
            answers[:] = [said]
            assert status in {0, 409, 500} or status < 300, f"{method} {path}: {status} {said}"
            return 0 < status < 300

        eventually(is_done, SECONDS_MAX, what=f"{method} {path}")
        return answers[0]

    def await_state(self, connector: str, wanted: str, tasks: int) -> None:
        """Wait until a connector, and each of so many tasks, is in that state."""

        def states() -> list[str]:
            status, said = self.ask("GET", f"/connectors/{connector}/status")
            if status != 200:
                return []
            return [said["connector"]["state"], *(task["state"] for task in said["tasks"])]

        eventually(
            lambda: states() == [wanted] * (1 + tasks), SECONDS_MAX, what=f"{connector} {wanted}"
        )
