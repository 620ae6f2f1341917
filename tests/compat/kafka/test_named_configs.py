"""Settings of groups and of subscriptions to clients' metrics: resources that settings make."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.groups.config import GroupConfig
from logstore.compat.kafka.groups.consumer.group_settings import GroupSettings
from logstore.compat.kafka.groups.modern.broker_cluster import BrokerCluster
from tests.compat.kafka.config_requests import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    GROUP_SESSION,
    METRICS,
    SET,
    SUBTRACT,
    alter,
    describe,
    replace,
    shown,
)
from tests.compat.kafka.conversation import Conversation


def synonyms(
    conversation: Conversation, kind: int, name: str, key: str
) -> list[tuple[str, str | None, int]]:
    """Return name, value and source of all that a setting's value could come from."""
    entry = describe(conversation, kind, name, [key])["configs"][key]
    return [(one["name"], one["value"], one["source"]) for one in entry["synonyms"]]


def test_a_subscription_to_clients_metrics() -> None:
    """Its settings are kept, listed and shown with their source, and survive a restart."""
    conversation = Conversation()
    assert shown(conversation, METRICS, "m", "interval.ms") == ("300000", 5)
    assert synonyms(conversation, METRICS, "m", "interval.ms") == []
    wanted = {"interval.ms": "1000", "match": "client_id=a.*,client_software_name=b"}
    changes = [(name, SET, value) for name, value in wanted.items()]
    assert alter(conversation, METRICS, "m", *changes) == 0
    conversation.restart()
    for name, value in wanted.items():
        assert synonyms(conversation, METRICS, "m", name) == [(name, value, 7)]
    assert shown(conversation, METRICS, "m", "metrics") == ("", 5)
    for version, asked in ((0, {}), (1, {"resource_types": [METRICS]})):
        listed = conversation.ask("ListConfigResources", version, **asked)
        assert [one["resource_name"] for one in listed["config_resources"]] == ["m"]
    assert alter(conversation, METRICS, "m", *((name, DELETE, None) for name in wanted)) == 0
    assert conversation.broker.store.metadata.resources_with_settings(METRICS) == []


def test_values_of_a_subscription_and_of_a_group_are_shown_as_read() -> None:
    """Without the spaces around them."""
    conversation = Conversation()
    wanted = {METRICS: ("metrics", " a. , b."), GROUP: ("consumer.session.timeout.ms", " 50000 ")}
    for kind, (name, value) in wanted.items():
        assert alter(conversation, kind, "m", (name, SET, value)) == 0
    assert shown(conversation, METRICS, "m", "metrics") == ("a.,b.", 7)
    assert shown(conversation, GROUP, "m", "consumer.session.timeout.ms") == ("50000", 8)
    assert synonyms(conversation, METRICS, "m", "metrics") == [("metrics", "a.,b.", 7)]


def test_what_is_wrong_first_with_a_subscription_to_clients_metrics() -> None:
    """An unknown name, then a value that is none, then the interval, then the pattern."""
    pattern, short = ("match", SET, "colour=red"), ("interval.ms", SET, "10")
    no_number, unknown = ("interval.ms", SET, "soon"), ("none.such", SET, "1")
    for changes, code in (
        ((pattern, unknown), 42), ((no_number, unknown), 42), ((pattern, no_number), 40),
        ((pattern, short), 42), ((pattern,), 40),
    ):  # fmt: skip
        assert alter(Conversation(), METRICS, "m", *changes) == code, changes


@pytest.mark.parametrize("kind", ["share", "streams"])
def test_settings_of_other_groups_have_bounds(kind: str) -> None:
    """The broker's, which may be given; a session is longer than a heartbeat interval."""
    session, beat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    conversation = Conversation({f"group.{kind}.max.session.timeout.ms": "70000"})
    for name, value, code in (
        (session, "44999", 40),
        (session, "70000", 0),
        (session, "70001", 40),
        (beat, "4999", 40),
        (beat, "15000", 0),
        (f"{kind}.assignment.interval.ms", "15001", 40),
    ):
        assert alter(conversation, GROUP, "g", (name, SET, value)) == code, (name, value)


