"""The outbox: one write a connection for whatever one event gives."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.wire.outbox import Outbox


def test_without_a_block_it_is_sent_at_once() -> None:
    """Nobody waits for anything."""
    sent: list[str] = []
    Outbox().send(lambda: sent.append("a"))
    assert sent == ["a"]


def test_in_a_block_each_is_sent_once_at_its_end() -> None:
    """In the order in which they first had something to say; the outermost block counts."""
    outbox, sent = Outbox(), list[str]()
    first, second = (lambda: sent.append("a")), (lambda: sent.append("b"))
    with outbox.gathering():
        outbox.send(first)
        with outbox.gathering():
            outbox.send(second)
            outbox.send(first)
        assert sent == []
    assert sent == ["a", "b"]


def test_in_a_block_what_is_there_may_go_at_once() -> None:
    """What comes behind it is sent at the end, as ever."""
    outbox, sent = Outbox(), list[str]()
    with outbox.gathering():
        outbox.send(lambda: sent.append("a"))
        outbox.send_now()
        assert sent == ["a"]
        outbox.send(lambda: sent.append("b"))
        assert sent == ["a"]
    assert sent == ["a", "b"]


def test_what_sending_leads_to_is_sent_too() -> None:
    """Somebody who is sent to may have something to say to others."""
    outbox, sent = Outbox(), list[str]()

    def first() -> None:
        sent.append("a")
        outbox.send(lambda: sent.append("b"))

    with outbox.gathering():
        outbox.send(first)
    assert sent == ["a", "b"]


def test_an_error_within_the_block_holds_nothing_back() -> None:
    """Whoever was answered before it gets the answer."""
    outbox, sent = Outbox(), list[str]()

    def answer_and_fail() -> None:
        with outbox.gathering():
            outbox.send(lambda: sent.append("a"))
            raise KeyError

    with pytest.raises(KeyError):
        answer_and_fail()
    assert sent == ["a"]
