"""A drawn session in which index and commit log are small files: both find the same by keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.drawn_rocketmq import keys
from tests.interop.drawn_rocketmq.session import SETTINGS, run
from tests.interop.drawn_rocketmq.stage import Stage
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_sessions import start_real

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

SEED, STEPS = 31306, 60


def test_both_find_the_same_by_keys(tmp_path: Path) -> None:
    """Whatever the time, the number and the kind; and their index files are the same in the end."""
    settings = SETTINGS | keys.SETTINGS
    with OurRocketMQ(tmp_path / "ours", settings) as ours:
        real = start_real("5", tmp_path / "real", settings, is_busy=True)
        try:
            addresses = [(one.bootstrap, one.broker_address) for one in (ours, real)]
            stage = Stage(ours, real)
            twin = run(addresses[0], addresses[1], SEED, ("keys",), STEPS, stage=stage)
            assert "\n".join(map(str, twin.differences)) == ""
            assert len(list((ours.data / "index").iterdir())) > 1
        finally:
            real.stop(kill=True)
