"""Client quotas at a broker: set, kept, shown, and kept to."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.quotas.alteration import Change, records_of
from logstore.compat.kafka.quotas.client_quotas import PRODUCER_BYTE_RATE, ClientQuotas
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.security.principal import USER, Principal
from logstore.segments.kafka.cluster_metadata.access_records import QuotaEntity
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import batch
from tests.compat.kafka.conversation import Conversation
from tests.compat.kafka.peer import Peer, a_broker, fetch_fields
from tests.compat.kafka.security.access import GuardedConversation

Entity = dict[str, str | None]
CLIENT: Entity = {"client-id": "test"}
#: as a real broker's table has them, a default under null
ENTITIES_IN_ORDER = [{"user": name} for name in ("d", "c", "e", None, "b", "a")]


def alter(talk: Conversation, entity: Entity, **limits: float | None) -> tuple[int, str | None]:
    """Set limits of an entity; None takes one back. Returns code and message."""
    answer = talk.ask(
        "AlterClientQuotas", 1, validate_only=False, entries=[altered(entity, **limits)]
    )
    (entry,) = answer["entries"]
    assert {one["entity_type"]: one["entity_name"] for one in entry["entity"]} == entity
    return entry["error_code"], entry["error_message"]


def altered(entity: Entity, **limits: float | None) -> dict[str, Any]:
    """Return one entry of a request."""
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [
            {"key": key, "value": value or 0.0, "remove": value is None}
            for key, value in limits.items()
        ],
    }


#: why addresses and users are not asked for at once
NO_USERS_OF_ADDRESSES = (
    "Invalid entity filter component combination. IP filter component should not be used with "
    "user or clientId filter component."
)


def found(
    talk: Conversation, *components: tuple[str, int, str | None], strict: bool = False
) -> Any:
    """Return what a question finds: entities and their limits."""
    answer = talk.ask(
        "DescribeClientQuotas", 1, strict=strict,
        components=[{"entity_type": t, "match_type": m, "match": n} for t, m, n in components],
    )  # fmt: skip
    assert answer["error_code"] == 0
    return [
        ({one["entity_type"]: one["entity_name"] for one in entry["entity"]},
         {one["key"]: one["value"] for one in entry["values"]})
        for entry in answer["entries"]
    ]  # fmt: skip


@pytest.mark.parametrize("is_refused", [False, True])
def test_the_answer_names_the_client_id_before_its_user(is_refused: bool) -> None:
    """As Kafka does, in whatever order they are asked about."""
    limits: dict[str, float | None] = {"nonsense" if is_refused else "producer_byte_rate": 1.0}
    entities: list[Entity] = [{"user": "a", "client-id": "b"}, {"client-id": "b", "user": "a"}]
    for entity in entities:
        answer = Conversation().ask(
            "AlterClientQuotas", 1, validate_only=True, entries=[altered(entity, **limits)]
        )
        (entry,) = answer["entries"]
        assert (entry["error_code"] != 0) is is_refused
        assert [one["entity_type"] for one in entry["entity"]] == ["client-id", "user"]


def test_limits_are_kept_and_shown() -> None:
    """After a restart they are there as they were; a question finds those that it means."""
    talk = Conversation()
    user: Entity = {"user": "alice"}
    both: Entity = {"user": "alice", "client-id": None}
    assert alter(talk, user, producer_byte_rate=100.0, request_percentage=12.5) == (0, None)
    assert alter(talk, both, consumer_byte_rate=7.0) == (0, None)
    assert alter(talk, {"ip": "10.0.0.1"}, connection_creation_rate=3.0) == (0, None)
    rehearsal = altered({"ip": None}, connection_creation_rate=3.0)
    answer = talk.ask("AlterClientQuotas", 1, validate_only=True, entries=[rehearsal])
    assert answer["entries"][0]["error_code"] == 0
    talk.restart()
    of_user = (user, {"producer_byte_rate": 100.0, "request_percentage": 12.5})
    of_both = ({"client-id": None, "user": "alice"}, {"consumer_byte_rate": 7.0})
    of_address = ({"ip": "10.0.0.1"}, {"connection_creation_rate": 3.0})
    assert found(talk) == [of_user, of_address, of_both]
    assert found(talk, ("user", 0, "alice")) == [of_user, of_both]
    assert found(talk, ("user", 0, "alice"), strict=True) == [of_user]
    assert found(talk, ("user", 2, None), ("client-id", 1, None)) == [of_both]
    assert found(talk, ("user", 1, None)) == []
    assert found(talk, ("ip", 2, None)) == [of_address]
    assert alter(talk, user, producer_byte_rate=None, request_percentage=None)[0] == 0
    assert alter(talk, user, producer_byte_rate=None)[0] == 0
    assert found(talk, ("user", 2, None)) == [of_both]


def test_limits_come_in_the_order_of_a_table() -> None:
    """As a real broker tells them, by the hashes of their names, however they were set."""
    talk = Conversation()
    limits = {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0, "request_percentage": 0.5}
    assert alter(talk, {"user": None}, **limits) == (0, None)
    ((_, told),) = found(talk)
    assert list(told) == ["consumer_byte_rate", "request_percentage", "producer_byte_rate"]
    assert alter(talk, {"user": None}, controller_mutation_rate=4.0) == (0, None)
    ((_, told),) = found(talk)
    assert list(told) == [
        "producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate",
        "request_percentage",
    ]  # fmt: skip


def test_entities_come_in_the_order_of_a_table() -> None:
    """By their hashes, too; a default's name counts for nothing."""
    talk = Conversation()
    entities: list[Entity] = [{"user": name} for name in ("a", "b", "c", "d", "e", None)]
    for entity in entities:
        assert alter(talk, entity, producer_byte_rate=1.0) == (0, None)
    in_order = [entity for entity, _ in found(talk, ("user", 2, None))]
    assert in_order == ENTITIES_IN_ORDER


