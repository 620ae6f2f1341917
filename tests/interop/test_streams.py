"""A Kafka Streams application with ``group.protocol=streams``, at ours and at a real broker."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from logstore.compat import TestBroker
from logstore.tools.dev.kafka_peer import VERSION_4, fetch_part
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.conftest import QUICK_HEARTBEATS, missing, start_real
from tests.interop.java_programs import kafka_program

pytestmark = pytest.mark.interop

PROGRAM = Path(__file__).with_name("WordCount.java")
SECONDS_MAX = 300
RESULT = {
    "first": "{be=16, not=8, or=8, to=16}",
    "second": "{as=4, be=20, it=4, may=4, not=8, or=8, that=4, to=16}",
    "third": "{as=4, be=22, it=6, may=4, not=8, or=8, so=2, that=4, to=16}",
    "restored some": "true",
}


def told(bootstrap: str, guarantee: str, standbys: int, directory: Path) -> dict[str, str]:
    """Run the application; return what it says, by what it is about."""
    try:
        classes = fetch_part("streams", VERSION_4)
    except PeerUnavailable as reason:
        missing(str(reason))
    words = (bootstrap, "app", guarantee, str(directory), str(standbys))
    command = kafka_program(PROGRAM, *words, more=classes)
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if line)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("guarantee", "standbys"),
    [("exactly_once_v2", 0), ("at_least_once", 1)],
)
def test_a_word_count(guarantee: str, standbys: int, tmp_path: Path) -> None:
    """
    Two instances share the tasks, one leaves, and the other one counts on from its state.

    The broker makes the internal topics, with the same settings as a real one, and describes the
    group in the same words.
    """
    quick = {name: str(value) for name, value in QUICK_HEARTBEATS.items()}
    with TestBroker(settings=quick) as ours:
        mine = told(ours.bootstrap, guarantee, standbys, tmp_path / "ours")
    real = start_real(tmp_path / "kafka", settings=QUICK_HEARTBEATS)
    try:
        others = told(real.bootstrap, guarantee, standbys, tmp_path / "theirs")
    finally:
        real.stop()
    assert mine == others
    assert {name: mine[name] for name in RESULT} == RESULT
    copies = f"and copies of {standbys}"
    assert mine["hosts"] == f"[one:1 [store] {copies}, two:2 [store] {copies}]"
    assert re.search(r"app-store-changelog=2 .*app-words-repartition=2 ", mine["topics"])
    assert mine["two instances"].startswith("Stable, tasks [2, 2], ")
    assert mine["one is left"].startswith("Stable, tasks [4], ")
