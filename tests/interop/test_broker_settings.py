"""What a node tells of its settings, and which of them it lets be changed: as the real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from logstore.compat import StrangeSettingWarning, TestBroker
from logstore.segments.kafka.listed_config_keys import LISTED_CONFIG_KEYS
from tests.compat.kafka.groups.questioner import Line
from tests.interop.conftest import SETTINGS, start_real
from tests.interop.eventually import eventually

pytestmark = pytest.mark.interop

#: what is given at the start: of every kind something
GIVEN: dict[str, object] = {
    "no.such": "1",
    "listener.name.plaintext.ssl.keystore.type": "PKCS12",
    "listener.name.plaintext.plain.sasl.jaas.config": "hush",
    "listener.name.plaintext.max.connections": "100",
    "listener.name.plaintext.plain.connections.max.reauth.ms": "5000",
    "log.initial.task.delay.ms": "20000",
    "log.retention.minutes": "90",
    "remote.log.reader.threads": "7",
    "ssl.key.password": "hush",
    "super.users": "User:a",
    "zookeeper.connect": "there:1",
    # what a test broker has by itself
    **{f"group.{kind}.assignment.interval.ms": "0" for kind in ("consumer", "share", "streams")},
    # what a node has to be told where it is alone
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
}
#: what is different by nature: addresses, directories and what a real one has to be given
OWN = {
    "advertised.listeners", "controller.listener.names", "controller.quorum.voters", "listeners",
    "listener.security.protocol.map", "log.dirs", "process.roles",
}  # fmt: skip
CHANGES = (
    ("1", "remote.log.reader.threads", "8"),
    ("", "remote.log.reader.threads", "9"),
    ("1", "sasl.kerberos.min.time.before.relogin", "58000"),
    ("1", "no.such", "2"),
    ("", "no.such", "3"),
)
#: what a node cannot be changed to, and what only looks like that
CONTRADICTIONS = (
    ("log.cleanup.policy", "compact,compact"), ("log.cleanup.policy", "compact,,delete"),
    *(("log.retention.ms", text) for text in ("0", "-1", "-5")),
    ("log.roll.ms", "0"), ("log.roll.jitter.ms", "-1"), ("log.flush.interval.ms", "-5"),
    ("log.cleaner.dedupe.buffer.size", "1048576"), ("log.cleaner.dedupe.buffer.size", "1048577"),
    ("log.cleaner.threads", "0"), ("log.cleaner.threads", "2"), ("max.connections.per.ip", "0"),
    *(("max.connections.per.ip.overrides", text) for text in ("127.0.0.1:5", "!!:5", "a:x", "abc")),
    *((f"group.{kind}.assignment.interval.ms", text)
      for kind in ("consumer", "share", "streams") for text in ("15000", "15001")),
    *(("remote.log.reader.threads", text) for text in ("0", "14", "15")),
    ("remote.log.index.file.cache.total.size.bytes", "0"), ("remote.fetch.max.wait.ms", "0"),
)  # fmt: skip
BROKER, SET = 4, 0
#: the classes that these name are looked for by a real one
LEFT_OUT = {"principal.builder.class", "ssl.engine.factory.class"}


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Line]]:
    """Connections to the real one and to ours, both started with the same settings."""
    directory: Path = tmp_path_factory.mktemp("real")
    real = start_real(directory, settings=GIVEN)
    with pytest.warns(StrangeSettingWarning, match="no.such"):
        ours = TestBroker(settings={key: str(text) for key, text in (SETTINGS | GIVEN).items()})
    with ours:
        both = [Line(real.bootstrap), Line(ours.bootstrap)]
        yield both
        for line in both:
            line.close()
    real.stop()


def told(line: Line, who: str) -> dict[str, dict[str, Any]]:
    """Return every setting of a node, or of the cluster, with all that is told of it."""
    asked = {"resource_type": BROKER, "resource_name": who, "configuration_keys": None}
    (result,) = line.ask(
        "DescribeConfigs", 4, resources=[asked], include_synonyms=True, include_documentation=False
    )["results"]
    assert result["error_code"] == 0
    return {one["name"]: one for one in result["configs"] if one["name"] not in OWN}


def is_told_alike(lines: list[Line], who: str) -> bool:
    """Tell whether both say the same of every setting."""
    real, ours = (told(line, who) for line in lines)
    return real == ours


def changed(line: Line, who: str, name: str, value: str, *, is_rehearsal: bool) -> int:
    """Change a setting; return the code that this is answered with."""
    change = {"name": name, "config_operation": SET, "value": value}
    resource = {"resource_type": BROKER, "resource_name": who, "configs": [change]}
    (result,) = line.ask(
        "IncrementalAlterConfigs", 1, resources=[resource], validate_only=is_rehearsal
    )["responses"]
    code: int = result["error_code"]
    return code


@pytest.mark.parametrize("who", ["1", ""])
def test_what_has_no_effect_may_be_changed_where_kafka_lets_it(lines: list[Line], who: str) -> None:
    """Each of them, to its default and to what is no number: the same codes."""
    found: list[dict[str, list[int]]] = [
        {
            name: [
                changed(line, who, name, value, is_rehearsal=True)
                for value in (LISTED_CONFIG_KEYS[name].default or "abc", "abc")
            ]
            for name in LISTED_CONFIG_KEYS
            if name not in LEFT_OUT
        }
        for line in lines
    ]
    assert found[0] == found[1]
    assert {code for codes in found[0].values() for code in codes} == {0, 42}


def test_features_are_told_alike(lines: list[Line]) -> None:
    """Names and levels, in the same order."""
    client = {"client_software_name": "test", "client_software_version": "1"}
    for version in (3, 4):
        told = [line.ask("ApiVersions", version, **client) for line in lines]
        for kind in ("supported_features", "finalized_features"):
            assert told[0][kind] == told[1][kind]


def test_every_setting_is_told_alike(lines: list[Line]) -> None:
    """Its value, type and sources, whether it is secret and whether it can be changed."""
    found = [told(line, "1") for line in lines]
    assert len(found[0]) > 330
    assert found[0] == found[1]
    assert list(found[0]) == list(found[1]), "in the same order"
    for line in lines:
        codes = [changed(line, *change, is_rehearsal=False) for change in CHANGES]
        assert codes == [0] * len(CHANGES)
    for who in ("1", ""):
        # a real one learns of changes from its controller, a moment later
        eventually(partial(is_told_alike, lines, who), what=f"{CHANGES} told alike")
        real = told(lines[0], who)
        assert "no.such" in real


@pytest.mark.parametrize("who", ["1", ""])
def test_what_does_not_go_together(lines: list[Line], who: str) -> None:
    """The same code and words for each, of one node and of all."""
    for name, text in CONTRADICTIONS:
        change = {"name": name, "config_operation": SET, "value": text}
        resource = {"resource_type": BROKER, "resource_name": who, "configs": [change]}
        said = [
            (one["error_code"], one["error_message"])
            for line in lines
            for one in line.ask(
                "IncrementalAlterConfigs", 1, resources=[resource], validate_only=True
            )["responses"]
        ]
        assert said[0] == said[1], (name, text)
