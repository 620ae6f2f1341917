"""
Sending: from the fields of a request to a message in the commit log and the answer.

Clients name the fields by letters (SEND_MESSAGE_V2), older ones by words (SEND_MESSAGE); here they
have letters. What a usual request asks for takes the short way; whatever is out of the ordinary
(a new topic, a retry, a batch, a transaction, a refusal) is found out on it and goes on elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.replication.stored_wait import when_stored
from logstore.compat.rocketmq.sending.half_messages import HALF_QUEUE_ID, half_text
from logstore.compat.rocketmq.sending.put_answers import refusal_of
from logstore.compat.rocketmq.sending.recall_handles import recall_handle
from logstore.compat.rocketmq.sending.sent_properties import with_properties
from logstore.compat.rocketmq.topics import names
from logstore.compat.rocketmq.topics.broker_topics import READ_WRITE, unit_sys_flag
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.fields import is_plain, read_flag, read_int, read_long, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import ONEWAY_FLAG
from logstore.compat.waiting import Later
from logstore.segments.rocketmq.messages.batch_columns import MalformedBatchError
from logstore.segments.rocketmq.messages.message_batch import count_batch_items, draft_batch
from logstore.segments.rocketmq.messages.message_draft import draft_message
from logstore.segments.rocketmq.messages.properties import (
    DELAY,
    HASH_MAP_CAPACITY_5,
    INNER_NUMBER,
    KEYS,
    POP_CHECK,
    TIMER_DELAY_MS,
    TIMER_DELAY_SECONDS,
    TIMER_DELIVER_MS,
    TIMER_OUT_MS,
    UNIQUE_KEY,
    WAIT,
    encode_properties,
    find_property,
    parse_properties,
    property_needle,
)
from logstore.segments.rocketmq.messages.system_flags import (
    INNER_BATCH,
    MULTI_TAGS,
    NEED_UNWRAP,
    TRANSACTION_MASK,
    TRANSACTION_NONE,
    with_transaction_type,
)
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus
from logstore.segments.rocketmq.tables.topics import PERM_INHERIT, PERM_READ, PERM_WRITE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.sending.sent_properties import SentProperties
    from logstore.compat.rocketmq.wire.remoting import Answer, Command
    from logstore.segments.rocketmq.messages.message_draft import MessageDraft
    from logstore.segments.rocketmq.putting.put_result import PutResult
    from logstore.segments.rocketmq.tables.topics import TopicConfig

#: the version from which on clients say how often a message may be consumed again (V3_4_9)
SAYS_RECONSUME_MAX_SINCE = 121
_TOPIC_LENGTH_MAX = 127
_UNIQUE_KEY, _WAIT = property_needle(UNIQUE_KEY), property_needle(WAIT)
_DUE = property_needle(TIMER_OUT_MS)
#: what is no batch, whatever a client means by it
_FALSE = frozenset({"false", "0", "1"})
_PUT_OK = PutMessageStatus.PUT_OK
#: numbers, though few messages need them: queues of a topic that is made, tries; and what is none
_UNUSED, _NONE = ("d", "l"), "-"
#: what a message has that is to be delivered later
_TIMES = (TIMER_DELAY_SECONDS, TIMER_DELAY_MS, TIMER_DELIVER_MS)


def answer_send(
    broker: Broker, channel: Channel, request: Command, fields: Mapping[str, str]
) -> Answer | Later[Answer] | None:
    """Store what a client sends; return the answer, or a promise of it that waits for the disk."""
    try:
        return _send(broker, channel, request, fields)
    except MalformedBatchError as error:
        refusal = RefusedError(ResponseCode.SYSTEM_ERROR, str(error))
    except RefusedError as error:
        refusal = error
    return broker.send_answers.refused(request, refusal)


def _send(
    broker: Broker, channel: Channel, request: Command, fields: Mapping[str, str]
) -> Answer | Later[Answer] | None:
    """Take the short way as far as it goes."""
    try:
        topic, route = fields["b"], broker.topics.routes.get(fields["b"])
        ints = (
            fields["e"], fields["h"], fields["f"], fields.get("j", "0"),
            fields.get("d", "0") or _NONE, fields.get("l", "0") or _NONE,
        )  # fmt: skip
        queue_id = int(ints[0]) if is_plain(ints, (fields["g"],)) else -1
        if route is None or not 0 <= queue_id < route.queue_count or not request.body:
            return _send_carefully(broker, channel, request, fields)
        if (batch := fields.get("m", "false")) not in _FALSE:
            if batch != "true" or route.keeps_batches:
                return _send_carefully(broker, channel, request, fields)
            return _put_batch(broker, channel, request, fields, topic, queue_id, route.sys_flag)
        sent = broker.property_rewriter.rewrite(fields.get("i", ""), topic)
        if sent.needs_care:
            return _send_carefully(broker, channel, request, fields)
        draft = draft_message(
            topic=topic,
            body=request.body,
            queue_id=queue_id,
            properties_text=sent.text.encode(),
            flag=int(fields["h"]),
            sys_flag=int(fields["f"]) | route.sys_flag,
            born_timestamp_ms=int(fields["g"]),
            born_host=broker.born_hosts[channel],
            store_host=broker.store_host,
            reconsume_times=int(fields.get("j", 0)),
        )
    except (KeyError, ValueError):
        return _send_carefully(broker, channel, request, fields)
    return _put(broker, request, draft, queue_id, sent)


def _put(
    broker: Broker, request: Command, draft: MessageDraft, queue_id: int, sent: SentProperties
) -> Answer | Later[Answer] | None:
    result = broker.store.put_message(draft)
    if result.status is not _PUT_OK:
        raise RefusedError(*refusal_of(broker, result.status))
    if request.flag & ONEWAY_FLAG:
        return None
    handle = None
    if _DUE in draft.properties_text:
        handle = recall_handle(broker.settings.broker_name, draft.properties_text)
    if broker.awaits_puts and sent.waits_for_flush:
        return _when_stored(broker, request, result, queue_id, sent.unique_key, handle)
    return broker.send_answers.stored(request, result, queue_id, sent.unique_key, handle)


def _when_stored(
    broker: Broker,
    request: Command,
    result: PutResult,
    queue_id: int,
    unique_key: str | None,
    recall_handle: str | None = None,
    batch_key: str | None = None,
) -> Later[Answer]:
    """Answer once the message is on the disk and on slaves, or it took too long."""
    later: Later[Answer] = Later()

    def settled(status: PutMessageStatus) -> None:
        result.status = status
        later.answer(
            broker.send_answers.stored(
                request, result, queue_id, unique_key, recall_handle, batch_key
            )
        )

    when_stored(broker, result.next_physical_offset, settled)
    return later


def _send_carefully(
    broker: Broker, channel: Channel, request: Command, fields: Mapping[str, str]
) -> Answer | Later[Answer] | None:
    """Look at everything, in Java's order."""
    if request.code != RequestCode.SEND_MESSAGE:  # of its words Java passes over bad ones
        for name in _UNUSED:
            read_int(fields, name, 0)
    check_start(broker)
    topic = read_text(fields, "b")
    queue_id = read_int(fields, "e")
    if not len(request.body):
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "the body of the message is null")
    config = check_message(broker, channel, fields, topic, queue_id)
    if queue_id < 0:
        queue_id = broker.host.rng.randrange(max(config.write_queue_count, 1))
    if fields.get("m", "").lower() == "true":  # the 1 of C++ is none to Java: one message
        return _send_batch(broker, channel, request, fields, config, queue_id)
    sent = broker.property_rewriter.rewrite(fields.get("i") or "", topic)
    reconsume_times = read_int(fields, "j", 0)
    place = _Place(config, config.topic_name, queue_id, sent.text)
    if topic.startswith(names.RETRY_PREFIX):
        if _is_given_up(broker, request, fields, topic, reconsume_times):
            place = _place_of_dead_letter(broker, topic, sent.text)
    elif config.attributes.get("cleanup.policy") == "COMPACTION":
        _check_key(sent.text)
    else:
        broker.topics.learn_route(config)
    if sent.needs_care:
        place, queue_id = _placed_by_priority(place, config, queue_id)
    sys_flag = read_int(fields, "f") | _filter_flag(place.config)
    if sent.is_half and not (reconsume_times > 0 and _delay_level(place.text) > 0):
        _check_transactions(broker)
        place = _place_of_half(place, sent.unique_key)
        sys_flag = with_transaction_type(sys_flag, TRANSACTION_NONE)
    draft = draft_message(
        topic=place.topic,
        body=request.body,
        queue_id=place.queue_id,
        properties_text=place.text.encode(),
        flag=read_int(fields, "h"),
        sys_flag=sys_flag,
        born_timestamp_ms=read_long(fields, "g"),
        born_host=broker.born_hosts[channel],
        store_host=broker.store_host,
        reconsume_times=reconsume_times,
    )
    return _put(broker, request, draft, queue_id, sent)


