"""Lite topics of RocketMQ 5.5: ours answers every question as the real broker does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.interop.rocketmq_lite_session import SYSTEM_ERROR, Session
from tests.interop.rocketmq_sessions import started

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

SETTINGS: dict[str, object] = {"enableLmq": "true", "enableMultiDispatch": "true"}


def asked(which: str, directory: Path) -> dict[str, Any]:
    """Return what one broker answers."""
    directory.mkdir()
    broker = started(which, directory, SETTINGS)
    try:
        return Session(broker.broker_address).run()
    finally:
        broker.stop(kill=True)


def test_every_answer_is_the_same(tmp_path: Path) -> None:
    """Sending, subscribing, popping, acknowledging, what is told of it all, and every refusal."""
    with ThreadPoolExecutor(2) as pool:  # most of it is waiting
        real, ours = pool.map(lambda which: asked(which, tmp_path / which), ("real", "ours"))
    assert list(ours) == list(real)
    for name, answer in real.items():
        code, remark, *_ = answer
        if (code, remark) == (SYSTEM_ERROR, None):  # Java stumbled, and says over what
            assert (name, ours[name][0]) == (name, SYSTEM_ERROR)
        else:
            assert (name, ours[name]) == (name, answer)
    assert len(real) > 200
