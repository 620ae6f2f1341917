"""
What each API wants of a client, one line each: Kafka's ``KafkaApis`` and ``ControllerApis``.

A guard gets the decoded request; those of :data:`RAW_GUARDS` read it by themselves. Guards of
groups that few have, and with them the messages, are imported when somebody asks for the first
time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.guarded_request import Guard
from logstore.compat.kafka.security.guards.configs import settings
from logstore.compat.kafka.security.guards.fetch import fetch
from logstore.compat.kafka.security.guards.groups import (
    describe_groups,
    find_coordinator,
    list_groups,
    sync_group,
)
from logstore.compat.kafka.security.guards.metadata import (
    describe_cluster,
    describe_log_dirs,
    metadata,
)
from logstore.compat.kafka.security.guards.needs import Each, Need, cluster, needs
from logstore.compat.kafka.security.guards.offsets import offset_fetch
from logstore.compat.kafka.security.guards.produce import produce
from logstore.compat.kafka.security.guards.topics import (
    create_partitions,
    create_topics,
    delete_topics,
    describe_topic_partitions,
)
from logstore.compat.kafka.security.guards.transactions import (
    add_partitions_to_txn,
    describe_producers,
    describe_transactions,
    init_producer_id,
    list_transactions,
)

_READ, _WRITE, _DELETE = Operation.READ, Operation.WRITE, Operation.DELETE
_ALTER, _DESCRIBE, _CLUSTER_ACTION = Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION
_DESCRIBE_CONFIGS, _ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
_TOPIC, _GROUP = ResourceType.TOPIC, ResourceType.GROUP
_READS_GROUP = Need(_READ, _GROUP, "group_id")
_WRITES_TRANSACTION = Need(_WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id")

#: ApiVersions and authentication: whoever is connected may; delegation tokens: who may do what with
#: whose is part of what they are, and their handlers ask
OPEN = frozenset({17, 18, 36, 38, 39, 40, 41})

GUARDS: Mapping[int, Guard] = {
    2: needs(each=Each(_DESCRIBE, _TOPIC, "topics", "topics")),
    3: metadata,
    8: needs(_READS_GROUP, each=Each(_READ, _TOPIC, "topics", "topics", is_refused_first=True)),
    9: offset_fetch,
    10: find_coordinator,
    11: needs(_READS_GROUP),
    12: needs(_READS_GROUP),
    13: needs(_READS_GROUP),
    14: sync_group,
    15: describe_groups,
    16: list_groups,
    19: create_topics,
    20: delete_topics,
    21: needs(each=Each(_DELETE, _TOPIC, "topics", "topics")),
    22: init_producer_id,
    23: needs(each=Each(_DESCRIBE, _TOPIC, "topics", "topics"), unless=_CLUSTER_ACTION),
    24: add_partitions_to_txn,
    25: needs(_WRITES_TRANSACTION, _READS_GROUP),
    26: needs(_WRITES_TRANSACTION),
    27: cluster(_ALTER, _CLUSTER_ACTION),
    28: needs(
        _WRITES_TRANSACTION,
        _READS_GROUP,
        each=Each(_READ, _TOPIC, "topics", "topics", is_refused_first=True),
    ),
    29: cluster(_DESCRIBE),
    30: cluster(_ALTER),
    31: cluster(_ALTER),
    32: settings(_DESCRIBE_CONFIGS, "results", "DescribeConfigsResult"),
    33: settings(_ALTER_CONFIGS, "responses", "AlterConfigsResourceResponse"),
    34: cluster(_ALTER, is_told=False),
    35: describe_log_dirs,
    37: create_partitions,
    42: needs(each=Each(_DELETE, _GROUP, "groups_names", "results")),
    43: cluster(_ALTER, is_repeated=True),
    44: settings(_ALTER_CONFIGS, "responses", "AlterConfigsResourceResponse"),
    45: cluster(_ALTER, is_repeated=True),
    46: cluster(_DESCRIBE),
    47: needs(
        Need(_DELETE, _GROUP, "group_id"),
        each=Each(_READ, _TOPIC, "topics", "topics", is_refused_first=True),
    ),
    48: cluster(_DESCRIBE_CONFIGS, is_told=False),
    49: cluster(_ALTER_CONFIGS),
    50: cluster(_DESCRIBE, is_told=False),
    51: cluster(_ALTER),
    55: cluster(_DESCRIBE),
    57: cluster(_ALTER),
    60: describe_cluster,
    61: describe_producers,
    65: describe_transactions,
    66: list_transactions,
    74: cluster(_DESCRIBE_CONFIGS, is_told=False),
    75: describe_topic_partitions,
}


def _of(file: str, name: str) -> Callable[..., Any]:
    """Return a guard of a file that is imported at first use."""

    def guard(*question: Any) -> Any:
        return getattr(import_module(f"{__name__}.{file}"), name)(*question)

    return guard


_CLUSTER_ACTION_OF_OWN = _of("own_messages", "cluster_action")

#: (authorizer, API, broker, client, request) -> frames, or a promise of them
RAW_GUARDS: Mapping[int, Callable[..., Any]] = {
    0: produce,
    1: fetch,
    64: _of("own_messages", "unregister_broker"),
    68: _of("consumer_groups", "consumer_group_heartbeat"),
    69: _of("consumer_groups", "consumer_group_describe"),
    76: _of("share_groups", "share_group_heartbeat"),
    77: _of("share_groups", "share_group_describe"),
    78: _of("share_reads", "share_fetch"),
    79: _of("share_reads", "share_acknowledge"),
    80: _of("own_messages", "change_voters"),
    81: _of("own_messages", "change_voters"),
    83: _CLUSTER_ACTION_OF_OWN,
    84: _CLUSTER_ACTION_OF_OWN,
    85: _CLUSTER_ACTION_OF_OWN,
    86: _CLUSTER_ACTION_OF_OWN,
    87: _CLUSTER_ACTION_OF_OWN,
    88: _of("streams_groups", "streams_group_heartbeat"),
    89: _of("streams_groups", "streams_group_describe"),
    90: _of("share_offsets", "describe_share_group_offsets"),
    91: _of("share_offsets", "alter_share_group_offsets"),
    92: _of("share_offsets", "delete_share_group_offsets"),
}
