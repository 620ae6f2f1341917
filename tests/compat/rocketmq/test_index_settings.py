"""Whether messages are found by key: settings of the index, at the start and while it runs."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker, decoded


def found(peer: Peer, key: str = "k") -> list[bytes]:
    """Ask for messages by key."""
    asked = {"topic": TOPIC, "key": key, "maxNum": 32}
    span = {"beginTimestamp": 0, "endTimestamp": 1 << 60}
    answer = peer.ask(RequestCode.QUERY_MESSAGE, {**asked, **span})
    return [message.body for message in decoded(answer.body)]


@pytest.mark.parametrize("setting", ["messageIndexEnable", "indexFileWriteEnable"])
def test_keys_are_put_into_the_index_while_that_is_wanted(setting: str) -> None:
    """Off at the start, on and off again: what was sent in between is found, then and later."""
    peer = Peer(a_broker(settings={setting: "false"}))
    peer.produce(b"before", properties="KEYS\x01k\x02")
    assert found(peer) == []
    peer.broker.update_settings({setting: "true"})
    peer.produce(b"in between", properties="KEYS\x01k\x02")
    assert found(peer) == [b"in between"]
    peer.broker.update_settings({setting: "false"})
    peer.produce(b"after", properties="KEYS\x01k\x02")
    assert found(peer) == [b"in between"]
    peer.broker.close()
    again = Peer(a_broker(peer.broker.host, {setting: "false"}))  # type: ignore[arg-type]
    assert found(again) == [b"in between"]


def test_nothing_is_found_while_the_index_is_not_read() -> None:
    """Its files go on all the same."""
    peer = Peer(a_broker(settings={"indexFileReadEnable": "false"}))
    peer.produce(b"sent", properties="KEYS\x01k\x02")
    assert found(peer) == []
    peer.broker.update_settings({"indexFileReadEnable": "true"})
    assert found(peer) == [b"sent"]
