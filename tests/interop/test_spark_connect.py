"""Spark Connect: a server of Spark that is not this process reads, asks, writes and converts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.session import ServerMissingError, ensure_java, local_session
from logstore.tools.dev.free_ports import free_port
from tests.interop.eventually import eventually
from tests.interop.spark_cluster import listens
from tests.interop.spark_connect_session import QUERIES
from tests.segments.kafka.golden_case import GOLDEN, GoldenCase, copy_of_data
from tests.segments.rocketmq.golden_case import GoldenCase as RocketMQCase

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
KAFKA = GOLDEN / "kafka-4.3" / "data"
ROCKETMQ = RocketMQCase("plain", "5.5.0")
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
PLAIN = len(GoldenCase("kafka-4.3", "plain").expected)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a server with two cores."""
    ensure_java()
    port, folder = free_port(), tmp_path_factory.mktemp("connect")
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    program = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [str(program), "--class", SERVER, "--master", "local[2]", *words, "spark-internal"],
            stdout=log, stderr=log, cwd=folder, env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        )  # fmt: skip
    try:
        eventually(lambda: listens(int(port or 0)), 120, what="a server that listens")
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session writes."""
    return tmp_path_factory.mktemp("written")


@pytest.fixture(scope="module")
def done(server: str, folder: Path) -> dict[str, Any]:
    """Return what a session of it did."""
    damaged = copy_of_data("kafka-4.3", folder / "damaged")
    log = damaged / "plain-0" / "00000000000000000000.log"
    log.write_bytes(b"x" * log.stat().st_size)
    rocketmq = ROCKETMQ.lean_store
    words = [server, str(folder), str(KAFKA), str(rocketmq), str(damaged)]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.interop.spark_connect_session", *words],
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert not ran.returncode, ran.stderr[-3000:]
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def test_tasks_run_where_spark_runs(done: dict[str, Any]) -> None:
    """Each piece once and in order, and it is told how far they are."""
    assert done["cores"] == 2
    assert done["pieces"] == [number * 2 for number in range(100)]
    assert all(0 <= so_far <= 1000 and total == 1000 for so_far, total in done["told"])


def test_only_columns_that_a_query_uses_are_decoded(done: dict[str, Any]) -> None:
    """As a classic session knows from the plan itself."""
    assert done["used"] == QUERIES


def test_queries_mean_their_own_stores(done: dict[str, Any]) -> None:
    """Though all of them are called `records`, and rows are asked for when others are, too."""
    asked = done["asked"]
    kafka = dict(asked["kafka"])
    assert kafka["plain"] == PLAIN
    assert kafka == dict(asked["partitions"])
    assert asked["rocketmq"]
    assert dict(asked["rocketmq"]).keys().isdisjoint(kafka)
    assert asked["joined"] == [[PLAIN * PLAIN]]
    assert {"key", "offset", "batchCodec"} <= set(asked["described"])


def test_what_is_wrong_is_said_in_a_line(done: dict[str, Any]) -> None:
    """Of a query, and of a file that a task reads."""
    kind, text = done["asked"]["wrong"]
    assert (kind, "\n" in text, "`nothing`" in text) == ("QueryError", False, True)
    kind, text = done["refused"]
    assert "plain-0/00000000000000000000.log" in text
    assert "\n" not in text


def test_rows_are_written_and_followed(done: dict[str, Any]) -> None:
    """By a batch, and from there by a stream."""
    assert done["copied"] == [["copies", PLAIN]]


def test_conversions_write_the_same_files(done: dict[str, Any], folder: Path) -> None:
    """As one without Spark."""
    report = convert(HereRunner(), ConvertOptions(str(KAFKA), str(folder / "here"), "rocketmq"))
    assert done["converted"] == report["messages"] > PLAIN
    assert files_of(folder / "converted") == files_of(folder / "here")


def files_of(store: Path) -> Counter[tuple[str, bytes]]:
    """Return the queues of a store."""
    queues = store / "consumequeue"
    found = [path for path in queues.rglob("*") if path.is_file()]
    assert found
    return Counter((str(path.relative_to(store)), path.read_bytes()) for path in found)


def test_the_command_asks_it(server: str) -> None:
    """With the URL as its master; where nobody listens it says so at once."""
    query = "SELECT count(*) AS n FROM records WHERE topic = 'plain'"
    command = [sys.executable, "-m", "logstore.tools.cli", "sql", str(KAFKA), query, "--json"]
    ran = subprocess.run(
        [*command, "--master", server], capture_output=True, text=True, check=False, timeout=300
    )
    assert (ran.stdout, ran.stderr) == (f'{{"n":{PLAIN}}}\n', "")
    nowhere = f"sc://127.0.0.1:{free_port()}"
    with pytest.raises(ServerMissingError, match=f"{nowhere}: no server"):
        local_session(nowhere)