@pytest.mark.parametrize(
    ("entity", "limits", "reason"),
    [
        ({}, {}, "Invalid empty client quota entity"),
        ({"planet": "x"}, {}, "Unhandled client quota entity type: planet"),
        ({"user": ""}, {}, "Empty user not supported"),
        ({"user": "", "client-id": ""}, {}, "Empty client-id not supported"),
        ({"user": "a", "ip": "10.0.0.1"}, {}, "Invalid quota entity combination"),
        ({"ip": "somewhere else"}, {}, "is not a valid IP or resolvable host"),
        ({"user": "a"}, {"speed": 1.0}, "Invalid configuration key speed"),
        ({"user": "a"}, {"connection_creation_rate": 1.0}, "Invalid configuration key"),
        ({"user": "a"}, {"producer_byte_rate": 0.0001 - 1}, "must be greater than 0"),
        ({"user": "a"}, {"producer_byte_rate": 1.5}, "cannot be a fractional value"),
        ({"user": "a"}, {"producer_byte_rate": 1e30}, "too large for a LONG"),
        ({"ip": "::1"}, {"connection_creation_rate": 1e10}, "too large for an INT"),
    ],
)  # fmt: skip
def test_what_cannot_be(entity: Entity, limits: dict[str, float], reason: str) -> None:
    """An entity, a limit or a value that there is not: 42, and why."""
    code, message = alter(Conversation(), entity, **limits)
    assert code == 42
    assert message is not None
    assert reason in message


