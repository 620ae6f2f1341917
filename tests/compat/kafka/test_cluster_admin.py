"""What is asked about the cluster, its disks, producers, quotas and access rules."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from logstore.segments.kafka.record import Record, encode_batch
from tests.compat.kafka.conversation import HOST, PORT, Conversation

NOW_MS = 1_700_000_000_000
CLUSTER_OPERATIONS = {5, 7, 8, 9, 10, 11, 12}
TOPIC_OPERATION_BITS = sum(1 << number for number in (3, 4, 5, 6, 7, 8, 10, 11))


# DescribeCluster


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_has_one_broker(version: int) -> None:
    """Every version tells the cluster's id and its one broker, which is the controller."""
    conversation = Conversation({"node.id": "7", "broker.rack": "shelf"})
    answer = conversation.ask("DescribeCluster", version)
    assert (answer["error_code"], answer["error_message"]) == (0, None)
    assert answer["cluster_id"] == conversation.broker.cluster_id
    assert answer["controller_id"] == 7
    (broker,) = answer["brokers"]
    assert broker.pop("is_fenced", False) is False
    assert broker == {"broker_id": 7, "host": HOST, "port": PORT, "rack": "shelf"}
    assert answer["authorized_operations"] is None
    if version >= 1:
        assert answer["endpoint_type"] == 1


def test_operations_on_the_cluster_are_told_who_asks() -> None:
    """Whoever asks is told all operations on the cluster."""
    answer = Conversation().ask("DescribeCluster", 2, include_cluster_authorized_operations=True)
    assert answer["authorized_operations"] == CLUSTER_OPERATIONS


MISMATCH = (
    "The request was sent to an endpoint of type BROKER, "
    "but we wanted an endpoint of type CONTROLLER"
)


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [
        (2, 114, MISMATCH),
        (0, 115, "Unsupported endpoint type 0"),
        (3, 115, "Unsupported endpoint type 3"),
    ],
)  # fmt: skip
def test_this_is_no_controller(kind: int, code: int, words: str) -> None:
    """Asked as a controller the broker answers 114, as anything else 115."""
    answer = Conversation().ask("DescribeCluster", 1, endpoint_type=kind)
    assert (answer["error_code"], answer["brokers"]) == (code, [])
    assert answer["error_message"] == words


# UpdateFeatures

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def update_of(version: int, name: str, level: int, change: int) -> dict[str, Any]:
    """Return one wish of a request."""
    how = {"upgrade_type": change} if version else {"allow_downgrade": change != UPGRADE}
    return {"feature": name, "max_version_level": level, **how}


def finalized(conversation: Conversation) -> tuple[int, dict[str, int]]:
    """Return what clients are told: the epoch and the levels in force."""
    answer = conversation.ask(
        "ApiVersions", 4, client_software_name="test", client_software_version="1"
    )
    levels = {one["name"]: one["max_version_level"] for one in answer["finalized_features"]}
    return answer["finalized_features_epoch"], levels


def update_features(version: int, *wanted: tuple[str, int, int]) -> dict[str, Any]:
    """Return the answer to (feature, level, type of change)."""
    updates = [update_of(version, *one) for one in wanted]
    return Conversation().ask("UpdateFeatures", version, feature_updates=updates)


@pytest.mark.parametrize("version", range(3))
def test_a_level_may_stay_as_it_is(version: int) -> None:
    """What is so already is fine, with a message that is the text NONE; v2 has no results."""
    answer = update_features(version, ("metadata.version", 30, UPGRADE))
    assert (answer["error_code"], answer["error_message"]) == (0, None)
    result = {"feature": "metadata.version", "error_code": 0, "error_message": "NONE"}
    assert answer.get("results", []) == ([result] if version < 2 else [])
    assert update_features(version)["error_code"] == 0


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    ("name", "level", "change", "code"),
    [
        ("none.such", 1, UPGRADE, 95),
        ("metadata.version", 31, UPGRADE, 95),
        ("metadata.version", 6, SAFE_DOWNGRADE, 95),
        ("transaction.version", -1, SAFE_DOWNGRADE, 95),
        ("metadata.version", 29, SAFE_DOWNGRADE, 95),
        ("transaction.version", 1, UPGRADE, 95),
        ("kraft.version", 1, UPGRADE, 95),
    ],
)
def test_levels_that_cannot_be(version: int, name: str, level: int, change: int, code: int) -> None:
    """What Kafka refuses is 95, and one refusal is that of all."""
    answer = update_features(version, ("transaction.version", 2, UPGRADE), (name, level, change))
    assert answer["error_code"] == code
    assert name in answer["error_message"]
    assert answer.get("results", []) == []


