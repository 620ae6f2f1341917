"""ShareFetch where something fails: what does not open, and what Kafka stumbles over."""

from __future__ import annotations

from tests.compat.kafka.share_reads.member import ShareStage, got


def test_what_does_not_open_is_not_told_with_what_is_there_at_once() -> None:
    """A real broker does not know it yet when it gives what was open before."""
    stage = ShareStage()
    other_id = stage.broker.create_topic("other", 1).topic_id
    stage.produce(2)
    stage.open(0)
    answer = stage.member().fetch(0, stage.wanted | {other_id: [0]}, max_wait_ms=500)
    assert [topic.topic_id.bytes for topic in answer.responses] == [stage.topic_id]
    assert got(answer) == "0-1"


def test_a_mode_that_there_is_not_fails_the_request() -> None:
    """Kafka stumbles over it, unless there is nothing to fetch."""
    stage = ShareStage()
    member = stage.member()
    assert member.fetch(0, share_acquire_mode=2).error_code == 0
    assert member.fetch(1, stage.wanted, share_acquire_mode=2).error_code == -1
    assert member.fetch(2, share_acquire_mode=1).error_code == 0
