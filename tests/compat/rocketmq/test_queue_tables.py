"""Maps from queues to values stand in answers in the order of Java's maps."""

from __future__ import annotations

import re

import pytest

from logstore.compat.rocketmq.wire.bodies import queue_table
from logstore.compat.rocketmq.wire.message_queue import MessageQueue


def order_of(topic: str, count: int, *, is_concurrent: bool) -> list[int]:
    """Return the ids of so many queues in the order of their table."""
    table = {MessageQueue(topic, "broker-a", number): number for number in range(count)}
    body = queue_table(table, is_concurrent=is_concurrent)
    return [int(number) for number in re.findall(rb'"queueId":(\d+)', body)]


@pytest.mark.parametrize("is_concurrent", [True, False])
def test_queues_stand_where_their_hash_puts_them(is_concurrent: bool) -> None:
    """As a real broker answered for these topics."""
    assert order_of("wire_audit_mail_38", 2, is_concurrent=is_concurrent) == [1, 0]
    assert order_of("order_0", 2, is_concurrent=is_concurrent) == [0, 1]


def test_the_twelfth_queue_makes_one_of_the_maps_larger() -> None:
    """A ``HashMap`` grows with the thirteenth: so Java printed both."""
    grown = [0, 6, 5, 8, 7, 2, 1, 4, 3, 10, 9, 11]
    assert order_of("t", 12, is_concurrent=True) == grown
    assert order_of("t", 12, is_concurrent=False) == [6, 5, 8, 7, 2, 1, 4, 3, 0, 10, 9, 11]
    for is_concurrent in (True, False):
        assert order_of("t", 13, is_concurrent=is_concurrent) == [*grown[:-1], 12, 11]
