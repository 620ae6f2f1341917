"""Java programs of the tests: compiled once per user, run by JVMs that start from an archive."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from logstore.tools.dev import java_classes, kafka_peer, rocketmq_jars
from logstore.tools.dev.rocketmq_proxy_peer import client_jars


def kafka_program(
    source: Path, *arguments: str, version: str = kafka_peer.VERSION_4, more: str = ""
) -> list[str]:
    """
    Return the command that runs a program with that Kafka's jars; `more` is more class path.

    Raises :class:`PeerUnavailable` where something of it cannot be had.
    """
    behind = str(kafka_peer.compiled(version, [source], more))
    if more:
        behind = f"{behind}:{more}"
    flags = kafka_peer.class_archive(version).flags(may_write=False)
    jvm = f"{kafka_peer.TOOL_JVM} {flags}"
    return kafka_peer.java(version, source.stem, *arguments, jvm=jvm, behind=behind)


def rocketmq_program(
    sources: Sequence[Path],
    main: str,
    *arguments: str,
    version: str = "5",
    home: Path | None = None,
) -> list[str]:
    """Return the command that runs one class of a program with that RocketMQ's jars; raises so."""
    flags = rocketmq_jars.class_archive(version).flags(may_write=False)
    return rocketmq_jars.java(
        version,
        main,
        *arguments,
        jvm=f"{rocketmq_jars.TOOL_JVM} {flags}",
        behind=rocketmq_jars.compiled(version, sources),
        home=home,
    )


def grpc_program(source: Path, *arguments: str) -> list[str]:
    """Return the command that runs a program with RocketMQ's client that speaks gRPC; raises so."""
    jars, cache = client_jars(), rocketmq_jars.peers_directory("grpc-client")
    classes = java_classes.compiled("RocketMQ's gRPC client", [source], jars, cache)
    jvm = rocketmq_jars.TOOL_JVM.split()
    return ["java", *jvm, "-cp", f"{jars}:{classes}", source.stem, *arguments]
