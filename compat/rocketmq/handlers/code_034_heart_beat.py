"""
HEART_BEAT: a client tells which groups it is in, and what they subscribe to.

Groups that are new get their settings and their retry topic. With a fingerprint (version 2, 5.x)
subscriptions may be left out as long as they are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.broker_stats import CONSUMER_REGISTER_TIME, PRODUCER_REGISTER_TIME
from logstore.compat.rocketmq.clients.clients import Client
from logstore.compat.rocketmq.clients.heartbeat import ConsumerData, read_heartbeat
from logstore.compat.rocketmq.topics import names
from logstore.compat.rocketmq.topics.broker_topics import unit_sys_flag
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    try:
        heartbeat = read_heartbeat(bytes(request.body))
    except (ValueError, TypeError) as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"the heart beat: {error}") from error
    now_ms = int(broker.host.clock.monotonic_ms())
    has_changed = False
    keeps = heartbeat.is_without_subscriptions and bool(heartbeat.fingerprint)
    for data in heartbeat.consumers:
        is_pull = data.consume_type == "CONSUME_ACTIVELY"
        if is_pull and broker.settings.rejects_pull_consumers:
            continue
        has_changed |= broker.fingerprints.get(data.group, heartbeat.fingerprint) != (
            heartbeat.fingerprint
        )
        broker.fingerprints[data.group] = heartbeat.fingerprint
        client = Client(channel, heartbeat.client_id, request.language, request.version)
        _join(broker, client, data, now_ms, keeps=keeps)
    for group in heartbeat.producer_groups:
        client = Client(channel, heartbeat.client_id, request.language, request.version)
        broker.producers.register(group, client, now_ms)
        broker.stats.count_registration(PRODUCER_REGISTER_TIME)
    is_plain = not heartbeat.fingerprint
    fields = {
        "IS_SUPPORT_HEART_BEAT_V2": "true",
        "IS_SUB_CHANGE": "true" if is_plain or has_changed else "false",
    }
    return Response(ResponseCode.SUCCESS, extra_fields=fields)


def _join(broker: Broker, client: Client, data: ConsumerData, now_ms: int, *, keeps: bool) -> None:
    config = broker.groups.find(data.group)
    if config is None:
        return
    orders = [broker.topics.get(subscription.topic) for subscription in data.subscriptions]
    retry_topic = names.retry_topic(data.group)
    broker.topics.ensure(
        retry_topic,
        config.retry_queue_count,
        is_order=any(topic is not None and topic.is_order for topic in orders),
        sys_flag=unit_sys_flag(retry_topic, is_unit_mode=data.is_unit_mode),
    )
    broker.consumers.register(
        client,
        data,
        now_ms,
        notifies=config.is_notify_consumer_ids_changed_enabled,
        keeps_subscriptions=keeps,
    )
    broker.stats.count_registration(CONSUMER_REGISTER_TIME)
