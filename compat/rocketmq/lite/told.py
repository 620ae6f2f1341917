"""What administrators are told of lite topics (LiteManagerProcessor)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.lite.lite_names import lite_topic_of, queue_name
from logstore.compat.rocketmq.lite.lite_rules import (
    bind_topic,
    expiration_minutes,
    expirations,
    groups_by_parent,
    is_parent,
)
from logstore.compat.rocketmq.pop.pop_requests import NO_REMARK
from logstore.compat.rocketmq.wire.bodies import json_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_int, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.rocketmq.broker import Broker
    from logstore.segments.rocketmq.tables.topics import TopicConfig

_COUNT, _COUNT_MAX = 1000, 10_000


def broker_info(broker: Broker) -> Response:
    """Return how much of everything there is."""
    broker.catch_up()
    lite, store = broker.lite, broker.store
    body = {
        "storeType": broker.config["storeType"],
        "maxLmqNum": store.config.integer("maxLmqConsumeQueueNum"),
        "currentLmqNum": lite.queues.count_of_store(),
        "liteSubscriptionCount": lite.subscriptions.count,
        "orderInfoCount": len(lite.orders),
        "cqTableSize": len({topic for topic, _ in store.consume_queues.by_key}),
        "offsetTableSize": len(store.consumer_offsets.offsets),
        "eventMapSize": len(lite.events),
        "topicMeta": expirations(broker),
        "groupMeta": groups_by_parent(broker),
    }
    return Response(ResponseCode.SUCCESS, body=json_body(body))


def parent_info(broker: Broker, fields: Mapping[str, str]) -> Response:
    """
    Return how many lite topics a topic has, and which groups read them.

    Raises:
        RefusedError: there is no such topic, or it is none of that type.

    """
    broker.catch_up()
    config = _parent(broker, read_text(fields, "topic"))
    topic = config.topic_name
    body: dict[str, Any] = {
        "topic": topic,
        "ttl": expiration_minutes(config),
        "lmqNum": broker.lite.queues.count_of_store(),
        "liteTopicCount": broker.lite.queues.count_of_parent(topic),
    }
    groups = groups_by_parent(broker).get(topic)
    if groups is not None:
        body["groups"] = groups
    return Response(ResponseCode.SUCCESS, body=json_body(body))


def topic_info(broker: Broker, fields: Mapping[str, str]) -> Later[Response]:
    """
    Return how far a lite topic goes, who reads it, and whether it belongs to this broker.

    Raises:
        RefusedError: there is no such topic, or it is none of that type.

    """
    broker.catch_up()
    parent = _parent(broker, read_text(fields, "parentTopic")).topic_name
    lite_topic = fields.get("liteTopic", "")
    queue = queue_name(parent, lite_topic)
    if lite_topic_of(queue) is None:
        remark = f"[{lite_topic}] cannot be a lite topic."
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    later: Later[Response] = Later()
    shards = broker.lite.shards
    shards.learn(parent, lambda: later.answer(_topic_info(broker, parent, lite_topic, queue)))
    return later


def _topic_info(broker: Broker, parent: str, lite_topic: str, queue: str) -> Response:
    lite, end = broker.lite, broker.lite.queues.end(queue)
    readers = [
        {"clientId": client, "group": group}
        for group, found in lite.subscriptions.all_readers(queue).items()
        for client in (
            ["*"] if lite.rules.is_wildcard(group) else [reader.client for reader in found]
        )
    ]
    body = {
        "parentTopic": parent,
        "liteTopic": lite_topic,
        "subscriber": readers,
        "topicOffset": {
            "minOffset": max(broker.store.min_queue_offset(queue, 0), 0) if end > 0 else 0,
            "maxOffset": max(end, 0),
            "lastUpdateTimestamp": lite.queues.stored_ms(queue, end - 1) if end > 0 else 0,
        },
        "shardingToBroker": lite.shards.is_ours(parent, queue),
    }
    return Response(ResponseCode.SUCCESS, body=json_body(body))


def client_info(broker: Broker, fields: Mapping[str, str]) -> Response:
    """
    Return what a client reads.

    Raises:
        RefusedError: there is no such topic or group, or they do not belong together.

    """
    parent = _parent(broker, read_text(fields, "parentTopic")).topic_name
    group, client = read_text(fields, "group"), read_text(fields, "clientId")
    found = broker.groups.find(group)
    if found is None:
        remark = f"Group [{group}] not exist."
        raise RefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    if bind_topic(found) != parent:
        remark = f"Subscription [{group}]-[{parent}] not match."
        raise RefusedError(ResponseCode.INVALID_PARAMETER, remark)
    subscription = broker.lite.subscriptions.of_client(client)
    body: dict[str, Any] = {
        "parentTopic": parent,
        "group": group,
        "clientId": client,
        "liteTopicCount": -1,
        "lastAccessTime": broker.lite.events.last_access_ms(client),
        "lastConsumeTime": 0,
    }
    if subscription is not None:
        count = max(min(read_int(fields, "maxCount", _COUNT), _COUNT_MAX), 0)
        body["liteTopicCount"] = len(subscription.queues)
        body["liteTopicSet"] = list(subscription.queues)[:count]
    return Response(ResponseCode.SUCCESS, body=json_body(body))


def group_info(broker: Broker, fields: Mapping[str, str]) -> Response:
    """
    Return how far a group is behind: in one lite topic, or where it is most of all.

    Raises:
        RefusedError: there is no such group, or it reads no lite topics.

    """
    broker.catch_up()
    group = read_text(fields, "group")
    parent, lite_topic = _bound(broker, group), fields.get("liteTopic", "")
    body: dict[str, Any] = {"group": group, "parentTopic": parent}
    if lite_topic:
        body |= {"liteTopic": lite_topic, **_one_lag(broker, group, queue_name(parent, lite_topic))}
    else:
        count_max = read_int(fields, "topK", 0)
        if count_max < 1:
            raise RefusedError(ResponseCode.SYSTEM_ERROR, f"the custom field <topK> is {count_max}")
        most, total = broker.lite.lags.by_count(group, count_max)
        longest, since_ms = broker.lite.lags.by_time(group, parent, count_max)
        body |= {
            "lagCountTopK": most,
            "totalLagCount": total,
            "lagTimestampTopK": longest,
            "earliestUnconsumedTimestamp": since_ms,
        }
    return Response(ResponseCode.SUCCESS, NO_REMARK, body=json_body(body))


def _one_lag(broker: Broker, group: str, queue: str) -> dict[str, Any]:
    queues = broker.lite.queues
    end, committed = queues.end(queue), broker.store.consumer_offsets.query(group, queue, 0)
    if end <= 0 or committed < 0:
        return {"totalLagCount": 0 if end > 0 else -1, "earliestUnconsumedTimestamp": -1}
    return {
        "totalLagCount": end - committed,
        "earliestUnconsumedTimestamp": queues.stored_ms(queue, committed),
        "liteTopicOffsetWrapper": {
            "brokerOffset": end,
            "consumerOffset": committed,
            "pullOffset": 0,
            "lastTimestamp": queues.stored_ms(queue, committed - 1) if committed > 0 else 0,
        },
    }


def trigger_dispatch(broker: Broker, fields: Mapping[str, str]) -> Response:
    """
    Look at all that a group, or one client of it, reads, and wake who waits for it.

    Raises:
        RefusedError: there is no such group, or it reads no lite topics.

    """
    broker.catch_up()
    group, client = read_text(fields, "group"), fields.get("clientId", "")
    _bound(broker, group)
    if client:
        broker.lite.events.look_for_client(client, group)
    else:
        broker.lite.events.look_for_group(group)
    return Response(ResponseCode.SUCCESS, NO_REMARK)


def _parent(broker: Broker, topic: str) -> TopicConfig:
    config = broker.topics.get(topic)
    if config is None:
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"Topic [{topic}] not exist.")
    if not is_parent(config):
        raise RefusedError(ResponseCode.INVALID_PARAMETER, f"Topic [{topic}] type not match.")
    return config


def _bound(broker: Broker, group: str) -> str:
    found = broker.groups.find(group)
    if found is None:
        remark = f"Group [{group}] not exist."
        raise RefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    parent = bind_topic(found)
    if not parent:
        remark = f"Group [{group}] is not a LITE group."
        raise RefusedError(ResponseCode.INVALID_PARAMETER, remark)
    return parent
