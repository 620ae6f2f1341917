"""
What a request asks for, by its code: actions, and the fields that name resources.

That is what 5.5.0's headers are marked with. A code that does not stand here, nor in
:mod:`~logstore.compat.rocketmq.auth.asked`, is served to everybody who is who he says he is.
Source: ``RocketMQAction``, ``RocketMQResource``.
"""

from __future__ import annotations

from typing import NamedTuple

from logstore.compat.rocketmq.auth.resources import CLUSTER, GROUP, TOPIC
from logstore.compat.rocketmq.wire.codes import RequestCode

#: what may be done with a resource
PUB, SUB, CREATE, UPDATE, DELETE, GET = "Pub", "Sub", "Create", "Update", "Delete", "Get"
#: what only policies name
ALL, ANY = "All", "Any"
ACTIONS = ("Unknown", ALL, ANY, PUB, SUB, CREATE, UPDATE, DELETE, GET, "List")


class Named(NamedTuple):
    """A field that names resources of a kind, several if it has a splitter."""

    field: str
    kind: str
    splitter: str = ""


class Want(NamedTuple):
    """
    The action that a request asks for, and with what.

    Where no field says it, that is the cluster if `is_of_cluster`, and otherwise nothing.
    """

    action: str
    named: tuple[Named, ...] = ()
    is_of_cluster: bool = False


_TOPIC, _GROUP = Named("topic", TOPIC), Named("group", GROUP)
_CONSUMERS = Named("consumerGroup", GROUP)
_CLUSTER = Named("clusterName", CLUSTER)

_CLUSTER_GET = Want(GET, is_of_cluster=True)
_CLUSTER_UPDATE = Want(UPDATE, is_of_cluster=True)
_NAMED_CLUSTER_GET = Want(GET, (_CLUSTER,), is_of_cluster=True)
_NAMED_CLUSTER_UPDATE = Want(UPDATE, (_CLUSTER,), is_of_cluster=True)
_TOPIC_GET, _GROUP_GET = Want(GET, (_TOPIC,)), Want(GET, (_GROUP,))
_CONSUMERS_GET = Want(GET, (_CONSUMERS,))
_CONSUMED = Want(SUB, (_CONSUMERS, _TOPIC))

