"""From the commit log to queues and listeners, whoever wrote the log and whatever stands in it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logstore.host import read_file
from logstore.segments.rocketmq import dispatch as dispatch_module
from logstore.segments.rocketmq.log.log_walk import LogWalk
from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
from logstore.segments.rocketmq.messages.message_batch import (
    BatchItem,
    draft_batch,
    encode_batch_body,
)
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.testing import SimulatedHost
from tests.segments.rocketmq.drafts import BORN, STORED, batch, draft
from tests.segments.rocketmq.small_store import DIRECTORY, bodies, small_store

ROOMY = {"mappedFileSizeCommitLog": "65536", "maxMessageSize": "30000"}


@pytest.fixture
def host() -> SimulatedHost:
    """An empty world."""
    return SimulatedHost()


def write(host: SimulatedHost, path: str, position: int, data: bytes) -> None:
    """Write behind a store's back."""
    file = host.fs.open(path)
    file.write(position, data)
    file.close()


def test_what_another_wrote_is_dispatched_by_reading_it(host: SimulatedHost) -> None:
    """A slave's log comes as bytes in pieces of any length; whole messages are dispatched."""
    master = SimulatedHost()
    store = small_store(master)
    for number in range(8):
        store.put_message(draft(body=b"%02d" % number + bytes(1000)))
    log = store.commit_log
    slave = small_store(host, settings={"brokerRole": "SLAVE"})
    position, seen = 0, 0
    for size_bytes in (700, 900, 3000, 10, 4096, 4096, 4096):
        wanted = min(size_bytes, 4096 - position % 4096, log.max_physical_offset - position)
        data = log.peek(position, wanted)
        assert slave.append_raw(position, data)
        position += len(data)
        seen += slave.dispatch()
        assert seen == len(bodies(slave))
    assert position == log.max_physical_offset
    assert bodies(slave) == [b"%02d" % number + bytes(1000) for number in range(8)]
    assert not slave.append_raw(position + 5, b"gap")


def test_a_slave_waits_for_the_rest_of_a_message(host: SimulatedHost) -> None:
    """While a message is cut short nothing is passed over; with its rest it is dispatched."""
    master = SimulatedHost()
    store = small_store(master)
    store.put_message(draft(body=b"whole"))
    data = store.commit_log.read(0, 4096)
    slave = small_store(host, settings={"brokerRole": "SLAVE"})
    slave.append_raw(0, data[:50])
    assert (slave.dispatch(), slave.dispatching.reput_from) == (0, 0)
    slave.append_raw(50, data[50:])
    assert (slave.dispatch(), bodies(slave)) == (1, [b"whole"])


def test_a_master_passes_over_what_is_no_message(
    host: SimulatedHost, caplog: pytest.LogCaptureFixture
) -> None:
    """As Java it skips to the end of the file's data, and says at which physical offset."""
    store = small_store(host, settings=ROOMY)
    first = store.put_message(draft(body=b"a"))
    second = store.put_message(draft(body=b"b"))
    store.dispatching.restart(0)
    path = f"{DIRECTORY}/commitlog/{0:020d}"
    write(host, path, second.physical_offset + 4, b"\xff\xff\xff\xff")
    assert store.dispatch() == 1
    assert store.dispatching.reput_from == second.next_physical_offset
    assert f"physical offset {first.next_physical_offset}" in caplog.text
    assert bodies(store) == [b"a"]


def test_a_message_whose_parts_do_not_add_up_is_passed_over_alone(host: SimulatedHost) -> None:
    """Its length is believed: what stands behind it is dispatched."""
    store = small_store(host, settings=ROOMY)
    store.put_message(draft(body=b"a", properties={"KEYS": "k"}))
    store.put_message(draft(body=b"b"))
    store.dispatching.restart(0)
    write(host, f"{DIRECTORY}/commitlog/{0:020d}", 84, (0).to_bytes(4))
    assert store.dispatch() == 1
    assert store.dispatching.behind_bytes == 0


