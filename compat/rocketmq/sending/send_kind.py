"""
What sends of one kind have in common: what is stored of them, and what their senders are told.

A kind is made of one send, in the way that each would go by itself: its properties are rewritten,
half of a transaction is turned into what stands for it, and what is to come later is redirected. A
message with a time of its own is due at some tick of the time wheel: such a kind holds as long as
its messages are due at the same tick, and is made anew for the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.sending.half_messages import HALF_QUEUE_ID, half_text
from logstore.compat.rocketmq.sending.key_places import KeyPlaces
from logstore.compat.rocketmq.sending.recall_handles import handle_start
from logstore.compat.rocketmq.topics import names
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_draft import draft_message
from logstore.segments.rocketmq.messages.message_run import MessageKind
from logstore.segments.rocketmq.messages.properties import PRIORITY, parse_properties
from logstore.segments.rocketmq.messages.system_flags import (
    INNER_BATCH,
    TRANSACTION_MASK,
    TRANSACTION_NONE,
    with_transaction_type,
)
from logstore.segments.rocketmq.putting.put_redirection import delivery_ms, redirect
from logstore.segments.rocketmq.putting.put_rules import RefusedPutError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.topics.broker_topics import SendRoute
    from logstore.segments.rocketmq.messages.message_draft import MessageDraft

_UNUSUAL_FLAGS = INNER_BATCH | TRANSACTION_MASK
#: what makes a message unusual to the store, wherever it stands in the properties
_INNER, _LATER = b"INNER_", (b"DELAY\x01", b"TIMER_")
_DEFERRED_TOPICS = (names.SCHEDULE_TOPIC, names.TIMER_TOPIC)


@attrs.frozen
class ExampleSend:
    """One send of a kind, as far as the others are like it."""

    topic: str
    queue_id: int
    sys_flag: int
    flag: int
    reconsume_times: int
    packed_host: bytes
    properties: str
    unique_key: str
    keys: str | None


@attrs.frozen
class SendKind:
    """Sends that differ in body, keys, time and number alone."""

    kind: MessageKind
    route: SendRoute
    #: the queue that they name
    queue_id: int
    #: how what varies is put together; None: it is the unique key
    arrangement: bytes | None
    #: all of the handle that takes one of them back but the unique key; None: there is none
    handle_start: bytes | None
    #: from when until when it holds, None: always
    span_ms: tuple[int, int] | None

    @classmethod
    def of(cls, broker: Broker, route: SendRoute, send: ExampleSend) -> SendKind | None:
        """Return the kind of a send; None if each like it must be looked at by itself."""
        sent = broker.property_rewriter.rewrite(send.properties, send.topic)
        topic, queue_id, text, sys_flag = send.topic, send.queue_id, sent.text, send.sys_flag
        if sent.unique_key != send.unique_key:
            return None
        if sent.needs_care:
            if not sent.is_half or not _is_usual_half(broker, send, text):
                return None
            text = half_text(text, sent.unique_key, topic, queue_id)
            topic, queue_id = names.HALF_TOPIC, HALF_QUEUE_ID
            sys_flag = with_transaction_type(sys_flag, TRANSACTION_NONE)
        draft = draft_message(
            topic=topic,
            body=b"",
            queue_id=queue_id,
            properties_text=text.encode(),
            flag=send.flag,
            sys_flag=sys_flag,
            born_timestamp_ms=0,
            born_host=HostAddress.from_packed(send.packed_host),
            store_host=broker.store_host,
            reconsume_times=send.reconsume_times,
        )
        now_ms = broker.host.clock.wall_ms()
        if draft.sys_flag & _UNUSUAL_FLAGS or not _redirected(broker, draft, now_ms):
            return None
        places = KeyPlaces.find(
            draft.properties_text, send.unique_key, send.keys, is_half=sent.is_half
        )
        if places is None:
            return None
        is_timed = draft.topic == names.TIMER_TOPIC
        return cls(
            _message_kind(draft, places),
            route,
            send.queue_id,
            places.arrangement,
            handle_start(broker.settings.broker_name, places.text) if is_timed else None,
            _span_ms(broker, draft, now_ms) if is_timed else None,
        )


def _is_usual_half(broker: Broker, send: ExampleSend, text: str) -> bool:
    """Tell whether nothing but the transaction makes a message unusual to those who take sends."""
    is_new = not (send.reconsume_times or broker.settings.rejects_transactions)
    return is_new and PRIORITY not in text


def _redirected(broker: Broker, draft: MessageDraft, now_ms: int) -> bool:
    """Send a message that is to come later elsewhere; False if the store must look at it."""
    text, putting = draft.properties_text, broker.store.putting
    if _INNER in text:
        return False
    if not any(needle in text for needle in _LATER):
        return True
    if putting.rules.has_property_crc:
        return False
    try:
        redirect(draft, putting.rules, now_ms, putting.timer)
    except RefusedPutError:
        return False
    return draft.topic in _DEFERRED_TOPICS


def _span_ms(broker: Broker, draft: MessageDraft, now_ms: int) -> tuple[int, int]:
    """Return from now until when messages are due at the same tick as this one is."""
    due_ms = delivery_ms(parse_properties(draft.properties_text), now_ms)
    assert due_ms is not None, "it would not be in the time wheel's topic"
    precision_ms = broker.store.putting.rules.timer_precision_ms
    left_ms = precision_ms - 1 - (due_ms - 1) % precision_ms
    return now_ms, now_ms + min(left_ms, due_ms - now_ms - 1)


def _message_kind(draft: MessageDraft, places: KeyPlaces) -> MessageKind:
    text, (begin, end) = places.text, places.varying
    varies_more = places.arrangement is not None
    return MessageKind(
        topic=draft.topic,
        queue_id=draft.queue_id,
        flag=draft.flag,
        sys_flag=draft.sys_flag,
        reconsume_times=draft.reconsume_times,
        text_before=text[:begin],
        example=text[begin:end],
        text_behind=text[end:],
        born_host=draft.born_host,
        store_host=draft.store_host,
        unique_key_at=places.within(places.unique_keys[0]) if varies_more else None,
        keys_at=None if places.keys is None else places.within(places.keys),
    )
