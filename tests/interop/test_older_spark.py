"""The oldest Spark that is taken, and the one between: whole sessions of either."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from logstore.tools.bench.spark_peer import spark_packages
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.conftest import missing
from tests.interop.spark_connect_session import QUERIES
from tests.segments.kafka.golden_case import GOLDEN, GoldenCase, copy_of_data
from tests.segments.rocketmq.golden_case import GoldenCase as RocketMQCase

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]
KAFKA = GOLDEN / "kafka-4.3" / "data"
PLAIN = len(GoldenCase("kafka-4.3", "plain").expected)


@pytest.mark.parametrize("version", ["4.0.0", "4.1.0"])
def test_a_session_does_the_same(version: str, tmp_path: Path) -> None:
    """Reads, asks, writes, follows and converts, though Spark has less to offer."""
    try:
        packages = spark_packages(version)
    except PeerUnavailable as error:
        missing(f"Spark {version}: {error}")
    damaged = copy_of_data("kafka-4.3", tmp_path / "damaged")
    log = damaged / "plain-0" / "00000000000000000000.log"
    log.write_bytes(b"x" * log.stat().st_size)
    stores = [str(KAFKA), str(RocketMQCase("plain", "5.5.0").lean_store), str(damaged)]
    done = session(packages, str(tmp_path), *stores)
    assert done["used"] == QUERIES
    assert dict(done["asked"]["kafka"]) == dict(done["asked"]["partitions"])
    assert done["copied"] == [["copies", PLAIN]]
    assert done["converted"] > PLAIN
    assert "plain-0/00000000000000000000.log" in done["refused"][1]


def session(packages: str, *words: str) -> dict[str, Any]:
    """Return what a session with that pyspark did."""
    path = os.pathsep.join([packages, os.getcwd(), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)}
    environment["PYSPARK_PYTHON"] = sys.executable
    environment.pop("SPARK_HOME", None)
    ran = subprocess.run(
        [sys.executable, "-m", "tests.interop.spark_connect_session", "local[2]", *words],
        capture_output=True, text=True, check=False, timeout=600, env=environment,
    )  # fmt: skip
    assert not ran.returncode, ran.stderr[-3000:]
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found
