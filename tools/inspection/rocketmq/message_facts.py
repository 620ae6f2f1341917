"""One stored message as the fields of a dump line, under Java's names."""

from __future__ import annotations

import orjson

from logstore.segments.rocketmq.messages.body_compression import BodyCompressionError
from logstore.segments.rocketmq.messages.message import Message
from logstore.segments.rocketmq.messages.system_flags import TRANSACTION_MASK
from logstore.tools.inspection.facts import Decoded, Payload, Timestamp, Value

_TRANSACTIONS = {0: "none", 4: "prepared", 8: "commit", 12: "rollback"}


def message_fields(message: Message, position: int, *, has_payload: bool) -> dict[str, Value]:
    """
    Return the fields of a message that stands at `position` of its file.

    With `has_payload` all properties, and the body as its producer sent it; a body that cannot be
    decompressed comes as it is stored.
    """
    fields: dict[str, Value] = {
        "position": position,
        "physicalOffset": message.physical_offset,
        "size": message.size_bytes,
        "version": message.version.name,
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "storeTimestamp": Timestamp(message.store_timestamp_ms),
        "storeHost": str(message.store_host),
        "bornTimestamp": Timestamp(message.born_timestamp_ms),
        "bornHost": str(message.born_host),
        "flag": message.flag,
        "sysFlag": message.sys_flag,
        "transaction": _TRANSACTIONS[message.sys_flag & TRANSACTION_MASK],
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "bodyCrc": message.body_crc,
        "bodySize": len(message.body),
        "msgId": message.offset_message_id,
    }
    if has_payload:
        fields["properties"] = Decoded(orjson.dumps(message.properties).decode())
        fields["body"] = Payload(shown_body(message))
        return fields
    found = {
        "tags": message.tags,
        "keys": " ".join(message.keys) or None,
        "uniqKey": message.unique_key,
    }
    fields.update({name: value for name, value in found.items() if value is not None})
    return fields


def shown_body(message: Message) -> bytes:
    """Return the body decompressed, or as it is stored where that cannot be."""
    try:
        return message.plain_body()
    except BodyCompressionError:
        return message.body
