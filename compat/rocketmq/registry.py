"""
Which request codes are served, and by which module: one table per service, read by everyone.

The handler of a code stands in a file of its own, ``code_NNN_name.py`` with the code's number (at
least three digits) and name, as ``handle`` or as ``handle_raw``, and is imported when somebody
asks for the first time. ::

    def handle(broker, channel, request) -> Response | Later[Response] | None
    def handle_raw(broker, channel, request) -> list[Chunk] | Later[list[Chunk]] | None

A raw handler writes whole frames by itself: what is asked often. None is no answer at all. Either
may raise :class:`~logstore.compat.rocketmq.wire.refusals.RefusedError`. Answers to one-way requests
are dropped.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode

#: (service, channel, request) -> Response, Later[Response] or None; raw: frames
AnyHandler = Callable[[Any, Any, Any], Any]


class Handler:
    """One code's entry in the table. One of `handle` and `handle_raw` is set once it is loaded."""

    __slots__ = ("code", "handle", "handle_raw", "module")

    def __init__(self, code: RequestCode, package: str) -> None:
        self.code = code
        self.module = f"{package}.code_{code:03}_{code.name.lower()}"
        self.handle: AnyHandler | None = None
        self.handle_raw: AnyHandler | None = None

    def load(self) -> None:
        """Import the code's file."""
        module = importlib.import_module(self.module)
        self.handle = getattr(module, "handle", None)
        self.handle_raw = getattr(module, "handle_raw", None)


Handlers = dict[int, Handler]
#: whom a table that has an entry of this key asks about all codes that it does not list
OTHERS = -1


def handlers_of(package: str, codes: Iterable[RequestCode]) -> Handlers:
    """Return the table of a service whose handlers stand in `package`."""
    return {int(code): Handler(code, package) for code in codes}


_C = RequestCode
#: what the broker serves
HANDLERS = handlers_of(
    "logstore.compat.rocketmq.handlers",
    (
        _C.SEND_MESSAGE,
        _C.PULL_MESSAGE,
        _C.QUERY_MESSAGE,
        _C.QUERY_CONSUMER_OFFSET,
        _C.UPDATE_CONSUMER_OFFSET,
        _C.UPDATE_AND_CREATE_TOPIC,
        _C.UPDATE_AND_CREATE_TOPIC_LIST,
        _C.GET_ALL_TOPIC_CONFIG,
        _C.UPDATE_BROKER_CONFIG,
        _C.GET_BROKER_CONFIG,
        _C.GET_BROKER_RUNTIME_INFO,
        _C.SEARCH_OFFSET_BY_TIMESTAMP,
        _C.GET_MAX_OFFSET,
        _C.GET_MIN_OFFSET,
        _C.GET_EARLIEST_MSG_STORETIME,
        _C.VIEW_MESSAGE_BY_ID,
        _C.HEART_BEAT,
        _C.UNREGISTER_CLIENT,
        _C.CONSUMER_SEND_MSG_BACK,
        _C.END_TRANSACTION,
        _C.GET_CONSUMER_LIST_BY_GROUP,
        _C.LOCK_BATCH_MQ,
        _C.UNLOCK_BATCH_MQ,
        _C.GET_ALL_CONSUMER_OFFSET,
        _C.GET_ALL_DELAY_OFFSET,
        _C.CHECK_CLIENT_CONFIG,
        _C.GET_TIMER_CHECK_POINT,
        _C.GET_TIMER_METRICS,
        _C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        _C.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        _C.GET_TOPIC_STATS_INFO,
        _C.GET_CONSUMER_CONNECTION_LIST,
        _C.GET_PRODUCER_CONNECTION_LIST,
        _C.DELETE_SUBSCRIPTIONGROUP,
        _C.GET_CONSUME_STATS,
        _C.DELETE_TOPIC_IN_BROKER,
        _C.INVOKE_BROKER_TO_RESET_OFFSET,
        _C.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        _C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        _C.QUERY_TOPIC_CONSUME_BY_WHO,
        _C.QUERY_CONSUME_TIME_SPAN,
        _C.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
        _C.CLEAN_EXPIRED_CONSUMEQUEUE,
        _C.GET_CONSUMER_RUNNING_INFO,
        _C.QUERY_CORRECTION_OFFSET,
        _C.CONSUME_MESSAGE_DIRECTLY,
        _C.SEND_MESSAGE_V2,
        _C.CLONE_GROUP_OFFSET,
        _C.VIEW_BROKER_STATS_DATA,
        _C.CLEAN_UNUSED_TOPIC,
        _C.GET_BROKER_CONSUME_STATS,
        _C.SEND_BATCH_MESSAGE,
        _C.QUERY_CONSUME_QUEUE,
        _C.RESUME_CHECK_HALF_MESSAGE,
        _C.SEND_REPLY_MESSAGE,
        _C.SEND_REPLY_MESSAGE_V2,
        _C.GET_ALL_PRODUCER_INFO,
        _C.DELETE_EXPIRED_COMMITLOG,
        _C.QUERY_TOPICS_BY_CONSUMER,
        _C.QUERY_SUBSCRIPTION_BY_CONSUMER,
        _C.GET_TOPIC_CONFIG,
        _C.GET_SUBSCRIPTIONGROUP_CONFIG,
        _C.UPDATE_AND_GET_GROUP_FORBIDDEN,
        _C.CHECK_ROCKSDB_CQ_WRITE_PROGRESS,
        _C.EXPORT_ROCKSDB_CONFIG_TO_JSON,
        _C.LITE_PULL_MESSAGE,
        _C.UPDATE_AND_CREATE_STATIC_TOPIC,
        _C.RECALL_MESSAGE,
        _C.GET_BROKER_HA_STATUS,
        _C.RESET_MASTER_FLUSH_OFFSET,
        _C.GET_BROKER_EPOCH_CACHE,
        _C.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
        _C.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
        _C.GET_COLD_DATA_FLOW_CTR_INFO,
        _C.SET_COMMITLOG_READ_MODE,
        _C.SWITCH_TIMER_ENGINE,
        _C.QUERY_ASSIGNMENT,
        _C.SET_MESSAGE_REQUEST_MODE,
        _C.GET_ALL_MESSAGE_REQUEST_MODE,
        _C.AUTH_CREATE_USER,
        _C.AUTH_UPDATE_USER,
        _C.AUTH_DELETE_USER,
        _C.AUTH_GET_USER,
        _C.AUTH_LIST_USER,
        _C.AUTH_CREATE_ACL,
        _C.AUTH_UPDATE_ACL,
        _C.AUTH_DELETE_ACL,
        _C.AUTH_GET_ACL,
        _C.AUTH_LIST_ACL,
        _C.POP_MESSAGE,
        _C.ACK_MESSAGE,
        _C.PEEK_MESSAGE,
        _C.CHANGE_MESSAGE_INVISIBLETIME,
        _C.NOTIFICATION,
        _C.POLLING_INFO,
        _C.POP_ROLLBACK,
        _C.POP_LITE_MESSAGE,
        _C.LITE_SUBSCRIPTION_CTL,
        _C.GET_BROKER_LITE_INFO,
        _C.GET_PARENT_TOPIC_INFO,
        _C.GET_LITE_TOPIC_INFO,
        _C.GET_LITE_CLIENT_INFO,
        _C.GET_LITE_GROUP_INFO,
        _C.TRIGGER_LITE_DISPATCH,
        _C.BATCH_ACK_MESSAGE,
    ),
)
