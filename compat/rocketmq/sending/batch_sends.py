"""
Batches of messages that are sent like others before: read, put and answered in a few steps.

A Java client's SEND_BATCH_MESSAGE differs from its last one for a queue in body, unique key, time
and number alone. All else, once served in the careful way of
:mod:`logstore.compat.rocketmq.sending.sending`, is kept as a *kind*, with what its messages have
in common as they are stored. What is of no known kind is the connection's to serve as any other
request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from logstore.compat.rocketmq.sending.put_answers import refusal_of
from logstore.compat.rocketmq.sending.sending import may_need_a_message
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Command, as_frame
from logstore.segments.rocketmq.messages.batch_columns import MalformedBatchError
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_batch import draft_batch_like
from logstore.segments.rocketmq.messages.message_draft import MessageDraft, draft_message
from logstore.segments.rocketmq.messages.properties import UNIQUE_KEY
from logstore.segments.rocketmq.messages.system_flags import INNER_BATCH, TRANSACTION_MASK
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.topics.broker_topics import SendRoute

_NEEDLE = f"{UNIQUE_KEY}\x01"
_NEEDLE_LENGTH = len(_NEEDLE)
_KINDS_MAX = 4096
_INT_MAX = 2**31 - 1
#: fewer than a number of 64 bits can have
_TIME_DIGITS_MAX = 18
_NOTHING = memoryview(b"")
_SEND_BATCH_MESSAGE = 320


class BatchSends:
    """Answers the batches of known kinds, for all connections of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        #: by all that stands in a request but body, properties, time and number; the model of its
        #: messages, and the route as it was when they were sent in the careful way
        self._kinds: dict[tuple[Any, ...], tuple[MessageDraft, SendRoute] | None] = {}
        #: what the kinds hold of the broker
        self._store_host: HostAddress | None = None

    def answer(self, channel: Channel, header: bytes, body: memoryview) -> list[Chunk] | None:
        """Put a batch and return the answer; None, and nothing done, if it is of no known kind."""
        broker = self._broker
        if not broker.answers_puts_at_once or broker.store.putting.rules.has_property_crc:
            return None
        try:
            request = orjson.loads(header)
            fields = request["extFields"]
            topic, text = fields["b"], fields["i"]
            packed = broker.born_hosts[channel].packed
            about = (
                topic,
                fields["e"],
                fields["f"],
                fields["h"],
                fields["j"],
                fields["m"],
                request["flag"],
                packed,
            )
            known = self._known(about)
            start = text.find(_NEEDLE) + _NEEDLE_LENGTH
            unique_key = text[start : text.index("\x02", start)]
            opaque, born = request["opaque"], fields["g"]
            if (
                known is None
                or broker.topics.routes.get(topic) is not known[1]
                or text.count(_NEEDLE) != 1
                or may_need_a_message(text)
                or text[: start - _NEEDLE_LENGTH][-1:] not in ("", "\x02")
                or not (unique_key.isalnum() and unique_key.isascii())
                or type(opaque) is not int
                or not -_INT_MAX <= opaque <= _INT_MAX
                or not (born.isdigit() and born.isascii() and len(born) <= _TIME_DIGITS_MAX)
                or not len(body)
            ):
                return None
            draft = draft_batch_like(known[0], bytes(body), int(born))
        except (ValueError, KeyError, TypeError, AttributeError, MalformedBatchError):
            return None
        result = broker.store.put_batch(draft)
        answers = broker.send_answers
        if result.status is PutMessageStatus.PUT_OK and result.physical_offsets is not None:
            return [answers.stored_batch(draft.queue_id, unique_key, result, opaque)]
        command = Command(_SEND_BATCH_MESSAGE, opaque, 0, "JAVA", 0, None, {}, _NOTHING, 0)
        if result.status is PutMessageStatus.PUT_OK:
            return as_frame(command, answers.stored(command, result, draft.queue_id, unique_key))
        return answers.refused(command, RefusedError(*refusal_of(broker, result.status)))

    def _known(self, about: tuple[Any, ...]) -> tuple[MessageDraft, SendRoute] | None:
        """Return the kind of requests like this one; one that is seen first is learnt."""
        store_host = self._broker.store_host
        if store_host is not self._store_host:
            self._store_host = store_host
            self._kinds.clear()
        known = self._kinds.get(about)
        if known is None and about not in self._kinds:
            self._learn(about)
        elif known is not None and self._broker.topics.routes.get(about[0]) is not known[1]:
            del self._kinds[about]  # the topic was changed
        return known

    def _learn(self, about: tuple[Any, ...]) -> None:
        """Make a kind of what is sent to a topic that has a route."""
        topic, queue_text, sys_flag, flag, reconsume_times, batch, oneway, packed = about
        route = self._broker.topics.routes.get(topic)
        if route is None:
            return
        if len(self._kinds) >= _KINDS_MAX:
            self._kinds.clear()
        self._kinds[about] = None
        digits = f"{queue_text}{sys_flag}{flag}{reconsume_times}"
        if batch != "true" or oneway != 0 or route.keeps_batches or not digits.isdigit():
            return
        numbers = queue_id, flags, times = int(queue_text), int(sys_flag), int(reconsume_times)
        if not 0 <= min(numbers) <= max(numbers) <= _INT_MAX or queue_id >= route.queue_count:
            return
        if int(flag) > _INT_MAX or flags & (INNER_BATCH | TRANSACTION_MASK):  # no batch has these
            return
        model = draft_message(
            topic=topic,
            body=b"",
            queue_id=queue_id,
            properties_text=b"",
            born_timestamp_ms=0,
            born_host=HostAddress.from_packed(packed),
            store_host=self._broker.store_host,
            sys_flag=flags | route.sys_flag,
            reconsume_times=times,
        )
        self._kinds[about] = model, route
