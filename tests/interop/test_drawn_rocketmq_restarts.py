"""A session in which both brokers end, are killed, and start again: what they know is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.drawn_rocketmq.session import SETTINGS, run
from tests.interop.drawn_rocketmq.stage import Stage
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_sessions import start_real
from tests.interop.stored_messages import differences

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

SEED = 28320


def test_a_session_with_restarts_is_answered_alike(tmp_path: Path) -> None:
    """Field by field, table by table, and in the end message by message."""
    with OurRocketMQ(tmp_path / "ours", SETTINGS) as ours:
        real = start_real("5", tmp_path / "real", SETTINGS, is_busy=True)
        try:
            addresses = [(one.bootstrap, one.broker_address) for one in (ours, real)]
            stage = Stage(ours, real)
            twin = run(addresses[0], addresses[1], SEED, ("restarts",), stage=stage)
            assert "\n".join(map(str, twin.differences)) == ""
            assert "a restart" in twin.steps
            assert differences(ours.data, real.data) == []
        finally:
            real.stop(kill=True)
