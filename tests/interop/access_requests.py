"""
Requests of every API that names something, and the rights with which they are asked.

Of topics, groups and transactional ids there are two each: `ok`, which most rights are about, and
`no`. What a request changes it changes at both brokers in the same order.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from logstore.compat.kafka.security.acl import Operation as Op
from logstore.compat.kafka.security.acl import PatternType, Permission, ResourceType
from tests.compat.kafka.batches import batch
from tests.interop.access_group_requests import (
    GROUP_REQUESTS,
    IDLE,
    LOG,
    QUIET,
    SHARE,
    STREAMS,
)

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TXN = ResourceType.TRANSACTIONAL_ID
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
OK, NO = "ok", "no"
TOPICS = (OK, NO)
#: topic ids by name
Ids = Mapping[str, uuid.UUID]
Fields = Callable[[Ids], Mapping[str, Any]]


class Asked(NamedTuple):
    """One request; its fields may need topic ids."""

    api: str
    version: int
    fields: Fields


def _fixed(**fields: Any) -> Fields:
    return lambda _: fields


def rule(
    kind: ResourceType,
    name: str,
    operation: Op,
    *,
    pattern: PatternType = LITERAL,
    permission: Permission = ALLOW,
    who: str = "User:alice",
    host: str = "*",
) -> dict[str, Any]:
    """Return one creation of a CreateAcls."""
    return {
        "resource_type": int(kind), "resource_name": name, "resource_pattern_type": int(pattern),
        "principal": who, "host": host, "operation": int(operation),
        "permission_type": int(permission),
    }  # fmt: skip


def _all_of_ok(operation: Op) -> list[dict[str, Any]]:
    groups = [rule(GROUP, name, operation) for name in (OK, SHARE, IDLE, STREAMS)]
    topics = [rule(TOPIC, name, operation) for name in (OK, QUIET)]
    return [*topics, *groups, rule(TXN, OK, operation)]


def on_cluster(*operations: Op) -> list[dict[str, Any]]:
    """Return rules that allow something with the cluster."""
    return [rule(CLUSTER, "kafka-cluster", operation) for operation in operations]


RIGHTS: Mapping[str, list[dict[str, Any]]] = {
    "none": [],
    "describe": _all_of_ok(Op.DESCRIBE),
    "read": _all_of_ok(Op.READ),
    "write": _all_of_ok(Op.WRITE),
    "all of ok": _all_of_ok(Op.ALL),
    "create and delete": [
        *_all_of_ok(Op.DELETE), rule(TOPIC, "new", Op.CREATE), rule(TOPIC, NO, Op.DESCRIBE),
        rule(TOPIC, "new", Op.DESCRIBE),
    ],
    "deleted groups": [*_all_of_ok(Op.DELETE), rule(TOPIC, OK, Op.READ)],
    "streams": [rule(GROUP, STREAMS, Op.READ), rule(TOPIC, OK, Op.DESCRIBE),
                rule(TOPIC, LOG, Op.DESCRIBE)],
    "streams described": [rule(GROUP, STREAMS, Op.DESCRIBE), rule(GROUP, SHARE, Op.DESCRIBE),
                          rule(TOPIC, OK, Op.DESCRIBE), rule(TOPIC, LOG, Op.DESCRIBE)],
    "streams with topics": [rule(GROUP, STREAMS, Op.READ), rule(TOPIC, OK, Op.DESCRIBE),
                            rule(TOPIC, LOG, Op.CREATE), rule(TOPIC, LOG, Op.READ)],
    "streams again": [rule(GROUP, STREAMS, Op.READ), rule(TOPIC, "*", Op.DESCRIBE)],
    "alter": [*_all_of_ok(Op.ALTER), rule(TOPIC, OK, Op.ALTER_CONFIGS)],
    "configs": [rule(TOPIC, OK, Op.DESCRIBE_CONFIGS), rule(GROUP, OK, Op.ALTER_CONFIGS),
                *on_cluster(Op.DESCRIBE_CONFIGS, Op.CREATE)],
    "everything": [
        rule(TOPIC, "*", Op.ALL), rule(GROUP, "*", Op.ALL), rule(TXN, "*", Op.ALL),
        *on_cluster(Op.ALL),
    ],
    "cluster describe": on_cluster(Op.DESCRIBE),
    "cluster action": on_cluster(Op.CLUSTER_ACTION),
    "cluster alter": on_cluster(Op.ALTER, Op.ALTER_CONFIGS, Op.IDEMPOTENT_WRITE),
    "prefixes": [
        rule(TOPIC, "o", Op.READ, pattern=PREFIXED), rule(TOPIC, "n", Op.ALL, pattern=PREFIXED),
        rule(TOPIC, NO, Op.WRITE, permission=DENY), rule(GROUP, "*", Op.READ),
        rule(GROUP, "n", Op.ALL, pattern=PREFIXED, permission=DENY), rule(TXN, "*", Op.ALL),
    ],
    "everybody but alice": [
        rule(TOPIC, "*", Op.ALL, who="User:*"), rule(GROUP, "*", Op.ALL, who="User:*"),
        rule(TOPIC, NO, Op.DESCRIBE, permission=DENY),
        rule(TOPIC, OK, Op.WRITE, permission=DENY, host="127.0.0.1"),
        rule(GROUP, OK, Op.ALL, permission=DENY, host="10.0.0.1"),
    ],
}  # fmt: skip


def _partitions(*names: str, **fields: Any) -> list[dict[str, Any]]:
    key = "topic" if fields.pop("by_topic", False) else "name"
    return [{key: name, "partitions": [{**fields}]} for name in names]


def _commit(*names: str, txn: bool = False) -> dict[str, Any]:
    partition = {"partition_index": 0, "committed_offset": 0, "committed_leader_epoch": -1,
                 "committed_metadata": ""}  # fmt: skip
    topics = [{"name": name, "partitions": [partition]} for name in names]
    return {"topics": topics, **({"producer_id": 1, "producer_epoch": 0} if txn else {})}


def _produced(*names: str, **fields: Any) -> dict[str, Any]:
    records = batch(b"v", **fields)
    return {
        "acks": 1, "timeout_ms": 1000,
        "topic_data": [
            {"name": name, "partition_data": [{"index": 0, "records": records}]} for name in names
        ],
    }  # fmt: skip


def _fetch(version: int, key: str, *topics: Any) -> Mapping[str, Any]:
    partition = {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": 0,
        "partition_max_bytes": 100,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
    }
    del version
    return {
        "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1000, "isolation_level": 0, "session_id": 0,
        "session_epoch": -1, "topics": [{key: one, "partitions": [partition]} for one in topics],
        "forgotten_topics_data": [], "rack_id": "",
    }  # fmt: skip


def _settings(kind: int, *names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"resource_type": kind, "resource_name": name, **more} for name in names]


_RETENTION = {"name": "retention.ms", "value": "1000", "config_operation": 0}
_NOBODY = {"member_id": "m", "group_instance_id": None}
REQUESTS: tuple[Asked, ...] = (
    Asked("Produce", 9, lambda _: {"transactional_id": None, **_produced(OK, NO, "gone")}),
    Asked("Produce", 8, lambda _: {"transactional_id": None, **_produced(NO)}),
    Asked("Produce", 9, lambda _: {
        "transactional_id": NO,
        **_produced(OK, producer=(1, 0, 0), is_transactional=True),
    }),
    Asked("Produce", 13, lambda ids: {
        "transactional_id": None, "acks": 1, "timeout_ms": 1000,
        "topic_data": [
            {"topic_id": topic, "partition_data": [{"index": 0, "records": batch(b"v")}]}
            for topic in (ids[OK], ids[NO], uuid.UUID(int=5))
        ],
    }),
    Asked("Fetch", 12, lambda _: _fetch(12, "topic", OK, NO, "gone")),
    Asked("Fetch", 4, lambda _: _fetch(4, "topic", NO)),
    Asked("Fetch", 17, lambda ids: _fetch(17, "topic_id", ids[OK], ids[NO], uuid.UUID(int=5))),
    Asked("ListOffsets", 7, _fixed(
        replica_id=-1, isolation_level=0,
        topics=_partitions(OK, NO, "gone", partition_index=0, current_leader_epoch=-1,
                           timestamp=-1),
    )),
    Asked("Metadata", 9, _fixed(
        topics=[{"name": one} for one in (OK, NO, "gone")], allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True, include_topic_authorized_operations=True,
    )),
    Asked("Metadata", 12, lambda ids: {
        "topics": [{"topic_id": one, "name": None} for one in (ids[OK], ids[NO], uuid.UUID(int=5))],
        "allow_auto_topic_creation": False, "include_topic_authorized_operations": True,
    }),
    Asked("Metadata", 12, _fixed(
        topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True,
    )),
    Asked("Metadata", 1, _fixed(topics=None)),
    Asked("Metadata", 4, _fixed(topics=[{"name": "made"}], allow_auto_topic_creation=True)),
    Asked("OffsetCommit", 8, _fixed(
        group_id=OK, generation_id_or_member_epoch=-1, member_id="", group_instance_id=None,
        **_commit(OK, NO, "gone"),
    )),
    Asked("OffsetCommit", 8, _fixed(
        group_id=NO, generation_id_or_member_epoch=-1, member_id="", group_instance_id=None,
        **_commit(OK, NO),
    )),
    Asked("OffsetCommit", 10, lambda ids: {
        "group_id": OK, "generation_id_or_member_epoch": -1, "member_id": "",
        "group_instance_id": None,
        "topics": [
            {"topic_id": one, "partitions": _commit(OK)["topics"][0]["partitions"]}
            for one in (ids[OK], ids[NO], uuid.UUID(int=5))
        ],
    }),
    Asked("OffsetFetch", 5, _fixed(
        group_id=OK, topics=[{"name": one, "partition_indexes": [0]} for one in (OK, NO, "gone")]
    )),
    Asked("OffsetFetch", 5, _fixed(group_id=OK, topics=None)),
    Asked("OffsetFetch", 1, _fixed(
        group_id=NO, topics=[{"name": one, "partition_indexes": [0]} for one in (OK, NO)]
    )),
    Asked("OffsetFetch", 8, _fixed(require_stable=False, groups=[
        {"group_id": OK, "topics": None},
        {"group_id": NO, "topics": None},
        {"group_id": OK + OK,
         "topics": [{"name": one, "partition_indexes": [0]} for one in (OK, NO)]},
    ])),
    Asked("OffsetFetch", 10, lambda ids: {"require_stable": False, "groups": [
        {"group_id": OK, "member_id": None, "member_epoch": -1,
         "topics": [
             {"topic_id": one, "partition_indexes": [0]}
             for one in (ids[OK], ids[NO], uuid.UUID(int=5))
         ]},
        {"group_id": OK, "member_id": None, "member_epoch": -1, "topics": None},
        {"group_id": NO, "member_id": None, "member_epoch": -1, "topics": None},
    ]}),
    Asked("FindCoordinator", 3, _fixed(key=OK, key_type=0)),
    Asked("FindCoordinator", 3, _fixed(key=NO, key_type=0)),
    Asked("FindCoordinator", 2, _fixed(key=NO, key_type=1)),
    Asked("FindCoordinator", 4, _fixed(key_type=0, coordinator_keys=[OK, NO])),
    Asked("FindCoordinator", 4, _fixed(key_type=1, coordinator_keys=[OK, NO])),
    *(
        Asked("FindCoordinator", version, _fixed(
            key_type=2, coordinator_keys=[f"{SHARE}:{'A' * 21}Q:0"],
        ))
        for version in (5, 6)
    ),
    *(
        asked
        for group in (OK, NO)
        for asked in (
            Asked("JoinGroup", 5, _fixed(
                group_id=group, session_timeout_ms=10_000, rebalance_timeout_ms=10_000,
                member_id="", group_instance_id=None, protocol_type="consumer",
                protocols=[{"name": "range", "metadata": b""}],
            )),
            Asked("Heartbeat", 4, _fixed(group_id=group, generation_id=1, **_NOBODY)),
            Asked("LeaveGroup", 2, _fixed(group_id=group, member_id="m")),
            Asked("LeaveGroup", 4, _fixed(group_id=group, members=[_NOBODY])),
            Asked("SyncGroup", 5, _fixed(
                group_id=group, generation_id=1, protocol_type="consumer", protocol_name="range",
                assignments=[], **_NOBODY,
            )),
            Asked("SyncGroup", 5, _fixed(
                group_id=group, generation_id=1, protocol_type=None, protocol_name=None,
                assignments=[], **_NOBODY,
            )),
        )
    ),
    Asked("DescribeGroups", 5, _fixed(groups=[NO, OK], include_authorized_operations=True)),
    Asked("DescribeGroups", 6, _fixed(
        groups=[NO, OK, "gone"], include_authorized_operations=False,
    )),
    Asked("ListGroups", 4, _fixed(states_filter=[])),
    Asked("CreateTopics", 7, _fixed(
        timeout_ms=1000, validate_only=True,
        topics=[
            {"name": one, "num_partitions": 1, "replication_factor": 1, "assignments": [],
             "configs": []}
            for one in ("new", "other", OK, "twice", "twice")
        ],
    )),
    Asked("DeleteRecords", 1, _fixed(
        timeout_ms=1000, topics=_partitions(OK, NO, "gone", partition_index=0, offset=0)
    )),
    Asked("InitProducerId", 4, _fixed(
        transactional_id=None, transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1
    )),
    Asked("InitProducerId", 4, _fixed(
        transactional_id=NO, transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1
    )),
    Asked("OffsetForLeaderEpoch", 4, _fixed(
        replica_id=-1,
        topics=_partitions(OK, NO, "gone", by_topic=True, partition=0, current_leader_epoch=-1,
                           leader_epoch=0),
    )),
    Asked("AddPartitionsToTxn", 3, _fixed(
        v3_and_below_transactional_id=OK, v3_and_below_producer_id=999,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[{"name": one, "partitions": [0, 7]} for one in (OK, NO)],
    )),
    Asked("AddPartitionsToTxn", 3, _fixed(
        v3_and_below_transactional_id=NO, v3_and_below_producer_id=999,
        v3_and_below_producer_epoch=0, v3_and_below_topics=[{"name": OK, "partitions": [0]}],
    )),
    Asked("AddPartitionsToTxn", 5, _fixed(transactions=[
        {"transactional_id": OK, "producer_id": 999, "producer_epoch": 0, "verify_only": True,
         "topics": [{"name": OK, "partitions": [0]}]},
    ])),
    *(
        Asked("AddOffsetsToTxn", 3, _fixed(
            transactional_id=txn, producer_id=999, producer_epoch=0, group_id=group
        ))
        for txn in (OK, NO) for group in (OK, NO)
    ),
    *(
        Asked("EndTxn", 3, _fixed(
            transactional_id=txn, producer_id=999, producer_epoch=0, committed=True
        ))
        for txn in (OK, NO)
    ),
    Asked("WriteTxnMarkers", 1, _fixed(markers=[
        {"producer_id": 999, "producer_epoch": 0, "transaction_result": False,
         "coordinator_epoch": 0, "topics": [{"name": "gone", "partition_indexes": [0]}]},
    ])),
    *(
        Asked("TxnOffsetCommit", 3, _fixed(
            transactional_id=txn, group_id=group, generation_id=-1, member_id="",
            group_instance_id=None, **_commit(OK, NO, "gone", txn=True),
        ))
        for txn, group in ((OK, OK), (OK, NO), (NO, OK))
    ),
    Asked("DescribeAcls", 2, _fixed(
        resource_type_filter=3, resource_name_filter="nowhere", pattern_type_filter=3,
        principal_filter=None, host_filter=None, operation=1, permission_type=1,
    )),
    Asked("CreateAcls", 2, _fixed(creations=[
        rule(TOPIC, "t", Op.READ, who="nobody"), rule(CLUSTER, "x", Op.READ),
    ])),
    Asked("DeleteAcls", 2, _fixed(filters=[
        {"resource_type_filter": 3, "resource_name_filter": "nowhere", "pattern_type_filter": 3,
         "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1},
    ])),
    Asked("DescribeConfigs", 4, _fixed(
        include_synonyms=False, include_documentation=False,
        resources=[
            *_settings(2, OK, NO, "gone", configuration_keys=["retention.ms"]),
            *_settings(4, "1", "", configuration_keys=["num.partitions"]),
            *_settings(8, "1", configuration_keys=["x"]),
            *_settings(32, OK, NO, configuration_keys=["consumer.session.timeout.ms"]),
        ],
    )),
    Asked("AlterConfigs", 2, _fixed(
        validate_only=True,
        resources=_settings(2, OK, NO, "gone", configs=[]) + _settings(4, "", configs=[])
        + _settings(32, OK, configs=[]),
    )),
    Asked("IncrementalAlterConfigs", 1, _fixed(
        validate_only=True,
        resources=_settings(2, OK, NO, "gone", configs=[_RETENTION]) + _settings(4, "", configs=[])
        + _settings(32, NO, configs=[]),
    )),
    Asked("AlterReplicaLogDirs", 2, _fixed(dirs=[
        {"path": "/nowhere", "topics": [{"name": "gone", "partitions": [0]}]},
    ])),
    Asked("DescribeLogDirs", 4, _fixed(topics=[{"topic": OK, "partitions": [0]}])),
    Asked("DescribeLogDirs", 2, _fixed(topics=[{"topic": OK, "partitions": [0]}])),
    Asked("CreatePartitions", 3, _fixed(
        timeout_ms=1000, validate_only=True,
        topics=[{"name": one, "count": 2, "assignments": None} for one in (OK, NO, "gone")],
    )),
    Asked("CreatePartitions", 3, _fixed(timeout_ms=1000, validate_only=True, topics=[
        {"name": one, "count": 2, "assignments": None} for one in (OK, NO, "gone", "twice", "twice")
    ])),
    Asked("DeleteGroups", 2, _fixed(groups_names=["gone", NO])),
    Asked("ElectLeaders", 2, _fixed(
        election_type=0, timeout_ms=1000, topic_partitions=[{"topic": OK, "partitions": [0]}]
    )),
    Asked("AlterPartitionReassignments", 0, _fixed(
        timeout_ms=1000,
        topics=[{"name": "gone", "partitions": [{"partition_index": 0, "replicas": [1]}]}],
    )),
    Asked("ListPartitionReassignments", 0, _fixed(timeout_ms=1000, topics=None)),
    Asked("OffsetDelete", 0, _fixed(
        group_id=OK, topics=_partitions("gone", NO, partition_index=0)
    )),
    Asked("OffsetDelete", 0, _fixed(group_id=NO, topics=_partitions(OK, partition_index=0))),
    Asked("DescribeClientQuotas", 1, _fixed(components=[], strict=False)),
    Asked("DescribeUserScramCredentials", 0, _fixed(users=[])),
    Asked("AlterUserScramCredentials", 0, _fixed(
        deletions=[{"name": name, "mechanism": 1} for name in ("nobody", "somebody")],
        upsertions=[],
    )),
    Asked("DescribeQuorum", 1, _fixed(
        topics=[{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    )),
    Asked("UpdateFeatures", 1, _fixed(
        timeout_ms=1000, validate_only=True,
        feature_updates=[{"feature": "group.version", "max_version_level": 1, "upgrade_type": 1}],
    )),
    Asked("DescribeCluster", 1, _fixed(
        include_cluster_authorized_operations=True, endpoint_type=1,
    )),
    Asked("DescribeProducers", 0, _fixed(
        topics=[{"name": one, "partition_indexes": [0]} for one in (OK, NO, "gone", "a/b")]
    )),
    Asked("DescribeTransactions", 0, _fixed(transactional_ids=[OK, NO, "pending"])),
    Asked("ListTransactions", 1, _fixed(
        state_filters=[], producer_id_filters=[], duration_filter=-1
    )),
    Asked("ListConfigResources", 1, _fixed(resource_types=[16])),
    Asked("DescribeTopicPartitions", 0, _fixed(
        topics=[{"name": one} for one in (OK, NO, "gone")], response_partition_limit=100,
        cursor=None,
    )),
    Asked("DescribeTopicPartitions", 0, _fixed(
        topics=[], response_partition_limit=100, cursor={"topic_name": "n", "partition_index": 0},
    )),
    *(
        Asked("ConsumerGroupHeartbeat", 1, _fixed(
            group_id=group, member_id="m", member_epoch=5, subscribed_topic_names=topics,
            rebalance_timeout_ms=10_000, topic_partitions=(),
        ))
        for group in ("k-ok", NO) for topics in ((OK,), (OK, NO))
    ),
    Asked("ConsumerGroupDescribe", 1, _fixed(
        group_ids=("k", NO, "gone"), include_authorized_operations=1
    )),
    *(Asked(*one) for one in GROUP_REQUESTS),
    Asked("CreateTopics", 7, _fixed(timeout_ms=0, validate_only=False, topics=[
        {"name": one, "num_partitions": 1, "replication_factor": 1, "assignments": [],
         "configs": []}
        for one in ("new", "other", OK, "twice", "twice")
    ])),
    Asked("CreatePartitions", 3, _fixed(timeout_ms=0, validate_only=False, topics=[
        {"name": one, "count": 2, "assignments": None} for one in (OK, NO, "gone")
    ])),
    Asked("DeleteTopics", 4, _fixed(timeout_ms=0, topic_names=["gone", "doomed", NO])),
    Asked("DeleteTopics", 6, lambda ids: {
        "timeout_ms": 1000,
        "topics": [
            {"name": "gone", "topic_id": uuid.UUID(int=0)},
            {"name": None, "topic_id": uuid.UUID(int=5)},
            {"name": "twice", "topic_id": uuid.UUID(int=0)},
            {"name": "twice", "topic_id": uuid.UUID(int=0)},
            {"name": None, "topic_id": ids["doomed"]},
        ],
    }),
    Asked("DeleteTopics", 4, _fixed(timeout_ms=1000, topic_names=["gone", "doomed"])),
)  # fmt: skip
