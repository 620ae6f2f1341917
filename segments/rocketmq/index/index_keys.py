"""
The hashes under which the index knows a message: of ``topic#key`` for each of its keys.

Java builds each text and hashes it. Its hash of a text is a polynomial in 31, so that of the parts
suffices: ``hash(a + b) == hash(a) * 31 ** len(b) + hash(b)``. The part of the topic is kept, and
so is that of all but the end of the unique keys, which one client counts upwards.

Source: ``IndexService.buildKey``, ``IndexFile.indexKeyHashMethod``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import mul
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.messages.java_strings import java_hash
from logstore.segments.rocketmq.messages.properties import (
    KEYS,
    TAGS,
    UNIQUE_KEY,
    find_property,
    property_needle,
)

if TYPE_CHECKING:
    from logstore.segments.rocketmq.messages.message_run import MessageRun

_UNIQUE_KEY = property_needle(UNIQUE_KEY)
_NEEDLE_BYTES = len(_UNIQUE_KEY)
_KEYS = property_needle(KEYS)
_TAGS = property_needle(TAGS)
_MASK = 0xFFFF_FFFF
_SIGN = 0x8000_0000
#: longer keys take the slow way
_LENGTH_MAX = 64
_TAIL_BYTES = 4
_CACHED_MAX = 65_536

#: 31 ** n; and by length what each character of a text counts
_POWERS = [pow(31, exponent, 1 << 32) for exponent in range(_LENGTH_MAX + 1)]
_WEIGHTS = [tuple(_POWERS[length - 1 :: -1]) if length else () for length in range(_LENGTH_MAX + 1)]

#: hashes of keys and tags, by topic and all properties but the unique key
_others: dict[tuple[str, bytes, bytes, bool], tuple[int, ...]] = {}
_OTHERS_MAX = 4096
_heads: dict[bytes, int] = {}
_tails: dict[bytes, int] = {}


def index_hash(text: str) -> int:
    """Return the hash of ``topic#key`` as entries have it: Java's, without its sign."""
    return _unsigned(java_hash(text) & _MASK)


def index_hashes(topic: str, properties_text: bytes, *, has_tag_entry: bool) -> list[int]:
    """
    Return the hashes of a message's entries in Java's order: unique key, keys, tags.

    Args:
        topic: of the message.
        properties_text: its properties as stored.
        has_tag_entry: whether tags have an entry ``topic#T#tags`` (5.x).

    """
    hashes: list[int] = []
    unique_key = find_property(properties_text, _UNIQUE_KEY)
    if unique_key is not None:
        hashes.append(_unique_key_hash(topic, unique_key))
    keys = find_property(properties_text, _KEYS)
    if keys is not None:
        if b" " in keys:
            hashes += [_key_hash(topic, key) for key in keys.split(b" ") if key]
        else:
            hashes.append(_key_hash(topic, keys))
    if has_tag_entry:
        tags = find_property(properties_text, _TAGS)
        if tags is not None:
            hashes.append(_tags_hash(topic, tags))
    return hashes


def run_hashes(run: MessageRun, *, has_tag_entries: bool) -> tuple[list[int], list[int]]:
    """Return the hashes of a run's entries and, for each, its message's physical offset."""
    hashes: list[int] = []
    physical_offsets: list[int] = []
    for kind, physical_offset, _, _, unique_key in run.stored:
        # As in _unique_key_hash, without the call.
        head_part = _heads.get(unique_key[:-_TAIL_BYTES])
        tail_part = _tails.get(unique_key[-_TAIL_BYTES:])
        if head_part is None or tail_part is None:
            hashes.append(_unique_key_hash(kind.topic, unique_key))
        else:
            value = _topic_part(kind.topic, len(unique_key)) + head_part + tail_part & _MASK
            hashes.append(value if value < _SIGN else _unsigned(value))
        physical_offsets.append(physical_offset)
        if kind.keys is not None or kind.tags is not None:
            others = _other_hashes(kind.topic, kind.keys, kind.tags if has_tag_entries else None)
            hashes += others
            physical_offsets += [physical_offset] * len(others)
    return hashes, physical_offsets


