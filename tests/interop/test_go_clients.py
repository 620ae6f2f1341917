"""Clients in Go that share nothing with Java's nor with librdkafka: sarama and kafka-go."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.interop.foreign_packages import go_program
from tests.interop.our_broker import OurBroker

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SECONDS_MAX = 240
#: the directory of each program, and what it says at its end
PROGRAMS = (
    ("sarama", ["offset -2 1", "offset -1 11", "all deleted"]),
    ("kafka_go", ["producer 0 <nil>", "ended <nil> <nil>"]),
)


def told(program: Path, bootstrap: str) -> list[str]:
    """Return what a program prints when it is led to a broker."""
    done = subprocess.run(
        [str(program), bootstrap, f"told-{program.name}"],
        capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize(("name", "end"), [pytest.param(*one, id=one[0]) for one in PROGRAMS])
def test_a_client_in_go_is_told_the_same(
    name: str, end: list[str], real: KafkaPeer, ours: OurBroker, tmp_path: Path
) -> None:
    """Every codec, a group that commits, transactions, places by time, and what is administered."""
    program = go_program(Path(__file__).with_name(name), tmp_path)
    found = told(program, ours.bootstrap)
    assert found == told(program, real.bootstrap)
    assert set(end) <= set(found)
