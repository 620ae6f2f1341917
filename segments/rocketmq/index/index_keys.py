"""
The hashes under which the index knows a message: of ``topic#key`` for each of its keys.

Java builds each text and hashes it. Its hash of a text is a polynomial in 31, so that of the parts
suffices: ``hash(a + b) == hash(a) * 31 ** len(b) + hash(b)``. The part of the topic is kept, and
so is that of all but the last eight characters of unique keys, which one client's have in common.
Those eight are hashed for many keys in a few steps.

Source: ``IndexService.buildKey``, ``IndexFile.indexKeyHashMethod``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from logstore.java_hash import java_hash
from logstore.segments.rocketmq.messages.equal_rows import unpack_rows
from logstore.segments.rocketmq.messages.properties import (
    KEYS,
    TAGS,
    UNIQUE_KEY,
    find_property,
    property_needle,
)

if TYPE_CHECKING:
    from logstore.segments.rocketmq.messages.message_draft import MessageDraft
    from logstore.segments.rocketmq.messages.message_run import StoredMessage

_UNIQUE_KEY = property_needle(UNIQUE_KEY)
_NEEDLE_BYTES = len(_UNIQUE_KEY)
_KEYS = property_needle(KEYS)
_TAGS = property_needle(TAGS)
#: what stands before tags where they are looked up like a key
TAG_PREFIX = "T#"
_MASK = 0xFFFF_FFFF
_SIGN = 0x8000_0000
_POSITIVE = 0x7FFF_FFFF
#: longer keys take the slow way
_LENGTH_MAX = 64
_TAIL_BYTES = 8
_HEADS_MAX = 4096
#: fewer keys are hashed one by one
_TOGETHER_MIN = 4
#: more are hashed in pieces: masks are kept for every count
_TOGETHER_MAX = 256

#: 31 ** n; and by length what each character of a text counts
_POWERS = [pow(31, exponent, 1 << 32) for exponent in range(_LENGTH_MAX + 1)]
_WEIGHTS = [tuple(_POWERS[length - 1 :: -1]) if length else () for length in range(_LENGTH_MAX + 1)]
_TAIL_WEIGHTS = tuple(31**exponent for exponent in range(_TAIL_BYTES - 1, -1, -1))

#: what the beginning of a unique key counts in the hash of the whole key
_heads: dict[bytes, int] = {}


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


def run_hashes(
    stored: Sequence[StoredMessage], *, has_tag_entries: bool
) -> tuple[list[int], list[int]]:
    """
    Return the hashes of the entries of runs and, for each, its message's physical offset.

    Messages without a unique key have no entries: nothing else that a run takes does so.
    """
    unique = _unique_key_hashes(
        [
            (kind.topic, own if kind.unique_key_at is None else own[kind.unique_key_at])
            for kind, _, _, _, own in stored
            if own
        ]
    )
    if len(unique) < len(stored):
        stored = [message for message in stored if message[4]]
    hashes: list[int] = []
    physical_offsets: list[int] = []
    for value, (kind, physical_offset, _, _, own) in zip(unique, stored, strict=True):
        hashes.append(value)
        physical_offsets.append(physical_offset)
        if kind.keys_at is not None or kind.keys is not None or kind.tags is not None:
            tags = kind.tags if has_tag_entries else None
            # Keys that never come again would drive what does out of what is remembered.
            hashes_of = _other_hashes if kind.keys_at is None else _other_hashes.__wrapped__
            others = hashes_of(kind.topic, kind.keys_of(own), tags)
            hashes += others
            physical_offsets += [physical_offset] * len(others)
    return hashes, physical_offsets


def draft_hashes(
    drafts: Sequence[MessageDraft], *, has_tag_entries: bool
) -> tuple[list[int], list[int]]:
    """
    Return the hashes of the entries of drafts and, for each, its message's physical offset.

    As :func:`index_hashes` of each of them.
    """
    hashes: list[int] = []
    physical_offsets: list[int] = []
    unique = _unique_key_hashes([(draft.topic, draft.key) for draft in drafts])
    for value, draft in zip(unique, drafts, strict=True):
        shape, physical_offset = draft.shape, draft.physical_offset
        if shape is None:
            found = index_hashes(draft.topic, draft.properties_text, has_tag_entry=has_tag_entries)
            hashes += found
            physical_offsets += [physical_offset] * len(found)
            continue
        hashes.append(value)
        physical_offsets.append(physical_offset)
        if shape.keys is not None or shape.tags is not None:
            tags = shape.tags if has_tag_entries else None
            others = _other_hashes(draft.topic, shape.keys, tags)
            hashes += others
            physical_offsets += [physical_offset] * len(others)
    return hashes, physical_offsets


def batch_hashes(
    topic: str, texts: Sequence[bytes], physical_offsets: Sequence[int], *, has_tag_entries: bool
) -> tuple[Sequence[int], Sequence[int]]:
    """
    Return the hashes of the entries of a batch's messages, and the physical offset for each.

    As :func:`index_hashes` of `texts`, each with its length in front as a record has it. Those
    that differ in nothing but the last eight characters of the unique key are hashed together.
    """
    alike = _hashes_alike(topic, texts, has_tag_entry=has_tag_entries)
    if alike is not None:
        return alike, physical_offsets
    hashes: list[int] = []
    places: list[int] = []
    for text, physical_offset in zip(texts, physical_offsets, strict=True):
        found = index_hashes(topic, text[2:], has_tag_entry=has_tag_entries)
        hashes += found
        places += [physical_offset] * len(found)
    return hashes, places


def _hashes_alike(
    topic: str, texts: Sequence[bytes], *, has_tag_entry: bool
) -> Sequence[int] | None:
    """Return the hashes of unique keys, None where there are others or the texts are not alike."""
    first, count = texts[0], len(texts)
    start = first.rfind(_UNIQUE_KEY) + _NEEDLE_BYTES
    end = first.find(b"\x02", start)
    if start < _NEEDLE_BYTES or not _TAIL_BYTES < end - start <= _LENGTH_MAX:
        return None
    if {len(first)} != set(map(len, texts)):
        return None
    form = f"{end - _TAIL_BYTES}s{_TAIL_BYTES}s{len(first) - end}s"
    values = unpack_rows(form, b"".join(texts), count)
    before, tails, behind = values[::3], values[1::3], values[2::3]
    if before.count(before[0]) != count or behind.count(behind[0]) != count:
        return None
    changing, key = b"".join(tails), first[start:end]
    if b"\x02" in changing or not changing.isascii() or not key.isascii():
        return None  # a key may end earlier, or takes the slow way
    known = [_unique_key_hash(topic, key)]
    if index_hashes(topic, first[2:], has_tag_entry=has_tag_entry) != known:
        return None
    base = _topic_part(topic, len(key)) + _head_part(key[:-_TAIL_BYTES])
    return _tail_hashes(base, changing)


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
    return index_hash(f"{topic}#{TAG_PREFIX}{tags.decode('utf-8', 'replace')}")


def _key_hash(topic: str, key: bytes) -> int:
    length = len(key)
    if length > _LENGTH_MAX or not key.isascii():
        return index_hash(f"{topic}#{key.decode('utf-8', 'replace')}")
    return _unsigned(_topic_part(topic, length) + sum(map(mul, key, _WEIGHTS[length])) & _MASK)


def _unique_key_hashes(keys: Sequence[tuple[str, bytes]]) -> Sequence[int]:
    """Return the hashes of (topic, unique key), in a few steps where they are alike."""
    count = len(keys)
    if not count:
        return ()
    topic, first = keys[0]
    length = len(first)
    if count < _TOGETHER_MIN or not _TAIL_BYTES < length <= _LENGTH_MAX:
        return [_unique_key_hash(*key) for key in keys]
    head = first[:-_TAIL_BYTES]
    tails = [
        key[-_TAIL_BYTES:]
        for other, key in keys
        if len(key) == length and other == topic and key.startswith(head)
    ]
    joined = b"".join(tails)
    if len(tails) < count or not joined.isascii() or not head.isascii():
        return [_unique_key_hash(*key) for key in keys]
    return _tail_hashes(_topic_part(topic, length) + _head_part(head), joined)


def _tail_hashes(base: int, tails: bytes) -> Sequence[int]:
    """
    Return the hashes, without their sign, of texts that end in every eight characters.

    `base` is what the characters in front of them count. Neighbours are joined pairwise, all of all
    keys at once, in lanes that are twice as wide each time and that no sum overflows.
    """
    count = len(tails) // _TAIL_BYTES
    if count > _TOGETHER_MAX:
        step = _TOGETHER_MAX * _TAIL_BYTES
        pieces = (tails[start : start + step] for start in range(0, len(tails), step))
        return [value for piece in pieces for value in _tail_hashes(base, piece)]
    low_1, low_2, low_4, ones, positive, unpack = _lanes_of(count)
    lanes = int.from_bytes(tails, "big")
    lanes = ((lanes >> 8) & low_1) * 31 + (lanes & low_1)
    lanes = ((lanes >> 16) & low_2) * 31**2 + (lanes & low_2)
    lanes = ((lanes >> 32) & low_4) * 31**4 + (lanes & low_4)
    lanes = (lanes + base * ones) & low_4
    signs = lanes >> 31 & ones
    lanes = (lanes ^ signs * _MASK) + signs & positive  # as _unsigned
    return unpack(lanes.to_bytes(_TAIL_BYTES * count, "big"))


class _Lanes(NamedTuple):
    """What as many keys as it is made for take: masks of the low halves of lanes, and a one."""

    low_1: int
    low_2: int
    low_4: int
    #: in each lane of eight bytes
    ones: int
    positive: int
    #: reads the last lanes
    unpack: Callable[[bytes], tuple[int, ...]]


@lru_cache(maxsize=_TOGETHER_MAX)
def _lanes_of(count: int) -> _Lanes:
    """Return masks of the low halves of lanes for `count` keys, and what reads the last lanes."""
    low_1, low_2, low_4 = (
        int.from_bytes((b"\0" * half + b"\xff" * half) * (_TAIL_BYTES // (2 * half) * count), "big")
        for half in (1, 2, 4)
    )
    ones = low_4 // _MASK
    unpack = struct.Struct(f">{count}Q").unpack
    return _Lanes(low_1, low_2, low_4, ones, ones * _POSITIVE, unpack)


def _unique_key_hash(topic: str, key: bytes) -> int:
    """As :func:`_key_hash`, for keys that begin like others before."""
    length = len(key)
    if not _TAIL_BYTES < length <= _LENGTH_MAX or not key.isascii():
        return _key_hash(topic, key)
    tail: int = sum(map(mul, key[-_TAIL_BYTES:], _TAIL_WEIGHTS))
    value = _topic_part(topic, length) + _head_part(key[:-_TAIL_BYTES]) + tail & _MASK
    return value if value < _SIGN else _unsigned(value)


def _head_part(head: bytes) -> int:
    """Return what the beginning of a unique key contributes to the hash of the whole."""
    known = _heads.get(head)
    if known is not None:
        return known
    if len(_heads) >= _HEADS_MAX:
        _heads.clear()
    total: int = sum(map(mul, head, _WEIGHTS[len(head)]))
    _heads[head] = value = total * _POWERS[_TAIL_BYTES] & _MASK
    return value


def _unsigned(value: int) -> int:
    """Return ``Math.abs`` of 32 bits; the one number that has none becomes 0."""
    if value < _SIGN:
        return value
    return -value & _POSITIVE