@pytest.mark.parametrize(
    ("components", "code", "reason"),
    [
        ([("", 2, None)], 42, "Invalid empty entity type."),
        ([("user", 2, None)] * 2, 42,
         "Entity type user cannot appear more than once in the filter."),
        ([("sort", 2, None)], 35, "Unsupported entity type sort"),
        ([("user", 3, None)], 42, "Unknown match type 3"),
        ([("user", 0, None)], 42,
         "Request specified MATCH_TYPE_EXACT, but set match string to null."),
        ([("user", 1, "a")], 42,
         "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."),
        ([("user", 2, "a")], 42,
         "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string."),
        ([("ip", 2, None), ("user", 2, None)], 42, NO_USERS_OF_ADDRESSES),
    ],
)  # fmt: skip
def test_what_cannot_be_asked(
    components: list[tuple[str, int, str | None]], code: int, reason: str
) -> None:
    """A filter that makes no sense is refused as a whole, in Kafka's words."""
    answer = Conversation().ask(
        "DescribeClientQuotas", 1, strict=False,
        components=[{"entity_type": t, "match_type": m, "match": n} for t, m, n in components],
    )  # fmt: skip
    assert (answer["error_code"], answer["error_message"]) == (code, reason)
    assert answer["entries"] is None


def test_one_bad_entity_does_not_hinder_another() -> None:
    """Each is judged by itself; the same limit twice is one of them."""
    talk = Conversation()
    twice = altered(CLIENT, producer_byte_rate=1.0)
    twice["ops"] *= 2
    answer = talk.ask(
        "AlterClientQuotas", 1, validate_only=False,
        entries=[twice, altered({"user": None}, producer_byte_rate=5.0)],
    )  # fmt: skip
    assert [entry["error_code"] for entry in answer["entries"]] == [42, 0]
    assert answer["entries"][0]["error_message"] == (
        "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=test})"
    )
    assert found(talk) == [({"user": None}, {"producer_byte_rate": 5.0})]


def test_an_entity_that_comes_again_is_refused() -> None:
    """In Kafka's words, in place of what came first, which is in force all the same."""
    talk = Conversation()
    user: Entity = {"user": None, "client-id": "b"}
    answer = talk.ask(
        "AlterClientQuotas", 1, validate_only=False,
        entries=[altered(user, producer_byte_rate=5.0), altered(user, producer_byte_rate=6.0)],
    )  # fmt: skip
    assert [(entry["error_code"], entry["error_message"]) for entry in answer["entries"]] == [
        (42, "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=b, user=null})")
    ]
    assert found(talk) == [(user, {"producer_byte_rate": 5.0})]


def test_limits_are_numbers_of_java() -> None:
    """2^63 is not too large for a long, and one that is no number stays what it is."""
    largest = [Change("producer_byte_rate", 2.0**63)]
    (record,) = records_of([("user", "a")], largest, {})
    assert record.value == 2**63
    none = float("nan")
    known: dict[QuotaEntity, dict[str, float]] = {(("user", "a"),): {"producer_byte_rate": none}}
    assert records_of([("user", "a")], [Change("producer_byte_rate", none)], known) == []


def test_limits_are_walked_in_the_order_of_their_hashes() -> None:
    """What is wrong first, and what is kept first, is so of the table that Kafka puts them into."""
    two = [Change("producer_byte_rate", 1.0), Change("consumer_byte_rate", 2.0)]
    four = [*two, Change("request_percentage", 3.0), Change("controller_mutation_rate", 4.0)]
    assert [record.key for record in records_of([("user", "a")], two, {})] == [
        "consumer_byte_rate", "producer_byte_rate",
    ]  # fmt: skip
    assert [record.key for record in records_of([("user", "a")], four, {})] == [
        "producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate",
        "request_percentage",
    ]  # fmt: skip
    wrong = [Change("producer_byte_rate", 0.0), Change("consumer_byte_rate", 0.0)]
    with pytest.raises(RefusedRequestError, match="Quota consumer_byte_rate must be greater"):
        records_of([("user", "a")], wrong, {})


