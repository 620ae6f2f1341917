"""Spark Connect: a server of Spark that is not this process reads, asks, writes and converts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
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
from tests.interop.spark_tour import KAFKA, PLAIN, QUERIES, toured

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def serving(folder: Path, python: str) -> Generator[str]:
    """Serve Spark Connect with two cores, whose workers run `python`; give its URL."""
    ensure_java()
    port = free_port()
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
            stdout=log, stderr=log, cwd=folder, env=os.environ | {"PYSPARK_PYTHON": python},
        )  # fmt: skip
    try:
        eventually(lambda: listens(int(port or 0)), 120, what="a server that listens")
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a server."""
    with serving(tmp_path_factory.mktemp("connect"), sys.executable) as url:
        yield url


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session writes."""
    return tmp_path_factory.mktemp("written")


@pytest.fixture(scope="module")
def done(server: str, folder: Path) -> dict[str, Any]:
    """Return what a session of it did."""
    return toured(server, folder)


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


@pytest.mark.slow
def test_a_server_without_this_package_is_told_so(tmp_path: Path) -> None:
    """By one line that says what to do, where Spark prints the stack of its worker."""
    hidden = tmp_path / "logstore.py"
    hidden.write_text("raise ModuleNotFoundError(\"No module named 'logstore'\")")
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    command = [sys.executable, "-m", "logstore.tools.cli", "sql", str(KAFKA), "SELECT 1"]
    with serving(tmp_path, str(python)) as url:
        ran = subprocess.run(
            [*command, "--master", url], capture_output=True, text=True, check=False, timeout=300
        )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"logstore: {url}: the Python of that server lacks this package")
    assert ran.stderr.count("\n") == 1
