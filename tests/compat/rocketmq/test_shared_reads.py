"""Many groups that wait for one message: read once, answered and counted each."""

from __future__ import annotations

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker, decoded


def hold(broker: Broker, number: int, queue_offset: int = 1, **fields: object) -> tuple[Peer, int]:
    """Let a group wait on a connection of its own; return that, and the number of its request."""
    peer = Peer(broker, 40_010 + number)
    asked = peer.pull_fields(TOPIC, 0, queue_offset, f"g{number}", **fields)
    return peer, peer.send(RequestCode.PULL_MESSAGE, asked)


def test_each_group_that_waits_gets_the_message() -> None:
    """Whatever it asks for besides is what it gets."""
    broker = a_broker()
    sender = Peer(broker)
    sender.produce(b"first", properties="TAGS\x01a\x02")
    waiting = [hold(broker, number) for number in range(4)]
    reader, wanted = hold(broker, 4, subscription="b")
    before = broker.store.stats.get_transferred_count
    sender.produce(b"second", properties="TAGS\x01a\x02")
    for peer, opaque in waiting:
        answer = peer.answer_to(opaque)
        assert answer is not None
        assert [message.body for message in decoded(answer.body)] == [b"second"]
        assert (answer.fields or {})["nextBeginOffset"] == "2"
    assert reader.answer_to(wanted) is None
    assert broker.store.stats.get_transferred_count - before == 4
    broker.stats.sample()
    for number in range(4):
        counted = broker.stats.item("GROUP_GET_NUMS", f"{TOPIC}@g{number}")
        assert counted is not None
        assert counted[0].sum == 1


def test_the_next_message_is_read_anew() -> None:
    """What was shared for one event is forgotten behind it."""
    broker = a_broker()
    sender = Peer(broker)
    sender.produce(b"first")
    for text in (b"second", b"third"):
        waiting = [
            hold(broker, number, broker.store.max_queue_offset(TOPIC, 0)) for number in (1, 2)
        ]
        sender.produce(text)
        for peer, opaque in waiting:
            answer = peer.answer_to(opaque)
            assert answer is not None
            assert [message.body for message in decoded(answer.body)] == [text]
