"""Long lists of topics and groups, asked for page by page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupConfig
from logstore.segments.rocketmq.tables.topics import TopicConfig
from tests.compat.rocketmq.broker_peer import Peer, a_broker

#: code of the request, its fields, and where the list stands in the answer
TOPICS = Code.GET_ALL_TOPIC_CONFIG, "topicSeq", "maxTopicNum", "topicConfigTable"
GROUPS = (
    Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, "groupSeq", "maxGroupNum", "subscriptionGroupTable",
)  # fmt: skip
Kind = tuple[int, str, str, str]
both = pytest.mark.parametrize("kind", [TOPICS, GROUPS], ids=["topics", "groups"])


@pytest.fixture
def peer() -> Peer:
    """Return a client of a broker with some topics and groups."""
    broker = a_broker()
    for number in range(7):
        broker.topics.put(TopicConfig(f"topic{number}", 4, 4))
        broker.groups.put(SubscriptionGroupConfig(f"group{number}"))
    return Peer(broker)


def ask(peer: Peer, kind: Kind, **fields: object) -> tuple[list[str], Any]:
    """Return the names in an answer, and the version of the list."""
    answer = peer.ask(kind[0], fields)
    assert answer.code == 0
    return sorted(answer.content[kind[3]]), answer.content["dataVersion"]


@both
def test_pages_together_are_the_whole(peer: Peer, kind: Kind) -> None:
    """Which comes at once to those who do not ask for a page; a page beyond the end is empty."""
    whole, version = ask(peer, kind)
    pages: list[str] = []
    for start in range(0, len(whole) + 5, 5):
        fields = {kind[1]: start, kind[2]: 5, "dataVersion": json.dumps(version)}
        page, _ = ask(peer, kind, **fields)
        assert page == whole[start : start + 5]
        pages += page
    assert pages == whole


@both
def test_who_goes_on_with_another_version_gets_the_first_page(peer: Peer, kind: Kind) -> None:
    """And who does not say with which one; at the beginning it does not matter."""
    whole, version = ask(peer, kind)
    other = json.dumps({**version, "counter": version["counter"] + 1})
    for text in (other, " ", None):
        fields = {kind[1]: 3, kind[2]: 5, **({} if text is None else {"dataVersion": text})}
        assert ask(peer, kind, **fields)[0] == whole[:5]
    assert ask(peer, kind, **{kind[1]: 0, kind[2]: 5, "dataVersion": other})[0] == whole[:5]
    unreadable = {kind[1]: 3, "dataVersion": "3"}
    assert peer.ask(kind[0], unreadable).code == ResponseCode.SYSTEM_ERROR


@both
def test_a_page_is_as_long_as_settings_say(peer: Peer, kind: Kind) -> None:
    """2000 at most by themselves; or there are no pages at all."""
    whole, _ = ask(peer, kind)
    assert peer.broker.settings.page_count_max == 2000
    peer.broker.update_settings({"splitMetadataSize": "3"})
    assert ask(peer, kind, **{kind[1]: 0})[0] == whole[:3]
    assert ask(peer, kind, **{kind[2]: 4})[0] == whole[:3]
    assert ask(peer, kind, **{kind[2]: 2})[0] == whole[:2]
    peer.broker.update_settings({"enableSplitMetadata": "false"})
    assert ask(peer, kind, **{kind[2]: 2})[0] == whole
