"""Topics come and go whole."""

from __future__ import annotations

import errno

import pytest

from logstore.errors import LogStoreError
from logstore.segments.kafka.store import KafkaStore
from logstore.testing import SimulatedHost
from logstore.testing.disk_faults import FaultKind


@pytest.mark.parametrize("fault", ["make_directory", "open", "write", "rename", "sync_directory"])
def test_a_topic_that_cannot_be_created_leaves_nothing(fault: FaultKind) -> None:
    """Whichever operation the disk refuses, neither the store nor the directory knows the topic."""
    for number in range(1, 100):
        host = SimulatedHost()
        store = KafkaStore(host, "/data")
        host.fs.faults.fail_next(fault, errno.ENOSPC, path="/data*", after=number - 1)
        planned = host.fs.faults.planned[-1]
        try:
            store.create_topic("t", 3, {"retention.ms": "1"})
        except (OSError, LogStoreError):
            host.fs.faults.clear()
            assert store.topics() == {}
            names = [entry.name for entry in host.fs.list_directory("/data")]
            assert [name for name in names if name.startswith("t-")] == []
            assert len(store.create_topic("t", 3).partitions) == 3
        if not planned.has_struck:
            return
    raise AssertionError("a topic of three partitions takes fewer than 100 operations")
