"""
Acknowledgements of one read of a connection: put with one write, answered with one.

A message that was popped and is consumed becomes a message of the time wheel's topic, in which
nothing but body, unique key and times is its own; see :mod:`logstore.compat.rocketmq.pop.acking`,
which serves whatever is not as plain as that.
"""

from __future__ import annotations

import logging
import re
import struct
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import orjson

from logstore.compat.rocketmq.pop.checkpoints import ACK_TAG, Ack
from logstore.compat.rocketmq.pop.handles import ORDER_REVIVE_QUEUE
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.json_header import write_json_header
from logstore.compat.rocketmq.wire.remoting import LANGUAGE, RESPONSE_FLAG, VERSION
from logstore.segments.rocketmq.messages.message_run import MessageKind, MessageRun
from logstore.segments.rocketmq.messages.own_properties import DEFAULT_CAPACITY
from logstore.segments.rocketmq.messages.properties import (
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TAGS,
    TIMER_DELIVER_MS,
    TIMER_OUT_MS,
    UNIQUE_KEY,
)
from logstore.segments.rocketmq.putting.put_redirection import TIMER_TOPIC

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.rocketmq.broker import Broker

_log = logging.getLogger(__name__)

#: start offset, pop time, for how long it is invisible, revive queue, kind, broker
_HANDLE = re.compile(r"(\d{1,18}) (\d{1,18}) (\d{1,15}) (\d{1,9}) \w* ([^ ]+)( [^ ]+)*", re.ASCII)
#: names that stand in JSON and in properties as they are
_PLAIN_NAME = re.compile(r"[\w%|.@+-]+", re.ASCII)
_OPAQUE_MAX = 2**31 - 1
_NAMES_MAX = 1024
_pack_head = struct.Struct(">iI").pack
_ANSWER = write_json_header(
    ResponseCode.SUCCESS, 0, RESPONSE_FLAG, LANGUAGE, VERSION, None, None
).replace(b'"opaque":0', b'"opaque":%d')


class _Names(NamedTuple):
    """What all acknowledgements of a group's messages of one topic have in common, as formats."""

    body: bytes
    unique_key: bytes


class _Shape(NamedTuple):
    """A kind of messages, and the format of what varies in them."""

    kind: MessageKind
    varying: bytes
    #: in which order it takes unique key, time to deliver, and time to come out
    order: tuple[int, int, int]


class AckRun:
    """
    Gathers the acknowledgements of one read at a time, for all connections of a broker.

    Use :meth:`take` for every frame that begins as one does, and :meth:`finish` before anything
    else is served and at the end of the read.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._run = MessageRun()
        self._opaques: list[int] = []
        self._names: dict[tuple[str, str, str], _Names | None] = {}
        #: by the revive queue and the lengths of what varies
        self._shapes: dict[tuple[int, int, int, int], _Shape] = {}
        #: what the shapes hold of the broker
        self._store_host: object = None
        self._now_ms = 0
        #: a time that the wheel takes messages for
        self._open_ms = -1

    @property
    def is_filled(self) -> bool:
        """Tell whether acknowledgements wait for :meth:`finish`."""
        return bool(self._opaques)

    def take(self, header: bytes) -> bool:
        """Gather one; False if it is not a plain one, or not to be answered at once."""
        if not self._opaques and not self._begin():
            return False
        try:
            request = orjson.loads(header)
            fields, opaque = request["extFields"], request["opaque"]
            topic, group = fields["topic"], fields["consumerGroup"]
            queue, offset = fields["queueId"], fields["offset"]
            found = _HANDLE.fullmatch(fields["extraInfo"])
            if (
                found is None
                or not (queue.isdecimal() and queue.isascii() and len(queue) < 10)
                or not (offset.isdecimal() and offset.isascii() and len(offset) < 19)
                or type(opaque) is not int
                or not -_OPAQUE_MAX <= opaque <= _OPAQUE_MAX
                or request["flag"] != 0
                or "liteTopic" in fields
            ):
                return False
            names = self._names_of(topic, group, found[5])
        except (ValueError, KeyError, TypeError, AttributeError):
            return False
        if names is None:
            return False
        start_offset, popped_ms, invisible_ms, revive_queue = map(int, found.group(1, 2, 3, 4))
        queue_id, queue_offset = int(queue), int(offset)
        if not self._is_there(topic, queue_id, queue_offset) or revive_queue == ORDER_REVIVE_QUEUE:
            return False
        times = self._times(popped_ms + invisible_ms)
        if times is None:
            return False
        unique_key = names.unique_key % (queue_id, queue_offset, popped_ms)
        body = names.body % (queue_offset, popped_ms, queue_id, start_offset)
        self._add(revive_queue, body, (unique_key, *times))
        self._opaques.append(opaque)
        broker = self._broker
        broker.stats.count_acks(group, topic, 1)
        broker.popping.in_flight.finished(topic, group, queue_id, popped_ms)
        return True

    def _begin(self) -> bool:
        """Tell whether they are answered as soon as they are written; forget what has changed."""
        broker = self._broker
        if not (broker.answers_puts_at_once and broker.timed_delivery.is_enabled):
            return False
        if broker.store_host is not self._store_host:
            self._store_host = broker.store_host
            self._shapes.clear()
        self._now_ms, self._open_ms = broker.host.clock.wall_ms(), -1
        return True

    def _names_of(self, topic: str, group: str, broker_name: str) -> _Names | None:
        about = topic, group, broker_name
        names = self._names.get(about)
        if names is None and about not in self._names:
            if len(self._names) >= _NAMES_MAX:
                self._names.clear()
            is_plain = all(map(_PLAIN_NAME.fullmatch, about))
            names = self._names[about] = _formats(*about) if is_plain else None
        return names

    def _is_there(self, topic: str, queue_id: int, queue_offset: int) -> bool:
        store, config = self._broker.store, self._broker.topics.get(topic)
        if config is None or not queue_id < config.read_queue_count:
            return False
        low = store.min_queue_offset(topic, queue_id)
        return bool(low <= queue_offset < store.max_queue_offset(topic, queue_id))

    def _times(self, due_ms: int) -> tuple[bytes, bytes] | None:
        """Return the two times of a message that is due then; None if the wheel has no place."""
        putting = self._broker.store.putting
        rules, timer = putting.rules, putting.timer
        wait_ms = due_ms - self._now_ms
        if not 0 < wait_ms <= rules.timer_max_delay_s * 1000:
            return None
        out_ms = (due_ms - 1) // rules.timer_precision_ms * rules.timer_precision_ms
        if out_ms != self._open_ms:
            if timer is not None and timer.is_full_at(out_ms):
                return None
            self._open_ms = out_ms
        return b"%d" % due_ms, b"%d" % out_ms

    def _add(self, revive_queue: int, body: bytes, own: tuple[bytes, bytes, bytes]) -> None:
        key, due, out = own
        lengths = revive_queue, len(key), len(due), len(out)
        shape = self._shapes.get(lengths)
        if shape is None:
            if len(self._shapes) >= _NAMES_MAX:
                self._shapes.clear()
            shape = self._shapes[lengths] = self._shape(revive_queue, own)
        first, second, third = shape.order
        varying = shape.varying % (own[first], own[second], own[third])
        self._run.add(shape.kind, body, varying, self._now_ms)

    def _shape(self, revive_queue: int, own: tuple[bytes, bytes, bytes]) -> _Shape:
        """Return what messages with as long values look like."""
        broker = self._broker
        entries = {
            TAGS: ACK_TAG,
            TIMER_DELIVER_MS: own[1].decode(),
            UNIQUE_KEY: own[0].decode(),
            TIMER_OUT_MS: own[2].decode(),
            REAL_TOPIC: broker.revive_topic,
            REAL_QUEUE_ID: str(revive_queue),
        }
        text = broker.store.putting.rules.encoded(entries, DEFAULT_CAPACITY)
        names = (UNIQUE_KEY, TIMER_DELIVER_MS, TIMER_OUT_MS)
        places = [_place(text, name, value) for name, value in zip(names, own, strict=True)]
        order = sorted(range(3), key=places.__getitem__)
        spans = [places[which] for which in order]
        begin, end = spans[0][0], spans[-1][1]
        between = (text[one[1] : other[0]] for one, other in pairwise(spans))
        varying = b"%b" + b"".join(one.replace(b"%", b"%%") + b"%b" for one in between)
        key_at = slice(places[0][0] - begin, places[0][1] - begin)
        kind = MessageKind(
            topic=TIMER_TOPIC,
            queue_id=0,
            flag=0,
            sys_flag=0,
            reconsume_times=0,
            text_before=text[:begin],
            example=text[begin:end],
            text_behind=text[end:],
            born_host=broker.store_host,
            store_host=broker.store_host,
            unique_key_at=key_at,
        )
        return _Shape(kind, varying, (order[0], order[1], order[2]))

    def finish(self) -> list[Chunk]:
        """Put what was gathered; return the answers, in the order of the requests."""
        run, opaques = self._run, self._opaques
        self._run, self._opaques = MessageRun(), []
        store, stats = self._broker.store, self._broker.stats
        count, size_bytes = len(run), run.size_bytes
        if not store.put_run(run):
            # What cannot be put is answered as any other, as real brokers do: it comes again.
            results = [store.put_message(draft) for draft in run.drafts()]
            refusals = [one.reason for one in results if not one.is_ok]
            if refusals:
                _log.error("%d not put into %s: %s", len(refusals), TIMER_TOPIC, refusals[-1])
            count = len(results) - len(refusals)
            size_bytes = sum(one.size_bytes for one in results if one.is_ok)
        stats.leave_out(TIMER_TOPIC, size_bytes, count)
        return [b"".join(map(_answer, opaques))]


def _formats(topic: str, group: str, broker_name: str) -> _Names:
    """Return body and unique key with their numbers left open."""
    model = Ack(topic, group, 2, 4, 3, broker_name, [1])
    body = model.encoded().replace(b"%", b"%%")
    for number, name in ((1, b"ao"), (3, b"pt"), (2, b"q"), (4, b"so")):
        body = body.replace(b'"%b":%d' % (name, number), b'"%b":%%d' % name, 1)
    key = f"{topic}@\0@\0@{group}@\0@{broker_name}@{ACK_TAG}".encode().replace(b"%", b"%%")
    return _Names(body, key.replace(b"\0", b"%d"))


def _place(text: bytes, name: str, value: bytes) -> tuple[int, int]:
    """Return where the value of a property stands."""
    needle = b"\x02" + name.encode() + b"\x01"
    begin = (b"\x02" + text).index(needle) + len(needle) - 1
    return begin, begin + len(value)


def _answer(opaque: int) -> bytes:
    header = _ANSWER % opaque
    return _pack_head(4 + len(header), len(header)) + header
