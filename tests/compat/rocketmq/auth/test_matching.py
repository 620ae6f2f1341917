"""Which entry of the rules decides."""

from __future__ import annotations

import itertools

import pytest

from logstore.compat.rocketmq.auth.asked import Asked
from logstore.compat.rocketmq.auth.matching import deciding, is_address_or_network, is_within
from logstore.compat.rocketmq.auth.resources import Resource, group, resource_of, topic
from logstore.segments.rocketmq.tables.access import CUSTOM, DEFAULT, Acl, Policy, PolicyEntry


def entry(
    resource: str, *actions: str, decision: str = "Allow", ips: tuple[str, ...] | None = None
) -> PolicyEntry:
    """Return an entry; without actions it is of all of them."""
    return PolicyEntry(resource, actions or ("All",), decision, ips)


def decided(asked: Resource, *entries: PolicyEntry, actions: tuple[str, ...] = ("Pub",)) -> str:
    """Return the resource and decision of the entry that decides, whatever their order."""
    found = {
        None
        if (one := deciding(_acl(CUSTOM, *order), Asked(asked, actions), "192.0.2.1")) is None
        else f"{one.resource} {one.decision}"
        for order in itertools.permutations(entries)
    }
    assert len(found) == 1, "the order of the entries says nothing"
    return found.pop() or "none"


def _acl(policy_type: str, *entries: PolicyEntry) -> Acl:
    return Acl("User:alice", (Policy(policy_type, entries),))


def test_the_most_precise_entry_decides() -> None:
    """A name before a prefix, a longer prefix before a shorter, a kind before everything."""
    entries = [
        entry("*"), entry("Topic:*", decision="Deny"), entry("Topic:or*"),
        entry("Topic:order*", decision="Deny"), entry("Topic:orders"), entry("Group:orders"),
    ]  # fmt: skip
    assert decided(topic("orders"), *entries) == "Topic:orders Allow"
    assert decided(topic("order"), *entries) == "Topic:order* Deny"
    assert decided(topic("or"), *entries) == "Topic:or* Allow"
    assert decided(topic("x"), *entries) == "Topic:* Deny"
    assert decided(group("x"), *entries) == "* Allow"
    assert decided(topic("x"), entry("Topic:y"), entry("Group:x")) == "none"


def test_of_two_equal_ones_that_denies() -> None:
    """As two kinds of policies cannot say, two prefixes of one length can."""
    entries = entry("Topic:ab*", decision="Allow"), entry("Topic:ab*", decision="Deny")
    assert decided(topic("abc"), *entries) == "Topic:ab* Deny"


def test_actions() -> None:
    """One of those that are asked for is enough; an entry of others is passed over."""
    entries = entry("Topic:t", "Sub", "Get", decision="Deny"), entry("Topic:*", "All")
    assert decided(topic("t"), *entries, actions=("Pub",)) == "Topic:* Allow"
    assert decided(topic("t"), *entries, actions=("Pub", "Sub")) == "Topic:t Deny"


def test_default_policies_come_last() -> None:
    """They decide only where no custom entry fits, however precise they are."""
    acl = Acl(
        "User:alice",
        (
            Policy(DEFAULT, (entry("Topic:t", decision="Deny"), entry("Topic:u"))),
            Policy(CUSTOM, (entry("Topic:t*"),)),
        ),
    )

    def decision(name: str) -> str | None:
        found = deciding(acl, Asked(topic(name), ("Pub",)), "192.0.2.1")
        return None if found is None else found.decision

    assert [decision(name) for name in ("t", "u", "v")] == ["Allow", "Allow", None]


def test_entries_for_some_addresses() -> None:
    """They count only for who comes from there; one without any counts for all."""
    acl = _acl(CUSTOM, entry("Topic:t", ips=("192.0.2.1", "10.0.0.0/8")), entry("*", "Get", ips=()))
    for ip, is_found in (
        ("192.0.2.1", True),
        ("10.9.9.9", True),
        ("192.0.2.2", False),
        ("", False),
    ):
        found = deciding(acl, Asked(topic("t"), ("Pub",)), ip)
        assert (found is not None) == is_found, ip
    assert deciding(acl, Asked(topic("t"), ("Get",)), "") is not None


@pytest.mark.parametrize(
    ("ip", "network", "is_in"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.10", False),
        ("192.0.2.1", "192.0.2.9/24", True),
        ("192.0.3.1", "192.0.2.0/24", False),
        ("[2001:db8::1]", "2001:db8::1", True),
        ("[2001:db8::1]", "2001:db8::/32", True),
        ("192.0.2.1", "2001:db8::/32", False),
        ("localhost", "127.0.0.0/8", False),
    ],
)
def test_addresses_and_networks(ip: str, network: str, is_in: bool) -> None:
    """IPv4 and IPv6, of which the latter come in brackets."""
    assert is_within(ip, network) == is_in


def test_what_is_an_address_or_network() -> None:
    """Names are not."""
    good = ("10.1.2.3", "10.0.0.0/8", "10.1.2.3/8", "::1", "2001:db8::/32")
    assert all(map(is_address_or_network, good))
    bad = ("", "10.1.2", "10.1.2.3/33", "a.example", "::1/200", "10.0.0.1-9")
    assert not any(map(is_address_or_network, bad))


@pytest.mark.parametrize("key", ["*", "Topic:t", "Topic:t*", "Topic:*", "Group:a:b", "Cluster:c"])
def test_keys_of_resources(key: str) -> None:
    """They are read and written alike, kinds in any case."""
    found = resource_of(key.lower())
    assert found is not None
    assert found.key == key
    assert found == resource_of(key)


def test_retry_topics_are_groups() -> None:
    """Whoever asks for one asks for its group."""
    assert group("%RETRY%g").key == "Group:g"
    assert topic(None).key == "Topic:null"
    assert [resource_of(key) for key in ("", " ", "x", "Strange:t")] == [None] * 4