@pytest.mark.parametrize("version", range(3))
def test_levels_change_and_stay(version: int) -> None:
    """A new level holds at once, clients are told since when, and a restart finds it again."""
    conversation = Conversation()
    told = [finalized(conversation)]
    for level, change in ((1, SAFE_DOWNGRADE), (2, UPGRADE), (0, SAFE_DOWNGRADE)):
        update = update_of(version, "transaction.version", level, change)
        answer = conversation.ask("UpdateFeatures", version, feature_updates=[update])
        assert (answer["error_code"], answer["error_message"]) == (0, None)
        assert conversation.broker.transactions.config.transaction_version == level
        told.append(finalized(conversation))
    assert [levels.get("transaction.version", 0) for _, levels in told] == [2, 1, 2, 0]
    assert all(levels["group.version"] == 1 for _, levels in told)
    epochs = [epoch for epoch, _ in told]
    assert epochs == sorted(set(epochs)), "a client believes what is newer only"
    conversation.restart()
    assert finalized(conversation) == told[-1]


def test_where_eligible_leader_replicas_are_counted_again() -> None:
    """``min.insync.replicas`` becomes the cluster's alone, with the value that it had here."""
    conversation = Conversation()
    name, feature = "min.insync.replicas", "eligible.leader.replicas.version"
    config = conversation.broker.dynamic_config

    def change(level: int, how: int) -> None:
        update = update_of(2, feature, level, how)
        answer = conversation.ask("UpdateFeatures", 2, feature_updates=[update])
        assert answer["error_code"] == 0

    assert finalized(conversation)[1][feature] == 1
    change(0, SAFE_DOWNGRADE)
    config.replace({name: "3"}, is_cluster_wide=False)
    config.replace({}, is_cluster_wide=True)
    change(1, UPGRADE)
    for _ in range(2):
        config = conversation.broker.dynamic_config
        assert (config.of_cluster.get(name), config.of_broker) == ("3", {})
        assert finalized(conversation)[1][feature] == 1
        conversation.restart()


@pytest.mark.parametrize("version", [1, 2])
def test_a_rehearsed_level_changes_nothing(version: int) -> None:
    """``validate_only`` is answered as if, and leaves all levels as they are."""
    conversation = Conversation()
    before = finalized(conversation)
    update = update_of(version, "group.version", 0, SAFE_DOWNGRADE)
    answer = conversation.ask(
        "UpdateFeatures", version, feature_updates=[update], validate_only=True
    )
    assert answer["error_code"] == 0
    assert finalized(conversation) == before


@pytest.mark.parametrize("change", [0, 4])
def test_a_type_of_change_that_there_is_not(change: int) -> None:
    """An unknown type of change is 95, even where nothing would change."""
    assert update_features(1, ("transaction.version", 2, change))["error_code"] == 95


# DescribeProducers