def check_start(broker: Broker) -> None:
    """Refuse to send before the broker is told to accept it (startAcceptSendRequestTimeStamp)."""
    start_ms = broker.settings.start_accepting_ms
    if start_ms and broker.host.clock.wall_ms() < start_ms:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"broker unable to service, until {start_ms}")


def check_message(
    broker: Broker, channel: Channel, fields: Mapping[str, str], topic: str, queue_id: int
) -> TopicConfig:
    """Return the topic, made just now if it may be; refuse what cannot be sent (msgCheck)."""
    settings = broker.settings
    config = broker.topics.get(topic)
    is_writable = settings.permission & PERM_WRITE
    if not is_writable and config is not None and config.is_order:
        raise RefusedError(
            ResponseCode.NO_PERMISSION, f"the broker[{settings.ip1}] sending message is forbidden"
        )
    names.check_topic(topic)
    if topic in names.UNSENDABLE_TOPICS:
        raise RefusedError(
            ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden."
        )
    if config is None:
        config = _create_topic(broker, fields, topic)
    if queue_id >= max(config.write_queue_count, config.read_queue_count):
        raise RefusedError(
            ResponseCode.INVALID_PARAMETER,
            f"request queueId[{queue_id}] is illegal, {describe_topic(config)} "
            f"Producer: {channel.address}",
        )
    return config


