"""A stored message put again: delivered, sent back, committed, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.messages.message_draft import MessageDraft, draft_message
from logstore.segments.rocketmq.messages.own_properties import OwnProperties
from logstore.segments.rocketmq.messages.properties import (
    CRC32,
    HASH_MAP_CAPACITY_5,
    encode_properties,
    property_needle,
    without_property,
)

if TYPE_CHECKING:
    from logstore.segments.rocketmq.messages.host_address import HostAddress
    from logstore.segments.rocketmq.messages.message import Message

_CRC32 = property_needle(CRC32)


def redraft(
    message: Message,
    topic: str,
    queue_id: int,
    properties: Mapping[str, str] | OwnProperties | bytes,
    *,
    store_host: HostAddress | None = None,
    born_host: HostAddress | None = None,
    sys_flag: int | None = None,
    reconsume_times: int | None = None,
    prepared_transaction_offset: int = 0,
) -> MessageDraft:
    """
    Return a draft with body, flag and birth of `message`, and all else as it is given.

    Properties that are a mapping are written in the order of the map that Java reads a message's
    into. The CRC in them was
    one of the record that `message` was read from; that of the new one is up to the store.
    """
    if isinstance(properties, OwnProperties):
        text = properties.encoded()
    elif isinstance(properties, bytes):
        text = properties
    else:
        text = encode_properties(properties, capacity=HASH_MAP_CAPACITY_5)
    draft = draft_message(
        topic=topic,
        body=message.body,
        queue_id=queue_id,
        properties_text=without_property(text, _CRC32),
        flag=message.flag,
        sys_flag=message.sys_flag if sys_flag is None else sys_flag,
        born_timestamp_ms=message.born_timestamp_ms,
        born_host=message.born_host if born_host is None else born_host,
        store_host=message.store_host if store_host is None else store_host,
        reconsume_times=(message.reconsume_times if reconsume_times is None else reconsume_times),
        prepared_transaction_offset=prepared_transaction_offset,
    )
    if isinstance(properties, OwnProperties):
        draft.own_properties = properties
    return draft
