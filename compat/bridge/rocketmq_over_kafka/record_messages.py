"""Stored records as messages: what a pull over a partition answers."""

from __future__ import annotations

from logstore.compat.bridge.reserved_names import MESSAGE_REST_HEADER
from logstore.compat.record_mapping import MappingError, message_parts, stored_message
from logstore.segments.kafka.record import Record
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_draft import draft_message
from logstore.segments.rocketmq.messages.properties import (
    KEYS,
    PROPERTIES_SIZE_BYTES_MAX,
    TAGS,
    encode_properties,
    tags_code,
)


def rest_of(record: Record) -> bytes | None:
    """Return the rest of the message that the record was; None if it was none."""
    if not record.headers or record.headers[-1][0] != MESSAGE_REST_HEADER:
        return None
    return record.headers[-1][1]


def without_rest(record: Record) -> Record:
    """Return the record as a Kafka client is to see it."""
    if rest_of(record) is None:
        return record
    return Record(
        record.offset,
        record.timestamp_ms,
        record.key,
        record.value,
        record.headers[:-1],
        record.sequence,
    )


def message_of(
    record: Record, topic: str, queue_id: int, physical_offset: int, host: HostAddress
) -> tuple[bytes, int]:
    """
    Return the stored form of the message that `record` is, and its tags code.

    One that was no message is said to be born at `host`, and stored when it was born.
    """
    rest = rest_of(record)
    if rest is not None:
        try:
            data = stored_message(topic, queue_id, without_rest(record), rest, physical_offset)
        except MappingError:  # somebody else's header of that name
            rest = None
        else:
            return data, _tags_code(record)
    draft = draft_message(
        topic=topic,
        body=record.value or b"",
        queue_id=queue_id,
        properties_text=_properties_text(record),
        born_timestamp_ms=record.timestamp_ms,
        born_host=host,
        store_host=host,
    )
    draft.stamp(record.offset, record.timestamp_ms)
    return bytes(draft.stamped(physical_offset).data), draft.tags_code


def _tags_code(record: Record) -> int:
    """Return the tags code by the header that stands for the property."""
    return next((tags_code(value or b"") for name, value in record.headers if name == TAGS), 0)


def _properties_text(record: Record) -> bytes:
    """Return key and headers as properties, as many as there is room for."""
    if record.key is None and not record.headers:
        return b""
    parts, _ = message_parts(record)
    text = encode_properties(parts.properties)
    if len(text) <= PROPERTIES_SIZE_BYTES_MAX:
        return text
    kept: dict[str, str] = {}
    size_bytes = 0
    for name in sorted(parts.properties, key=lambda name: name != KEYS):
        value = parts.properties[name]
        more = len(name.encode()) + len(value.encode()) + 2
        if size_bytes + more <= PROPERTIES_SIZE_BYTES_MAX:
            kept[name] = value
            size_bytes += more
    return encode_properties(kept)
