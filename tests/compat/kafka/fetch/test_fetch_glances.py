"""Fetches that pass over what their session knows find what those find that read everything."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.faults.leaders import move_leaders
from logstore.compat.kafka.fetch import query, repeats
from logstore.compat.kafka.fetch.repeats import Repeats
from logstore.compat.kafka.fetch.sessions import FetchPartition
from logstore.segments.kafka.partition import KafkaPartition
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import NOW_MS, batch
from tests.compat.kafka.peer import Peer, a_broker, fetch_fields

COUNT = 4
WAIT_MS = 500
_indexes = st.integers(0, COUNT - 1)
_steps = st.one_of(
    st.tuples(st.just("append"), _indexes),
    st.tuples(st.just("append"), _indexes),
    st.tuples(st.just("begin"), _indexes),
    st.tuples(st.just("end"), _indexes, st.booleans()),
    st.tuples(st.just("cut"), _indexes),
    st.tuples(st.just("move"), _indexes),
    st.tuples(st.just("remake")),
    st.tuples(st.just("pass"), st.sampled_from([1, WAIT_MS])),
    st.tuples(st.just("again"), st.booleans()),
    st.tuples(st.just("again"), st.booleans()),
    *[
        st.tuples(
            st.just("fetch"),
            st.integers(0, 1),
            st.dictionaries(_indexes, st.integers(0, 2), max_size=COUNT),
            st.sampled_from([1, 1, 0, 400]),
            st.sampled_from([1 << 25, 200]),
            st.sampled_from([None, None, 0, 1]),
        )
        for _ in range(4)
    ],
)


class Scene:
    """A broker with one topic, and two fetchers: one keeps a session, one asks for all."""

    def __init__(self, version: int, isolation: int) -> None:
        self.host = SimulatedHost()
        self.broker: Broker = a_broker(self.host)
        self.broker.create_topic("t", COUNT)
        self.peers = [Peer(self.broker), Peer(self.broker)]
        self._version, self._isolation = version, isolation
        self._session = (0, 0)
        self._known: dict[int, dict[str, int]] = {}
        self._last: tuple[Any, ...] = (1, dict.fromkeys(range(COUNT), 0), 1, 1 << 25, None)
        self.told: list[bytes] = []

    def log(self, index: int) -> KafkaPartition:
        """Return a partition of the topic as it is now."""
        return self.broker.topics["t"].partitions[index]

    def take(self, step: tuple[Any, ...]) -> None:
        """Let one thing happen, and note what anybody is told."""
        name, *words = step
        getattr(self, f"_{name}")(*words)
        self.broker.readers.wake()
        for peer in self.peers:
            for answer in peer.answers():
                self.told.append(answer.frame)
                if peer is self.peers[0]:
                    session_id, epoch = self._session
                    session_id = answer.message["session_id"] or session_id
                    is_lost = answer.message["error_code"] != 0
                    self._session = (0, 0) if is_lost else (session_id, epoch + 1)

    def _append(self, index: int) -> None:
        self.log(index).append_produced(memoryview(bytearray(batch(b"v" * 50))), NOW_MS)

    def _begin(self, index: int) -> None:
        self.log(index).verifies_transactions = False  # there is no coordinator to ask
        known = self.log(index).producers.get(index)
        sequence = 0 if known is None else known.last_sequence + 1
        data = batch(b"v", producer=(index, 0, sequence), is_transactional=True)
        self.log(index).append_produced(memoryview(bytearray(data)), NOW_MS)

    def _end(self, index: int, is_commit: bool) -> None:
        if self.log(index).producers.open_transactions():
            self.log(index).append_marker(
                index, 0, is_commit=is_commit, coordinator_epoch=0, now_ms=NOW_MS
            )

    def _cut(self, index: int) -> None:
        self.log(index).delete_records(-1)

    def _move(self, index: int) -> None:
        move_leaders(self.broker, "t", index)

    def _remake(self) -> None:
        self.broker.delete_topic(self.broker.topics["t"])
        self.broker.create_topic("t", COUNT)

    def _pass(self, delay_ms: int) -> None:
        self.host.clock.advance(delay_ms)
        self.broker.timers.run()

    def _wished(self, index: int, count: int, epochs_back: int | None) -> dict[str, int]:
        log = self.log(index)
        wished = {
            "partition": index,
            "fetch_offset": max(0, log.end_offset - count),
            "current_leader_epoch": log.leader_epoch,
        }
        if epochs_back is not None:
            wished["last_fetched_epoch"] = max(0, log.leader_epoch - epochs_back)
        return wished

    def _again(self, is_at_end: bool) -> None:
        """Ask as who asked for everything did last, for the same records or those after them."""
        _, back, *rest = self._last
        self._fetch(1, dict.fromkeys(back, 0) if is_at_end else back, *rest)

    def _fetch(
        self,
        who: int,
        back: dict[int, int],
        bytes_min: int,
        bytes_max: int,
        epochs_back: int | None = None,
    ) -> None:
        """
        Ask from so far before the ends; of a session only what is not as it was.

        Who tells which epoch its last record has is told where its log diverges.
        """
        peer = self.peers[who]
        if peer.connection.is_waiting:
            return
        if who == 1:
            self._last = who, back, bytes_min, bytes_max, epochs_back
        wished = {i: self._wished(i, count, epochs_back) for i, count in back.items()}
        fields: dict[str, Any] = {"session_id": 0, "session_epoch": -1}
        if who == 0:
            session_id, epoch = self._session
            known = self._known if epoch else {}
            fields = {"session_id": session_id, "session_epoch": epoch}
            self._known = known | wished
            wished = {i: one for i, one in wished.items() if known.get(i) != one}
        topic: Any = "t"
        if self._version >= 13:
            topic = uuid.UUID(bytes=self.broker.topics["t"].topic_id)
        peer.send(
            "Fetch",
            self._version,
            fetch_fields(
                [(topic, list(wished.values()))] if wished else [],
                self._version,
                max_wait_ms=WAIT_MS,
                min_bytes=bytes_min,
                max_bytes=bytes_max,
                isolation_level=self._isolation,
                **fields,
            ),
        )


def played(steps: list[tuple[Any, ...]], version: int, isolation: int) -> list[bytes]:
    """Return all that fetchers are told in these steps, and as the last of their time is over."""
    scene = Scene(version, isolation)
    for step in [*steps, ("pass", WAIT_MS)]:
        scene.take(step)
    return scene.told


def _all_of(wanted: Iterable[FetchPartition]) -> list[FetchPartition]:
    return list(wanted)


def _nothing_taken(self: Repeats, before: query.Query, body: bytes) -> bool:
    del self, before, body
    return False


def _never(wanted: FetchPartition, start_offset: int, end_offset: int) -> bool:
    del wanted, start_offset, end_offset
    return False


@given(
    st.lists(_steps, max_size=25),
    st.sampled_from([7, 9, 12, 12, 13, 16]),
    st.sampled_from([0, 1]),
)
@example(
    steps=[
        ("append", 1),
        ("fetch", 1, {0: 0, 1: 1}, 400, 200, None),  # 400 bytes, of which 200 are too much
        ("append", 0),
        ("append", 0),
    ],
    version=12,
    isolation=0,
)
@example(
    steps=[
        ("fetch", 0, {0: 0}, 1, 1 << 25, None),
        ("append", 0),
        ("remake",),  # its end was told as 1, and is 1 once more only after the next record
        ("fetch", 0, {}, 1, 1 << 25, None),
        ("append", 0),
    ],
    version=12,
    isolation=0,
)
def test_a_glance_tells_what_a_look_tells(
    steps: list[tuple[Any, ...]], version: int, isolation: int
) -> None:
    """Byte for byte, in the same order and at the same times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "_COUNT_MIN", 1)
        told = played(steps, version, isolation)
        patch.setattr(query, "stirred", _all_of)
        patch.setattr(FetchPartition, "is_as_it_was", _never)
        patch.setattr(Repeats, "_take_changes", _nothing_taken)
        assert told == played(steps, version, isolation)


def test_an_idle_session_is_not_read_again(looks: list[int]) -> None:
    """Once its fetcher knows all ends, only what was appended to is looked at."""
    scene = Scene(12, 0)
    for _ in range(3):
        scene.take(("fetch", 0, dict.fromkeys(range(COUNT), 0), 0, 1 << 25))
    looks.clear()
    scene.take(("fetch", 0, {}, 1, 1 << 25))
    assert looks == []
    scene.take(("append", 2))
    assert (looks, len(scene.told)) == ([2], 4)
