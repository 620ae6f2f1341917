"""What a power loss leaves of a topic that was being deleted gets in nobody's way."""

from __future__ import annotations

import pytest

from logstore.testing import KEEP_EVERYTHING, SimulatedHost, every_power_loss
from tests.segments.rocketmq.drafts import draft
from tests.segments.rocketmq.small_store import DIRECTORY, bodies, small_store

#: five files of the queue, three of its extension
_COUNT = 25
_EXT = {"enableConsumeQueueExt": "true", "mappedFileSizeConsumeQueueExt": "256"}


def deleting(host: SimulatedHost) -> None:
    """Delete a topic."""
    store = small_store(host, settings=_EXT)
    store.delete_topics({"Gone"})


@pytest.fixture(name="host")
def a_host() -> SimulatedHost:
    """Return a host with a topic of many files, and another one."""
    host = SimulatedHost()
    store = small_store(host, settings=_EXT)
    for number in range(_COUNT):
        store.put_message(draft("Gone", b"%d" % number))
    store.put_message(draft("Stays", b"s"))
    store.dispatch()
    store.close()
    host.power_loss(KEEP_EVERYTHING)
    return host


def test_a_queue_goes_as_a_whole(host: SimulatedHost) -> None:
    """Wherever the power goes the next start finds all of its files or none, and clears up."""
    left = 0
    for point in every_power_loss(deleting, make_host=host.fork, random_losses=10):
        fs = point.host.fs
        left += fs.exists(f"{DIRECTORY}/consumequeue/Gone/0.deleted")
        store = small_store(point.host, settings=_EXT)
        assert bodies(store, "Stays") == [b"s"], point
        assert len(bodies(store, "Gone")) in (0, _COUNT), point  # the log has them all still
        for folder in ("consumequeue", "consumequeue_ext"):
            path = f"{DIRECTORY}/{folder}/Gone"
            names = [one.name for one in fs.list_directory(path)] if fs.exists(path) else []
            assert names in ([], ["0"]), point
        store.close()
    assert left, "at some point it is left over"
