"""
Pulling: from the fields of a request to messages, or to a wait for them (PullMessageProcessor).

Messages leave as runs of commit log files, which the driver hands on without reading them where
they are long.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.clients.subscriptions import SubscriptionError
from logstore.compat.rocketmq.groups.consumer_filters import filter_of, wanted_filter
from logstore.compat.rocketmq.groups.slow_readers import note_read
from logstore.compat.rocketmq.lite.lite_names import queue_name
from logstore.compat.rocketmq.pulling.held_pulls import HeldPull
from logstore.compat.rocketmq.topics import names
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import is_plain, read_int, read_long, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import (
    VERSION,
    Response,
    Serializer,
    encode_head,
    encode_response,
)
from logstore.compat.waiting import Later
from logstore.segments.rocketmq.reading.get_message import GetMessageResult, GetMessageStatus
from logstore.segments.rocketmq.tables.topics import PERM_READ

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.connection import Chunk
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.clients.subscriptions import Subscription
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.segments.rocketmq.reading.message_filter import MessageFilter
    from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupConfig
    from logstore.segments.rocketmq.tables.topics import TopicConfig

_JSON = Serializer.JSON
_pack_head = struct.Struct(">iI").pack
_COMMIT_FLAG, _SUSPEND_FLAG, _SUBSCRIPTION_FLAG = 1, 2, 4
#: bodies up to this size, and those of many pieces, are read and go out with their header
_READ_BYTES_MAX = 16 * 1024
_READ_BIT = 2

#: what a request was refused for (ForbiddenType)
_BY_BROKER, _BY_GROUP, _BY_TOPIC, _BY_BROADCASTING, _BY_SUBSCRIPTION = 1, 2, 3, 4, 5

_Status = GetMessageStatus
_CODES = {
    _Status.FOUND: ResponseCode.SUCCESS,
    _Status.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    _Status.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    _Status.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    _Status.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    _Status.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    _Status.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    _Status.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}


class PullRefusedError(RefusedError):
    """A pull that is forbidden; the answer tells by whom."""

    def __init__(self, code: int, remark: str, forbidden_by: int | None = None) -> None:
        super().__init__(code, remark)
        self.forbidden_by = forbidden_by


@attrs.define(eq=False)
class Pull:
    """One pull request, read."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    count_max: int
    sys_flag: int
    commit_offset: int
    suspend_timeout_ms: int
    sub_version: int
    subscription: str | None
    expression_type: str | None
    lite_topic: str = ""

    @property
    def read_topic(self) -> str:
        """Whose queue is read: the light queue of a lite topic, if there is one."""
        if not self.lite_topic.strip():
            return self.topic
        return queue_name(self.topic, self.lite_topic)


#: numbers that newer clients send, and that no broker looks at but for their form
_UNUSED = ("maxMsgBytes", "requestSource")


def read_pull(request: Command) -> Pull:
    """
    Read the fields of a pull.

    Raises:
        RefusedError: one that must be there is missing, or no number.

    """
    fields = request.ext_fields
    try:
        ints = (
            fields["queueId"], fields["maxMsgNums"], fields["sysFlag"],
            *(fields[name] for name in _UNUSED if name in fields),
        )  # fmt: skip
        longs = (
            fields["queueOffset"], fields["commitOffset"], fields["suspendTimeoutMillis"],
            fields["subVersion"],
        )  # fmt: skip
        if not is_plain(ints, longs):
            return _read_carefully(fields)
        queue_id, count_max, sys_flag = map(int, ints[:3])
        queue_offset, commit_offset, suspend_timeout_ms, sub_version = map(int, longs)
        return Pull(
            fields["consumerGroup"],
            fields["topic"],
            queue_id,
            queue_offset,
            count_max,
            sys_flag,
            commit_offset,
            suspend_timeout_ms,
            sub_version,
            fields.get("subscription"),
            fields.get("expressionType"),
            fields.get("liteTopic", ""),
        )
    except (KeyError, ValueError):
        return _read_carefully(fields)


