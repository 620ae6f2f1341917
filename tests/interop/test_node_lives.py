"""Random lives of clusters whose nodes go and come while real clients work: nothing is lost."""

from __future__ import annotations

import os
import threading

import pytest

from tests.interop.node_life import live

pytestmark = pytest.mark.interop

FIRST = int(os.environ.get("LOGSTORE_FIRST_LIFE", "1"))
COUNT = int(os.environ.get("LOGSTORE_LIVES", "1"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_nodes_go_and_come(seed: int) -> None:
    """What happens is drawn by the seed; when, by the machine."""
    acknowledged = live(seed, threading.Event().wait)
    assert acknowledged > 0, "nobody was told anything: that was no life"
