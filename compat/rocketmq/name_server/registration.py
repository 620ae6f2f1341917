"""
What a broker tells a name server about itself: the body of a registration, read and written.

The body is JSON, or (``compressedRegister``) one zlib stream of pieces with their lengths.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, cast

import attrs
import orjson

from logstore.errors import LogStoreError
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.topics import TopicConfig

#: releases from this one on write queue mappings of static topics into compressed bodies
VERSION_WITH_MAPPINGS = 413
_BODY_BYTES_MAX = 256 * 1024 * 1024
_CRC_MASK = 0x7FFFFFFF


class RegistrationError(LogStoreError):
    """The body of a registration cannot be understood."""


@attrs.frozen
class Registration:
    """All that a broker serves, or a part of it, and what goes with it in the header."""

    topics: Mapping[str, TopicConfig]
    data_version: DataVersion
    ha_address: str | None = None
    filter_servers: tuple[str, ...] = ()
    #: queue mapping of each static topic (5.x), as the broker wrote it
    mappings: Mapping[str, object] = attrs.field(factory=dict[str, object])
    heartbeat_timeout_ms: int | None = None
    #: None: the broker is older than the question (4.x)
    enables_acting_master: bool | None = None
    zone_name: str | None = None


def crc_of(body: bytes | memoryview) -> int:
    """Return the checksum of a body that goes into the header (``UtilAll.crc32``)."""
    return zlib.crc32(body) & _CRC_MASK


def version_fields(version: DataVersion) -> dict[str, int]:
    """Return a data version as JSON bodies have it."""
    return {
        "counter": version.counter,
        "stateVersion": version.state_version,
        "timestamp": version.timestamp_ms,
    }


def version_of(fields: object, now_ms: int) -> DataVersion:
    """Return the data version of a JSON body; where it says no time that is now, all else is 0."""
    if not isinstance(fields, dict):
        return DataVersion(now_ms)
    known = cast("dict[str, Any]", fields)
    timestamp = known.get("timestamp")
    return DataVersion(
        now_ms if timestamp is None else int(timestamp or 0),
        int(known.get("counter") or 0),
        int(known.get("stateVersion") or 0),
    )


def read_registration(
    body: bytes | memoryview, *, is_compressed: bool, version: int, now_ms: int
) -> Registration:
    """
    Return the part of a registration that stands in the body, of a broker of release `version`.

    A body that does not say when its topics were changed is of `now_ms`.

    Raises:
        RegistrationError: the body cannot be understood.

    """
    if not body:
        return Registration({}, DataVersion(0))
    try:
        if is_compressed:
            return _read_compressed(body, version, now_ms)
        return _read_json(body, now_ms)
    except (ValueError, TypeError, KeyError, AttributeError, zlib.error, LogStoreError) as error:
        raise RegistrationError(f"the registration cannot be read: {error}") from error


def _read_json(body: bytes | memoryview, now_ms: int) -> Registration:
    content = orjson.loads(bytes(body))
    wrapper: dict[str, Any] = content.get("topicConfigSerializeWrapper") or {}
    configs: dict[str, dict[str, object]] = wrapper.get("topicConfigTable") or {}
    topics = {name: TopicConfig.from_json(fields) for name, fields in configs.items()}
    return Registration(
        topics,
        version_of(wrapper.get("dataVersion"), now_ms),
        filter_servers=tuple(content.get("filterServerList") or ()),
        mappings=wrapper.get("topicQueueMappingInfoMap") or {},
    )


class _Pieces:
    """Reads a stream of pieces, each behind its length."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self) -> int:
        """Return the next 32-bit number."""
        return int.from_bytes(self._take(4), "big", signed=True)

    def piece(self) -> bytes:
        """Return the next piece."""
        return self._take(self.number())

    def _take(self, size_bytes: int) -> bytes:
        end = self._position + size_bytes
        if size_bytes < 0 or end > len(self._data):
            raise ValueError(f"it ends within a piece of {size_bytes} bytes")
        data = self._data[self._position : end]
        self._position = end
        return data


def _read_compressed(body: bytes | memoryview, version: int, now_ms: int) -> Registration:
    inflater = zlib.decompressobj()
    data = inflater.decompress(body, _BODY_BYTES_MAX)
    if inflater.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {_BODY_BYTES_MAX} bytes")
    pieces = _Pieces(data)
    data_version = version_of(orjson.loads(pieces.piece()), now_ms)
    found = (_topic_of(pieces.piece().decode()) for _ in range(pieces.number()))
    topics = {topic.topic_name: topic for topic in found}
    filter_servers = tuple(orjson.loads(pieces.piece()))
    mappings: dict[str, object] = {}
    if version >= VERSION_WITH_MAPPINGS:
        for _ in range(pieces.number()):
            mapping = orjson.loads(pieces.piece())
            mappings[mapping["topic"]] = mapping
    return Registration(topics, data_version, filter_servers=filter_servers, mappings=mappings)


def _topic_of(text: str) -> TopicConfig:
    """Return a topic from ``name readQueues writeQueues perm filterType [attributes]``."""
    words = text.split(" ", 5)
    attributes: dict[str, str] = {}
    if len(words) == 6 and words[5]:
        try:
            attributes = orjson.loads(words[5])
        except ValueError:
            attributes = {}  # a space within: Java reads none either
    return TopicConfig(
        words[0], int(words[1]), int(words[2]), int(words[3]), words[4], attributes=attributes
    )


def write_registration(registration: Registration, *, is_compressed: bool) -> bytes:
    """Return the body of a registration, as a broker of 5.x writes it."""
    if is_compressed:
        return _write_compressed(registration)
    version = version_fields(registration.data_version)
    topics = {name: topic.to_json() for name, topic in registration.topics.items()}
    wrapper = {
        "dataVersion": version,
        "mappingDataVersion": {**version, "counter": 0},
        "topicConfigTable": topics,
        "topicQueueMappingDetailMap": {},
        "topicQueueMappingInfoMap": dict(registration.mappings),
    }
    content = {
        "filterServerList": list(registration.filter_servers),
        "topicConfigSerializeWrapper": wrapper,
    }
    return orjson.dumps(content)


def _write_compressed(registration: Registration) -> bytes:
    pieces = [_behind_length(orjson.dumps(version_fields(registration.data_version)))]
    pieces.append(len(registration.topics).to_bytes(4, "big"))
    for topic in registration.topics.values():
        attributes = orjson.dumps(dict(topic.attributes)).decode()
        text = (
            f"{topic.topic_name} {topic.read_queue_count} {topic.write_queue_count} "
            f"{topic.perm} {topic.topic_filter_type} {attributes}"
        )
        pieces.append(_behind_length(text.encode()))
    pieces.append(_behind_length(orjson.dumps(list(registration.filter_servers))))
    pieces.append(len(registration.mappings).to_bytes(4, "big"))
    pieces += [_behind_length(orjson.dumps(info)) for info in registration.mappings.values()]
    return zlib.compress(b"".join(pieces), 9)


def _behind_length(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
