"""Consumer groups: subscribe, commit, resume, share, rebalance."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from tests.interop.clients import CLIENTS, Client, OpenConsumer, read
from tests.interop.conftest import Broker, CreateTopic
from tests.interop.eventually import eventually
from tests.interop.samples import Sample, numbered

pytestmark = [pytest.mark.interop, pytest.mark.either_layout]


class Member:
    """A group member that polls in a thread of its own, as an application would."""

    def __init__(self, client: Client, bootstrap: str, topic: str, group: str) -> None:
        self.assigned: set[int] = set()
        self.records: list[Sample] = []
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._arguments = (bootstrap, topic, group)
        self._client = client
        self._thread = threading.Thread(target=self._run, name=f"member-{client.name}")

    def _run(self) -> None:
        consumer: OpenConsumer | None = None
        try:
            consumer = self._client.consumer(*self._arguments)
            while not self._stop.is_set():
                records = consumer.poll(0.5)
                if records:  # at once: what is not committed is read again after a rebalance
                    consumer.commit()
                self.records += records
                self.assigned = consumer.assignment()
        except BaseException as error:  # noqa: BLE001 - shown by `close`, in the test's thread
            self._error = error
        finally:
            self.assigned = set()
            if consumer is not None:
                consumer.close()

    @contextmanager
    def running(self) -> Generator[Member]:
        """Poll and commit for the time of the block, then leave the group."""
        self._thread.start()
        try:
            yield self
        finally:
            self.close()

    def close(self) -> None:
        """Leave; raise what went wrong in the thread. Closing twice is fine."""
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "the member does not leave"
        if self._error is not None:
            raise self._error


def test_a_group_resumes_where_it_committed(
    broker: Broker, client: Client, create_topic: CreateTopic
) -> None:
    """After a restart of the broker a new member gets what follows the commit, and all of it."""
    topic = create_topic(broker.bootstrap)
    sent = numbered(20)
    client.produce(broker.bootstrap, topic, sent)
    first = client.consumer(broker.bootstrap, topic, group=f"group-of-{topic}", records_max=4)
    seen = read(first, 8)
    first.commit()
    first.close()
    assert seen == sent[: len(seen)]
    assert 8 <= len(seen) < 20
    broker.stop()
    broker.start()
    second = client.consumer(broker.bootstrap, topic, group=f"group-of-{topic}")
    rest = read(second, len(sent) - len(seen))
    second.close()
    assert rest == sent[len(seen) :]


def test_uncommitted_reading_is_read_again(
    broker: Broker, client: Client, create_topic: CreateTopic
) -> None:
    """What a member read but did not commit goes to the next one."""
    topic = create_topic(broker.bootstrap)
    sent = numbered(5)
    client.produce(broker.bootstrap, topic, sent)
    for _ in range(2):
        member = client.consumer(broker.bootstrap, topic, group=f"group-of-{topic}")
        assert read(member, 5) == sent
        member.close()


def test_two_members_share_and_hand_over(
    broker: Broker, client: Client, create_topic: CreateTopic
) -> None:
    """A second member takes its share of the partitions, and gives it back when it leaves."""
    topic = create_topic(broker.bootstrap, partitions=4)
    group = f"group-of-{topic}"
    first = Member(client, broker.bootstrap, topic, group)
    second = Member(client, broker.bootstrap, topic, group)
    with first.running():
        eventually(lambda: first.assigned == {0, 1, 2, 3}, what="the first has all partitions")
        with second.running():
            eventually(
                lambda: (
                    len(first.assigned) == len(second.assigned) == 2
                    and first.assigned | second.assigned == {0, 1, 2, 3}
                ),
                what="each has two partitions",
            )
            sent = numbered(10)
            client.produce(broker.bootstrap, topic, sent)
            eventually(lambda: len(first.records) + len(second.records) == 10, what="ten records")
        eventually(lambda: first.assigned == {0, 1, 2, 3}, what="the first has all again")
    assert sorted(first.records + second.records, key=lambda one: one.timestamp_ms) == sent


def test_members_of_three_libraries_form_one_group(
    broker: Broker, create_topic: CreateTopic
) -> None:
    """Clients that speak different versions of the group APIs share a topic."""
    topic = create_topic(broker.bootstrap, partitions=3)
    members = [Member(client, broker.bootstrap, topic, f"group-of-{topic}") for client in CLIENTS]
    with members[0].running(), members[1].running(), members[2].running():
        eventually(
            lambda: (
                [len(member.assigned) for member in members] == [1, 1, 1]
                and set.union(*(member.assigned for member in members)) == {0, 1, 2}
            ),
            what="one partition each",
        )
        assert len({number for member in members for number in member.assigned}) == 3
