"""franz-go's share consumer at both brokers: another client's idea of the protocol than Java's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.interop.conftest import start_real
from tests.interop.foreign_packages import go_program
from tests.interop.our_broker import OurBroker
from tests.interop.test_share_consumers import SHARE_SETTINGS

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PROGRAM = Path(__file__).with_name("franz_go")


def seen(program: Path, bootstrap: str) -> list[str]:
    """Return what the consumer prints."""
    done = subprocess.run(
        [str(program), bootstrap, "franz", "franz-group"],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled consumer."""
    return go_program(PROGRAM, tmp_path_factory.mktemp("franz-go"))


def test_a_consumer_in_go_sees_the_same(program: Path, tmp_path: Path) -> None:
    """Accepted, released and rejected records of two partitions, never more than three at once."""
    with OurBroker(tmp_path / "ours", SHARE_SETTINGS) as ours:
        told = seen(program, ours.bootstrap)
    assert told[-2:] == ["20*1", "failed 0"]
    real = start_real(tmp_path / "real", settings=SHARE_SETTINGS)
    try:
        assert seen(program, real.bootstrap) == told
    finally:
        real.stop()
