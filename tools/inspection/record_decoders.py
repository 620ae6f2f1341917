"""
Keys and values of a broker's own topics as text: the decoders of Kafka's ``DumpLogSegments``.

A decoder never fails: a record that cannot be read becomes a text that says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from logstore.segments.kafka.internal_topics.codec import (
    MessageError,
    decode_message,
    decode_version,
)
from logstore.segments.kafka.internal_topics.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from logstore.segments.kafka.internal_topics.group_metadata import GroupMetadataValue
from logstore.segments.kafka.internal_topics.record_types import (
    GROUP_RECORDS,
    SHARE_RECORDS,
    TRANSACTION_RECORDS,
    RecordTypes,
    UnknownRecordTypeError,
    decode_internal_record,
)
from logstore.segments.kafka.internal_topics.schema import Message
from logstore.segments.kafka.internal_topics.transaction_log import (
    TransactionLogKey,
    TransactionLogValue,
    TransactionStatus,
)
from logstore.segments.kafka.record import Record
from logstore.tools.inspection.java_json import Node, json_text, message_node

#: What stands for key and value; None where nothing is printed.
Decoded = tuple[str | None, str | None]
RecordDecoder = Callable[[Record], Decoded]

_ProtocolT = TypeVar("_ProtocolT", bound=Message)


class MissingKeyError(MessageError):
    """A record of an internal topic has no key; Kafka's tool ends there."""


def _coordinator_decoder(kinds: RecordTypes) -> RecordDecoder:
    def decode(record: Record) -> Decoded:
        if record.key is None:
            raise MissingKeyError(
                f"Failed to decode message at offset {record.offset} using the specified decoder "
                "(message had a missing key)"
            )
        try:
            found = decode_internal_record(kinds, record.key, record.value)
        except UnknownRecordTypeError as error:
            shown = f"Unknown record type {error.record_type} at offset {record.offset}, skipping."
            return shown, None
        except MessageError as error:
            return f"Error at offset {record.offset}, skipping. {error.reason}", None
        key = json_text({"type": str(found.record_type), "data": message_node(found.key, 0)})
        if found.value is None or found.version is None:
            return key, "<DELETE>"
        data = _value_node(found.value, found.version)
        return key, json_text({"version": str(found.version), "data": data})

    return decode


def _value_node(value: Message, version: int) -> dict[str, Node]:
    """Return the JSON of a value; of consumers' groups also what the members told each other."""
    node = message_node(value, version)
    if not isinstance(value, GroupMetadataValue) or value.protocol_type != PROTOCOL_TYPE:
        return node
    shown: list[Node] = []
    for member in value.members:
        members = message_node(member, version)
        subscription = _unfolded(ConsumerProtocolSubscription, member.subscription)
        assignment = _unfolded(ConsumerProtocolAssignment, member.assignment)
        if subscription is not None:
            members["subscription"] = subscription
        if assignment is not None:
            members["assignment"] = assignment
        shown.append(members)
    node["members"] = shown
    return node


def _unfolded(kind: type[_ProtocolT], data: bytes) -> Node:
    try:
        version = decode_version(data)
        # Java's reader takes every version: one of the future is read as far as it is known.
        return message_node(decode_message(kind, data, version, 2), version)
    except MessageError:
        return None


def _decode_old_transaction(record: Record) -> Decoded:
    """Return a transaction's record as releases before 4.0 print it."""
    if record.key is None:
        raise MissingKeyError(f"Failed to decode message at offset {record.offset}: no key")
    version = decode_version(record.key)
    if version != 0:
        return f"unknown::version={version}", None
    key = decode_message(TransactionLogKey, record.key, 0, 2)
    shown = f"transaction_metadata::transactionalId={key.transactional_id}"
    if record.value is None:
        return shown, "<DELETE>"
    value = decode_message(TransactionLogValue, record.value, decode_version(record.value), 2)
    status = TransactionStatus(value.transaction_status)
    topics = value.transaction_partitions if status is not TransactionStatus.EMPTY else ()
    partitions = ",".join(
        f"{topic.topic}-{number}" for topic in topics or () for number in topic.partition_ids
    )
    return shown, (
        f"producerId:{value.producer_id},producerEpoch:{value.producer_epoch},"
        f"state={status.java_name},partitions=[{partitions}],"
        f"txnLastUpdateTimestamp={value.transaction_last_update_timestamp_ms},"
        f"txnTimeoutMs={value.transaction_timeout_ms}"
    )


decode_group_record = _coordinator_decoder(GROUP_RECORDS)
decode_transaction_record = _coordinator_decoder(TRANSACTION_RECORDS)
decode_share_record = _coordinator_decoder(SHARE_RECORDS)
decode_old_transaction_record: RecordDecoder = _decode_old_transaction
