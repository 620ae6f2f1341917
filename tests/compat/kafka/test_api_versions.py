"""What a client learns first: which APIs there are, in which versions."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.kafka.groups.modern.broker_cluster import serves_consumer_groups
from logstore.compat.kafka.registry import APIS, Api
from logstore.segments.kafka.cluster_metadata.release import parse_release
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.conversation import DIRECTORY, Conversation, joined, message_class
from tests.compat.kafka.peer import Peer, a_broker

SOFTWARE = {"client_software_name": "some-client", "client_software_version": "1.2.3"}


def ranges(answer: dict[str, Any]) -> dict[int, tuple[int, int]]:
    """Return what is advertised, by API key."""
    return {api["api_key"]: (api["min_version"], api["max_version"]) for api in answer["api_keys"]}


@pytest.mark.parametrize("version", range(5))
def test_every_version_lists_the_registry(version: int) -> None:
    """Every version of the answer lists exactly the registered APIs, in the order of their keys."""
    fields = SOFTWARE if version >= 3 else {}
    answer = Conversation().ask("ApiVersions", version, **fields)
    assert answer["error_code"] == 0
    assert list(ranges(answer)) == sorted(APIS)
    for key, (low, high) in ranges(answer).items():
        assert (low, high) == (APIS[key].advertised_min, APIS[key].version_max)


@pytest.mark.parametrize("version", range(5))
def test_bytes_are_the_librarys(version: int) -> None:
    """What is written by hand is byte for byte what the library writes for the same answer."""
    conversation = Conversation()
    fields = SOFTWARE if version >= 3 else {}
    written = conversation.ask_bytes("ApiVersions", version, **fields)
    answer = message_class("ApiVersionsResponse").decode(
        written, version=version, header=True, framed=True
    )
    assert written[8:] == message_class("ApiVersionsResponse").encode(answer)


def test_ranges_are_those_of_the_real_broker(golden: Path) -> None:
    """Every range is the one that a Kafka 4.3 broker was recorded to advertise."""
    lines = (golden / "wire" / "java.jsonl").read_text().splitlines()
    frames = [json.loads(line) for line in lines]
    recorded = next(f for f in frames if f["from"] == "broker" and f["api"] == "ApiVersions")
    theirs = message_class("ApiVersionsResponse").decode(
        bytes.fromhex(recorded["hex"]), version=recorded["version"], header=True
    )
    real = ranges(theirs.to_dict(json=False))
    ours = ranges(Conversation().ask("ApiVersions", 4, **SOFTWARE))
    assert ours == {key: real[key] for key in ours}


def test_old_clients_find_produce_from_zero_on() -> None:
    """Produce is advertised from version 0 on, without which old librdkafka does not compress."""
    assert ranges(Conversation().ask("ApiVersions", 0))[0] == (0, 13)


def test_the_release_is_recognised() -> None:
    """kafka-python takes the advertised ranges for a broker of release 4.3."""
    answer = Conversation().ask_bytes("ApiVersions", 4, **SOFTWARE)
    decoded = message_class("ApiVersionsResponse").decode(
        answer, version=4, header=True, framed=True
    )
    data: Any = importlib.import_module("kafka.protocol.broker_version_data")
    versions = {api.api_key: (api.min_version, api.max_version) for api in decoded.api_keys}
    assert data.BrokerVersionData(api_versions=versions).broker_version == (4, 3)


def test_features_are_only_what_is_served() -> None:
    """They come in the order in which Kafka tells of them; groups are of KIP-848, 1071 and 932."""
    answer = Conversation().ask("ApiVersions", 4, **SOFTWARE)
    assert answer["supported_features"] == [
        {"name": "group.version", "min_version": 0, "max_version": 1},
        {"name": "kraft.version", "min_version": 0, "max_version": 1},
        {"name": "metadata.version", "min_version": 7, "max_version": 30},
        {"name": "share.version", "min_version": 0, "max_version": 1},
        {"name": "streams.version", "min_version": 0, "max_version": 1},
        {"name": "transaction.version", "min_version": 0, "max_version": 2},
        {"name": "eligible.leader.replicas.version", "min_version": 0, "max_version": 1},
    ]
    elr = "eligible.leader.replicas.version"
    assert answer["finalized_features"] == [
        {"name": "group.version", "max_version_level": 1, "min_version_level": 1},
        {"name": "streams.version", "max_version_level": 1, "min_version_level": 1},
        {"name": "transaction.version", "max_version_level": 2, "min_version_level": 2},
        {"name": elr, "max_version_level": 1, "min_version_level": 1},
        {"name": "share.version", "max_version_level": 1, "min_version_level": 1},
        {"name": "metadata.version", "max_version_level": 30, "min_version_level": 30},
    ]
    assert answer["finalized_features_epoch"] >= 0


def test_share_groups_are_told_of_where_their_members_can_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The feature is in force in the metadata; clients hear of it with ShareFetch served, only."""
    read = {78: "ShareFetch", 79: "ShareAcknowledge"}

    def told() -> set[str]:
        answer = Conversation().ask("ApiVersions", 4, **SOFTWARE)
        lists = (answer["supported_features"], answer["finalized_features"])
        return {one["name"] for features in lists for one in features}

    for key, name in read.items():
        monkeypatch.setitem(APIS, key, Api(key, name, 1, 2, flexible_from=0))
    assert "share.version" in told()
    monkeypatch.delitem(APIS, 78)
    assert "share.version" not in told()


