"""Addresses in server.properties."""

from __future__ import annotations

import pytest

from logstore.segments.kafka.config_keys import ConfigError
from logstore.tools.listeners import Listener, find_listener

MAP = {"listener.security.protocol.map": "INSIDE:PLAINTEXT, OUTSIDE:SSL,plaintext:SASL_PLAINTEXT"}


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("PLAINTEXT://:9092", "", 9092),
        ("PLAINTEXT://broker-1.example.com:9092", "broker-1.example.com", 9092),
        ("plaintext://127.0.0.1:0", "127.0.0.1", 0),
        ("PLAINTEXT://[::1]:19092", "::1", 19092),
        ("SSL://:9093, PLAINTEXT://a:1, PLAINTEXT://b:2", "a", 1),
    ],
)
def test_the_first_listener_in_plain_text_counts(text: str, host: str, port: int) -> None:
    """Host and port; the host may be missing, or an IPv6 address in brackets."""
    assert find_listener({"listeners": text}, "listeners") == Listener(host, port)


def test_listeners_may_have_names() -> None:
    """The map says which protocol a name stands for."""
    text = "OUTSIDE://a:1,PLAINTEXT://b:2,INSIDE://c:3"
    assert find_listener({**MAP, "listeners": text}, "listeners") == Listener("c", 3)


@pytest.mark.parametrize("settings", [{}, {"listeners": ""}, {"listeners": "  "}])
def test_no_listener_is_none(settings: dict[str, str]) -> None:
    """The command line or the default decides then."""
    assert find_listener(settings, "listeners") is None


@pytest.mark.parametrize(
    "text",
    ["9092", "localhost:9092", "PLAINTEXT://:port", "PLAINTEXT://:65536", "PLAINTEXT://:-1", ","],
)
def test_what_is_no_listener_is_an_error(text: str) -> None:
    """It names the setting and what it must look like."""
    with pytest.raises(ConfigError, match="NAME://HOST:PORT"):
        find_listener({"advertised.listeners": text}, "advertised.listeners")


@pytest.mark.parametrize("text", ["SSL://:9093", "SASL_SSL://a:1,SSL://b:2"])
def test_only_plain_text_is_served(text: str) -> None:
    """Who wants encryption must know that there is none."""
    with pytest.raises(ConfigError, match="PLAINTEXT"):
        find_listener({"listeners": text}, "listeners")


def test_clients_get_ipv6_in_brackets() -> None:
    """Otherwise the port could not be told from the address."""
    assert (Listener("::1", 9092).text, Listener("h", 1).text) == ("[::1]:9092", "h:1")
