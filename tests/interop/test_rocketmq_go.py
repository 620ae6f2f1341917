"""RocketMQ's Go client, of which every scenario prints the same at ours and at the real broker."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.interop.foreign_packages import go_program
from tests.interop.rocketmq_programs import HERE, Sections, run_program
from tests.interop.rocketmq_sessions import started

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

SCENARIOS = {
    "sent", "filtered", "delayed", "in order", "broadcast", "retried", "pulled", "polled",
    "transactions", "answered", "shared", "namespace", "traced", "administered",
}  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled program."""
    return go_program(HERE / "rocketmq_go", tmp_path_factory.mktemp("go"))


def seen(which: str, program: Path, directory: Path) -> Sections:
    """Return what it prints of a broker of its own; broadcast consumers keep offsets at home."""
    broker = started(which, directory, {"traceTopicEnable": "true"})
    try:
        command = [str(program), broker.bootstrap, broker.broker_address]
        return run_program(command, {"HOME": str(directory)})
    finally:
        broker.stop(kill=True)


def test_the_go_client_sees_the_same(program: Path, tmp_path: Path) -> None:
    """Every way to send and to consume, retries, transactions, requests with answers, traces."""
    brokers = ("real", "ours", "foreign")
    with ThreadPoolExecutor(len(brokers)) as pool:
        real, ours, foreign = pool.map(
            lambda which: seen(which, program, tmp_path / which), brokers
        )
    assert set(real) == SCENARIOS, real.get("stderr")
    assert [line for lines in real.values() for line in lines if line.startswith("!!")] == []
    assert ours == real
    assert foreign == real
