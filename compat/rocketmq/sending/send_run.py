"""
Sends of one read of a connection: put with one write, answered with one.

A Java client's SEND_MESSAGE_V2 differs from its last one in body, unique key, keys, time and number
alone. The rest of it, once served in the careful way of
:mod:`logstore.compat.rocketmq.sending.sending`, is kept as a *kind*; requests of a known kind are
gathered here without being looked at any further. Whatever is not of a known kind is the
connection's to serve as any other request, after what was gathered before it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import orjson

from logstore.compat.rocketmq.sending.batch_sends import BatchSends
from logstore.compat.rocketmq.sending.key_places import (
    KEYS_NEEDLE,
    UNIQUE_KEY_NEEDLE,
    arranged,
    without_keys,
)
from logstore.compat.rocketmq.sending.put_answers import refusal_of
from logstore.compat.rocketmq.sending.recall_handles import encoded_handle
from logstore.compat.rocketmq.sending.send_kind import ExampleSend, SendKind
from logstore.compat.rocketmq.topics import names
from logstore.compat.rocketmq.wire.fields import is_plain
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Command, as_frame
from logstore.segments.rocketmq.messages.message_run import MessageRun
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.pop.ack_run import AckRun
    from logstore.compat.rocketmq.topics.broker_topics import SendRoute

_NEEDLE_LENGTH = len(UNIQUE_KEY_NEEDLE)
_KINDS_MAX = 4096
_INT_MAX = 2**31 - 1
_TIME_MAX_MS = 2**62
_NOTHING = memoryview(b"")
_SEND_MESSAGE_V2 = 310


class SendRun:
    """
    Gathers the sends of one read at a time, for all connections of a broker.

    Use :meth:`take` for every frame that begins as a send does, and :meth:`finish` before anything
    else is served and at the end of the read.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        #: what is a batch already is put by itself
        self.batches = BatchSends(broker)
        self._run = MessageRun()
        #: the kind and the number of each of them
        self._asked: list[tuple[SendKind, int]] = []
        #: something waits for :meth:`finish`
        self.is_filled = False
        #: by all that stands in a request but body, keys, time and number; None: each is looked at
        self._kinds: dict[tuple[Any, ...], SendKind | None] = {}
        #: requests that were no known kind yet; who sends the like again makes it one
        self._seen: set[tuple[Any, ...]] = set()
        #: what the kinds hold of the broker
        self._rewriter: object = None

    def take(self, channel: Channel, header: bytes, body: memoryview) -> bool:
        """Gather a send; False if it is not of a known kind, or not to be answered at once."""
        broker = self._broker
        if not self._asked and not self._begin():
            return False
        try:
            request = orjson.loads(header)
            fields = request["extFields"]
            text: str = fields["i"]
            start = text.find(UNIQUE_KEY_NEEDLE) + _NEEDLE_LENGTH
            end = text.find("\x02", start)
            unique_key = text[start:end]
            keys = None
            around: tuple[str | int, ...] = text[:start], text[end:]
            if KEYS_NEEDLE in text:
                around, keys = without_keys(text, start, end)
            topic = fields["b"]
            about = (
                topic, fields["e"], fields["f"], fields["h"], fields["j"], fields["m"],
                request["flag"], around, len(unique_key),
                broker.born_hosts[channel].packed,
            )  # fmt: skip
            known = self._kinds.get(about)
            route = broker.topics.routes.get(topic)
            if known is None or known.span_ms is not None or known.route is not route:
                known = self._looked_at(about, known, text, unique_key, keys)
                if known is None:
                    return False
            opaque = request["opaque"]
            born_ms = _number(fields["g"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return False
        if (
            not (unique_key.isalnum() and unique_key.isascii())
            or not (keys is None or (keys.isascii() and "\x01" not in keys))
            or type(opaque) is not int
            or not -_INT_MAX <= opaque <= _INT_MAX
            or not 0 <= born_ms < _TIME_MAX_MS
            or not len(body)
        ):
            return False
        varying = unique_key.encode()
        if known.arrangement is not None:
            varying = arranged(known.arrangement, varying, keys)
        self._run.add(known.kind, body, varying, born_ms)
        self._asked.append((known, opaque))
        self.is_filled = True
        return True

    @cached_property
    def acks(self) -> AckRun:
        """Gathers acknowledgements of popped messages."""
        from logstore.compat.rocketmq.pop.ack_run import AckRun

        return AckRun(self._broker)

    def take_ack(self, header: bytes) -> bool:
        """Gather an acknowledgement, as :meth:`take` does a send."""
        is_taken = self.acks.take(header)
        self.is_filled |= is_taken
        return is_taken

    def _begin(self) -> bool:
        """Tell whether sends are answered as soon as they are written; forget what has changed."""
        broker = self._broker
        if not broker.answers_puts_at_once:
            return False
        rewriter = broker.property_rewriter
        if rewriter is not self._rewriter:
            self._rewriter = rewriter
            self._kinds.clear()
            self._seen.clear()
        return True

    def _learn(self, about: tuple[Any, ...], text: str, unique_key: str, keys: str | None) -> None:
        """Make a kind of what is sent a second time, if that can be."""
        if about not in self._seen:
            # Properties that never come again are not worth a kind.
            if len(self._seen) >= _KINDS_MAX:
                self._seen.clear()
            self._seen.add(about)
            return
        topic, queue_id, sys_flag, flag, reconsume_times, batch, oneway, *_ = about
        route = self._broker.topics.routes.get(topic)
        if route is None or batch != "false" or oneway != 0 or topic == names.TIMER_TOPIC:
            return
        texts = str(queue_id), str(sys_flag), str(flag), str(reconsume_times)
        if not is_plain(texts, ("0",)):
            return
        numbers = int(queue_id), int(sys_flag) | route.sys_flag, int(flag), int(reconsume_times)
        if not 0 <= min(numbers) <= max(numbers) <= _INT_MAX or numbers[0] >= route.queue_count:
            return
        if len(self._kinds) >= _KINDS_MAX:
            self._kinds.clear()
        self._kinds[about] = self._kind_of(about, route, text, unique_key, keys)

    def _kind_of(
        self,
        about: tuple[Any, ...],
        route: SendRoute,
        text: str,
        unique_key: str,
        keys: str | None,
    ) -> SendKind | None:
        topic, queue_id, sys_flag, flag, reconsume_times, *_, packed_host = about
        example = ExampleSend(
            topic,
            int(queue_id),
            int(sys_flag) | route.sys_flag,
            int(flag),
            int(reconsume_times),
            packed_host,
            text,
            unique_key,
            keys,
        )
        return SendKind.of(self._broker, route, example)

    def _looked_at(
        self,
        about: tuple[Any, ...],
        known: SendKind | None,
        text: str,
        unique_key: str,
        keys: str | None,
    ) -> SendKind | None:
        """Return the kind that holds here and now, None where there is none; learn of a new one."""
        if known is None:
            if about not in self._kinds:
                self._learn(about, text, unique_key, keys)
            return None
        if self._broker.topics.routes.get(about[0]) is not known.route:
            del self._kinds[about]  # the next one is looked at anew
            return None
        timer, span_ms = self._broker.store.putting.timer, known.span_ms
        if timer is not None and timer.has_limit:
            return None
        now_ms = self._broker.host.clock.wall_ms()
        if span_ms is None or span_ms[0] <= now_ms <= span_ms[1]:
            return known
        found = self._kind_of(about, known.route, text, unique_key, keys)
        if found is not None:
            self._kinds[about] = found
        return found

    def finish(self) -> list[Chunk]:
        """Put what was gathered; return the answers to sends, in their order, then the others'."""
        self.is_filled = False
        answers = self._finish_sends() if self._asked else []
        if "acks" in self.__dict__ and self.acks.is_filled:
            answers += self.acks.finish()
        return answers

    def _finish_sends(self) -> list[Chunk]:
        run, asked = self._run, self._asked
        self._run, self._asked = MessageRun(), []
        broker = self._broker
        if broker.store.put_run(run):
            return [broker.send_answers.stored_run(run, asked)]
        answers: list[Chunk] = []
        for draft, (known, opaque) in zip(run.drafts(), asked, strict=True):
            result = broker.store.put_message(draft)
            request = Command(_SEND_MESSAGE_V2, opaque, 0, "JAVA", 0, None, {}, _NOTHING, 0)
            if result.status is PutMessageStatus.PUT_OK:
                key, handle = draft.unique_key or "", None
                if known.handle_start is not None:
                    handle = encoded_handle(known.handle_start, key.encode()).decode()
                queue_id = known.queue_id
                stored = broker.send_answers.stored(request, result, queue_id, key, handle)
                answers += as_frame(request, stored)
            else:
                refusal = RefusedError(*refusal_of(broker, result.status))
                answers += broker.send_answers.refused(request, refusal)
        return answers


def _number(value: str | int) -> int:
    """Return a number that Java can read; there are clients that write it as such."""
    if not str(value).isdecimal():
        raise ValueError(value)
    return int(value)
