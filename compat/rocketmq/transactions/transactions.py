"""The end of a transaction: its half message becomes a message, or is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.redelivery.redrafts import redraft
from logstore.compat.rocketmq.sending.put_answers import STORED_CODES, refusal_of
from logstore.compat.rocketmq.topics.names import HALF_TOPIC
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.segments.rocketmq.messages.own_properties import OwnProperties
from logstore.segments.rocketmq.messages.properties import (
    CHECK_IMMUNITY_TIME,
    HASH_MAP_CAPACITY_5,
    PRODUCER_GROUP,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TRANSACTION_PREPARED,
)
from logstore.segments.rocketmq.messages.system_flags import (
    TRANSACTION_COMMIT,
    TRANSACTION_NONE,
    TRANSACTION_ROLLBACK,
    with_transaction_type,
)

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.segments.rocketmq.messages.message import Message


@attrs.frozen
class EndTransaction:
    """What a producer says of a transaction (EndTransactionRequestHeader)."""

    producer_group: str
    half_queue_offset: int
    half_physical_offset: int
    #: 0: it does not know yet; 8: committed; 12: rolled back
    outcome: int
    is_checked: bool = False


def end_transaction(broker: Broker, end: EndTransaction) -> bool:
    """
    Do what a producer says; tell whether there is anything to answer.

    Raises:
        RefusedError: its half message is missing, or is another one's.

    """
    if end.outcome == TRANSACTION_NONE or end.outcome not in (
        TRANSACTION_COMMIT,
        TRANSACTION_ROLLBACK,
    ):
        return False
    half = half_at(broker, end.half_physical_offset)
    if half is None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")
    _check_immunity(broker, end, half)
    _check_half(end, half)
    if end.outcome == TRANSACTION_COMMIT:
        _commit(broker, half)
    if half.topic == HALF_TOPIC:  # else the place in its queue is another message's in that topic
        broker.op_messages.add(half.queue_id, half.queue_offset)
    return True


def half_at(broker: Broker, physical_offset: int) -> Message | None:
    """
    Return the half message at a place, None if there is none, in the transient store pool neither.

    Java looks into files alone: an end that comes before the pool is written it refuses, and asks
    the producer later. Who has said once what became of a transaction may know nothing then.
    """
    store = broker.store
    half = store.message_at(physical_offset)
    if half is None and store.commit_log.commit():
        half = store.message_at(physical_offset)
    return half


def immunity_ms(text: str | None, default_ms: int) -> int:
    """Return how long a half message is left alone, by its property or else by `default_ms`."""
    try:
        seconds = int(text or "")
    except ValueError:
        seconds = -1
    return default_ms if seconds == -1 else seconds * 1000


def _check_immunity(broker: Broker, end: EndTransaction, half: Message) -> None:
    """Refuse an end that comes so late that the check has begun (rejectCommitOrRollback)."""
    text = half.properties.get(CHECK_IMMUNITY_TIME)
    if end.is_checked or not text:
        return
    age_ms = broker.host.clock.wall_ms() - half.born_timestamp_ms
    if age_ms > immunity_ms(text, broker.settings.transaction_timeout_ms):
        raise RefusedError(ResponseCode.ILLEGAL_OPERATION, "not set any response code")


def _check_half(end: EndTransaction, half: Message) -> None:
    if half.properties.get(PRODUCER_GROUP) != end.producer_group:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
    if half.queue_offset != end.half_queue_offset:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")
    if half.physical_offset != end.half_physical_offset:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "The commit log offset wrong")


def _commit(broker: Broker, half: Message) -> None:
    properties = dict(half.properties)
    topic = properties.pop(REAL_TOPIC, None)
    queue_id = properties.pop(REAL_QUEUE_ID, "")
    if topic is None or not queue_id.isdigit():
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, "the half message does not say where it belongs"
        )
    draft = redraft(
        half,
        topic,
        int(queue_id),
        properties,
        sys_flag=with_transaction_type(half.sys_flag, TRANSACTION_COMMIT),
        prepared_transaction_offset=half.physical_offset,
    )
    # What was a half stays written so, but where the store has to write the properties anew.
    properties.pop(TRANSACTION_PREPARED, None)
    draft.own_properties = OwnProperties(properties, HASH_MAP_CAPACITY_5)
    result = broker.store.put_message(draft)
    if result.status not in STORED_CODES:
        raise RefusedError(*refusal_of(broker, result.status))
