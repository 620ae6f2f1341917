"""Whole brokers through whole lives: nothing that was acknowledged is lost, nothing comes twice."""

from __future__ import annotations

import os

import pytest

from tests.compat.kafka.lives.life import Life

#: how many; ``./dev lives 5000`` asks for more
COUNT = int(os.environ.get("LOGSTORE_LIVES", "8"))
FIRST = int(os.environ.get("LOGSTORE_FIRST_LIFE", "0"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_life(seed: int) -> None:
    """What clients were told holds, after every crash and at the end."""
    life = Life(seed)
    life.run(step_count=200)
    assert life.told_count > 0, "nobody was told anything: that was no life"