def _create_topic(broker: Broker, fields: Mapping[str, str], topic: str) -> TopicConfig:
    sys_flag = unit_sys_flag(topic, is_unit_mode=read_flag(fields, "k", default=False))
    config = broker.topics.create_for_sender(
        topic, read_text(fields, "c"), read_int(fields, "d"), sys_flag
    )
    if config is None and topic.startswith(names.RETRY_PREFIX):
        config = broker.topics.ensure(topic, 1, READ_WRITE, sys_flag=sys_flag)
    if config is None:
        raise RefusedError(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{topic}] not exist, apply first please!{names.SEE_FAQ}",
        )
    return config


def _is_given_up(
    broker: Broker,
    request: Command,
    fields: Mapping[str, str],
    topic: str,
    reconsume_times: int,
) -> bool:
    """Tell whether a message that a client sends to its retry topic is a dead letter."""
    group = topic[len(names.RETRY_PREFIX) :]
    config = broker.groups.require(group)
    times_max = config.retry_times_max
    if request.version >= SAYS_RECONSUME_MAX_SINCE:
        times_max = read_int(fields, "l", times_max)
    return reconsume_times > times_max or broker.queue_locks.is_any_held(group)


def _send_batch(
    broker: Broker,
    channel: Channel,
    request: Command,
    fields: Mapping[str, str],
    config: TopicConfig,
    queue_id: int,
) -> Answer | Later[Answer] | None:
    topic = config.topic_name
    if len(topic) > _TOPIC_LENGTH_MAX:
        raise RefusedError(
            ResponseCode.MESSAGE_ILLEGAL, f"message topic length too long {len(topic)}"
        )
    if topic.startswith(names.RETRY_PREFIX):
        raise RefusedError(
            ResponseCode.MESSAGE_ILLEGAL, f"batch request does not support retry group {topic}"
        )
    broker.topics.learn_route(config)
    if config.attributes.get("queue.type") == "BatchCQ":
        outer = parse_properties((fields.get("i") or "").encode("utf-8", "surrogatepass"))
        if UNIQUE_KEY in outer:
            draft = _inner_batch(broker, channel, request, fields, config, queue_id, outer)
            result = broker.store.put_message(draft)
            return _answer_batch(broker, request, fields, queue_id, result, outer[UNIQUE_KEY])
    sys_flag = _filter_flag(config)
    return _put_batch(broker, channel, request, fields, topic, queue_id, sys_flag)


