"""Kafka's own integration tests, as it ships them, against ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from logstore.tools.dev.kafka_peer import TOOL_JVM, VERSION_4, compiled, fetch_part, java
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.conftest import missing
from tests.interop.kafka_suite.classes import (
    CONNECT,
    MIRROR,
    PASSED_OVER,
    QUICK,
    SLOW,
    STREAMS,
)

pytestmark = pytest.mark.interop

HERE = Path(__file__).parent
SOURCES = [HERE / "OurProcess.java", *sorted((HERE / "kafka_suite").glob("*.java"))]
SECONDS_MAX = 2400
TEST_SECONDS_MAX = 300  # some of Connect start two brokers and six workers
_PACKAGES = {"streams": STREAMS, "connect": CONNECT, "connect.mirror": MIRROR}
_ALL_SLOW = (
    *SLOW,
    *(
        f"org.apache.kafka.{package}.integration.{name}"
        for package, names in _PACKAGES.items()
        for name in names
    ),
)
ALL = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in _ALL_SLOW)]


@pytest.mark.timeout(SECONDS_MAX + 100)
@pytest.mark.parametrize("name", ALL)
def test_kafkas_own_tests(name: str, tmp_path: Path) -> None:
    """Each test of the class has a broker of its own, and all of them hold."""
    try:
        suite = f"{fetch_part('suite', VERSION_4)}:{fetch_part('streams', VERSION_4)}"
        classes = compiled(VERSION_4, SOURCES, suite)
    except PeerUnavailable as reason:
        missing(str(reason))
    settings = {"python": sys.executable, "directory": str(tmp_path)}
    given = " ".join(f"-Dlogstore.{key}={value}" for key, value in settings.items())
    given += f" -Djava.io.tmpdir={tmp_path}"
    limits = {
        "junit.jupiter.extensions.autodetection.enabled": "true",
        "junit.jupiter.execution.timeout.default": f"{TEST_SECONDS_MAX}s",
    }
    arguments = ["execute", "-c", name, "--details=testfeed"]
    arguments += ["--fail-if-no-tests", "--exclude-methodname", f".*({_passed_over()})"]
    arguments += [word for key, value in limits.items() for word in ("--config", f"{key}={value}")]
    command = java(
        VERSION_4, "org.junit.platform.console.ConsoleLauncher", *arguments,
        jvm=f"{TOOL_JVM} {given}", classes=f"{classes}:{suite}",
    )  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-5000:]}"


def _passed_over() -> str:
    """Return the pattern of what is not run: methods of any class, or of the one that is named."""
    return "|".join(one if "#" in one else f"#{one}" for one in PASSED_OVER)
