"""The authorizer of a broker: its settings, its rules, and where they are kept."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.registry import APIS
from logstore.compat.kafka.security.acl import Operation, PatternType, Permission, ResourceType
from logstore.compat.kafka.security.guards import GUARDS, OPEN, RAW_GUARDS
from logstore.segments.kafka.config_keys import ConfigError
from logstore.segments.kafka.legacy.message_set import encode_message_set
from logstore.segments.kafka.record import Record
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import batch
from tests.compat.kafka.conversation import Conversation, joined
from tests.compat.kafka.peer import produce_fields
from tests.compat.kafka.security.access import (
    AUTHORIZER,
    EVERY,
    GuardedConversation,
    creation,
)

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE = Operation.READ, Operation.WRITE


def test_every_api_has_one_guard() -> None:
    """What is served is guarded, or said to be open to all; nothing is by oversight."""
    assert not OPEN & GUARDS.keys()
    assert not GUARDS.keys() & RAW_GUARDS.keys()
    assert APIS.keys() <= OPEN | GUARDS.keys() | RAW_GUARDS.keys()
    find = GuardedConversation().broker.find_api
    assert find is not None
    for api in APIS.values():
        found = find(api.key, api.version_max)
        assert found is not None
        assert (found is api) is (api.key in OPEN)


def test_without_an_authorizer_nothing_stands_in_between() -> None:
    """Requests go to the handlers of the registry; rules are 54, in Kafka's two sentences."""
    talk = Conversation()
    assert talk.broker.find_api is None
    told = (
        talk.ask("CreateAcls", 3, creations=[creation(TOPIC, "t", READ)])["results"][0],
        talk.ask("DeleteAcls", 3, filters=[EVERY])["filter_results"][0],
        talk.ask("DescribeAcls", 3, **EVERY),
    )
    text = "No Authorizer is configured"
    assert [(one["error_code"], one["error_message"]) for one in told] == [
        (54, f"{text}."), (54, f"{text}."), (54, f"{text} on the broker"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"authorizer.class.name": "com.example.Mine"}, "there is only"),
        (AUTHORIZER | {"super.users": "admin"}, "User:a;User:b"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, str], reason: str) -> None:
    """A broker does not start with an authorizer that is not there: it would let everybody in."""
    with pytest.raises(ConfigError, match=reason):
        Broker.open(SimulatedHost(), "/data", settings)


def describes(talk: GuardedConversation, name: str, topic: str) -> bool:
    """Tell whether somebody sees a topic."""
    asked = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
    answer = talk.as_user(name, "Metadata", 12, **asked)
    return bool(answer["topics"][0]["error_code"] == 0)


def test_super_users_and_the_default() -> None:
    """Super users may do everything; where no rule is about a name the default decides."""
    for is_open in (False, True):
        talk = GuardedConversation({"allow.everyone.if.no.acl.found": str(is_open)})
        talk.create("t")
        assert describes(talk, "admin", "t")
        assert describes(talk, "root", "t")
        assert describes(talk, "alice", "t") is is_open
        talk.allow(creation(TOPIC, "t", READ, who="User:bob"))
        assert not describes(talk, "alice", "t")
        assert describes(talk, "bob", "t")


def test_rules_survive() -> None:
    """They are created once, deleted by filter, and are there after a restart as they were."""
    talk = GuardedConversation()
    talk.create("t")
    rule = creation(TOPIC, "t", READ)
    assert talk.allow(rule, rule, creation(GROUP, "g", READ, pattern=PatternType.PREFIXED)) == [
        0, 0, 0,
    ]  # fmt: skip
    assert talk.allow(rule) == [0]
    assert talk.rules() == [("t", "User:alice"), ("g", "User:alice")]
    talk.restart(AUTHORIZER)
    assert talk.rules() == [("t", "User:alice"), ("g", "User:alice")]
    assert describes(talk, "alice", "t")
    answer = talk.as_user(
        "admin", "DeleteAcls", 3,
        filters=[{**EVERY, "resource_type_filter": 2}, {**EVERY, "operation": 99}, EVERY],
    )  # fmt: skip
    found = [
        (one["error_code"], [acl["resource_name"] for acl in one["matching_acls"]])
        for one in answer["filter_results"]
    ]
    assert found == [(0, ["t"]), (42, []), (0, ["t", "g"])]
    first, refused, _ = answer["filter_results"]
    assert (first["error_message"], first["matching_acls"][0]["error_message"]) == (None, None)
    assert refused["error_message"]
    assert not describes(talk, "alice", "t")
    talk.restart(AUTHORIZER)
    assert talk.rules() == []