def test_features_that_start_at_level_0_are_not_supported_in_version_3() -> None:
    """Old clients stumble over a minimum of 0 (KAFKA-17492); the level in force is told."""
    answer = Conversation().ask("ApiVersions", 3, **SOFTWARE)
    assert [one["name"] for one in answer["supported_features"]] == ["metadata.version"]
    assert "transaction.version" in [one["name"] for one in answer["finalized_features"]]


def test_a_directory_of_3_9_has_no_transactions_of_version_2() -> None:
    """What the cluster's metadata has not turned on is not in force, so no client uses it."""
    host = SimulatedHost()
    release = parse_release("3.9")
    KafkaStore(host, DIRECTORY, StoreOptions(release=release)).close()
    broker = a_broker(host)
    answer = Peer(broker).ask("ApiVersions", 4, SOFTWARE).message
    assert [one["name"] for one in answer["finalized_features"]] == ["metadata.version"]
    assert answer["finalized_features"][0]["max_version_level"] == release.level
    assert broker.transactions.config.transaction_version == 0
    assert not serves_consumer_groups(broker)


@pytest.mark.parametrize("version", [5, 6, 32767])
def test_a_version_of_the_future_is_told_the_range(version: int) -> None:
    """A version that is not served is answered in version 0 with 35 and 0-4; nothing is closed."""
    conversation = Conversation()
    header = (18).to_bytes(2, "big") + version.to_bytes(2, "big") + (77).to_bytes(4, "big")
    frame = header + b"\x00\x04test\x00\x02x\x02y\x00"
    connection = conversation.connection
    answer = joined(connection.feed(len(frame).to_bytes(4, "big") + frame))
    assert answer == bytes.fromhex("00000010 0000004d 0023 00000001 0012 0000 0004")
    assert not connection.is_closing
    assert conversation.ask("ApiVersions", 4, **SOFTWARE)["error_code"] == 0


def test_the_clients_software_is_remembered() -> None:
    """A client that says what it is gets remembered for it."""
    conversation = Conversation()
    conversation.ask("ApiVersions", 3, **SOFTWARE)
    assert conversation.connection.client.software == "some-client 1.2.3"


@pytest.mark.parametrize("name", ["", "-x", "x-", "a b", "é"])
def test_a_malformed_software_name_is_invalid(name: str) -> None:
    """A software name or version that is not well-formed is answered with 42 and no APIs."""
    for fields in ({**SOFTWARE, "client_software_name": name},
                   {**SOFTWARE, "client_software_version": name}):  # fmt: skip
        answer = Conversation().ask_bytes("ApiVersions", 3, **fields)
        # error 42, no APIs, throttle time 0, no tags
        assert answer[8:] == bytes.fromhex("002a 01 00000000 00")
