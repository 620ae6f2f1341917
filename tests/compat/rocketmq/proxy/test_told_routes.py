"""Routes: clients are told of the addresses at which they have found the proxy."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.rocketmq.proxy.codes import Code
from tests.compat.rocketmq.proxy.proxy_stage import GROUP, Peer, Stage

NO_SCHEME, IPV4, DOMAIN_NAME, UNKNOWN = 0, 1, 3, 99
ADDRESS = {"host": "here", "port": 8081}


def asked(name: str, scheme: int, *addresses: dict[str, Any], topic: str = "fifo") -> Any:
    """Return the answer to a client that says where it has found the proxy."""
    fields: dict[str, Any] = {"group": {"name": GROUP}} if name == "QueryAssignment" else {}
    endpoints = {"scheme": scheme, "addresses": addresses}
    return Peer(Stage()).ask(name, topic={"name": topic}, endpoints=endpoints, **fields)


@pytest.mark.parametrize("name", ["QueryRoute", "QueryAssignment"])
def test_a_client_is_told_what_it_has_said(name: str) -> None:
    """Its addresses, by their kind."""
    told = asked(name, DOMAIN_NAME, ADDRESS)
    queues = told.get("message_queues") or [one["message_queue"] for one in told["assignments"]]
    endpoints = {tuple(queue["broker"]["endpoints"]) for queue in queues}
    assert told["status"]["code"] == Code.OK
    assert endpoints == {("scheme", "addresses")}


@pytest.mark.parametrize("name", ["QueryRoute", "QueryAssignment"])
@pytest.mark.parametrize(
    ("scheme", "text"),
    [
        (NO_SCHEME, "No enum constant AddressScheme.ADDRESS_SCHEME_UNSPECIFIED"),
        (UNKNOWN, "Can't get the number of an unknown enum value."),
        (-1, "Can't get the number of an unknown enum value."),
    ],
)
def test_addresses_of_no_kind(name: str, scheme: int, text: str) -> None:
    """Have Java's proxy stumble, and are refused; without any address nobody looks at the kind."""
    status = asked(name, scheme, ADDRESS)["status"]
    assert (status["code"], status["message"]) == (Code.INTERNAL_SERVER_ERROR, text)
    assert asked(name, scheme)["status"]["code"] == Code.OK


def test_which_flaw_is_told_first() -> None:
    """A kind that is not said before a topic that is not there, one that nobody knows behind it."""
    assert asked("QueryRoute", NO_SCHEME, ADDRESS, topic="none")["status"]["code"] == 50001
    assert asked("QueryRoute", UNKNOWN, ADDRESS, topic="none")["status"]["code"] == 40402
