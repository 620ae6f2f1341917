"""WriteTxnMarkers with several markers in one request."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.topics.names import GROUPS_TOPIC
from tests.compat.kafka.peer import Peer
from tests.compat.kafka.transactions.test_wire import served


def _marker(producer_id: int, topic: str, *indexes: int) -> dict[str, Any]:
    """Return the end of a producer's transaction."""
    return {
        "producer_id": producer_id, "producer_epoch": 0, "transaction_result": True,
        "topics": [{"name": topic, "partition_indexes": list(indexes)}], "coordinator_epoch": 0,
    }  # fmt: skip


def test_what_is_said_of_a_producer_is_told_together() -> None:
    """However many markers there are of it."""
    broker = served()
    broker.create_topic("other", 1)
    markers = [_marker(7, "t", 0), _marker(8, "t", 1), _marker(7, "other", 0, 5)]
    answer = Peer(broker).ask("WriteTxnMarkers", 1, {"markers": markers}).message
    assert [one["producer_id"] for one in answer["markers"]] == [7, 8]
    assert [
        (topic["name"], [(one["partition_index"], one["error_code"]) for one in partitions])
        for topic in answer["markers"][0]["topics"]
        for partitions in (topic["partitions"],)
    ] == [("t", [(0, 0)]), ("other", [(0, 0), (5, 3)])]


def test_a_marker_of_no_producer_fails_the_request() -> None:
    """Unless it is for no partition that is there; what stands before it is written."""
    broker = served()
    markers = [_marker(7, "t", 0, 9), _marker(-1, "t", 0), _marker(8, "t", 1)]
    answer = Peer(broker).ask("WriteTxnMarkers", 1, {"markers": markers}).message
    codes = [
        one["error_code"]
        for marker in answer["markers"]
        for topic in marker["topics"]
        for one in topic["partitions"]
    ]
    assert codes == [-1] * 4
    logs = broker.topics["t"].partitions
    assert (logs[0].end_offset, logs[1].end_offset) == (1, 0)
    lone = [_marker(-1, "none", 0)]
    answer = Peer(broker).ask("WriteTxnMarkers", 1, {"markers": lone}).message
    ((topic,),) = (one["topics"] for one in answer["markers"])
    assert [one["error_code"] for one in topic["partitions"]] == [3]


def test_of_no_partitions_nothing_is_told() -> None:
    """Not even of which producer it was."""
    nowhere = _marker(8, "t")
    nowhere["topics"] = []
    answer = Peer(served()).ask("WriteTxnMarkers", 1, {"markers": [nowhere, _marker(7, "t")]})
    assert answer.message["markers"] == []


def test_without_a_version_of_transactions_nothing_is_written() -> None:
    """That is told as -1, of a partition that there is not as 3."""
    broker = served()
    marker = _marker(7, "t", 0, 9) | {"transaction_version": -1}
    answer = Peer(broker).ask("WriteTxnMarkers", 2, {"markers": [marker]}).message
    ((topic,),) = (one["topics"] for one in answer["markers"])
    assert [one["error_code"] for one in topic["partitions"]] == [-1, 3]
    assert broker.topics["t"].partitions[0].end_offset == 0
    Peer(broker).ask("WriteTxnMarkers", 1, {"markers": [_marker(7, "t", 0)]})
    late = _marker(7, "t", 0) | {"transaction_version": -1, "producer_epoch": -2}
    answer = Peer(broker).ask("WriteTxnMarkers", 2, {"markers": [late]}).message
    ((topic,),) = (one["topics"] for one in answer["markers"])
    assert [one["error_code"] for one in topic["partitions"]] == [47]


@pytest.mark.parametrize(
    ("fields", "code"), [({"producer_epoch": -2}, 47), ({"coordinator_epoch": -2}, 52)]
)
def test_an_epoch_below_none_is_too_old(fields: dict[str, int], code: int) -> None:
    """Even of a producer of whom nothing is known."""
    broker = served()
    answer = Peer(broker).ask("WriteTxnMarkers", 1, {"markers": [_marker(7, "t", 0) | fields]})
    ((topic,),) = (one["topics"] for one in answer.message["markers"])
    assert [one["error_code"] for one in topic["partitions"]] == [code]
    assert broker.topics["t"].partitions[0].end_offset == 0


def test_of_a_producer_below_none_anything_is_taken() -> None:
    """It is written, and nothing of it kept in mind."""
    broker = served()
    marker = _marker(-2, "t", 0) | {"producer_epoch": -2, "coordinator_epoch": -2}
    marker["transaction_version"] = -1
    answer = Peer(broker).ask("WriteTxnMarkers", 2, {"markers": [marker]}).message
    ((topic,),) = (one["topics"] for one in answer["markers"])
    assert [one["error_code"] for one in topic["partitions"]] == [0]
    partition = broker.topics["t"].partitions[0]
    assert (partition.end_offset, partition.producers.get(-2)) == (1, None)


def test_a_marker_of_no_producer_for_offsets_fails_alone() -> None:
    """The group coordinator stumbles over it by itself."""
    broker = served()
    Peer(broker).ask("FindCoordinator", 4, {"key_type": 0, "coordinator_keys": ["g"]})
    markers = [_marker(-1, GROUPS_TOPIC, 0), _marker(7, "t", 0)]
    answer = Peer(broker).ask("WriteTxnMarkers", 1, {"markers": markers}).message
    codes = [one["topics"][0]["partitions"][0]["error_code"] for one in answer["markers"]]
    assert codes == [-1, 0]
    assert broker.topics[GROUPS_TOPIC].partitions[0].end_offset == 0