def _put_batch(
    broker: Broker,
    channel: Channel,
    request: Command,
    fields: Mapping[str, str],
    topic: str,
    queue_id: int,
    sys_flag: int,
) -> Answer | Later[Answer] | None:
    """
    Put every message of a batch as one of its own; `sys_flag` is the topic's.

    Raises:
        MalformedBatchError: the body is no batch.
        RefusedError: it is to be half of a transaction, one message, or to be delivered later.

    """
    sys_flag |= read_int(fields, "f")
    read_int(fields, "h")  # Java stumbles where it is none, though each message has its own
    text = fields.get("i") or ""
    is_inner = sys_flag & INNER_BATCH and not broker.store.putting.rules.is_batch_topic(topic)
    is_one = is_inner or (may_need_a_message(text) and _needs_a_message(text))
    if is_one or sys_flag & TRANSACTION_MASK:
        raise RefusedError(*refusal_of(broker, PutMessageStatus.MESSAGE_ILLEGAL))
    draft = draft_batch(
        topic=topic,
        body=bytes(request.body),
        queue_id=queue_id,
        born_timestamp_ms=read_long(fields, "g"),
        born_host=broker.born_hosts[channel],
        store_host=broker.store_host,
        sys_flag=sys_flag,
        reconsume_times=read_int(fields, "j", 0),
        has_property_crc=broker.store.putting.rules.has_property_crc,
    )
    result = broker.store.put_batch(draft)
    return _answer_batch(broker, request, fields, queue_id, result)


def _answer_batch(
    broker: Broker,
    request: Command,
    fields: Mapping[str, str],
    queue_id: int,
    result: PutResult,
    batch_key: str | None = None,
) -> Answer | Later[Answer] | None:
    if result.status is not _PUT_OK:
        raise RefusedError(*refusal_of(broker, result.status))
    if request.flag & ONEWAY_FLAG:
        return None
    text = (fields.get("i") or "").encode("utf-8", "surrogatepass")
    found = find_property(text, _UNIQUE_KEY)
    unique_key = None if found is None else found.decode("utf-8", "replace")
    if broker.awaits_puts and (find_property(text, _WAIT) or b"true").lower() == b"true":
        return _when_stored(broker, request, result, queue_id, unique_key, None, batch_key)
    return broker.send_answers.stored(request, result, queue_id, unique_key, None, batch_key)


def _inner_batch(
    broker: Broker,
    channel: Channel,
    request: Command,
    fields: Mapping[str, str],
    config: TopicConfig,
    queue_id: int,
    outer: dict[str, str],
) -> MessageDraft:
    """Return one message that holds a whole batch, for a topic whose queues keep batches."""
    body = bytes(request.body)
    stored = {
        **{name: value for name, value in outer.items() if name != POP_CHECK},
        **broker.property_rewriter.added,
        INNER_NUMBER: str(count_batch_items(body)),
    }
    return draft_message(
        topic=config.topic_name,
        body=body,
        queue_id=queue_id,
        properties_text=encode_properties(stored, capacity=HASH_MAP_CAPACITY_5),
        flag=read_int(fields, "h"),
        sys_flag=read_int(fields, "f") | _filter_flag(config) | NEED_UNWRAP | INNER_BATCH,
        born_timestamp_ms=read_long(fields, "g"),
        born_host=broker.born_hosts[channel],
        store_host=broker.store_host,
        reconsume_times=read_int(fields, "j", 0),
    )