def _read_carefully(fields: Mapping[str, str]) -> Pull:
    for name in _UNUSED:
        read_int(fields, name, 0)
    return Pull(
        read_text(fields, "consumerGroup"),
        read_text(fields, "topic"),
        read_int(fields, "queueId"),
        read_long(fields, "queueOffset"),
        read_int(fields, "maxMsgNums"),
        read_int(fields, "sysFlag"),
        read_long(fields, "commitOffset", 0),
        read_long(fields, "suspendTimeoutMillis", 0),
        read_long(fields, "subVersion", 0),
        fields.get("subscription"),
        fields.get("expressionType"),
        fields.get("liteTopic", ""),
    )


def answer_pull(
    broker: Broker, channel: Channel, request: Command
) -> list[Chunk] | Later[list[Chunk]]:
    """Return the messages that a pull asks for, what hinders it, or a promise of either."""
    pull = read_pull(request)
    try:
        return _pull(broker, channel, request, pull, may_wait=True)
    except PullRefusedError as refusal:
        return refused_pull(request, refusal)


def refused_pull(request: Command, refusal: PullRefusedError) -> list[Chunk]:
    """Return the answer to a pull that is refused."""
    forbidden_by = refusal.forbidden_by
    fields = {} if forbidden_by is None else {"forbiddenType": str(forbidden_by)}
    return encode_response(request, Response(refusal.code, refusal.remark, fields))


def _pull(
    broker: Broker, channel: Channel, request: Command, pull: Pull, *, may_wait: bool
) -> list[Chunk] | Later[list[Chunk]]:
    group, topic = check_pull(broker, pull.group, pull.topic)
    if not 0 <= pull.queue_id < topic.read_queue_count:
        raise PullRefusedError(
            ResponseCode.INVALID_PARAMETER,
            f"queueId[{pull.queue_id}] is illegal, topic:[{pull.topic}] "
            f"topicConfig.readQueueNums:[{topic.read_queue_count}] consumer:[/{channel.address}]",
        )
    message_filter = _filter_of(broker, group, pull)
    result = _read(broker, pull, message_filter)
    status = result.status
    code = ResponseCode.SUCCESS if status is _Status.FOUND else _CODES.get(status)
    if code is None:  # nothing was ever there: who starts at 0 is right
        is_right = pull.queue_offset == 0
        code = ResponseCode.PULL_NOT_FOUND if is_right else ResponseCode.PULL_OFFSET_MOVED
    offsets = broker.store.consumer_offsets
    offsets.commit_pull(pull.group, pull.topic, pull.queue_id, result.next_begin_offset)
    if may_wait and pull.sys_flag & _COMMIT_FLAG:
        offsets.commit(pull.group, pull.topic, pull.queue_id, pull.commit_offset)
    if status is _Status.FOUND:
        broker.stats.count_pulled(pull.group, pull.topic, result.count, result.size_bytes)
    elif code == ResponseCode.PULL_NOT_FOUND and may_wait and pull.sys_flag & _SUSPEND_FLAG:
        return _hold(broker, channel, request, pull, message_filter)
    elif code == ResponseCode.PULL_OFFSET_MOVED and broker.settings.hides_moved_offsets:
        code = ResponseCode.PULL_RETRY_IMMEDIATELY
    return _answer(broker, request, group, topic, result, code)