def test_a_partitions_producers_are_listed() -> None:
    """A producer is told with its last sequence, its time and its open transaction."""
    conversation = Conversation()
    conversation.create("a")
    partition = conversation.broker.topics["a"].partitions[0]
    partition.verifies_transactions = False  # nobody has asked the coordinator
    for producer_id, is_transactional in ((5, False), (6, True)):
        records = [Record(offset=index, timestamp_ms=NOW_MS, key=b"k", value=b"v")
                   for index in range(3)]  # fmt: skip
        batch = encode_batch(
            records, producer_id=producer_id, producer_epoch=2, base_sequence=0,
            is_transactional=is_transactional,
        )  # fmt: skip
        partition.append_produced(memoryview(batch), NOW_MS)
    asked = [{"name": "a", "partition_indexes": [0, 1]}, {"name": "a b", "partition_indexes": [0]}]
    answer = conversation.ask("DescribeProducers", 0, topics=asked)
    known, unknown = answer["topics"][0]["partitions"]
    assert known["error_code"] == 0
    expected = {
        "producer_epoch": 2,
        "last_sequence": 2,
        "last_timestamp": NOW_MS,
        "coordinator_epoch": -1,
    }
    assert known["active_producers"] == [
        {"producer_id": 5, "current_txn_start_offset": -1, **expected},
        {"producer_id": 6, "current_txn_start_offset": 3, **expected},
    ]
    assert (unknown["error_code"], unknown["active_producers"]) == (3, [])
    assert answer["topics"][1]["partitions"][0]["error_code"] == 17


# ListConfigResources


def resources(conversation: Conversation, version: int, *types: int) -> set[tuple[int, str]]:
    """Return the (type, name) of resources of some types."""
    fields = {"resource_types": list(types)} if version >= 1 else {}
    answer = conversation.ask("ListConfigResources", version, **fields)
    assert answer["error_code"] == 0
    return {
        (entry.get("resource_type", 16), entry["resource_name"])
        for entry in answer["config_resources"]
    }


def test_resources_with_settings_are_listed() -> None:
    """Topics, the broker and its loggers are listed by type; version 0 lists only metrics."""
    conversation = Conversation({"node.id": "3"})
    conversation.create("a")
    conversation.create("b")
    topics = {(2, "a"), (2, "b")}
    assert resources(conversation, 1, 2) == topics
    assert resources(conversation, 1, 4) == {(4, "3")}
    assert resources(conversation, 1, 16, 32) == set()
    assert resources(conversation, 1, 8) == {(8, "3")}
    assert resources(conversation, 1) == topics | {(4, "3"), (8, "3")}
    assert resources(conversation, 0) == set()


def test_an_unknown_type_of_resource_is_35() -> None:
    """A type of resource that Kafka does not have is 35."""
    answer = Conversation().ask("ListConfigResources", 1, resource_types=[2, 3])
    assert (answer["error_code"], answer["config_resources"]) == (35, [])


# DescribeTopicPartitions


def pages(conversation: Conversation, limit: int, *names: str) -> list[list[tuple[str, int]]]:
    """Return the (topic, partition) of every page."""
    found: list[list[tuple[str, int]]] = []
    cursor: dict[str, Any] | None = None
    while not found or cursor is not None:
        answer = conversation.ask(
            "DescribeTopicPartitions",
            0,
            topics=[{"name": name} for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )
        found.append(
            [
                (topic["name"], partition["partition_index"])
                for topic in answer["topics"]
                for partition in topic["partitions"]
            ]
        )
        cursor = answer["next_cursor"]
    return found


def test_topics_are_described_in_pages() -> None:
    """Pages end at the limit, inside of topics and between them, and go on where they ended."""
    conversation = Conversation()
    for name, count in (("b", 3), ("a", 2), ("c", 1)):
        conversation.create(name, count)
    everything = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]
    assert pages(conversation, 2000) == [everything]
    assert pages(conversation, 2) == [everything[0:2], everything[2:4], everything[4:6]]
    assert pages(conversation, 4) == [everything[0:4], everything[4:6]]
    assert pages(conversation, 0) == [[place] for place in everything]
    assert pages(conversation, 2000, "c", "a") == [[("a", 0), ("a", 1), ("c", 0)]]


def test_the_brokers_limit_counts_too() -> None:
    """A page is never longer than max.request.partition.size.limit."""
    conversation = Conversation({"max.request.partition.size.limit": "2"})
    conversation.create("a", 3)
    assert pages(conversation, 2000) == [[("a", 0), ("a", 1)], [("a", 2)]]