def test_the_closest_entity_counts() -> None:
    """User and client id together come before the user, and the user before the client id."""
    talk = Conversation()
    order: list[Entity] = [
        {"client-id": None}, {"client-id": "test"}, {"user": None},
        {"user": None, "client-id": None}, {"user": None, "client-id": "test"}, {"user": "alice"},
        {"user": "alice", "client-id": None}, {"user": "alice", "client-id": "test"},
    ]  # fmt: skip
    quotas = ClientQuotas(talk.broker.config.given, talk.host.clock)
    client = talk.connection.client
    talk.ask("ApiVersions", 0)
    client.principal = Principal(USER, "alice")
    for rate, entity in enumerate(order, 1):
        assert alter(talk, entity, producer_byte_rate=float(rate)) == (0, None)
        quotas.load(talk.broker.store.metadata.image)
        limit = quotas.limit(PRODUCER_BYTE_RATE, client)
        assert limit is not None
        assert limit.rate == rate
    client.principal = Principal(USER, "bob")
    limit = quotas.limit(PRODUCER_BYTE_RATE, client)
    assert limit is not None
    assert limit.rate == 5


def limited(**limits: float) -> tuple[SimulatedHost, Broker]:
    """Return a broker with a topic, and limits of the client id `test`."""
    host = SimulatedHost()
    broker = a_broker(host)
    broker.create_topic("t", 1)
    answer = Peer(broker).ask(
        "AlterClientQuotas", 1, {"entries": [altered(CLIENT, **limits)], "validate_only": False}
    )
    assert answer.message["entries"][0]["error_code"] == 0
    return host, broker


@pytest.mark.parametrize("version", [7, 9])
def test_a_producer_is_told_to_keep_still(version: int) -> None:
    """The answer comes at once, the next request is read when the time is over (KIP-219)."""
    host, broker = limited(producer_byte_rate=100)
    peer = Peer(broker)
    assert (
        peer.produce([("t", [(0, batch(b"v"))])], version=version).message["throttle_time_ms"] == 0
    )
    answer = peer.produce([("t", [(0, batch(b"v" * 2000))])], version=version)
    throttle_ms = answer.message["throttle_time_ms"]
    assert throttle_ms > 10_000
    assert answer.partition["error_code"] == 0
    peer.send_produce([("t", [(0, batch(b"v"))])], version=version)
    host.clock.advance(throttle_ms - 1)
    broker.timers.run()
    assert peer.answers() == []
    host.clock.advance(1)
    broker.timers.run()
    assert peer.answer().partition["base_offset"] == 2
    assert (
        Peer(broker, "other")
        .produce([("t", [(0, batch(b"v" * 9000))])])
        .message["throttle_time_ms"]
        == 0
    )


def test_who_wants_no_answer_is_throttled_too() -> None:
    """With acks 0 nothing is told, but nothing is read either."""
    host, broker = limited(producer_byte_rate=100)
    peer = Peer(broker)
    for _ in range(2):
        peer.send_produce([("t", [(0, batch(b"v" * 2000))])], acks=0)
    assert broker.topics["t"].partitions[0].end_offset == 1
    host.clock.advance(60_000)
    broker.timers.run()
    assert broker.topics["t"].partitions[0].end_offset == 2


def fetch(peer: Peer, **fields: Any) -> dict[str, Any]:
    """Fetch from the start of the topic; return the answer."""
    partition = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0,
                 "last_fetched_epoch": -1, "log_start_offset": -1}  # fmt: skip
    wanted: dict[str, Any] = {"session_id": 0, "session_epoch": -1, "rack_id": "", **fields}
    return peer.ask("Fetch", 12, fetch_fields([("t", [partition])], 12, **wanted)).message