def text_hashes(
    messages: Iterable[tuple[str, bytes, int]], *, has_tag_entries: bool
) -> tuple[list[int], list[int]]:
    """
    Return the hashes of many messages' entries and, for each, its message's physical offset.

    `messages` are (topic, properties, physical offset); the hashes are those of
    :func:`index_hashes`.
    """
    hashes: list[int] = []
    physical_offsets: list[int] = []
    for topic, text, physical_offset in messages:
        start = text.find(_UNIQUE_KEY) + _NEEDLE_BYTES
        end = text.find(b"\x02", start)
        around = topic, text[:start], text[end:], has_tag_entries
        others = _others.get(around)
        if others is None or not start < end:
            found = index_hashes(topic, text, has_tag_entry=has_tag_entries)
            hashes += found
            physical_offsets += [physical_offset] * len(found)
            _learn_others(around, text, text[start:end], found)
            continue
        key = text[start:end]
        head_part, tail_part = _heads.get(key[:-_TAIL_BYTES]), _tails.get(key[-_TAIL_BYTES:])
        if head_part is None or tail_part is None:
            hashes.append(_unique_key_hash(topic, key))
        else:
            value = _topic_part(topic, len(key)) + head_part + tail_part & _MASK
            hashes.append(value if value < _SIGN else _unsigned(value))
        physical_offsets.append(physical_offset)
        if others:
            hashes += others
            physical_offsets += [physical_offset] * len(others)
    return hashes, physical_offsets


def _learn_others(
    around: tuple[str, bytes, bytes, bool], text: bytes, key: bytes, found: Sequence[int]
) -> None:
    """Remember what follows the hash of a unique key, which alone changes in many messages."""
    is_plain = text.count(_UNIQUE_KEY) == 1 and find_property(text, _UNIQUE_KEY) == key
    if not is_plain:
        return
    if len(_others) >= _OTHERS_MAX:
        _others.clear()
    _others[around] = tuple(found[1:])


@lru_cache(maxsize=4096)
def _other_hashes(topic: str, keys: bytes | None, tags: bytes | None) -> tuple[int, ...]:
    """Return the hashes of what stands behind the unique key."""
    found = [_key_hash(topic, key) for key in (keys or b"").split(b" ") if key]
    return (*found, *([] if tags is None else [_tags_hash(topic, tags)]))


@lru_cache(maxsize=4096)
def _topic_part(topic: str, length: int) -> int:
    """Return what ``topic#`` contributes to the hash of a text with `length` more characters."""
    return java_hash(f"{topic}#") * _POWERS[length] & _MASK


@lru_cache(maxsize=4096)
def _tags_hash(topic: str, tags: bytes) -> int:
    return index_hash(f"{topic}#T#{tags.decode('utf-8', 'replace')}")


def _key_hash(topic: str, key: bytes) -> int:
    length = len(key)
    if length > _LENGTH_MAX or not key.isascii():
        return index_hash(f"{topic}#{key.decode('utf-8', 'replace')}")
    return _unsigned(_topic_part(topic, length) + sum(map(mul, key, _WEIGHTS[length])) & _MASK)


def _unique_key_hash(topic: str, key: bytes) -> int:
    """As :func:`_key_hash`, for keys that begin and end like others before."""
    length = len(key)
    if not _TAIL_BYTES < length <= _LENGTH_MAX or not key.isascii():
        return _key_hash(topic, key)
    head = key[:-_TAIL_BYTES]
    tail = key[-_TAIL_BYTES:]
    head_part = _heads.get(head)
    if head_part is None:
        head_part = _keep(_heads, head, _POWERS[_TAIL_BYTES])
    tail_part = _tails.get(tail)
    if tail_part is None:
        tail_part = _keep(_tails, tail, 1)
    return _unsigned(_topic_part(topic, length) + head_part + tail_part & _MASK)


def _keep(cache: dict[bytes, int], text: bytes, factor: int) -> int:
    if len(cache) >= _CACHED_MAX:
        cache.clear()
    total: int = sum(map(mul, text, _WEIGHTS[len(text)]))
    cache[text] = value = total * factor & _MASK
    return value


def _unsigned(value: int) -> int:
    """Return ``Math.abs`` of 32 bits; the one number that has none becomes 0."""
    if value < _SIGN:
        return value
    return (1 << 32) - value if value > _SIGN else 0