def test_a_described_topic_has_all_there_is() -> None:
    """A topic comes with its id, leader, replicas and operations; a missing one with its code."""
    conversation = Conversation()
    topic_id = conversation.create("__consumer_offsets")
    asked = [{"name": "__consumer_offsets"}, {"name": "no-such"}, {"name": "a b"}]
    answer = conversation.ask("DescribeTopicPartitions", 0, topics=asked)
    internal, bad, missing = answer["topics"]
    assert internal == {
        "error_code": 0,
        "name": "__consumer_offsets",
        "topic_id": uuid.UUID(bytes=topic_id),
        "is_internal": True,
        "partitions": [
            {
                "error_code": 0,
                "partition_index": 0,
                "leader_id": 1,
                "leader_epoch": 0,
                "replica_nodes": [1],
                "isr_nodes": [1],
                "eligible_leader_replicas": [],
                "last_known_elr": [],
                "offline_replicas": [],
            }
        ],
        "topic_authorized_operations": TOPIC_OPERATION_BITS,
    }
    assert (bad["name"], bad["error_code"]) == ("a b", 17)
    assert (missing["name"], missing["error_code"]) == ("no-such", 3)


@pytest.mark.parametrize(
    "cursor",
    [{"topic_name": "b", "partition_index": 0}, {"topic_name": "a", "partition_index": -1}],
)
def test_a_cursor_must_point_into_the_question(cursor: dict[str, Any]) -> None:
    """A cursor outside of the asked topics, or before the first partition, is 42."""
    conversation = Conversation()
    conversation.create("a")
    answer = conversation.ask("DescribeTopicPartitions", 0, topics=[{"name": "a"}], cursor=cursor)
    assert [topic["error_code"] for topic in answer["topics"]] == [42]


def test_a_page_beyond_javas_ints_is_followed_by_one_below_zero() -> None:
    """The sum of the cursor's partition and the limit goes round, as it does in Java."""
    conversation = Conversation()
    conversation.create("a")
    conversation.create("b")
    answer = conversation.ask(
        "DescribeTopicPartitions",
        0,
        topics=[{"name": "a"}, {"name": "b"}],
        response_partition_limit=3,
        cursor={"topic_name": "a", "partition_index": 2**31 - 1},
    )
    described = [(topic["name"], topic["partitions"]) for topic in answer["topics"]]
    assert described == [("a", [])]
    assert answer["next_cursor"] == {"topic_name": "a", "partition_index": -(2**31) + 2}


def test_without_a_cursor_a_topic_without_a_name_fails_all() -> None:
    """It is taken for the topic of the cursor that is not there; the order is the request's."""
    conversation = Conversation()
    asked = [{"name": name} for name in ("b", "", "a")]
    answer = conversation.ask("DescribeTopicPartitions", 0, topics=asked)
    found = [(topic["name"], topic["error_code"]) for topic in answer["topics"]]
    assert found == [("b", -1), ("", -1), ("a", -1)]


# access rules and quotas

RULE = {
    "resource_type": 2,
    "resource_name": "a",
    "principal": "User:x",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
FILTER = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


@pytest.mark.parametrize("version", range(1, 4))
def test_there_is_no_authorizer(version: int) -> None:
    """Access rules can be neither listed nor made nor removed: 54, as without an authorizer."""
    conversation = Conversation()
    answer = conversation.ask("DescribeAcls", version, **FILTER)
    assert (answer["error_code"], answer["resources"]) == (54, [])
    assert answer["error_message"]
    answer = conversation.ask("CreateAcls", version, creations=[RULE, RULE])
    assert [result["error_code"] for result in answer["results"]] == [54, 54]
    answer = conversation.ask("DeleteAcls", version, filters=[FILTER])
    assert [result["error_code"] for result in answer["filter_results"]] == [54]


@pytest.mark.parametrize("version", range(2))
@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([], 0),
        ([("user", 0, "x"), ("client-id", 1, None)], 0),
        ([("ip", 2, None)], 0),
        ([("", 0, "x")], 42),
        ([("user", 0, "x"), ("user", 1, None)], 42),
        ([("user", 0, None)], 42),
        ([("user", 1, "x")], 42),
        ([("user", 3, None)], 42),
        ([("ip", 2, None), ("user", 2, None)], 42),
        ([("group", 0, "x")], 35),
        ([("group", 0, "x"), ("group", 0, "x")], 35),
        ([("user", 0, "x"), ("group", 0, "x"), ("user", 0, "x")], 35),
    ],
)
def test_there_are_no_quotas(
    version: int, components: list[tuple[str, int, str | None]], code: int
) -> None:
    """A sound question about quotas finds none; another one gets the code that Kafka has for it."""
    asked = [
        {"entity_type": kind, "match_type": match_type, "match": match}
        for kind, match_type, match in components
    ]
    answer = Conversation().ask("DescribeClientQuotas", version, components=asked, strict=False)
    assert answer["error_code"] == code
    assert answer["entries"] == (None if code else [])


