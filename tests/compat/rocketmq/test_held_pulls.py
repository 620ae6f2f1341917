"""Pulls that wait: woken by arrivals, by the scan, at their deadline, or never again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logstore.compat.rocketmq.pulling.held_pulls import HeldPull, HeldPulls
from logstore.compat.waiting import Timers
from logstore.java_hash import java_hash
from logstore.segments.rocketmq.filters.sql_filter import SqlFilter
from logstore.segments.rocketmq.reading.message_filter import TagFilter
from logstore.segments.rocketmq.tables.consumer_filters import ConsumerFilter
from logstore.testing.manual_clock import ManualClock


class Stage:
    """Held pulls on a clock that the test turns; who was woken stands in `woken`."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.ends: dict[tuple[str, int], int] = {}
        self.woken: list[str] = []
        self.pulls = HeldPulls(self.timers, lambda topic, queue: self.ends.get((topic, queue), 0))

    def hold(
        self,
        name: str,
        queue_offset: int = 5,
        tag_filter: TagFilter | None = None,
        owner: object = "owner",
        timeout_ms: int = 15_000,
    ) -> None:
        """Let a pull of queue 0 wait."""
        wake: Callable[[], None] = lambda: self.woken.append(name)  # noqa: E731
        self.pulls.hold(HeldPull("t", 0, queue_offset, tag_filter, wake, owner), timeout_ms)

    def arrive(self, next_queue_offset: int, tags: str = "") -> None:
        """Say that a message has arrived, and wake whoever it is for."""
        self.pulls.arrived("t", 0, next_queue_offset, java_hash(tags))
        self.pulls.wake()


@pytest.fixture
def stage() -> Stage:
    """Return an empty stage."""
    return Stage()


def test_an_arrival_wakes_whoever_waits_for_it(stage: Stage) -> None:
    """Only pulls whose queue offset the new message has reached are woken, once each."""
    stage.hold("here", 5)
    stage.hold("further on", 6)
    stage.arrive(6)
    stage.arrive(6)
    assert stage.woken == ["here"]
    stage.arrive(7)
    assert (stage.woken, len(stage.pulls)) == (["here", "further on"], 0)


def test_an_owner_hears_of_it_once_all_that_is_his_is_answered(stage: Stage) -> None:
    """Answers to one owner go together, those to others do not wait for them."""
    for name, owner in (("a1", "a"), ("b1", "b"), ("a2", "a"), ("c1", "c")):
        stage.hold(name, owner=owner)
    stage.pulls.arrived("t", 0, 6, 0)
    stage.pulls.wake(lambda: stage.woken.append("sent"))
    assert stage.woken == ["a1", "b1", "sent", "a2", "sent", "c1", "sent"]


def test_an_arrival_elsewhere_wakes_nobody(stage: Stage) -> None:
    """Messages of other queues and topics leave a pull alone."""
    stage.hold("here")
    stage.pulls.arrived("t", 1, 100, 0)
    stage.pulls.arrived("u", 0, 100, 0)
    stage.pulls.wake()
    assert stage.woken == []


def test_other_tags_wake_nobody(stage: Stage) -> None:
    """A message whose tags the subscription does not name leaves a pull alone."""
    stage.hold("a", tag_filter=TagFilter.of_expression("a || b"))
    stage.arrive(6, "c")
    assert stage.woken == []
    stage.arrive(7, "b")
    assert stage.woken == ["a"]


def test_other_properties_wake_nobody(stage: Stage) -> None:
    """A message of which an expression is not true leaves a pull alone, as far as it is known."""
    wanted = ConsumerFilter("t", "g", "a = '1'", "SQL92", 0, 0)
    stage.pulls.hold(
        HeldPull("t", 0, 5, SqlFilter(wanted), lambda: stage.woken.append("a"), "owner"), 15_000
    )
    for properties in (b"a\x012\x02", b""):
        stage.pulls.arrived("t", 0, 6, 0, properties)
        stage.pulls.wake()
    assert stage.woken == []
    stage.pulls.arrived("t", 0, 7, 0, b"a\x011\x02")
    stage.pulls.wake()
    assert stage.woken == ["a"]


def test_the_scan_wakes_past_other_tags(stage: Stage) -> None:
    """The scan knows of no tags: a pull behind messages of others goes on from there."""
    stage.hold("a", tag_filter=TagFilter.of_expression("a"))
    stage.pulls.scan()
    assert stage.woken == []
    stage.ends["t", 0] = 6
    stage.pulls.scan()
    assert stage.woken == ["a"]


def test_a_pull_waits_until_its_deadline(stage: Stage) -> None:
    """At its deadline, not before, a pull is woken; an arrival later finds nobody."""
    stage.hold("here", timeout_ms=15_000)
    stage.clock.advance(14_999)
    stage.timers.run()
    assert stage.woken == []
    stage.clock.advance(1)
    stage.timers.run()
    stage.arrive(6)
    assert stage.woken == ["here"]


def test_a_woken_pull_has_no_deadline_any_more(stage: Stage) -> None:
    """Whoever was woken by an arrival is not woken again by the time."""
    stage.hold("here")
    stage.arrive(6)
    stage.clock.advance(20_000)
    assert (stage.timers.run(), stage.woken) == (0, ["here"])


def test_a_lost_connection_takes_its_pulls_along(stage: Stage) -> None:
    """Pulls of a connection that is gone are never woken, those of others are."""
    stage.hold("gone", owner="first")
    stage.hold("here", owner="second")
    stage.pulls.arrived("t", 0, 6, 0)
    stage.pulls.lost("first")
    stage.pulls.wake()
    assert stage.woken == ["here"]
    stage.hold("gone", owner="first")
    stage.pulls.lost("first")
    stage.clock.advance(20_000)
    assert (stage.timers.run(), len(stage.pulls)) == (0, 0)


def test_a_pull_may_be_held_again_while_others_are_woken(stage: Stage) -> None:
    """Whoever asks again on being woken waits anew, and is not woken in the same round."""

    def again() -> None:
        stage.woken.append("again")
        stage.hold("second time", 6)

    stage.pulls.hold(HeldPull("t", 0, 5, None, again, "owner"), 1000)
    stage.arrive(6)
    assert (stage.woken, len(stage.pulls)) == (["again"], 1)
