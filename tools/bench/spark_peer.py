"""
A Spark that has a Kafka source and sink, and a real broker: what ours is held against.

The newest Spark may not have its Kafka package yet, so pyspark of :data:`SPARK_VERSION` is put
beside the installed one, by pip, and the package's jars come through Maven; both once, below
``$XDG_CACHE_HOME/logstore/peers``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from logstore.tools.bench.layout_data import TOPIC
from logstore.tools.dev.kafka_peer import VERSION_4, KafkaPeer
from logstore.tools.dev.maven import PeerUnavailable

SPARK_VERSION = "4.2.0"
#: shortens the error of a tool that failed
_TOLD_CHARACTERS = 2_000
_POM = Path(__file__).parents[1] / "dev" / "spark_peer.xml"
#: the broker's page cache serves it; its heap need not be large
_BROKER_JVM = "-Xmx1g -Xms512m -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20"


def compare(
    directory: str, place: str, warm_count: int, core_count: int = 2
) -> Mapping[str, float]:
    """
    Return how many seconds our source and Spark's own need for all records of a data directory.

    Both read the first `warm_count` records of each partition before. A broker serves a copy in
    `place`, of which the logs are the same files; no record is written.

    Raises:
        PeerUnavailable: no Java, no Maven, or something cannot be fetched; it says which.

    """
    packages, jars = spark_packages(), kafka_jars()
    copy = served_copy(directory, f"{place}/served")
    with KafkaPeer(VERSION_4, f"{place}/broker", as_is=copy, jvm=_BROKER_JVM) as kafka:
        ending = first_offsets(directory, warm_count)
        given = directory, kafka.bootstrap, TOPIC, str(core_count), ",".join(jars), ending
        return _told_by("logstore.tools.bench.spark_versus", given, packages)


def compare_writes(
    place: str, value_bytes: int, row_count: int, partition_count: int
) -> Mapping[str, float]:
    """
    Return how many seconds our writer and Spark's own Kafka sink need for the same rows.

    Raises:
        PeerUnavailable: no Java, no Maven, or something cannot be fetched; it says which.

    """
    packages, jars = spark_packages(), kafka_jars()
    settings = {"num.partitions": partition_count}
    with KafkaPeer(VERSION_4, f"{place}/broker", settings=settings, jvm=_BROKER_JVM) as kafka:
        given = place, kafka.bootstrap, str(partition_count), ",".join(jars)
        sizes = str(value_bytes), str(row_count)
        return _told_by("logstore.tools.bench.spark_sinks", (*given, *sizes), packages)


def _told_by(module: str, arguments: Sequence[str], packages: str) -> Mapping[str, float]:
    """Return what a module prints that runs with the pyspark in `packages`."""
    path = os.pathsep.join([packages, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    environment.pop("SPARK_HOME", None)
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise PeerUnavailable(
            f"Spark {SPARK_VERSION} could not be measured:\n{done.stderr[-_TOLD_CHARACTERS:]}"
        )
    found: dict[str, float] = orjson.loads(done.stdout.splitlines()[-1])
    return found


def first_offsets(directory: str, count: int) -> str:
    """Return Spark's option `endingOffsets` for so many records of each partition."""
    partitions = (
        path.name.removeprefix(f"{TOPIC}-") for path in Path(directory).glob(f"{TOPIC}-*")
    )
    return orjson.dumps({TOPIC: dict.fromkeys(sorted(partitions), count)}).decode()


def spark_packages(version: str = SPARK_VERSION) -> str:
    """Return a folder to be put into PYTHONPATH that has pyspark of that version."""
    folder = _cache(version) / "packages"
    if not (folder / "pyspark" / "version.py").exists():
        print(f"fetching pyspark {version} (once)", file=sys.stderr, flush=True)
        fresh = _cache(version) / f"packages.{os.getpid()}.new"
        command = [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--target", str(fresh)),
            f"pyspark=={version}",
        ]
        _run(command, f"pip could not install pyspark {version}")
        os.replace(fresh, folder)
    return str(folder)


def kafka_jars() -> list[str]:
    """Return the jars of Spark's Kafka source; Maven is asked only while one is not on disk."""
    saved = _cache() / "jars.txt"
    if not saved.exists() or not all(map(os.path.exists, saved.read_text().split(":"))):
        if shutil.which("mvn") is None:
            raise PeerUnavailable(
                "Spark's Kafka source: no `mvn` on the PATH; install Apache Maven"
            )
        print("fetching Spark's Kafka source through Maven (once)", file=sys.stderr, flush=True)
        fresh = saved.with_name(f"jars.{os.getpid()}.new")
        command = [
            *("mvn", "-q", "-B", "-f", str(_POM), f"-Dspark.version={SPARK_VERSION}"),
            *("dependency:build-classpath", f"-Dmdep.outputFile={fresh}"),
        ]
        _run(command, "Spark's Kafka source: Maven failed")
        os.replace(fresh, saved)
    # What Spark has itself must not be there twice.
    named = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
    jars = saved.read_text().strip().split(":")
    return [jar for jar in jars if os.path.basename(jar).startswith(named)]


def served_copy(directory: str, target: str) -> str:
    """Return a copy of a data directory for a broker, with links to the topic's files."""
    shutil.rmtree(target, ignore_errors=True)

    def copied(source: str, copy: str) -> str:
        if f"/{TOPIC}-" in source and source.endswith(".log"):
            os.link(source, copy)
            return copy
        return shutil.copy2(source, copy)

    shutil.copytree(directory, target, copy_function=copied)
    return target


def _cache(version: str = SPARK_VERSION) -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = root / "logstore" / "peers" / f"spark-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _run(command: list[str], failed: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr)[-_TOLD_CHARACTERS:].strip()
        raise PeerUnavailable(f"{failed}:\n{said}")
