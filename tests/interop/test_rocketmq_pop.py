"""Pop consumption with the official Java client: ours is told the same of as the real broker."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.interop.java_programs import rocketmq_program
from tests.interop.rocketmq_programs import JAVA_SOURCES, Sections, run_program
from tests.interop.rocketmq_sessions import started

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

SOURCES = [*JAVA_SOURCES, Path(__file__).parent / "rocketmq_java_5" / "Popping.java"]
SCENARIOS = {"again", "changed", "in order", "pushed", "waiting"}


def popped(which: str, directory: Path) -> Sections:
    """Run the program against one broker, and return what it printed."""
    directory.mkdir()
    broker = started(which, directory)
    try:
        words = (broker.bootstrap, broker.broker_address)
        return run_program(rocketmq_program(SOURCES, "Popping", *words, home=directory / "java"))
    finally:
        broker.stop(kill=True)


@pytest.mark.slow  # a real broker beside five other tests lets messages come again too late
def test_popping(tmp_path: Path) -> None:
    """What is popped, comes again, is put off, is popped in order and pushed is the same."""
    with ThreadPoolExecutor(2) as pool:  # most of it is waiting
        real, ours = pool.map(lambda which: popped(which, tmp_path / which), ("real", "ours"))
    assert set(real) == SCENARIOS, real.get("stderr")
    assert [line for lines in real.values() for line in lines if line.startswith("!!")] == []
    assert ours == real
    assert sum(map(len, real.values())) > 50
