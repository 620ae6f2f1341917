"""What a power loss leaves of a topic that was being deleted gets in nobody's way."""

from __future__ import annotations

import pytest

from logstore.segments.rocketmq.queues.batch_consume_queue import BatchConsumeQueue
from logstore.segments.rocketmq.tables.topics import TopicConfig
from logstore.testing import (
    KEEP_EVERYTHING,
    LOSE_UNSYNCED,
    PowerLoss,
    SimulatedHost,
    every_power_loss,
)
from logstore.tools.inspection.rocketmq.verification.store_check import StoreCheck
from tests.segments.rocketmq.drafts import draft
from tests.segments.rocketmq.small_store import DIRECTORY, SETTINGS, bodies, small_store

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


def test_folders_that_a_deleted_topic_made_stay() -> None:
    """It owed their names: others' queues stand there, which are said to be durable."""
    host = SimulatedHost()
    store = small_store(host, settings=_EXT)
    for topic in ("First", "Stays"):
        store.put_message(draft(topic, b"m"))
        store.dispatch()
        store.write_derived()
    store.delete_topics({"First"})
    store.consume_queues.flush()
    host.power_loss()
    assert host.fs.exists(f"{DIRECTORY}/consumequeue/Stays/0/{0:020}")


@pytest.mark.parametrize("is_batch", [True, False])
def test_a_new_topic_has_queues_of_its_own_kind(*, is_batch: bool) -> None:
    """What is left of a deleted one of its name may be of the other: no start would take both."""
    host = SimulatedHost()
    kinds = ("BatchCQ", "SimpleCQ")
    old, new = (
        TopicConfig("T", attributes={"queue.type": kind})
        for kind in (kinds if not is_batch else kinds[::-1])
    )
    store = small_store(host)
    store.topic_table.put(old)
    store.topic_table.persist()
    store.put_message(draft("T", b"old"))
    store.dispatch()
    store.write_derived()
    store.topic_table.remove("T")
    store.prepare_topic(new)
    store.topic_table.put(new)
    store.topic_table.persist()
    assert store.put_message(draft("T", b"new")).queue_offset == 0
    store.close()
    store = small_store(host)
    assert bodies(store, "T") == [b"new"]
    assert isinstance(store.consume_queues.get("T", 0), BatchConsumeQueue) is is_batch


@pytest.mark.parametrize(("old_count", "new_count"), [(5, 3), (3, 5), (1, 2), (12, 20), (4, 4)])
@pytest.mark.parametrize("is_batch", [False, True])
@pytest.mark.parametrize("loss", [LOSE_UNSYNCED, KEEP_EVERYTHING])
def test_a_topic_that_was_made_anew_keeps_its_messages(
    loss: PowerLoss, old_count: int, new_count: int, *, is_batch: bool
) -> None:
    """A recovery finds those of the deleted topic in the log, too: they take nobody's place."""
    host = SimulatedHost()
    store = small_store(host)
    kind = "BatchCQ" if is_batch else "SimpleCQ"
    store.topic_table.put(TopicConfig("T", attributes={"queue.type": kind}))
    store.topic_table.persist()

    def put(name: bytes, count: int) -> list[bytes]:
        bodies = [name + b"%d" % number for number in range(count)]
        for number, body in enumerate(bodies):
            assert store.put_message(draft("T", body)).queue_offset == number
        store.dispatch()
        store.write_derived()
        return bodies

    put(b"old", old_count)
    store.delete_topics({"T"})
    told = put(b"new", new_count)
    store.commit_log.flush()
    store.abandon()
    host.power_loss(loss)
    store = small_store(host)
    assert bodies(store, "T") == told
    assert store.max_queue_offset("T", 0) == new_count
    assert store.put_message(draft("T", b"more")).queue_offset == new_count
    store.dispatch()
    assert bodies(store, "T") == [*told, b"more"]
    store.close()
    found = list(StoreCheck(host.fs, DIRECTORY, SETTINGS).findings())
    assert not [one for one in found if one.is_damage]


def test_a_light_queue_that_was_made_anew_keeps_its_messages() -> None:
    """Its numbers stand in messages of another topic, which the log has of both queues, too."""
    light = {"enableLmq": "true", "enableMultiDispatch": "true"}
    host = SimulatedHost()
    store = small_store(host, settings=light)
    for name, count in ((b"old", 4), (b"new", 3)):
        store.delete_topics({"%LMQ%q"})
        for number in range(count):
            named = {"INNER_MULTI_DISPATCH": "%LMQ%q,%LMQ%q"}  # once, however often it is named
            store.put_message(draft("T", name + b"%d" % number, properties=named))
        store.dispatch()
        store.write_derived()
    store.commit_log.flush()
    store.abandon()
    host.power_loss(LOSE_UNSYNCED)
    store = small_store(host, settings=light)
    assert bodies(store, "%LMQ%q") == [b"new0", b"new1", b"new2"]
    assert len(bodies(store, "T")) == 7


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_slave_has_the_messages_of_a_topic_that_was_made_anew(*, is_batch: bool) -> None:
    """It keeps the queues of a topic that its master has deleted, as a real one does."""
    kind = "BatchCQ" if is_batch else "SimpleCQ"
    config = TopicConfig("T", attributes={"queue.type": kind})
    master = small_store(SimulatedHost())
    slave = small_store(SimulatedHost(), settings={"brokerRole": "SLAVE"})
    for one in (master, slave):
        one.topic_table.put(config)
    for name, count in ((b"old", 4), (b"new", 3)):
        master.delete_topics({"T"})
        for number in range(count):
            master.put_message(draft("T", name + b"%d" % number))
        start = slave.commit_log.max_physical_offset
        end = master.commit_log.max_physical_offset
        assert slave.append_raw(start, master.commit_log.read(start, end - start))
        slave.dispatch()
    assert bodies(slave, "T") == [b"new0", b"new1", b"new2"]
    assert slave.max_queue_offset("T", 0) == 3
