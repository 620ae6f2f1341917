"""Listeners in server.properties, and the settings that are theirs."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.security.end_points import (
    EndPoint,
    SecurityProtocol,
    check_advertised,
    end_points,
)
from logstore.compat.kafka.security.listener_settings import ListenerSettings
from logstore.compat.kafka.security.opening import listened_at
from logstore.segments.kafka.config_keys import ConfigError

MAP = {"listener.security.protocol.map": "INSIDE:PLAINTEXT, outside:sasl_ssl,C:PLAINTEXT"}


def test_several_listeners() -> None:
    """Each has a name, a protocol and an address; the controller's is passed over."""
    settings = {
        **MAP,
        "listeners": "INSIDE://:9092, Outside://[::1]:0,C://h:9",
        "controller.listener.names": "c",
    }
    assert end_points(settings, "listeners") == [
        EndPoint("INSIDE", SecurityProtocol.PLAINTEXT, "", 9092),
        EndPoint("OUTSIDE", SecurityProtocol.SASL_SSL, "::1", 0),
    ]
    assert end_points(settings, "advertised.listeners") == []


def test_the_controllers_usual_name() -> None:
    """A listener CONTROLLER is the controller's where nothing else is said."""
    found = end_points({"listeners": "CONTROLLER://:1,SSL://:2"}, "listeners")
    assert [one.name for one in found] == ["SSL"]


def test_kafkas_own_names_need_no_map() -> None:
    """They are the names of the protocols."""
    text = "SSL://:1,SASL_SSL://:2,SASL_PLAINTEXT://:3,PLAINTEXT://:4"
    found = end_points({"listeners": text}, "listeners")
    assert [str(one.protocol) for one in found] == [one.name for one in found]
    assert [one.protocol.has_tls for one in found] == [True, True, False, False]
    assert [one.protocol.has_sasl for one in found] == [False, True, True, False]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"listeners": "localhost:1"}, "NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://:65536"}, "NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://:1,"}, "NAME://HOST:PORT"),
        ({"listeners": "SSL://:1,ssl://:2"}, "SSL is there twice"),
        ({"listeners": "EXTERNAL://:1"}, "EXTERNAL must have a protocol"),
        ({**MAP, "listeners": "PLAINTEXT://:1"}, "PLAINTEXT must have a protocol"),
        (
            {"listeners": "A://:1", "listener.security.protocol.map": "A:TLS"},
            r"NAME:PLAINTEXT\|SSL",
        ),
        ({"listeners": "C://:1", "controller.listener.names": "C", **MAP}, "not the controller's"),
    ],
)
def test_what_is_refused(settings: dict[str, str], told: str) -> None:
    """With the setting's name and what it must be."""
    with pytest.raises(ConfigError, match=told):
        listened_at(settings)


def test_only_listeners_are_advertised() -> None:
    """An address of a listener that there is not would lead nowhere."""
    listened = end_points({"listeners": "SSL://:1"}, "listeners")
    check_advertised(listened, listened, "")
    told = end_points({"advertised.listeners": "PLAINTEXT://h:1"}, "advertised.listeners")
    with pytest.raises(ConfigError, match="PLAINTEXT is none"):
        check_advertised(listened, told, "PLAINTEXT://h:1")


def test_a_listeners_own_settings_win() -> None:
    """Over those of the broker, which win over Kafka's defaults; a mechanism's are its alone."""
    settings = ListenerSettings(
        {
            "ssl.client.auth": "requested",
            "listener.name.in.ssl.client.auth": "required",
            "listener.name.out.ssl.client.auth": "none",
            "sasl.jaas.config": "global",
            "listener.name.in.plain.sasl.jaas.config": "own",
            "connections.max.reauth.ms": "7",
            "listener.name.in.plain.connections.max.reauth.ms": "9",
        },
        "IN",
    )
    assert settings.text("ssl.client.auth") == "required"
    assert settings.is_own("ssl.client.auth")
    assert settings.names("ssl.enabled.protocols") == ("TLSv1.2", "TLSv1.3")
    assert settings.text("ssl.keystore.location") is None
    assert settings.of_mechanism("PLAIN", "sasl.jaas.config") == "own"
    assert settings.of_mechanism("SCRAM-SHA-256", "sasl.jaas.config") is None
    assert settings.integer_of_mechanism("PLAIN", "connections.max.reauth.ms") == 9
    assert settings.integer_of_mechanism("SCRAM-SHA-256", "connections.max.reauth.ms") == 7


def test_errors_name_the_setting_as_it_was_given() -> None:
    """And show no passwords."""
    bad = {"listener.name.in.ssl.client.auth": "maybe"}
    with pytest.raises(ConfigError, match=r"maybe for .*listener\.name\.in\.ssl\.client\.auth:"):
        ListenerSettings(bad, "IN").text("ssl.client.auth")
    settings = ListenerSettings({"ssl.keystore.password": "hush"}, "IN")
    assert "hush" not in str(settings.refusal("ssl.keystore.password", "must be right"))
