"""Settings of a node without effect: listed, checked and kept as Kafka does."""

from __future__ import annotations

import pytest

from tests.compat.kafka.config_requests import BROKER, DELETE, SET, alter, describe
from tests.compat.kafka.conversation import Conversation

MECHANISM = "listener.name.sasl.plain.sasl.jaas.config"


def test_a_broker_setting_that_nobody_knows_is_kept_and_not_shown() -> None:
    """Kafka takes it for that of a plug-in: stored, listed as sensitive, removed on demand."""
    conversation = Conversation()
    for name in ("no.such", "sasl.kerberos.such"):
        assert alter(conversation, BROKER, "1", (name, SET, "58000")) == 0
        entry = describe(conversation, BROKER, "1", [name])["configs"][name]
        assert (entry["value"], entry["config_source"]) == (None, 2)
        assert (entry["is_sensitive"], entry["read_only"], entry["config_type"]) == (True, True, 0)
        assert alter(conversation, BROKER, "1", (name, DELETE, None)) == 0
        assert name not in describe(conversation, BROKER, "1")["configs"]
    assert alter(conversation, BROKER, "", ("no.such", SET, "1")) == 0
    assert describe(conversation, BROKER, "")["configs"]["no.such"]["value"] is None


def test_a_setting_without_effect_is_listed_as_kafka_does() -> None:
    """With its type, its default and who else gives it a value; what is secret is not shown."""
    name = "remote.log.reader.threads"
    listener = "listener.name.plaintext.ssl.keystore.type"
    given = {
        name: "7",
        listener: "PKCS12",
        "ssl.key.password": "hush",
        "no.such": "hush",
        MECHANISM: "hush",
    }
    conversation = Conversation(given)
    assert alter(conversation, BROKER, "", (name, SET, "9")) == 0
    assert alter(conversation, BROKER, "1", (name, SET, "8")) == 0
    found = describe(conversation, BROKER, "1")["configs"]
    values = [(one["value"], one["source"]) for one in found[name]["synonyms"]]
    assert values == [("8", 2), ("9", 3), ("7", 4), ("10", 5)]
    assert (found[name]["value"], found[name]["config_type"]) == ("8", 3)
    assert not found[name]["read_only"]
    assert found[listener]["value"] == "PKCS12"
    assert [one["name"] for one in found[listener]["synonyms"]] == [listener, "ssl.keystore.type"]
    secret = (None, True, [None])
    for one in (found["ssl.key.password"], found["no.such"], found[MECHANISM]):
        synonyms = [each["value"] for each in one["synonyms"]]
        assert (one["value"], one["is_sensitive"], synonyms) == secret
    assert describe(conversation, BROKER, "")["configs"][name]["value"] == "9"


@pytest.mark.parametrize(
    ("who", "name", "value"),
    [
        ("1", "remote.log.reader.threads", "many"),
        ("1", "share.coordinator.cached.buffer.max.bytes", "3"),
        ("1", "metadata.log.segment.ms", "3"),
        ("1", "ssl.keystore.location", "/k"),
        ("", "sasl.enabled.mechanisms", "PLAIN"),
    ],
)
def test_what_has_no_effect_is_checked_all_the_same(who: str, name: str, value: str) -> None:
    """By its type; what is fixed, one listener's or one broker's stays that."""
    assert alter(Conversation(), BROKER, who, (name, SET, value)) == 42