def test_rules_without_sense_do_not_hinder_the_others() -> None:
    """Each rule of a request is judged by itself."""
    talk = GuardedConversation()
    codes = talk.allow(
        creation(TOPIC, "t", READ, who="alice"),
        creation(ResourceType.CLUSTER, "mine", READ),
        creation(TOPIC, "", READ),
        creation(TOPIC, "t", READ),
    )
    assert codes == [42, 42, 42, 0]
    assert talk.rules() == [("t", "User:alice")]


def test_an_unknown_element_is_hung_up_on() -> None:
    """As by Kafka, whose requests cannot even be built so."""
    for api, fields in (
        ("CreateAcls", {"creations": [creation(TOPIC, "t", Operation.UNKNOWN)]}),
        ("DeleteAcls", {"filters": [{**EVERY, "pattern_type_filter": 0}]}),
        ("DescribeAcls", {**EVERY, "permission_type": 0}),
    ):
        talk = GuardedConversation()
        with pytest.raises(AssertionError, match="closed the connection"):
            talk.as_user("admin", api, 3, **fields)
        with pytest.raises(AssertionError, match="closed the connection"):
            Conversation().ask(api, 3, **fields)  # without an authorizer, too


def produced(talk: GuardedConversation, *topics: str, version: int = 9) -> list[int]:
    """Return the codes of a Produce by alice."""
    fields = produce_fields([(name, [(0, batch(b"v"))]) for name in topics], version, 1)
    answer = talk.as_user("alice", "Produce", version, **fields)
    return [one["partition_responses"][0]["error_code"] for one in answer["responses"]]


def test_a_rule_ends_the_short_way() -> None:
    """What was allowed again and again is looked at anew when a rule changes."""
    talk = GuardedConversation()
    talk.create("t")
    assert produced(talk, "t") == [29]
    talk.allow(creation(TOPIC, "t", WRITE))
    assert [produced(talk, "t") for _ in range(3)] == [[0]] * 3
    assert talk.connection.client.produce_route is not None
    talk.allow(creation(TOPIC, "t", WRITE, permission=Permission.DENY))
    assert produced(talk, "t") == [29]
    assert talk.broker.topics["t"].partitions[0].end_offset == 3


def test_another_user_on_the_same_way() -> None:
    """Who a client is may change on a connection: what one may the next may not."""
    talk = GuardedConversation()
    talk.create("t")
    talk.allow(creation(TOPIC, "t", WRITE))
    assert [produced(talk, "t") for _ in range(2)] == [[0]] * 2
    fields = produce_fields([("t", [(0, batch(b"v"))])], 9, 1)
    answer = talk.as_user("bob", "Produce", 9, **fields)
    assert answer["responses"][0]["partition_responses"][0]["error_code"] == 29


def test_what_may_be_written_is() -> None:
    """Of a request over several topics the allowed ones are appended to."""
    talk = GuardedConversation()
    talk.create("t")
    talk.create("u")
    talk.allow(creation(TOPIC, "t", WRITE))
    assert produced(talk, "u", "t") == [0, 29]
    ends = {name: topic.partitions[0].end_offset for name, topic in talk.broker.topics.items()}
    assert ends == {"t": 1, "u": 0}


def test_without_acknowledgement_a_refusal_hangs_up() -> None:
    """Acks 0 has no answer that could tell of it; what may be written is."""
    talk = GuardedConversation()
    talk.create("t")
    talk.create("u")
    talk.allow(creation(TOPIC, "t", WRITE))
    fields = produce_fields([(name, [(0, batch(b"v"))]) for name in "tu"], 9, 0)
    with pytest.raises(AssertionError, match="closed the connection"):
        talk.as_user("alice", "Produce", 9, **fields)
    assert talk.broker.topics["t"].partitions[0].end_offset == 1


def test_a_session_is_looked_at_each_time() -> None:
    """A fetcher whose right is taken away is told at the next fetch of its session."""
    talk = GuardedConversation()
    topic_id = talk.create("t")
    talk.allow(creation(TOPIC, "t", READ))
    fields: dict[str, Any] = {
        "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1000, "isolation_level": 0,
        "session_id": 0, "session_epoch": 0, "forgotten_topics_data": [], "rack_id": "",
        "topics": [{"topic": "t", "partitions": [{
            "partition": 0, "current_leader_epoch": -1, "fetch_offset": 0,
            "last_fetched_epoch": -1, "log_start_offset": -1, "partition_max_bytes": 100,
        }]}],
    }  # fmt: skip
    first = talk.as_user("alice", "Fetch", 12, **fields)
    assert first["responses"][0]["partitions"][0]["error_code"] == 0
    assert topic_id
    talk.as_user("admin", "DeleteAcls", 3, filters=[EVERY])
    fields |= {"session_id": first["session_id"], "session_epoch": 1, "topics": []}
    second = talk.as_user("alice", "Fetch", 12, **fields)
    assert second["responses"][0]["partitions"][0]["error_code"] == 29


