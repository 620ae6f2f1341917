"""Integration tests of Kafka's own clients and tools, as Kafka ships them, run against ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from logstore.tools.dev.kafka_peer import TOOL_JVM, VERSION_4, compiled, fetch_part, java
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.conftest import missing

pytestmark = pytest.mark.interop

HERE = Path(__file__).parent
SOURCES = [HERE / "OurProcess.java", *sorted((HERE / "kafka_suite").glob("*.java"))]
SECONDS_MAX = 1500
TEST_SECONDS_MAX = 100
#: Classes of tests, below `org.apache.kafka`; in CI the quick ones stand for the rest.
QUICK = (
    "clients.admin.AdminFenceProducersTest", "clients.admin.DynamicGroupConfigIntegrationTest",
    "tools.DeleteRecordsCommandTest", "tools.UserScramCredentialsCommandTest",
)  # fmt: skip
SLOW = (
    "clients.TransactionsExpirationTest", "clients.consumer.ConsumerTopicCreationTest",
    "clients.consumer.PlaintextConsumerAssignTest",
    "clients.consumer.PlaintextConsumerCallbackTest",
    "clients.consumer.PlaintextConsumerCommitTest", "clients.consumer.PlaintextConsumerFetchTest",
    "clients.consumer.PlaintextConsumerPollTest", "clients.consumer.PlaintextConsumerTest",
    "clients.consumer.PlaintextConsumerSubscriptionTest",
)  # fmt: skip
#: These look into the objects of a real broker, or move between several.
PASSED_OVER = ("test.*ConsumerCloseOnBrokerShutdown", "test.*CoordinatorFailover")
ALL = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]


@pytest.mark.timeout(SECONDS_MAX + 100)
@pytest.mark.parametrize("name", ALL)
def test_kafkas_own_tests(name: str, tmp_path: Path) -> None:
    """Each test of the class has a broker of its own, and all of them hold."""
    try:
        suite = fetch_part("suite", VERSION_4)
        classes = compiled(VERSION_4, SOURCES, suite)
    except PeerUnavailable as reason:
        missing(str(reason))
    settings = {"python": sys.executable, "directory": str(tmp_path)}
    given = " ".join(f"-Dlogstore.{key}={value}" for key, value in settings.items())
    limits = {
        "junit.jupiter.extensions.autodetection.enabled": "true",
        "junit.jupiter.execution.timeout.default": f"{TEST_SECONDS_MAX}s",
    }
    arguments = ["execute", "-c", f"org.apache.kafka.{name}", "--details=testfeed"]
    arguments += ["--fail-if-no-tests", "--exclude-methodname", f".*#({'|'.join(PASSED_OVER)})"]
    arguments += [word for key, value in limits.items() for word in ("--config", f"{key}={value}")]
    command = java(
        VERSION_4, "org.junit.platform.console.ConsoleLauncher", *arguments,
        jvm=f"{TOOL_JVM} {given}", classes=f"{classes}:{suite}",
    )  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-5000:]}"
