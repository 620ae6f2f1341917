"""How much a ShareFetch gives: limits of records and bytes, and what it opens on its way."""

from __future__ import annotations

from logstore.compat.kafka.share_reads.messages import ShareFetchResponse
from tests.compat.kafka.share_reads.member import ShareStage, got


def test_a_limit_of_records_holds_for_all_partitions() -> None:
    """What one gave is not given by the next."""
    stage = ShareStage(partitions=2)
    for index in (0, 1):
        stage.produce(3, index)
        stage.produce(3, index)
    stage.open()
    answer = stage.member().fetch(0, stage.wanted, max_records=4)
    counts = [len(found.acquired_records) for found in answer.responses[0].partitions]
    assert counts == [1, 0]


def test_bytes_are_shared_out() -> None:
    """Each partition gets its part; the first one gives at least a batch."""
    stage = ShareStage(partitions=2)
    for index in (0, 1):
        stage.produce(1, index)
        stage.produce(1, index)
    stage.open()
    size = stage.broker.topics["t"].partitions[0].size_bytes // 2
    member = stage.member()
    sizes = [
        len(found.records)
        for found in member.fetch(0, stage.wanted, max_bytes=2 * size).responses[0].partitions
    ]
    assert sizes == [size, size]
    assert got(member.fetch(1, max_bytes=1)) == "1-1"
    assert member.fetch(2, max_bytes=0).responses == ()


def test_what_is_cut_behind_a_batch_that_is_read_alone_is_told() -> None:
    """As in any Fetch; of several batches only those are told of which something is acquired."""
    stage = ShareStage()
    for _ in range(4):
        stage.produce(1)
    stage.open()
    size = stage.broker.topics["t"].partitions[0].size_bytes // 4
    member = stage.member()
    for epoch, size_max, told in ((0, size + 9, size + 9), (1, 2 * size + 9, 2 * size)):
        answer = member.fetch(epoch, stage.wanted if epoch == 0 else None, max_bytes=size_max)
        (found,) = answer.responses[0].partitions
        assert len(found.records) == told


# what a fetch has to open


def _given(answer: ShareFetchResponse) -> list[int]:
    return [
        found.partition_index
        for topic in answer.responses
        for found in topic.partitions
        if found.acquired_records
    ]


def test_what_a_fetch_opens_is_given_partition_by_partition() -> None:
    """The first that has something is the whole answer; the next fetch has all the others."""
    stage = ShareStage(partitions=4)
    for index in (1, 2, 3):
        stage.produce(2, index)
    member = stage.member()
    assert _given(member.fetch(0, stage.wanted)) == [1]
    assert sorted(_given(member.fetch(1))) == [2, 3]


def test_what_is_open_is_given_without_what_a_fetch_opens() -> None:
    """It is looked at first, and nobody waits for the other states."""
    stage = ShareStage(partitions=4)
    for index in (1, 2, 3):
        stage.produce(2, index)
    stage.open(2, 3)
    member = stage.member()
    assert sorted(_given(member.fetch(0, stage.wanted))) == [2, 3]
    assert _given(member.fetch(1)) == [1]


def test_what_a_fetch_opens_is_given_together_if_less_is_too_little() -> None:
    """The minimal bytes are then those of all that are open."""
    stage = ShareStage(partitions=2)
    for index in (0, 1):
        stage.produce(2, index)
    size = stage.broker.topics["t"].partitions[0].size_bytes
    answer = stage.member().fetch(0, stage.wanted, min_bytes=size + 1, max_wait_ms=500)
    assert _given(answer) == [0, 1]