def test_a_consumer_gets_nothing_until_its_time_is_over() -> None:
    """Too much at once is not sent; what is left out is sent later, and counted only then."""
    host, broker = limited(consumer_byte_rate=100)
    Peer(broker, "other").produce([("t", [(0, batch(b"v" * 700))])])
    peer = Peer(broker)
    first = fetch(peer)
    assert first["throttle_time_ms"] == 0
    assert len(first["responses"][0]["partitions"][0]["records"]) > 700
    second = fetch(peer, session_epoch=0)
    assert second["throttle_time_ms"] > 0
    assert (second["responses"], second["session_id"]) == ([], 0)
    host.clock.advance(12_000)
    broker.timers.run()
    third = fetch(peer)
    assert third["throttle_time_ms"] == 0
    assert len(third["responses"]) == 1


def test_who_has_waited_is_throttled_too() -> None:
    """An answer that came later is counted, and what follows is read when the time is over."""
    host, broker = limited(consumer_byte_rate=100)
    peer = Peer(broker)
    partition = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0,
                 "last_fetched_epoch": -1, "log_start_offset": -1}  # fmt: skip
    wanted = fetch_fields(
        [("t", [partition])], 12, session_id=0, session_epoch=-1, rack_id="", max_wait_ms=500
    )
    assert peer.send("Fetch", 12, wanted).answers() == []
    Peer(broker, "other").produce([("t", [(0, batch(b"v" * 2000))])])
    throttle_ms = peer.answer().message["throttle_time_ms"]
    assert throttle_ms > 0
    assert peer.send("ApiVersions", 0, {}).answers() == []
    host.clock.advance(throttle_ms)
    broker.timers.run()
    assert peer.answer().api == "ApiVersions"


def test_a_fetch_asks_for_no_more_than_its_window() -> None:
    """What is read is cut to that, so that the pause for it is short, as Kafka's is."""
    _, broker = limited(consumer_byte_rate=100)
    for _ in range(4):
        Peer(broker, "other").produce([("t", [(0, batch(b"v" * 300))])])
    assert 0 < fetch(Peer(broker))["throttle_time_ms"] < 1000


def created(name: str, partitions: int) -> dict[str, Any]:
    """Return the fields of a CreateTopics."""
    topic: dict[str, Any] = {"name": name, "num_partitions": partitions, "replication_factor": 1,
             "assignments": [], "configs": []}  # fmt: skip
    return {"topics": [topic], "timeout_ms": 1000, "validate_only": False}


def test_changes_of_topics_cost_tokens() -> None:
    """Since KIP-599 who is in debt is refused; what could not be done anyway is told as ever."""
    host, broker = limited(controller_mutation_rate=1)

    def ask(api: str, version: int, fields: dict[str, Any]) -> dict[str, Any]:
        return Peer(broker).ask(api, version, fields).message

    first = ask("CreateTopics", 7, created("a", 12))
    assert (first["throttle_time_ms"], first["topics"][0]["error_code"]) == (0, 0)
    second = ask("CreateTopics", 7, created("b", 1))
    assert second["throttle_time_ms"] == 1000
    assert second["topics"][0]["error_code"] == 89
    assert second["topics"][0]["error_message"] == "The throttling quota has been exceeded."
    assert "b" not in broker.topics
    assert ask("CreateTopics", 7, created("a", 1))["topics"][0]["error_code"] == 36
    deletion = {"topics": [{"name": "a", "topic_id": None}], "timeout_ms": 1000}
    assert ask("DeleteTopics", 6, deletion)["responses"][0]["error_code"] == 89
    growth = {"topics": [{"name": "t", "count": 3, "assignments": None}], "timeout_ms": 1000,
              "validate_only": False}  # fmt: skip
    assert ask("CreatePartitions", 3, growth)["results"][0]["error_code"] == 89
    host.clock.advance(1000)
    assert ask("CreatePartitions", 3, growth)["results"][0]["error_code"] == 0
    old = ask("CreateTopics", 5, created("c", 4))
    assert (old["topics"][0]["error_code"], old["throttle_time_ms"]) == (0, 6000)
    assert "c" in broker.topics