@pytest.mark.parametrize("users", [None, []])
def test_nobody_has_credentials(users: list[dict[str, str]] | None) -> None:
    """Asked for all users the broker knows none."""
    answer = Conversation().ask("DescribeUserScramCredentials", 0, users=users)
    assert (answer["error_code"], answer["results"]) == (0, [])


def test_a_named_user_has_no_credentials() -> None:
    """A user that is named is 91, one that is named twice 92, each once in the answer."""
    users = [{"name": "x"}, {"name": "y"}, {"name": "y"}]
    answer = Conversation().ask("DescribeUserScramCredentials", 0, users=users)
    found = [(result["user"], result["error_code"]) for result in answer["results"]]
    assert found == [("x", 91), ("y", 92)]


@pytest.mark.parametrize("version", [0, 1])
def test_a_partition_stays_on_the_one_broker(version: int) -> None:
    """To stay is fine; other brokers, none, or one twice are 39; there is no move to call off."""
    conversation = Conversation()
    conversation.create("a", 2)
    me = conversation.broker.node_id
    wanted: list[tuple[int, list[int] | None]] = [
        (0, [me]),
        (0, [me + 1]),
        (0, []),
        (0, [me, me]),
        (1, None),
        (2, [me]),
    ]
    answers = [
        conversation.ask(
            "AlterPartitionReassignments", version, timeout_ms=1000,
            **({"allow_replication_factor_change": True} if version else {}),
            topics=[{"name": "a", "partitions": [{"partition_index": index, "replicas": ids}]}],
        )
        for index, ids in wanted
    ]  # fmt: skip
    results = [answer["responses"][0]["partitions"][0] for answer in answers]
    assert [result["error_code"] for result in results] == [0, 39, 39, 39, 85, 3]
    has_words = [bool(result["error_message"]) for result in results]
    assert has_words == [False, True, True, True, False, True]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_is_this_broker(version: int) -> None:
    """Leader and only voter of the metadata, level with itself; other topics have no quorum: 3."""
    conversation = Conversation()
    conversation.create("a")
    asked, other = (
        [{"topic_name": name, "partitions": [{"partition_index": 0}]}]
        for name in ("__cluster_metadata", "a")
    )
    first, second = (conversation.ask("DescribeQuorum", version, topics=asked) for _ in range(2))
    assert first["error_code"] == 0
    (metadata,) = first["topics"][0]["partitions"]
    me = conversation.broker.node_id
    assert (metadata["error_code"], metadata["leader_id"]) == (0, me)
    assert metadata["leader_epoch"] >= 1
    (voter,) = metadata["current_voters"]
    assert voter["replica_id"] == me
    assert voter["log_end_offset"] == metadata["high_watermark"] > 0
    for wrong in (other, asked + other, asked * 2, [{**asked[0], "partitions": []}]):
        answer = conversation.ask("DescribeQuorum", version, topics=wrong)
        codes = [one["error_code"] for topic in answer["topics"] for one in topic["partitions"]]
        assert set(codes) <= {3}
        assert not answer.get("nodes")
    again = second["topics"][0]["partitions"][0]
    assert again["leader_epoch"] == metadata["leader_epoch"]
    conversation.create("b")
    grown = conversation.ask("DescribeQuorum", version, topics=asked)["topics"][0]
    assert grown["partitions"][0]["high_watermark"] > metadata["high_watermark"]
