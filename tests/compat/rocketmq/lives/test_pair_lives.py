"""Masters and their slaves through whole lives: the slave has what clients were told."""

from __future__ import annotations

import pytest

from tests.compat.rocketmq.lives.pair_life import PairLife
from tests.compat.rocketmq.lives.test_lives import COUNT, FIRST


@pytest.mark.parametrize("seed", range(FIRST, FIRST + (COUNT + 3) // 4))
def test_a_life_of_two(seed: int) -> None:
    """The slave's log is its master's, and the slave can take its place."""
    life = PairLife(seed)
    life.run(step_count=120)
    assert life.told_count > 0, "nobody was told anything: that was no life"