def test_within_a_limit_a_topic_is_named_once() -> None:
    """By its name or by its id: who says both in two places is refused, and nothing goes."""
    talk = Conversation()
    talk.create("t")
    assert alter(talk, {"user": None}, controller_mutation_rate=1e9) == (0, None)
    topic_id = uuid.UUID(bytes=talk.broker.topics["t"].topic_id)
    named = [{"name": "t", "topic_id": None}, {"name": None, "topic_id": topic_id}]
    for timeout_ms, codes in ((1000, [42]), (0, [7, 7])):
        answer = talk.ask("DeleteTopics", 6, topics=named, timeout_ms=timeout_ms)
        assert [one["error_code"] for one in answer["responses"]] == codes
    assert "t" in talk.broker.topics


def test_within_a_limit_topics_grow_in_the_order_of_their_hashes() -> None:
    """As without one, in whatever order they are asked for; those that come twice first."""
    talk = Conversation()
    asked: list[dict[str, Any]] = [
        {"name": name, "count": 2, "assignments": []} for name in ("c", "b", "a", "b")
    ]
    fields = {"topics": asked, "timeout_ms": 1000, "validate_only": False}
    for _ in range(2):
        results = talk.ask("CreatePartitions", 3, **fields)["results"]
        assert [one["name"] for one in results] == ["b", "a", "c"]
        assert alter(talk, {"user": None}, controller_mutation_rate=1e9) == (0, None)


def test_without_limits_nothing_is_metered() -> None:
    """A broker that had limits, and has none any more, asks the registry again."""
    talk = Conversation()
    assert talk.broker.find_api is None
    alter(talk, CLIENT, producer_byte_rate=1.0)
    assert talk.broker.find_api is not None
    alter(talk, CLIENT, producer_byte_rate=None)
    assert talk.broker.find_api is None


def test_rules_and_limits_together() -> None:
    """A guard stands behind the meter: what may not be written is refused, and counted."""
    talk = GuardedConversation()
    talk.create("t")
    answer = talk.as_user(
        "admin", "AlterClientQuotas", 1, validate_only=False,
        entries=[altered({"user": "alice"}, producer_byte_rate=1.0, consumer_byte_rate=1.0)],
    )  # fmt: skip
    assert answer["entries"][0]["error_code"] == 0
    denied = talk.as_user("alice", "AlterClientQuotas", 1, validate_only=False,
                          entries=[altered({"user": "alice"}, producer_byte_rate=9.0)])  # fmt: skip
    assert denied["entries"][0]["error_code"] == 31
    fields = {"transactional_id": None, "acks": 1, "timeout_ms": 1, "topic_data": [
        {"name": "t", "partition_data": [{"index": 0, "records": batch(b"v")}]},
    ]}  # fmt: skip
    produced = talk.as_user("alice", "Produce", 9, **fields)
    assert produced["responses"][0]["partition_responses"][0]["error_code"] == 29
    assert produced["throttle_time_ms"] > 0
    talk.connection = talk.broker.connect("127.0.0.1")
    partition = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0,
                 "last_fetched_epoch": -1, "log_start_offset": -1}  # fmt: skip
    wanted = fetch_fields([("t", [partition])], 12, session_id=0, session_epoch=-1, rack_id="")
    fetched = talk.as_user("alice", "Fetch", 12, **wanted)
    assert fetched["throttle_time_ms"] > 0


def test_an_entity_comes_once() -> None:
    """What is said of it again is not done, and that is told in place of the first; a type too."""
    talk = Conversation()
    entries = [altered({"user": "a"}, producer_byte_rate=float(rate)) for rate in (1, 2)]
    entries[0]["entity"] *= 2
    answer = talk.ask("AlterClientQuotas", 1, validate_only=False, entries=entries)
    (entry,) = answer["entries"]
    assert (entry["error_code"], len(entry["entity"])) == (42, 1)
    assert found(talk) == [({"user": "a"}, {"producer_byte_rate": 1.0})]