def check_pull(
    broker: Broker, group_name: str, topic_name: str
) -> tuple[SubscriptionGroupConfig, TopicConfig]:
    """
    Return group and topic.

    Raises:
        PullRefusedError: they, or the broker, forbid to pull.

    """
    settings = broker.settings
    if not settings.permission & PERM_READ:
        raise PullRefusedError(
            ResponseCode.NO_PERMISSION,
            f"the broker[{settings.ip1}] pulling message is forbidden",
            _BY_BROKER,
        )
    group = broker.groups.find(group_name)
    if group is None:
        raise PullRefusedError(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group [{group_name}] does not exist, {names.SEE_FAQ}",
        )
    if not group.is_consume_enabled:
        raise PullRefusedError(
            ResponseCode.NO_PERMISSION,
            f"subscription group no permission, {group_name}",
            _BY_GROUP,
        )
    topic = broker.topics.get(topic_name)
    if topic is None:
        raise PullRefusedError(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{topic_name}] not exist, apply first please! {names.SEE_FAQ}",
        )
    if not topic.perm & PERM_READ:
        raise PullRefusedError(
            ResponseCode.NO_PERMISSION,
            f"the topic[{topic_name}] pulling message is forbidden",
            _BY_TOPIC,
        )
    return group, topic


def _filter_of(broker: Broker, group: SubscriptionGroupConfig, pull: Pull) -> MessageFilter | None:
    """Return what messages must match, by what the pull says or what the group said before."""
    if pull.sys_flag & _SUBSCRIPTION_FLAG:
        try:
            subscription = broker.pulled_subscription(
                pull.topic, pull.subscription, pull.expression_type, pull.sub_version
            )
        except SubscriptionError as error:
            raise PullRefusedError(
                ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"
            ) from error
        broker.consumers.note_pulled(pull.group, subscription, broker.host.clock.wall_ms())
        if subscription.is_by_tag:
            return subscription.tag_filter
        _check_filter_support(broker, subscription)
        return wanted_filter(broker, pull.group, subscription)
    subscription = _subscription_of(broker, group, pull)
    if subscription.is_by_tag:
        return subscription.tag_filter
    found = broker.store.consumer_filters.get(pull.topic, pull.group)
    if found is None:
        raise PullRefusedError(
            ResponseCode.FILTER_DATA_NOT_EXIST,
            "The broker's consumer filter data is not exist!Your expression may be wrong!",
        )
    if found.client_version < pull.sub_version:
        raise PullRefusedError(
            ResponseCode.FILTER_DATA_NOT_LATEST,
            "the consumer's consumer filter data not latest",
        )
    _check_filter_support(broker, subscription)
    return filter_of(broker, found)


def _check_filter_support(broker: Broker, subscription: Subscription) -> None:
    if not broker.settings.has_property_filter:
        raise PullRefusedError(
            ResponseCode.SYSTEM_ERROR,
            "The broker does not support consumer to filter message by "
            f"{subscription.expression_type}",
        )


def _subscription_of(broker: Broker, config: SubscriptionGroupConfig, pull: Pull) -> Subscription:
    group = broker.consumers.group(pull.group)
    if group is None:
        raise PullRefusedError(
            ResponseCode.SUBSCRIPTION_NOT_EXIST,
            f"the consumer's group info not exist{names.SEE_FAQ}",
        )
    if group.is_broadcast and not config.is_consume_broadcast_enabled:
        raise PullRefusedError(
            ResponseCode.NO_PERMISSION,
            f"the consumer group[{pull.group}] can not consume by broadcast way",
            _BY_BROADCASTING,
        )
    if broker.groups.is_forbidden(pull.group, pull.topic):
        raise PullRefusedError(
            ResponseCode.NO_PERMISSION,
            f"the consumer group[{pull.group}] is forbidden for topic[{pull.topic}]",
            _BY_SUBSCRIPTION,
        )
    subscription = group.subscriptions.get(pull.topic)
    if subscription is None:
        raise PullRefusedError(
            ResponseCode.SUBSCRIPTION_NOT_EXIST,
            f"the consumer's subscription not exist{names.SEE_FAQ}",
        )
    if subscription.sub_version < pull.sub_version:
        raise PullRefusedError(
            ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"
        )
    return subscription