def test_where_a_groups_setting_could_come_from() -> None:
    """The group's own, this broker's, all brokers', the broker's at its start, Kafka's default."""
    name = "consumer.assignment.interval.ms"
    of_broker = f"group.{name}"
    conversation = Conversation({of_broker: "2000"})
    chain = [(of_broker, "2000", 4), (of_broker, "1000", 5)]
    assert synonyms(conversation, GROUP, "g", name) == chain
    for kind, resource, setting, value, source in (
        (BROKER, "", of_broker, "3000", 3),
        (BROKER, "1", of_broker, "4000", 2),
        (GROUP, "g", name, "5000", 8),
    ):
        assert alter(conversation, kind, resource, (setting, SET, value)) == 0
        chain.insert(0, (setting, value, source))
        assert synonyms(conversation, GROUP, "g", name) == sorted(chain, key=by_strength)
        assert shown(conversation, GROUP, "g", name) == (value, source)


def by_strength(synonym: tuple[str, str | None, int]) -> int:
    """Put a group's own value first, and the others in the order of their sources' numbers."""
    return 0 if synonym[2] == 8 else synonym[2]


@pytest.mark.parametrize("value", ["earliest", "by_duration:PT1H", "by_duration:P1DT2.5S"])
def test_settings_of_share_groups_are_kept(value: str) -> None:
    """Nothing here uses them; this one has no broker setting behind it."""
    conversation = Conversation()
    name = "share.auto.offset.reset"
    assert synonyms(conversation, GROUP, "g", name) == [(name, "latest", 5)]
    assert alter(conversation, GROUP, "g", (name, SET, value)) == 0
    assert synonyms(conversation, GROUP, "g", name) == [(name, value, 8), (name, "latest", 5)]


def test_a_group_has_settings_of_its_own() -> None:
    """They hold with the next heartbeat, are shown with their source and survive a restart."""
    conversation = Conversation({"group.consumer.session.timeout.ms": "46000"})
    beat = "consumer.heartbeat.interval.ms"
    assert shown(conversation, GROUP, "g", GROUP_SESSION) == ("46000", 4)
    assert shown(conversation, GROUP, "g", beat) == ("5000", 5)
    assert alter(conversation, GROUP, "g", (beat, SET, "6000"), is_rehearsal=True) == 0
    assert shown(conversation, GROUP, "g", beat) == ("5000", 5)
    assert alter(conversation, GROUP, "g", (beat, SET, "6000"), (GROUP_SESSION, SET, "50000")) == 0
    conversation.restart()
    assert shown(conversation, GROUP, "g", GROUP_SESSION) == ("50000", 8)
    broker = conversation.broker
    cluster = BrokerCluster(broker.store, broker.dynamic_config)
    settings = GroupSettings.of(GroupConfig.of(broker.config), cluster, "g")
    assert settings == GroupSettings(6000, 50_000, 1000)
    listed = conversation.ask("ListConfigResources", 1, resource_types=[GROUP])
    assert [one["resource_name"] for one in listed["config_resources"]] == ["g"]
    assert replace(conversation, GROUP, "g", {beat: "7000"}) == 0
    assert shown(conversation, GROUP, "g", GROUP_SESSION) == ("45000", 5)
    assert alter(conversation, GROUP, "g", (beat, DELETE, None)) == 0
    assert conversation.broker.store.metadata.resources_with_settings(GROUP) == []


def test_a_group_waits_longer_than_it_expects_heartbeats() -> None:
    """A session that could end before the next heartbeat is refused."""
    conversation = Conversation(
        {
            "group.consumer.min.session.timeout.ms": "6000",
            "group.consumer.session.timeout.ms": "45000",
        }
    )
    changes = (GROUP_SESSION, SET, "7000"), ("consumer.heartbeat.interval.ms", SET, "7000")
    assert alter(conversation, GROUP, "g", *changes) == 40
    assert alter(conversation, GROUP, "g", changes[0]) == 0


@pytest.mark.parametrize(("kind", "name"), [(METRICS, "metrics"), (GROUP, GROUP_SESSION)])
def test_lists_of_theirs_do_not_grow(kind: int, name: str) -> None:
    """40, even if the resource has no name, which is 42 for other changes."""
    conversation = Conversation()
    for operation in (APPEND, SUBTRACT):
        assert alter(conversation, kind, "m", (name, operation, "a")) == 40
        assert alter(conversation, kind, "", (name, operation, "a")) == 40
    assert alter(conversation, kind, "", (name, SET, "60000")) == 42
