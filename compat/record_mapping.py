"""
Between a Kafka record and a RocketMQ message, without loss; ``MAPPING.md`` is the specification.

What both sides have is mapped naturally, so that a foreign client sees what it expects. What the
other side cannot hold is returned as a *rest* beside it, and with the rest the original comes back
to the last bit. A rest is only there where the natural form alone would not come back as it was.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

import attrs

from logstore.errors import LogStoreError
from logstore.segments.kafka.record import Record
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message import Message, MessageVersion, encode_message
from logstore.segments.rocketmq.messages.message_layout import FIXED_FIELDS, PROPERTIES_SIZE
from logstore.segments.rocketmq.messages.properties import KEYS, encode_properties

#: properties by which a RocketMQ broker or client steers: no header may set them
STEERING = frozenset(
    [
        "WAIT",
        "DELAY",
        "RETRY_TOPIC",
        "REAL_TOPIC",
        "REAL_QID",
        "TRAN_MSG",
        "PGROUP",
        "MIN_OFFSET",
        "MAX_OFFSET",
        "ORIGIN_MESSAGE_ID",
        "TRANSFER_FLAG",
        "CORRECTION_FLAG",
        "MQ2_FLAG",
        "RECONSUME_TIME",
        "MAX_RECONSUME_TIMES",
        "CONSUME_START_TIME",
        "INNER_NUM",
        "INNER_BASE",
        "DUP_INFO",
        "CHECK_IMMUNITY_TIME_IN_SECONDS",
        "TRAN_PREPARED_QUEUE_OFFSET",
        "__transactionId__",
        "TRANSACTION_CHECK_TIMES",
        "POP_CK",
        "POP_CK_OFFSET",
        "1ST_POP_TIME",
        "INNER_MULTI_DISPATCH",
        "INNER_MULTI_QUEUE_OFFSET",
        "TIMER_DELAY_SEC",
        "TIMER_DELIVER_MS",
        "TIMER_DELAY_MS",
        "TIMER_OUT_MS",
        "TIMER_DEL_UNIQKEY",
        "__CRC32#",
    ]
)
_SEPARATORS = ("\x01", "\x02")
_LENGTH = struct.Struct(">i")
_NULL = -1
_RECORD_REST, _MESSAGE_REST = b"K1", b"R1"
_NEITHER_TEXT_NOR_BODY = 2 * _LENGTH.pack(_NULL)
# bytes of the topic's length, flag, system flag, store time, reconsume times, prepared transaction
# offset, CRC of the body, where among the properties KEYS stands
_FIELDS = struct.Struct(">biiqiqIh")
_CRC_START = len(_MESSAGE_REST) + struct.calcsize(">biiqiq")
_VERSIONS = {version.topic_length_bytes: version for version in MessageVersion}

Headers = tuple[tuple[str, bytes | None], ...]


class MappingError(LogStoreError):
    """A rest is damaged, or not one of what it is given with."""


@attrs.frozen
class MessageParts:
    """What a message says: its body, and its properties in order."""

    body: bytes
    properties: Mapping[str, str]


# Kafka -> RocketMQ


def message_parts(record: Record) -> tuple[MessageParts, bytes | None]:
    """
    Return a record as a RocketMQ client would have sent it, and the rest.

    Key, value and headers are mapped; offset and timestamp are fields of every message.
    """
    parts = _natural_parts(record.key, record.value, record.headers)
    if (record.key, record.value, record.headers) == _natural_record(parts):
        return parts, None
    return parts, _RECORD_REST + _packed_record(record.key, record.value, record.headers)


def restored_record(
    parts: MessageParts, rest: bytes | None
) -> tuple[bytes | None, bytes | None, Headers]:
    """
    Return key, value and headers of the record that :func:`message_parts` was given.

    Raises:
        MappingError: `rest` is none of a record.

    """
    if rest is None:
        return _natural_record(parts)
    if rest[:2] != _RECORD_REST:
        raise MappingError(f"a rest that begins with {rest[:2].hex()} is none of a record")
    try:
        pieces = list(_unpacked(rest, 3))
    except (struct.error, ValueError) as error:
        raise MappingError(f"the rest of a record cannot be read: {error}") from error
    if len(pieces) % 2 == 0:
        raise MappingError("the rest of a record ends inside of a header")
    names = ((name or b"").decode("utf-8", "surrogatepass") for name in pieces[1::2])
    value = None if rest[2] else parts.body
    return pieces[0], value, tuple(zip(names, pieces[2::2], strict=True))


def _natural_parts(key: bytes | None, value: bytes | None, headers: Headers) -> MessageParts:
    properties: dict[str, str] = {}
    text = _as_property(key)
    if text is not None:
        properties[KEYS] = text
    for name, content in headers:
        text = _as_property(content)
        if text is not None and _is_name(name) and name not in properties:
            properties[name] = text
    return MessageParts(value or b"", properties)


def _as_property(data: bytes | None) -> str | None:
    """Return bytes as the text of a property's value, None if they cannot be one."""
    if not data:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if any(separator in text for separator in _SEPARATORS) else text