def _read(broker: Broker, pull: Pull, message_filter: MessageFilter | None) -> GetMessageResult:
    store = broker.store
    broker.catch_up()
    if broker.settings.resets_on_server:
        reset = store.consumer_offsets.take_reset(pull.topic, pull.group, pull.queue_id)
        if reset is not None:
            return GetMessageResult(
                _Status.OFFSET_RESET,
                reset,
                store.min_queue_offset(pull.topic, pull.queue_id),
                store.max_queue_offset(pull.topic, pull.queue_id),
            )
    result = broker.shared_reads.get_message(
        pull.group,
        pull.read_topic,
        pull.queue_id,
        pull.queue_offset,
        pull.count_max,
        message_filter,
    )
    note_read(broker, pull.group, pull.read_topic, pull.queue_id, result)
    if result is None:
        raise PullRefusedError(ResponseCode.SYSTEM_ERROR, "store getMessage return null")
    found: GetMessageResult = result
    return found


def _hold(
    broker: Broker,
    channel: Channel,
    request: Command,
    pull: Pull,
    message_filter: MessageFilter | None,
) -> Later[list[Chunk]]:
    """Wait for messages; whoever wakes the pull has it asked again, and answered."""
    later: Later[list[Chunk]] = Later()

    def wake() -> None:
        try:
            answer = _pull(broker, channel, request, pull, may_wait=False)
        except PullRefusedError as refusal:
            answer = refused_pull(request, refusal)
        assert isinstance(answer, list), "whoever may not wait is answered"
        later.answer(answer)

    settings = broker.settings
    timeout_ms = pull.suspend_timeout_ms
    if not settings.has_long_polling:
        timeout_ms = settings.short_polling_ms
    broker.held_pulls.hold(
        HeldPull(pull.topic, pull.queue_id, pull.queue_offset, message_filter, wake, channel),
        timeout_ms,
    )
    return later


def _answer(
    broker: Broker,
    request: Command,
    group: SubscriptionGroupConfig,
    topic: TopicConfig,
    result: GetMessageResult,
    code: ResponseCode,
) -> list[Chunk]:
    broker_id = 0
    if broker.settings.reads_from_slave:
        slow_id = group.which_broker_when_consume_slowly
        broker_id = slow_id if result.suggests_slave else group.broker_id
    if request.serializer == _JSON:
        # In the order of Java's hash map.
        header = (
            f'{{"code":{code:d},"extFields":{{"suggestWhichBrokerId":"{broker_id}",'
            f'"groupSysFlag":"{group.group_sys_flag}",'
            f'"nextBeginOffset":"{result.next_begin_offset}",'
            f'"maxOffset":"{result.max_queue_offset}","minOffset":"{result.min_queue_offset}",'
            f'"topicSysFlag":"{topic.topic_sys_flag}"}},"flag":1,"language":"JAVA",'
            f'"opaque":{request.opaque},"remark":"{result.status.name}",'
            f'"serializeTypeCurrentRPC":"JSON","version":{VERSION}}}'
        ).encode()
        size_bytes = 4 + len(header) + result.size_bytes
        return _with_body(_pack_head(size_bytes, len(header)) + header, result)
    head = encode_head(
        request,
        code,
        result.status.name,
        {
            "suggestWhichBrokerId": str(broker_id),
            "groupSysFlag": str(group.group_sys_flag),
            "nextBeginOffset": str(result.next_begin_offset),
            "maxOffset": str(result.max_queue_offset),
            "minOffset": str(result.min_queue_offset),
            "topicSysFlag": str(topic.topic_sys_flag),
        },
        None,
        result.size_bytes,
    )
    return _with_body(head, result)


def _with_body(head: bytes, result: GetMessageResult) -> list[Chunk]:
    if not result.count:
        return [head]
    if len(result.runs) > 1 or result.size_bytes <= _READ_BYTES_MAX:
        return [head, result.read()]
    return [head, result.pieces[0]]