def test_more_drafts_than_are_kept_are_read_from_the_log(
    host: SimulatedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody who forgets to dispatch fills the memory, and nothing is lost or told twice."""
    monkeypatch.setattr(dispatch_module, "PENDING_COUNT_MAX", 3)
    store = small_store(host, settings=ROOMY)
    for number in range(5):
        store.put_message(draft(body=b"%d" % number))
    store.put_batch(batch(b"5", b"6"))
    assert store.dispatch() == 7
    assert bodies(store) == [b"%d" % number for number in range(7)]


def test_what_was_deleted_before_it_was_dispatched_is_passed_over(host: SimulatedHost) -> None:
    """Dispatch goes on at the start of the log."""
    store = small_store(host)
    for number in range(9):
        store.put_message(draft(body=b"%d" % number + bytes(1200)))
    store.dispatching.restart(0)
    store.commit_log.delete_below(4096)
    assert store.dispatch() == 6
    assert [body[:1] for body in bodies(store)] == [b"3", b"4", b"5", b"6", b"7", b"8"]


def test_dispatched_again_nothing_is_in_a_queue_twice(host: SimulatedHost) -> None:
    """Messages that a queue has are passed over, as after a crash."""
    store = small_store(host)
    for number in range(7):
        store.put_message(draft(body=b"%d" % number, properties={"KEYS": "k"}))
    store.dispatch()
    store.dispatching.restart(0)
    assert store.dispatch() == 7
    assert bodies(store) == [b"%d" % number for number in range(7)]


def test_with_a_pool_only_what_is_committed_is_dispatched(host: SimulatedHost) -> None:
    """What stands in a write buffer is in no file yet; its units wait for it."""
    store = small_store(host, settings={**ROOMY, "transientStorePoolEnable": "true"})
    store.put_message(draft(body=b"a"))
    assert store.dispatch() == 0
    store.commit_log.commit()
    assert (store.dispatch(), bodies(store)) == (1, [b"a"])


def test_a_walk_crosses_files_and_reads_long_messages(host: SimulatedHost) -> None:
    """BLANKs lead to the next file; a message longer than a piece is read whole."""
    store = small_store(host)
    for number in range(7):
        store.put_message(draft(body=b"%d" % number + bytes(1200)))
    end = store.commit_log.max_physical_offset
    found = list(LogWalk(store.commit_log, 0, end))
    assert [request.queue_offset for request in found] == list(range(7))
    assert found[-1].next_physical_offset == end


#: properties of all kinds: usual unique keys, other ones, none, keys and tags around them
unique_keys = st.one_of(
    st.builds("0A000005{:024X}".format, st.integers(0, 2**20)),
    st.text("ab\xe9\x01", max_size=12),
    st.builds("".join, st.lists(st.sampled_from("AZ09"), min_size=8, max_size=70)),
)
texts = (
    st.lists(
        st.one_of(
            unique_keys.map("UNIQ_KEY\x01{}\x02".format),
            st.sampled_from(
                [
                    "TAGS\x01TagA\x02",
                    "TAGS\x01\x02",
                    "KEYS\x01k1 k2\x02",
                    "KEYS\x01k\x02",
                    "XUNIQ_KEY\x01x\x02",
                    "WAIT\x01true\x02",
                    "WAIT\x01true",
                ]
            ),
        ),
        max_size=4,
    )
    .map("".join)
    .map(str.encode)
)
#: (ms that have passed, whether it is another topic's, queue id, properties, dispatch afterwards)
puts = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 1, 30, 999, 1000, 2500]),
        st.booleans(),
        st.integers(0, 1),
        texts,
        st.booleans(),
    ),
    max_size=40,
)


def derived(store: RocketMQStore) -> dict[str, bytes]:
    """Return all files of queues and index by their paths."""
    store.write_derived()
    found = [file.path for file in store.index.files]
    for topic in ("TopicTest", "Other"):
        for queue_id in range(2):
            directory = f"{DIRECTORY}/consumequeue/{topic}/{queue_id}"
            if store.host.fs.is_directory(directory):
                names = store.host.fs.list_directory(directory)
                found += [f"{directory}/{entry.name}" for entry in names]
    return {path: read_file(store.host.fs, path) for path in found}


#: eight entries fill a file; the message behind them has none and makes the next
_FULL = [(0, False, 0, b"UNIQ_KEY\x010A000005%024X\x02" % n, False) for n in range(8)]


@given(puts, st.booleans())
@example(_FULL, False)
@example([*_FULL, (0, False, 0, b"", True), (0, False, 0, b"", False)], False)
def test_drafts_are_dispatched_as_if_they_were_read(
    rows: list[tuple[int, bool, int, bytes, bool]], has_ext: bool
) -> None:
    """Queues and index get, byte for byte, what reading the messages from the log gives them."""
    settings = {**ROOMY, "maxIndexNum": "9", "enableConsumeQueueExt": str(has_ext).lower()}
    hosts = SimulatedHost(), SimulatedHost()
    stores = [small_store(host, settings=settings) for host in hosts]
    seen: list[list[DispatchRequest]] = [[], []]
    for store, heard in zip(stores, seen, strict=True):
        store.add_arrival_listener(heard.append)
    for later_ms, is_other, queue_id, text, dispatches in [*rows, (0, False, 0, b"", True)]:
        for store, host in zip(stores, hosts, strict=True):
            host.clock.advance(later_ms)
            message = draft("Other" if is_other else "TopicTest", b"x", queue_id)
            message.replace_properties(text)
            assert store.put_message(message).is_ok
            if store is stores[1]:
                store.dispatching.restart(store.dispatching.reput_from)  # forgets what it was put
            if dispatches:
                store.dispatch()
    assert derived(stores[0]) == derived(stores[1])
    assert list(map(repr, seen[0])) == list(map(repr, seen[1]))
    assert len(seen[0]) == len(rows) + 1


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, 999, 1500]), st.booleans(), st.integers(0, 1),
            st.lists(texts, min_size=1, max_size=9), st.booleans(),
        ),
        max_size=4,
    ),
    st.integers(0, 2**40),
)  # fmt: skip
@example(
    [(0, True, 0, [b"UNIQ_KEY\x01" + b"0" * 32 + b"\x02"], False), (1, True, 0, [b""], False)], 0
)
def test_batches_are_dispatched_as_if_they_were_read(
    rows: list[tuple[int, bool, int, list[bytes], bool]], first_key: int
) -> None:
    """Whatever the properties, alone or together, and where only unique keys differ: same bytes."""
    alike = [b"UNIQ_KEY\x010A000005%024X\x02TAGS\x01t\x02" % (first_key + n) for n in range(8)]
    plain = [b"UNIQ_KEY\x010A000005%024X\x02" % (first_key + 9 + n) for n in range(8)]
    hosts = SimulatedHost(), SimulatedHost()
    stores = [small_store(host, settings=ROOMY) for host in hosts]
    ends = [(1, False, 0, plain, False), (0, False, 1, plain, False), (2, False, 0, alike, True)]
    for later_ms, is_other, queue_id, items, dispatches in [*ends, *rows]:
        for store, host in zip(stores, hosts, strict=True):
            host.clock.advance(later_ms)
            message = draft_batch(
                topic="Other" if is_other else "TopicTest",
                body=encode_batch_body(BatchItem(b"x", text) for text in items),
                queue_id=queue_id, born_timestamp_ms=1, born_host=BORN, store_host=STORED,
            )  # fmt: skip
            assert store.put_batch(message).is_ok
            if store is stores[1]:
                store.dispatching.restart(store.dispatching.reput_from)
            if dispatches:
                store.dispatch()
    assert stores[0].dispatch() == stores[1].dispatch()
    assert derived(stores[0]) == derived(stores[1])


def test_who_does_not_wait_is_not_shown_messages(host: SimulatedHost) -> None:
    """Listeners see messages of queues that are awaited, however they were put."""
    store = small_store(host, settings=ROOMY)
    heard: list[tuple[str, int]] = []
    store.add_arrival_listener(lambda request: heard.append((request.topic, request.queue_id)))
    store.dispatching.is_awaited = lambda queue: queue == ("TopicTest", 1)
    for queue_id in range(3):
        store.put_message(draft(queue_id=queue_id))
        store.put_batch(batch(b"a", b"b", queue_id=queue_id))
    assert store.dispatch() == 9
    assert heard == [("TopicTest", 1)] * 3


def test_of_what_comes_together_to_a_watched_queue_the_last_is_told(host: SimulatedHost) -> None:
    """Whoever waits for a queue sees every message, whoever watches a topic that there are some."""
    store = small_store(host, settings=ROOMY)
    told: list[tuple[str, int]] = []
    store.add_arrival_listener(lambda request: told.append((request.topic, request.queue_offset)))
    store.dispatching.is_awaited = lambda queue: queue[0] == "awaited"
    store.dispatching.is_watched = lambda topic: topic == "watched"
    for _ in range(2):
        for topic in ("awaited", "watched", "unknown") * 3:
            assert store.put_message(draft(topic=topic)).is_ok
        store.dispatch()
    assert told == [
        *(("awaited", 0), ("awaited", 1), ("awaited", 2), ("watched", 2)),
        *(("awaited", 3), ("awaited", 4), ("awaited", 5), ("watched", 5)),
    ]
