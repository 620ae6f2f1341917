"""Fetches that want less than nothing, in all or of a partition."""

from __future__ import annotations

import pytest

from tests.compat.kafka.fetch.test_fetch import UNKNOWN, fetch, filled
from tests.compat.kafka.peer import Peer, fetch_fields


@pytest.mark.parametrize("size", [{"partition_max_bytes": -1}, {}])
def test_a_negative_size_is_an_error_where_there_is_something_to_read(size: dict[str, int]) -> None:
    """At the end of the log it does not matter."""
    broker = filled()
    for offset, code in ((0, -1), (5, 0)):
        asked = [{"partition": 0, "fetch_offset": offset, **size}]
        request = fetch_fields([("t", asked)], 11, max_bytes=2**20 if size else -1)
        answer = Peer(broker).ask("Fetch", 11, request)
        assert answer.partition["error_code"] == code


@pytest.mark.parametrize(("first", "is_read"), [(0, True), (7, False)])
def test_a_negative_limit_is_none_for_the_second_partition(first: int, is_read: bool) -> None:
    """Only the first one that is there sees it; of partition 0 the end is reached."""
    asked = {"partition": first, "fetch_offset": 5}, {"partition": 1}
    results = fetch(filled(partitions=2), *asked, max_bytes=-1).by_topic[0]
    assert any(bool(one["records"]) for one in results) is is_read
    assert [one["error_code"] for one in results] == ([0, 0] if is_read else [-1, UNKNOWN])
