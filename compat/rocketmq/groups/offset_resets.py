"""Groups made to consume from elsewhere: on the server, or by their clients as before 5.x."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.clients.releases import check_knows_resets
from logstore.compat.rocketmq.queue_starts import start_of_queue
from logstore.compat.rocketmq.wire.bodies import in_map_order, object_body, queue_table
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields
from logstore.compat.rocketmq.wire.message_queue import MessageQueue
from logstore.compat.rocketmq.wire.refusals import RefusedError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker

#: the time that means the end of a queue
_END = -1


@attrs.frozen
class Reset:
    """What an administrator wants (ResetOffsetRequestHeader)."""

    topic: str
    group: str
    #: negative: to the end; for clients -1 alone
    timestamp_ms: int
    is_forced: bool = True
    #: negative: all queues
    queue_id: int = -1
    #: for one queue: there, whatever the time
    queue_offset: int | None = None


def reset_on_server(broker: Broker, reset: Reset) -> bytes:
    """
    Reset what a group has committed; its clients learn of it when they pull next.

    Returns the body that says where each queue goes on.

    Raises:
        RefusedError: topic or group are missing, or the place is outside of the queue.

    """
    if broker.settings.is_slave:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "Can not reset offset in slave broker")
    topic, group = reset.topic, reset.group
    config = broker.topics.get(topic)
    if config is None:
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} does not exist")
    if not broker.groups.contains(group):
        raise RefusedError(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} does not exist"
        )
    targets: dict[int, int] = {}
    if reset.queue_id >= 0:
        targets[reset.queue_id] = _target(broker, reset)
    else:
        for queue_id in range(config.read_queue_count):
            targets[queue_id] = _offset_for_time(broker, topic, queue_id, reset.timestamp_ms)
    if not targets:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
    for queue_id, queue_offset in targets.items():
        broker.store.consumer_offsets.assign_reset(topic, group, queue_id, queue_offset)
        if broker.has_popped:
            broker.popping.in_flight.clear(topic, group, queue_id)
    return _body(broker, topic, targets)


def reset_by_clients(broker: Broker, reset: Reset, *, is_for_cpp: bool) -> bytes:
    """
    Have a group's clients reset themselves, as brokers before 5.x do.

    Raises:
        RefusedError: topic or group are missing, nobody is online, or a client cannot do it.

    """
    topic, group = reset.topic, reset.group
    config = broker.topics.get(topic)
    if config is None:
        remark = f"[reset-offset] reset offset failed, no topic in this broker. topic={topic}"
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, remark)
    targets = {
        queue_id: _client_target(broker, reset, queue_id)
        for queue_id in range(config.write_queue_count)
    }
    connected = broker.consumers.group(group)
    if connected is None or not connected.members:
        raise RefusedError(
            ResponseCode.CONSUMER_NOT_ONLINE,
            f"Consumer not online, so can not reset offset, Group: {group} Topic: {topic} "
            f"Timestamp: {reset.timestamp_ms}",
        )
    body = _body(broker, topic, targets)
    told = _body_for_cpp(broker, topic, targets) if is_for_cpp else body
    fields = as_fields(
        topic=topic, group=group, timestamp=reset.timestamp_ms, isForce=False, queueId=-1
    )
    for client in connected.members.values():
        check_knows_resets(client.version)
        client.channel.tell(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, told)
    return body


def _target(broker: Broker, reset: Reset) -> int:
    topic, queue_id = reset.topic, reset.queue_id
    if reset.queue_offset is None or reset.queue_offset == -1:
        return _offset_for_time(broker, topic, queue_id, reset.timestamp_ms)
    low = start_of_queue(broker.store, topic, queue_id)
    high = broker.store.max_queue_offset(topic, queue_id)
    if 0 <= low > reset.queue_offset or reset.queue_offset > high + 1:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR,
            f"Target offset {reset.queue_offset} not in consume queue range [{low}-{high}]",
        )
    return reset.queue_offset


def _client_target(broker: Broker, reset: Reset, queue_id: int) -> int:
    committed = broker.store.consumer_offsets.query(reset.group, reset.topic, queue_id)
    if committed == -1:
        remark = f"THe consumer group <{reset.group}> not exist"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    if reset.timestamp_ms == _END:
        wanted = broker.store.max_queue_offset(reset.topic, queue_id)
    else:
        wanted = broker.store.queue_offset_for_time(reset.topic, queue_id, reset.timestamp_ms)
    wanted = max(wanted, 0)
    return wanted if reset.is_forced or wanted < committed else committed


def _offset_for_time(broker: Broker, topic: str, queue_id: int, timestamp_ms: int) -> int:
    if timestamp_ms < 0:
        return broker.store.max_queue_offset(topic, queue_id)
    return broker.store.queue_offset_for_time(topic, queue_id, timestamp_ms)


def _body(broker: Broker, topic: str, targets: dict[int, int]) -> bytes:
    name = broker.settings.broker_name
    table = {MessageQueue(topic, name, queue_id): target for queue_id, target in targets.items()}
    return object_body(offsetTable=queue_table(table, is_concurrent=False))


def _body_for_cpp(broker: Broker, topic: str, targets: dict[int, int]) -> bytes:
    name = broker.settings.broker_name
    table = {MessageQueue(topic, name, queue_id): target for queue_id, target in targets.items()}
    rows = [
        {"brokerName": name, "offset": table[queue], "queueId": queue.queue_id, "topic": topic}
        for queue in in_map_order(table, is_concurrent=False)
    ]
    return object_body(offsetTable=rows)
