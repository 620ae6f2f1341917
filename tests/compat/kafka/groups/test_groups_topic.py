"""What of a commit stands in ``__consumer_offsets``, and what does not fit in there."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.topics.names import GROUPS_TOPIC
from logstore.segments.kafka.compression import Codec
from tests.compat.kafka.conversation import Conversation
from tests.compat.kafka.peer import a_broker
from tests.compat.kafka.transactions.producer import TransactionalClient

SIZE_MAX = 400
LONG_NAME = "g" * SIZE_MAX


def a_commit(group: str, *offsets: int, text: str = "") -> dict[str, Any]:
    """Return the fields of a commit from outside the group, one partition after the other."""
    partitions = [
        {
            "partition_index": index,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": text,
        }
        for index, offset in enumerate(offsets)
    ]
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": "t", "partitions": partitions}],
    }


def served(**settings: str) -> Conversation:
    """Return a conversation with a broker that has a topic of three partitions."""
    given = {"offsets.topic.num.partitions": "1"} | settings
    conversation = Conversation(given)
    conversation.broker.create_topic("t", 3)
    return conversation


def codes(answer: dict[str, Any]) -> list[int]:
    """Return what became of the partitions of a commit."""
    return [one["error_code"] for topic in answer["topics"] for one in topic["partitions"]]


def test_a_batch_above_the_topics_maximum_is_refused() -> None:
    """It is the request's fault (-1): another coordinator would refuse it as well."""
    conversation = served(**{"message.max.bytes": str(SIZE_MAX)})
    fields = a_commit(LONG_NAME, 1)
    assert codes(conversation.ask("OffsetCommit", 8, **fields)) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert codes(conversation.ask("OffsetCommit", 8, **a_commit("g", 1))) == [0]


def test_so_is_one_of_a_transaction() -> None:
    """Nothing of it is pending afterwards, and the transaction can still be committed."""
    broker = a_broker(offsets_topic_num_partitions=1, message_max_bytes=SIZE_MAX)
    broker.create_topic("t", 1)
    client = TransactionalClient(broker)
    assert client.init() == 0
    refused = client.commit_offset("t", 0, 5, group_id=LONG_NAME)
    assert refused == ErrorCode.UNKNOWN_SERVER_ERROR
    assert client.commit_offset("t", 0, 5) == 0
    assert client.end(is_commit=True) == 0
    assert not broker.groups.unstable(LONG_NAME, [("t", 0)])


@pytest.mark.parametrize(("compression", "codec"), [("producer", Codec.NONE), ("zstd", Codec.ZSTD)])
def test_a_commit_has_the_codec_of_the_topic(compression: str, codec: Codec) -> None:
    """One that an administrator has set for it, else that of the coordinator."""
    conversation = served()
    conversation.ask("OffsetCommit", 8, **a_commit("g", 1))
    resource = {
        "resource_type": 2,
        "resource_name": GROUPS_TOPIC,
        "configs": [
            {"name": "compression.type", "config_operation": 0, "value": compression},
        ],
    }
    altered = conversation.ask(
        "IncrementalAlterConfigs", 1, resources=[resource], validate_only=False
    )
    assert altered["responses"][0]["error_code"] == 0
    assert codes(conversation.ask("OffsetCommit", 8, **a_commit("g", 2, 3, 4))) == [0, 0, 0]
    partition = conversation.broker.topics[GROUPS_TOPIC].partitions[0]
    stored = list(partition.batches())[-1]
    assert (stored.codec, stored.record_count) == (codec, 3)


@pytest.mark.parametrize("version", range(2, 10))
@pytest.mark.parametrize("text", ["", "short", "x" * 500])
def test_texts_come_back_in_every_version(version: int, text: str) -> None:
    """With partitions beside them that have none."""
    conversation = served()
    fields = a_commit("g", 7, 8, text=text)
    fields["topics"][0]["partitions"][1]["committed_metadata"] = None
    fields["topics"][0]["partitions"].append(
        fields["topics"][0]["partitions"][0] | {"partition_index": 9}
    )
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert sorted(codes(conversation.ask("OffsetCommit", version, **fields))) == [0, 0, unknown]
    found = conversation.ask("OffsetFetch", min(version, 7), group_id="g", topics=None)
    (topic,) = found["topics"]
    assert [
        (one["partition_index"], one["committed_offset"], one["metadata"])
        for one in topic["partitions"]
    ] == [(0, 7, text), (1, 8, "")]
