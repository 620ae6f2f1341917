"""Drawn sessions of gRPC calls: whatever clients ask, a real proxy and ours say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.compat import TestBroker
from logstore.tools.dev.rocketmq_peer import CALM
from logstore.tools.dev.rocketmq_proxy_peer import RocketMQProxyPeer
from tests.interop.drawn_rocketmq.rpc_session import SETTINGS, make_topics, run
from tests.interop.rocketmq_sessions import start_real

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

#: by which seed, and how many calls
SESSIONS = (("calls", 28342, 80), ("odds", 31730, 60))


def test_drawn_sessions_of_calls_are_answered_alike(tmp_path: Path) -> None:
    """Status, code, text and fields, but for ids, handles, times and addresses."""
    real = start_real("5", tmp_path / "real", {**SETTINGS, **CALM}, is_busy=True)
    try:
        with (
            RocketMQProxyPeer(real.bootstrap, tmp_path / "proxy") as proxy,
            TestBroker(layout="rocketmq", proxy=True, settings=SETTINGS) as ours,
        ):
            make_topics(ours, real, tmp_path)
            for area, seed, count in SESSIONS:
                calls = run(ours.endpoints, proxy.endpoints, seed, count, area)
                assert len(calls.steps) >= count
                assert "\n".join(calls.differences) == ""
    finally:
        real.stop(kill=True)
