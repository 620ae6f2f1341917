"""
The jars of the real Apache RocketMQ, through Maven, and what is run or compiled with them.

They go where Maven keeps its own; what is remembered here, below
``$XDG_CACHE_HOME/logstore/peers/rocketmq``, is the class path of each release, and the classes of
Java programs compiled against it. It needs Java 17 and, the first time, Maven on the PATH.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from logstore.tools.dev import java_classes
from logstore.tools.dev.class_archive import ClassArchive
from logstore.tools.dev.maven import PeerUnavailable, class_path

#: The newest 5.x whose artifacts are complete (5.5.1 lacks its servers), and the last 4.x.
VERSION_5 = "5.5.0"
VERSION_4 = "4.9.8"
VERSIONS = {"5": VERSION_5, "4": VERSION_4}

TOOL_JVM = "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
MQADMIN = "org.apache.rocketmq.tools.command.MQAdminStartup"

# RocketMQ and the Netty in it reach into the JDK; since Java 16 that must be allowed by name.
_OPENED = [
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
]
_LOGBACK = """\
<configuration>
  <appender name="out" class="{package}ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder class="{package}ch.qos.logback.classic.encoder.PatternLayoutEncoder">
      <pattern>%d{{yyyy-MM-dd HH:mm:ss.SSS}} %p %c - %m%n</pattern>
    </encoder>
  </appender>
  <root level="{level}"><appender-ref ref="out"/></root>
</configuration>
"""
# 5.x carries a Logback of its own under another package name, 4.x takes the common one.
_LOGBACKS = {
    "rmq.xml": "org.apache.rocketmq.logging.",
    "logback_broker.xml": "",
    "logback_namesrv.xml": "",
    "logback_tools.xml": "",
}


def fetch(version: str) -> str:
    """
    Return the class path of that RocketMQ; Maven is asked only while a jar is not on disk.

    Raises :class:`PeerUnavailable` where Maven is missing or cannot reach the artifacts.
    """
    version = VERSIONS.get(version, version)
    here = Path(__file__).parent
    own = here / f"rocketmq_peer_{version}.xml"
    pom = own if own.exists() else here / "rocketmq_peer.xml"
    options = [f"-Drocketmq.version={version}"]
    return class_path(f"RocketMQ {version}", pom, options, peers_directory(version))


def fetch_suite(version: str) -> str:
    """Return the class path of RocketMQ's own integration tests; raises as `fetch`."""
    version = VERSIONS.get(version, version)
    pom = Path(__file__).with_name("rocketmq_suite.xml")
    options = [f"-Drocketmq.version={version}"]
    return class_path(f"RocketMQ suite {version}", pom, options, peers_directory(version) / "suite")


def java(
    version: str,
    main: str,
    *args: str,
    jvm: str = TOOL_JVM,
    level: str = "OFF",
    classes: str | os.PathLike[str] = "",
    behind: str | os.PathLike[str] = "",
    home: str | os.PathLike[str] | None = None,
) -> list[str]:
    """
    Return the command line that runs one main class with that RocketMQ's jars.

    `classes` is more class path, put before the jars, `behind` put behind them, where an archive of
    classes stays good. `level` is the log level, on stderr. `home` is what the process takes for
    RocketMQ's home and the user's, where it writes local offsets.
    """
    if shutil.which("java") is None:
        raise PeerUnavailable(f"RocketMQ {version}: no `java` on the PATH; install a JDK, 17 or up")
    path = fetch(version)
    home = peers_directory(version) / f"home-{level}" if home is None else Path(home)
    conf = home / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    for name, package in _LOGBACKS.items():
        _write(conf / name, _LOGBACK.format(package=package, level=level))
    return [
        *("java", *_OPENED, *shlex.split(jvm), f"-Duser.home={home}"),
        f"-Drocketmq.home.dir={home}",
        f"-Drmq.logback.configurationFile={conf}/rmq.xml",
        f"-Dlogback.configurationFile={conf}/logback_tools.xml",
        "-Drocketmq.client.logUseSlf4j=true",
        *("-cp", ":".join(str(one) for one in (classes, path, behind) if one), main, *args),
    ]


def class_archive(version: str) -> ClassArchive:
    """Return the archive of classes for that RocketMQ, its broker's and so most of the others'."""
    return ClassArchive(peers_directory(version), "broker")


def compiled(version: str, sources: Sequence[Path], more: str = "") -> Path:
    """
    Return the classes of these sources, compiled against that release; see `java_classes`.

    `more` is class path that stands before the release's own.
    """
    version = VERSIONS.get(version, version)
    what, cache = f"RocketMQ {version}", peers_directory(version)
    path = f"{more}:{fetch(version)}" if more else fetch(version)
    return java_classes.compiled(what, sources, path, cache)


def _write(path: Path, text: str) -> None:
    """Write a file that several processes may read and write at once."""
    if path.exists() and path.read_text() == text:
        return
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.write_text(text)
    os.replace(fresh, path)


def peers_directory(version: str) -> Path:
    """Return where what belongs to that release is remembered."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "logstore" / "peers" / "rocketmq" / VERSIONS.get(version, version)