@pytest.mark.parametrize("version", [4, 12, 14, 17])
def test_who_fetches_as_a_replica_needs_the_right_of_brokers(version: int) -> None:
    """To read the topic is not enough for it, nor needed."""
    talk = GuardedConversation()
    talk.allow(creation(TOPIC, "t", READ))
    topic_id = talk.create("t")
    name = {"topic_id": UUID(bytes=topic_id)} if version >= 13 else {"topic": "t"}
    replica = {"replica_state": {"replica_id": 0, "replica_epoch": -1}, "cluster_id": "c"}
    fields: dict[str, Any] = {
        "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1000, "isolation_level": 0,
        "session_id": 0, "session_epoch": -1, "forgotten_topics_data": [], "rack_id": "r",
        "topics": [{**name, "partitions": [{
            "partition": 0, "current_leader_epoch": -1, "fetch_offset": 0,
            "last_fetched_epoch": -1, "log_start_offset": -1, "partition_max_bytes": 100,
        }]}],
    }  # fmt: skip
    as_replica = fields | (replica if version >= 15 else {"replica_id": 0})

    def code(user: str, asked: dict[str, Any]) -> int:
        answer = talk.as_user(user, "Fetch", version, **asked)
        return int(answer["responses"][0]["partitions"][0]["error_code"])

    assert [code("alice", fields), code("alice", as_replica)] == [0, 29]
    kind, action = ResourceType.CLUSTER, Operation.CLUSTER_ACTION
    talk.allow(creation(kind, "kafka-cluster", action, who="User:bob"))
    assert [code("bob", fields), code("bob", as_replica)] == [29, 0]


@pytest.mark.parametrize(("version", "topic"), [(4, "t"), (12, "t")])
def test_topics_come_into_being_with_the_right_to_create(version: int, topic: str) -> None:
    """A question creates a topic only for who may; to others it is refused."""
    talk = GuardedConversation()
    asked = {"topics": [{"name": topic}], "allow_auto_topic_creation": True}
    talk.allow(creation(TOPIC, topic, Operation.DESCRIBE))
    answer = talk.as_user("alice", "Metadata", version, **asked)
    assert answer["topics"][0]["error_code"] == 29
    assert not talk.broker.topics
    talk.allow(creation(TOPIC, topic, Operation.CREATE))
    assert talk.as_user("alice", "Metadata", version, **asked)["topics"][0]["error_code"] == 3
    assert talk.as_user("alice", "Metadata", version, **asked)["topics"][0]["error_code"] == 0
    assert set(talk.broker.topics) == {topic}


@pytest.mark.parametrize("release", ["0.10.2", "3.9"])
def test_old_clients_are_looked_at_too(release: str) -> None:
    """Versions that are translated end at the same guards: nothing is written, nothing read."""
    broker = Broker.open(SimulatedHost(), "/data", AUTHORIZER, emulated_release=release)
    broker.create_topic("t", 1)
    name = struct.pack(">h1s", 1, b"t")
    message_set = encode_message_set([Record(0, 0, None, b"v")], magic=0)
    sent = struct.pack(">hii", 1, 1000, 1) + name + struct.pack(">iii", 1, 0, len(message_set))
    produced = old_answer(broker, 0, sent + bytes(message_set))
    asked = struct.pack(">iiii", -1, 0, 1, 1) + name + struct.pack(">iiqi", 1, 0, 0, 1000)
    fetched = old_answer(broker, 1, asked)
    top = struct.pack(">i", 1) + name + struct.pack(">i", 1)
    assert produced[: len(top) + 6] == top + struct.pack(">ih", 0, 29)
    assert fetched[: len(top) + 6] == top + struct.pack(">ih", 0, 29)
    assert broker.topics["t"].partitions[0].end_offset == 0


def old_answer(broker: Broker, key: int, body: bytes) -> bytes:
    """Return the answer to a request of version 0, without its header."""
    frame = struct.pack(">hhih", key, 0, 7, -1) + body
    connection = broker.connect("127.0.0.1")
    answer = joined(connection.feed(struct.pack(">i", len(frame)) + frame))
    assert answer[4:8] == struct.pack(">i", 7)
    return answer[8:]


@pytest.mark.parametrize(
    "open_rule",
    [
        creation(ResourceType.ANY, "t", READ),
        creation(TOPIC, "t", Operation.ANY),
        creation(TOPIC, "t", READ, permission=Permission.ANY),
        creation(TOPIC, "t", READ, pattern=PatternType.MATCH),
        creation(TOPIC, "t", READ, pattern=PatternType.ANY),
    ],
)
def test_a_rule_about_anything_is_none(open_rule: dict[str, Any]) -> None:
    """All of the request is -1, and nothing is created, as Kafka stumbles over what filters are."""
    talk = GuardedConversation()
    assert talk.allow(creation(TOPIC, "t", READ), open_rule) == [-1, -1]
    assert talk.rules() == []
