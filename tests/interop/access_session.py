"""All requests with all rights, at one broker: what was answered, without what differs anyway."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs

from logstore.compat.kafka.share_reads.messages import ShareFetchResponse
from logstore.segments.kafka.internal_topics.schema import Message
from tests.interop.access_group_requests import MEMBER, MUTE, QUIET, SHARE
from tests.interop.access_requests import REQUESTS, RIGHTS, TOPICS, Ids
from tests.interop.access_wire import Asker, topic_id
from tests.interop.eventually import eventually

#: what is compared of every structure: what it is about, and what is said of it
_KEPT = {
    "error_code", "partition_error_code", "topic_config_error_code", "name", "topic", "topic_name",
    "partition_index", "partition", "index", "group_id", "key", "transactional_id",
    "resource_name", "resource_type", "feature", "authorized_operations",
    "topic_authorized_operations", "committed_offset", "num_partitions", "group_state",
    "user", "acknowledge_error_code", "status_code", "status_detail",
}  # fmt: skip
_REFUSALS = {29, 30, 31, 53}
_ANY = {
    "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
    "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
}  # fmt: skip


def essence(found: Any) -> Any:
    """Return an answer without ids, offsets, texts of our own and the order of lists."""
    if isinstance(found, ShareFetchResponse):
        found = _without_silent(found)
    if isinstance(found, Message):
        found = attrs.asdict(found, recurse=True)
    if isinstance(found, list | tuple):
        return sorted((essence(one) for one in found), key=repr)
    if not isinstance(found, dict):
        return None
    kept: dict[str, Any] = {}
    for key, value in found.items():
        if isinstance(value, list | tuple | dict) and key not in _KEPT:
            inner = essence(value)
            if inner not in ([], None) and inner != [None]:
                kept[key] = inner
        elif key in _KEPT:
            kept[key] = sorted(value) if isinstance(value, set) else value
    if found.get("name") == "made":  # a topic that is made by a question is there at once or later
        return {"name": "made", "error_code": found["error_code"] or 3}
    message = found.get("error_message")
    if found.get("error_code") in _REFUSALS and message and not message.startswith("Request "):
        kept["error_message"] = message
    return kept


def _without_silent(answer: ShareFetchResponse) -> ShareFetchResponse:
    """Leave out partitions of which nothing is told: they are named when they are open at last."""
    topics = [
        attrs.evolve(topic, partitions=tuple(
            one for one in topic.partitions if one.error_code or one.acknowledge_error_code
        ))
        for topic in answer.responses
    ]  # fmt: skip
    return attrs.evolve(answer, responses=tuple(one for one in topics if one.partitions))


class AccessSession:
    """Speaks to one broker as the administrator and as alice."""

    def __init__(self, connect: Callable[[str], Asker]) -> None:
        self._connect = connect
        self._admin = connect("admin")

    def run(self) -> dict[tuple[str, str], Any]:
        """Return what alice is answered, by her rights and the request."""
        ids = self._prepare()
        found: dict[tuple[str, str], Any] = {}
        for rights, rules in RIGHTS.items():
            self._grant(rules)
            alice = self._connect("alice")
            for number, asked in enumerate(REQUESTS):
                name = f"{number} {asked.api} v{asked.version}"
                answer = alice.ask(asked.api, asked.version, asked.fields(ids))
                found[rights, name] = essence(answer)
        self._grant([])
        return found

    def _prepare(self) -> Ids:
        topics = [
            {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [],
             "configs": []}
            for name in (*TOPICS, QUIET, MUTE, "doomed")
        ]  # fmt: skip
        fields = {"topics": topics, "timeout_ms": 10_000, "validate_only": False}
        self._admin.ask("CreateTopics", 7, fields)
        ids: dict[str, uuid.UUID] = {}
        for name in (*TOPICS, QUIET, MUTE, "doomed"):
            found = eventually(partial(topic_id, self._admin, name))
            assert found is not None
            ids[name] = found
        for name in TOPICS:
            self._found_group(name)
            self._found_transaction(name)
        self._found_share_group()
        return ids

    def _found_group(self, group: str) -> None:
        """Let a group come to be, by commits to both topics."""
        self._admin.ask("FindCoordinator", 4, {"key_type": 0, "coordinator_keys": [group]})
        partition = {"partition_index": 0, "committed_offset": 3, "committed_leader_epoch": -1,
                     "committed_metadata": ""}  # fmt: skip
        fields = {
            "group_id": group, "generation_id_or_member_epoch": -1, "member_id": "",
            "group_instance_id": None,
            "topics": [{"name": name, "partitions": [partition]} for name in TOPICS],
        }  # fmt: skip

        def committed() -> bool:
            answer = self._admin.ask("OffsetCommit", 8, fields)
            return bool(answer["topics"][0]["partitions"][0]["error_code"] == 0)

        eventually(committed)

    def _found_share_group(self) -> None:
        """Let a share group come to be, whose member may read all topics."""
        topics = (*TOPICS, QUIET, MUTE)
        fields = {"group_id": SHARE, "member_id": MEMBER, "subscribed_topic_names": topics}
        self._admin.ask("FindCoordinator", 4, {"key_type": 0, "coordinator_keys": [SHARE]})

        def assigned() -> bool:
            assignment = self._admin.ask(
                "ShareGroupHeartbeat", 1, fields | {"member_epoch": 0}
            ).assignment
            return assignment is not None and len(assignment.topic_partitions) == len(topics)

        eventually(assigned)

    def _found_transaction(self, transactional_id: str) -> None:
        """Let a transactional id come to be."""
        fields = {"key_type": 1, "coordinator_keys": [transactional_id]}
        self._admin.ask("FindCoordinator", 4, fields)
        fields = {"transactional_id": transactional_id, "transaction_timeout_ms": 1000,
                  "producer_id": -1, "producer_epoch": -1}  # fmt: skip
        eventually(lambda: self._admin.ask("InitProducerId", 4, fields)["error_code"] == 0)

    def _grant(self, rules: list[dict[str, Any]]) -> None:
        """Let these rules hold and no others."""
        self._admin.ask("DeleteAcls", 2, {"filters": [_ANY]})
        self._admin.ask("CreateAcls", 2, {"creations": rules})

        def held() -> bool:
            resources = self._admin.ask("DescribeAcls", 2, _ANY)["resources"]
            return sum(len(one["acls"]) for one in resources) == len(rules)

        eventually(held)