@attrs.frozen
class _Place:
    """Where a message goes, and with which properties."""

    config: TopicConfig
    topic: str
    queue_id: int
    text: str


def _place_of_dead_letter(broker: Broker, retry_topic: str, text: str) -> _Place:
    topic = names.dlq_topic(retry_topic[len(names.RETRY_PREFIX) :])
    return _Place(broker.topics.ensure(topic, 1), topic, 0, with_properties(text, {DELAY: "-1"}))


def _place_of_half(place: _Place, unique_key: str) -> _Place:
    """Return where the half message goes that stands for one of a transaction."""
    text = half_text(place.text, unique_key, place.topic, place.queue_id)
    return _Place(place.config, names.HALF_TOPIC, HALF_QUEUE_ID, text)


def _placed_by_priority(place: _Place, config: TopicConfig, queue_id: int) -> tuple[_Place, int]:
    """Return where a message goes that may have a priority, and the queue its sender is told."""
    from logstore.compat.rocketmq.sending.priorities import place_by_priority

    chosen, text = place_by_priority(place.text, config.write_queue_count)
    if chosen is None:
        return attrs.evolve(place, text=text), queue_id
    return attrs.evolve(place, queue_id=chosen), chosen


def _check_key(text: str) -> None:
    """Refuse a message without a key: its topic keeps the last one of each key."""
    if not parse_properties(text.encode()).get(KEYS, "").strip():
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, "Required message key is missing")


def _check_transactions(broker: Broker) -> None:
    if broker.settings.rejects_transactions:
        raise RefusedError(
            ResponseCode.NO_PERMISSION,
            f"the broker[{broker.settings.ip1}] sending transaction message is forbidden",
        )


def _delay_level(text: str) -> int:
    """
    Return the delay level that properties tell, 0 for none.

    Raises:
        RefusedError: SYSTEM_ERROR; it is no number.

    """
    return read_int(parse_properties(text.encode("utf-8", "surrogatepass")), DELAY, 0)


def may_need_a_message(text: str) -> bool:
    """Tell whether properties may be such as one message alone can have: a quick look."""
    return f"{DELAY}\x01" in text or "TIMER_" in text or INNER_NUMBER in text


def _needs_a_message(text: str) -> bool:
    """Tell whether a batch has such properties: with times Java's messages get lost."""
    found = parse_properties(text.encode("utf-8", "surrogatepass"))
    return _delay_level(text) > 0 or any(name in found for name in (INNER_NUMBER, *_TIMES))


def _filter_flag(config: TopicConfig) -> int:
    return MULTI_TAGS if config.topic_filter_type == "MULTI_TAG" else 0


def describe_topic(config: TopicConfig) -> str:
    """Return a topic as Java's remarks spell it."""
    perm = "".join(
        letter if config.perm & bit else "-"
        for letter, bit in (("R", PERM_READ), ("W", PERM_WRITE), ("X", PERM_INHERIT))
    )
    attributes = ", ".join(f"{name}={value}" for name, value in config.attributes.items())
    return (
        f"TopicConfig [topicName={config.topic_name}, readQueueNums={config.read_queue_count}, "
        f"writeQueueNums={config.write_queue_count}, perm={perm}, "
        f"topicFilterType={config.topic_filter_type}, topicSysFlag={config.topic_sys_flag}, "
        f"order={'true' if config.is_order else 'false'}, attributes={{{attributes}}}]"
    )