def _is_name(name: str) -> bool:
    if not name or name == KEYS or name in STEERING:
        return False
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return not any(separator in name for separator in _SEPARATORS)


def _natural_record(parts: MessageParts) -> tuple[bytes | None, bytes | None, Headers]:
    key = parts.properties.get(KEYS)
    headers = tuple(
        (name, value.encode("utf-8", "replace"))
        for name, value in parts.properties.items()
        if name != KEYS
    )
    return None if key is None else key.encode("utf-8", "replace"), parts.body, headers


def _packed_record(key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    """Pack key and headers; of the value only whether it is null, as the body has the rest."""
    made = bytearray([value is None])
    _pack(made, key)
    for name, content in headers:
        _pack(made, name.encode("utf-8", "surrogatepass"))
        _pack(made, content)
    return bytes(made)


# RocketMQ -> Kafka


def record_parts(message: Message) -> tuple[Record, bytes]:
    """
    Return a message as a Kafka client would have sent it, and the rest.

    The record has the message's queue offset and born time. The rest has every field that Kafka has
    no place for, but for the physical offset: where the message stands is said by who stores it.

    Raises:
        BodyCompressionError: the body cannot be decompressed.

    """
    parts = MessageParts(message.plain_body(), message.properties)
    key, value, headers = _natural_record(parts)
    record = Record(message.queue_offset, message.born_timestamp_ms, key, value, headers)
    return record, _packed_message(message)


def restored_message(topic: str, queue_id: int, record: Record, rest: bytes) -> Message:
    """
    Return the message that :func:`record_parts` was given; its physical offset is 0.

    Raises:
        MappingError: `rest` is none of a message.

    """
    if rest[:2] != _MESSAGE_REST:
        raise MappingError(f"a rest that begins with {rest[:2].hex()} is none of a message")
    try:
        return _unpacked_message(topic, queue_id, record, rest)
    except (struct.error, ValueError, KeyError, StopIteration) as error:
        raise MappingError(f"the rest of a message cannot be read: {error!r}") from error


def stored_message(
    topic: str, queue_id: int, record: Record, rest: bytes, physical_offset: int
) -> bytes:
    """
    Return the stored form of what :func:`restored_message` returns, at a place, in fewer steps.

    Raises:
        MappingError: `rest` is none of a message.

    """
    if rest[:2] != _MESSAGE_REST:
        raise MappingError(f"a rest that begins with {rest[:2].hex()} is none of a message")
    try:
        length_bytes, flag, sys_flag, store_ms, times, prepared, crc, keys_index = (
            _FIELDS.unpack_from(rest, 2)
        )
        born, stored, text, body = _unpacked(rest, 2 + _FIELDS.size)
        if text is None:
            pairs = [name.encode() + b"\x01" + (value or b"") for name, value in record.headers]
            if record.key is not None:
                pairs.insert(keys_index, b"KEYS\x01" + record.key)
            text = b"\x02".join([*pairs, b""])
        body = (record.value or b"") if body is None else body
        name = topic.encode()
        head: struct.Struct = FIXED_FIELDS[int(sys_flag) >> 4 & 3]
        size_bytes = head.size + len(body) + length_bytes + len(name) + 2 + len(text)
        packed = head.pack(
            size_bytes, _VERSIONS[length_bytes].magic, crc, queue_id, flag, record.offset,
            physical_offset, sys_flag, record.timestamp_ms, born, store_ms, stored, times,
            prepared, len(body),
        )  # fmt: skip
        length = len(name).to_bytes(length_bytes, "big")
        return b"".join((packed, body, length, name, PROPERTIES_SIZE.pack(len(text)), text))
    except (struct.error, ValueError, KeyError, OverflowError) as error:
        raise MappingError(f"the rest of a message cannot be read: {error!r}") from error


def _packed_message(message: Message) -> bytes:
    names = list(message.properties)
    is_natural = encode_properties(message.properties) == message.properties_text
    made = bytearray(
        natural_rest(
            message.version.topic_length_bytes,
            message.flag,
            message.sys_flag,
            message.store_timestamp_ms,
            message.reconsume_times,
            message.prepared_transaction_offset,
            message.body_crc,
            names.index(KEYS) if KEYS in names else 0,
            packed_hosts(message.born_host, message.store_host),
        )
    )
    if is_natural and not message.is_compressed:
        return bytes(made)
    del made[-2 * _LENGTH.size :]
    _pack(made, None if is_natural else message.properties_text)
    # A body that was compressed is not made the same again by another compressor.
    _pack(made, message.body if message.is_compressed else None)
    return bytes(made)


def packed_hosts(born_host: HostAddress, store_host: HostAddress) -> bytes:
    """Return both hosts as a rest of a message has them."""
    made = bytearray()
    _pack(made, born_host.packed)
    _pack(made, store_host.packed)
    return bytes(made)


def natural_rest(
    topic_length_bytes: int,
    flag: int,
    sys_flag: int,
    store_timestamp_ms: int,
    reconsume_times: int,
    prepared_transaction_offset: int,
    body_crc: int,
    keys_index: int,
    hosts: bytes,
) -> bytes:
    """
    Return the rest of a message whose properties are written as usual, its body not compressed.

    `keys_index` says where among the properties ``KEYS`` stands, `hosts` are packed.
    """
    fields = _FIELDS.pack(
        topic_length_bytes, flag, sys_flag, store_timestamp_ms, reconsume_times,
        prepared_transaction_offset, body_crc, keys_index,
    )  # fmt: skip
    return b"".join((_MESSAGE_REST, fields, hosts, _NEITHER_TEXT_NOR_BODY))


def rest_around_crc(
    topic_length_bytes: int,
    flag: int,
    sys_flag: int,
    store_timestamp_ms: int,
    reconsume_times: int,
    keys_index: int,
    hosts: bytes,
) -> tuple[bytes, bytes]:
    """Return what :func:`natural_rest` has before and behind the body's CRC of four bytes."""
    rest = natural_rest(
        topic_length_bytes, flag, sys_flag, store_timestamp_ms, reconsume_times, 0, 0, keys_index,
        hosts,
    )  # fmt: skip
    return rest[:_CRC_START], rest[_CRC_START + 4 :]


def _unpacked_message(topic: str, queue_id: int, record: Record, rest: bytes) -> Message:
    fields = _FIELDS.unpack_from(rest, 2)
    length_bytes, flag, sys_flag, store_ms, reconsume_times, prepared, crc, keys_index = fields
    pieces = _unpacked(rest, 2 + _FIELDS.size)
    born_host, store_host = (HostAddress.from_packed(next(pieces) or b"") for _ in range(2))
    text, body = next(pieces), next(pieces)
    if text is None:
        properties = [(name, (value or b"").decode()) for name, value in record.headers]
        if record.key is not None:
            properties.insert(keys_index, (KEYS, record.key.decode()))
        text = encode_properties(dict(properties))
    message = Message(
        topic=topic,
        body=(record.value or b"") if body is None else body,
        queue_id=queue_id,
        properties_text=text,
        flag=flag,
        sys_flag=sys_flag,
        born_timestamp_ms=record.timestamp_ms,
        born_host=born_host,
        store_timestamp_ms=store_ms,
        store_host=store_host,
        reconsume_times=reconsume_times,
        prepared_transaction_offset=prepared,
        queue_offset=record.offset,
        physical_offset=0,
        size_bytes=0,
        body_crc=crc,
        version=_VERSIONS[length_bytes],
    )
    return attrs.evolve(message, size_bytes=len(encode_message(message)))


# how both rests are packed: byte strings with their lengths, -1 for null


def _pack(made: bytearray, data: bytes | None) -> None:
    made += _LENGTH.pack(_NULL if data is None else len(data))
    made += data or b""


def _unpacked(rest: bytes, position: int) -> Iterator[bytes | None]:
    while position < len(rest):
        (size_bytes,) = _LENGTH.unpack_from(rest, position)
        position += _LENGTH.size
        if size_bytes == _NULL:
            yield None
            continue
        if not 0 <= size_bytes <= len(rest) - position:
            raise ValueError(f"{size_bytes} bytes, {len(rest) - position} are there")
        yield rest[position : position + size_bytes]
        position += size_bytes