_C = RequestCode
WANTS: dict[int, Want] = {
    _C.UPDATE_AND_CREATE_TOPIC: Want(CREATE, (_TOPIC,)),
    _C.SEARCH_OFFSET_BY_TIMESTAMP: _TOPIC_GET,
    _C.GET_MAX_OFFSET: _TOPIC_GET,
    _C.GET_MIN_OFFSET: _TOPIC_GET,
    _C.GET_EARLIEST_MSG_STORETIME: _TOPIC_GET,
    _C.VIEW_MESSAGE_BY_ID: _TOPIC_GET,
    _C.CHECK_TRANSACTION_STATE: Want(PUB, (_TOPIC,)),
    _C.NOTIFY_CONSUMER_IDS_CHANGED: Want(SUB, (_CONSUMERS,)),
    _C.PUT_KV_CONFIG: _CLUSTER_UPDATE,
    _C.GET_KV_CONFIG: _CLUSTER_GET,
    _C.DELETE_KV_CONFIG: _CLUSTER_UPDATE,
    _C.REGISTER_BROKER: _NAMED_CLUSTER_UPDATE,
    _C.UNREGISTER_BROKER: _NAMED_CLUSTER_UPDATE,
    _C.GET_TOPIC_STATS_INFO: _TOPIC_GET,
    _C.GET_CONSUMER_CONNECTION_LIST: _CONSUMERS_GET,
    _C.GET_PRODUCER_CONNECTION_LIST: _CLUSTER_GET,
    _C.WIPE_WRITE_PERM_OF_BROKER: _CLUSTER_UPDATE,
    _C.DELETE_SUBSCRIPTIONGROUP: Want(DELETE, (Named("groupName", GROUP),)),
    _C.GET_CONSUME_STATS: Want(GET, (_CONSUMERS, _TOPIC, Named("topicList", TOPIC, ";"))),
    _C.DELETE_TOPIC_IN_BROKER: Want(DELETE, (_TOPIC,)),
    _C.DELETE_TOPIC_IN_NAMESRV: _NAMED_CLUSTER_UPDATE,
    _C.REGISTER_TOPIC_IN_NAMESRV: _CLUSTER_UPDATE,
    _C.GET_KVLIST_BY_NAMESPACE: _CLUSTER_GET,
    _C.INVOKE_BROKER_TO_RESET_OFFSET: Want(UPDATE, (_GROUP, _TOPIC)),
    _C.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: Want(GET, (_TOPIC, _GROUP)),
    _C.QUERY_TOPIC_CONSUME_BY_WHO: _TOPIC_GET,
    _C.QUERY_CONSUME_TIME_SPAN: Want(GET, (_TOPIC, _GROUP)),
    _C.GET_CONSUMER_RUNNING_INFO: _CONSUMERS_GET,
    _C.QUERY_CORRECTION_OFFSET: Want(
        GET, (Named("filterGroups", GROUP, ","), Named("compareGroup", GROUP), _TOPIC)
    ),
    _C.CONSUME_MESSAGE_DIRECTLY: _CONSUMED,
    _C.CLONE_GROUP_OFFSET: Want(UPDATE, (Named("destGroup", GROUP), _TOPIC)),
    _C.VIEW_BROKER_STATS_DATA: _CLUSTER_GET,
    _C.GET_BROKER_CONSUME_STATS: _CLUSTER_GET,
    _C.QUERY_CONSUME_QUEUE: Want(GET, (_TOPIC, _CONSUMERS)),
    _C.QUERY_DATA_VERSION: _NAMED_CLUSTER_GET,
    _C.RESUME_CHECK_HALF_MESSAGE: Want(UPDATE, (_TOPIC,)),
    _C.PUSH_REPLY_MESSAGE_TO_CLIENT: Want(SUB, (Named("producerGroup", GROUP), _TOPIC)),
    _C.ADD_WRITE_PERM_OF_BROKER: _CLUSTER_UPDATE,
    _C.GET_ALL_PRODUCER_INFO: _CLUSTER_GET,
    _C.QUERY_TOPICS_BY_CONSUMER: _GROUP_GET,
    _C.QUERY_SUBSCRIPTION_BY_CONSUMER: Want(GET, (_GROUP, _TOPIC)),
    _C.GET_TOPIC_CONFIG: _TOPIC_GET,
    _C.GET_SUBSCRIPTIONGROUP_CONFIG: _GROUP_GET,
    _C.UPDATE_AND_GET_GROUP_FORBIDDEN: Want(UPDATE, (_GROUP, _TOPIC)),
    _C.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: _TOPIC_GET,
    _C.EXPORT_ROCKSDB_CONFIG_TO_JSON: _CLUSTER_GET,
    _C.GET_BROKER_MEMBER_GROUP: Want(GET, (_CLUSTER,)),
    _C.ADD_BROKER: _CLUSTER_UPDATE,
    _C.REMOVE_BROKER: Want(UPDATE, (Named("brokerClusterName", CLUSTER),), is_of_cluster=True),
    _C.BROKER_HEARTBEAT: _NAMED_CLUSTER_UPDATE,
    _C.NOTIFY_MIN_BROKER_ID_CHANGE: _CLUSTER_UPDATE,
    _C.EXCHANGE_BROKER_HA_INFO: _CLUSTER_UPDATE,
    _C.RESET_MASTER_FLUSH_OFFSET: _CLUSTER_UPDATE,
    _C.CONTROLLER_ALTER_SYNC_STATE_SET: _CLUSTER_UPDATE,
    _C.CONTROLLER_ELECT_MASTER: _NAMED_CLUSTER_UPDATE,
    _C.CONTROLLER_REGISTER_BROKER: _NAMED_CLUSTER_UPDATE,
    _C.CONTROLLER_GET_REPLICA_INFO: _CLUSTER_GET,
    _C.NOTIFY_BROKER_ROLE_CHANGED: _CLUSTER_UPDATE,
    _C.CLEAN_BROKER_DATA: _NAMED_CLUSTER_UPDATE,
    _C.CONTROLLER_GET_NEXT_BROKER_ID: _NAMED_CLUSTER_GET,
    _C.CONTROLLER_APPLY_BROKER_ID: _NAMED_CLUSTER_UPDATE,
    _C.AUTH_CREATE_USER: _CLUSTER_UPDATE,
    _C.AUTH_UPDATE_USER: _CLUSTER_UPDATE,
    _C.AUTH_DELETE_USER: _CLUSTER_UPDATE,
    _C.AUTH_GET_USER: _CLUSTER_GET,
    _C.AUTH_LIST_USER: _CLUSTER_GET,
    _C.AUTH_CREATE_ACL: _CLUSTER_UPDATE,
    _C.AUTH_UPDATE_ACL: _CLUSTER_UPDATE,
    _C.AUTH_DELETE_ACL: _CLUSTER_UPDATE,
    _C.AUTH_GET_ACL: _CLUSTER_GET,
    _C.AUTH_LIST_ACL: _CLUSTER_GET,
    _C.POP_MESSAGE: _CONSUMED,
    _C.ACK_MESSAGE: _CONSUMED,
    _C.PEEK_MESSAGE: Want(SUB, (_TOPIC, _CONSUMERS)),
    _C.CHANGE_MESSAGE_INVISIBLETIME: _CONSUMED,
    _C.NOTIFICATION: _CONSUMED,
    _C.POLLING_INFO: Want(GET, (_CONSUMERS, _TOPIC)),
    _C.NOTIFY_UNSUBSCRIBE_LITE: Want(SUB, (_CONSUMERS,)),
}
