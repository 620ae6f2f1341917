"""Java's share consumers at the real broker and at ours: what they get, and how often."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.interop.conftest import QUICK_HEARTBEATS, SETTINGS, start_real
from tests.interop.java_programs import kafka_program
from tests.interop.our_broker import OurBroker

pytestmark = pytest.mark.interop

CONSUMERS = Path(__file__).with_name("ShareScenarios.java")
SHARE_SETTINGS: dict[str, object] = (
    SETTINGS
    | QUICK_HEARTBEATS
    | {
        "group.share.min.record.lock.duration.ms": 1000,
        "share.coordinator.state.topic.num.partitions": 2,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
    }
)
SCENARIOS = (
    "implicit", "explicit", "limit", "timeout", "renew", "closed", "mode", "committed", "deleted",
    "shared", "latest", "errors",
)  # fmt: skip


def seen(bootstrap: str) -> dict[str, str]:
    """Return by scenario what Java's consumers print."""
    done = subprocess.run(
        kafka_program(CONSUMERS, bootstrap, "share-"),
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    parts = done.stdout.split("== ")[1:]
    return {name: told for name, _, told in (part.partition("\n") for part in parts)}


@pytest.fixture(scope="module")
def sightings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, str]]]:
    """What was seen at the real broker, and at ours."""
    directory = tmp_path_factory.mktemp("share")
    real = start_real(directory / "real", settings=SHARE_SETTINGS)
    try:
        with OurBroker(directory / "ours", SHARE_SETTINGS) as ours, ThreadPoolExecutor(2) as pool:
            yield list(pool.map(seen, [real.bootstrap, ours.bootstrap]))
    finally:
        real.stop()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_share_consumers_see_the_same(sightings: list[dict[str, str]], scenario: str) -> None:
    """Records, how often they were delivered, and what came of acknowledgements."""
    real, ours = sightings
    assert ours[scenario] == real[scenario]
    assert real[scenario]


def test_no_scenario_is_forgotten(sightings: list[dict[str, str]]) -> None:
    """Whatever Java's program does is compared."""
    assert [tuple(one) for one in sightings] == [SCENARIOS] * 2
