"""What tests of the server have in common."""

from __future__ import annotations

import asyncio
import logging
import select
from collections.abc import Iterator

import pytest
import uvloop

from tests.compat.server_stage import Stage


@pytest.fixture(params=["uvloop", "asyncio", "uvloop without epoll"])
def stage(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> Iterator[Stage]:
    """A server on either event loop; no test may leave an error in the log."""
    if request.param == "asyncio":
        monkeypatch.setattr(uvloop, "new_event_loop", asyncio.new_event_loop)
    elif request.param == "uvloop without epoll":
        monkeypatch.delattr(select, "epoll", raising=False)
    stage = Stage()
    yield stage
    stage.close()
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []
