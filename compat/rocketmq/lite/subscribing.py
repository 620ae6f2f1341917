"""Clients say which lite topics they read (LiteSubscriptionCtlProcessor)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.rocketmq.lite.lite_names import queue_name
from logstore.compat.rocketmq.lite.start_options import StartOption
from logstore.compat.rocketmq.lite.subscriptions import Reader
from logstore.compat.rocketmq.wire.bodies import objects_in, read_object
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.compat.waiting import Later
from logstore.segments.rocketmq.tables.json_fields import JsonTypeError, as_list, as_object, as_text

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

_ADD, _REMOVE = "PARTIAL_ADD", "PARTIAL_REMOVE"
_REPLACE, _FORGET = "COMPLETE_ADD", "COMPLETE_REMOVE"
_ACTIONS = (_ADD, _REMOVE, _REPLACE, _FORGET)


@attrs.frozen
class _Entry:
    """What one client says; `lite_topics` as it calls them (LiteSubscriptionDTO)."""

    action: str
    reader: Reader
    topic: str
    lite_topics: list[str]
    option: StartOption | None

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> _Entry:
        """Read one entry of a body. Raises JsonTypeError, ValueError."""
        action = as_text(fields.get("action"))
        if action not in _ACTIONS:
            raise ValueError(f"there is no action {action}")
        option: object = fields.get("offsetOption")
        return cls(
            action,
            Reader(_text(fields, "clientId"), _text(fields, "group")),
            _text(fields, "topic"),
            [as_text(one) for one in as_list(fields.get("liteTopicSet") or [])],
            None if option is None else StartOption.from_json(as_object(option)),
        )

    @property
    def is_whole(self) -> bool:
        """Tell whether it says who reads what."""
        return all(text.strip() for text in (*self.reader, self.topic))


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return "" if value is None else as_text(value)


def subscribe(broker: Broker, channel: Channel, request: Command) -> Response | Later[Response]:
    """
    Take in what clients say, entry by entry; what is refused does not undo those before it.

    Raises:
        RefusedError: there is nothing to take in, or a group may not have it.

    """
    if not len(request.body):
        raise RefusedError(ResponseCode.ILLEGAL_OPERATION, "Request body is null.")
    found = objects_in(read_object(request.body), "subscriptionSet")
    if not found:
        remark = "LiteSubscriptionCtlRequestBody is empty."
        raise RefusedError(ResponseCode.ILLEGAL_OPERATION, remark)
    try:
        entries = [_Entry.from_json(fields) for fields in found]
    except (JsonTypeError, ValueError) as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"{error}") from error
    later: Later[Response] = Later()
    _take_from(broker, channel, entries, later)
    return later


def _take_from(
    broker: Broker, channel: Channel, entries: list[_Entry], later: Later[Response]
) -> None:
    """Take in the first entry once it is known where its lite topics belong, then the others."""
    if not entries:
        later.answer(Response(ResponseCode.SUCCESS))
        return
    entry = entries[0]

    def take() -> None:
        try:
            if entry.is_whole:
                _take(broker, channel, entry)
        except RefusedError as refusal:
            later.fail(refusal)
            return
        _take_from(broker, channel, entries[1:], later)

    broker.lite.shards.learn(entry.topic, take)


def _take(broker: Broker, channel: Channel, entry: _Entry) -> None:
    lite, client = broker.lite, entry.reader.client
    if entry.action == _FORGET:
        lite.subscriptions.forget(client)
        return
    if entry.action in (_ADD, _REPLACE):
        if not lite.rules.may_consume(entry.reader.group):
            raise RefusedError(
                ResponseCode.ILLEGAL_OPERATION,
                "java.lang.IllegalStateException: Consumer group is not allowed to consume.",
            )
        lite.subscriptions.heard_from(client, channel)
    if not all(entry.lite_topics):
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "a lite topic has no name")
    queues = [queue_name(entry.topic, lite_topic) for lite_topic in entry.lite_topics]
    if entry.action == _ADD:
        lite.subscriptions.add(entry.reader, entry.topic, queues, entry.option)
    elif entry.action == _REMOVE:
        lite.subscriptions.remove(entry.reader, entry.topic, queues)
    else:
        lite.subscriptions.replace(entry.reader, entry.topic, queues)
