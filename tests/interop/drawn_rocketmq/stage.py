"""Both brokers as processes that can be ended and started again in the middle of a session."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from logstore.segments.rocketmq.tables.java_json import parse_json
from logstore.tools.dev.rocketmq_peer import RocketMQPeer
from tests.interop.drawn.pair import Pair
from tests.interop.our_rocketmq import OurRocketMQ

#: tables that a broker saves now and then, and when it ends
TABLES = ("topics", "subscriptionGroup", "consumerOffset", "lmqConsumerOffset", "delayOffset",
          "consumerFilter", "consumerOrderInfo", "messageRequestMode",
          "topicQueueMapping")  # fmt: skip
#: each saves offsets every five seconds, and all else every ten
SAVED_SECONDS, SAVED_SECONDS_MAX = 10, 40


class Stage:
    """Ours and the real one, each on its ports and data."""

    def __init__(self, ours: OurRocketMQ, real: RocketMQPeer) -> None:
        self._ours, self._real = ours, real

    def stop(self, *, kill: bool) -> None:
        """End both brokers; the real name server goes on, ours is a part of the broker."""
        with ThreadPoolExecutor(2) as pool:
            ours = pool.submit(self._ours.stop, kill=kill)
            pool.submit(self._real.stop_broker, kill=kill).result()
            ours.result()

    def start(self) -> None:
        """Start both."""
        with ThreadPoolExecutor(2) as pool:
            ours = pool.submit(self._ours.start)
            pool.submit(self._real.start).result()
            ours.result()

    def data(self) -> Pair:
        """Return where each keeps its store."""
        return Pair(self._ours.data, self._real.data)

    def tables(self) -> Pair:
        """Return what stands in the files of tables, by their names."""
        return Pair(*(_tables(one) for one in self._places()))

    def wait_until_saved(self) -> None:
        """Return when each has saved all its tables: the real one writes them whatever is new."""
        file = self._real.data / "config" / "consumerOrderInfo.json"
        since, deadline = time.time(), time.monotonic() + SAVED_SECONDS_MAX
        while not file.exists() or file.stat().st_mtime < since + SAVED_SECONDS:
            if time.monotonic() > deadline:
                return
            time.sleep(0.1)

    def _places(self) -> tuple[Path, Path]:
        return self._ours.data / "config", self._real.data / "config"


def _tables(directory: Path) -> dict[str, Any]:
    found = {}
    for name in TABLES:
        file = directory / f"{name}.json"
        if file.exists() and file.stat().st_size:
            found[name] = parse_json(file.read_text())
    return found
