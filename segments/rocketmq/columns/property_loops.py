"""The loops over the texts of properties: where the values stand that a scan wants to know."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logstore.segments.compiled.loops import Bytes, Int64s, Number, inlined, uncounted
from logstore.segments.compiled.machine_words import word
from logstore.segments.rocketmq.columns.kernel import (
    DELAY,
    KEYS,
    MULTI_DISPATCH,
    TAGS,
    TEXT,
    TEXT_BYTES,
    UNIQUE_KEY,
)

Words = NDArray[np.uint64]

#: how many texts of properties are kept to compare others with, and how many words they may have
SHAPES = 32
SHAPE_WORDS_MAX = 64
#: what is known of a shape: its size and where each of the values stands in it, and how long
SHAPE_PLACES = 11

_NAME_TAGS = np.frombuffer(b"TAGS", np.uint8)
_NAME_KEYS = np.frombuffer(b"KEYS", np.uint8)
_NAME_DELAY = np.frombuffer(b"DELAY", np.uint8)
_NAME_UNIQUE_KEY = np.frombuffer(b"UNIQ_KEY", np.uint8)
_NAME_MULTI_DISPATCH = np.frombuffer(b"INNER_MULTI_DISPATCH", np.uint8)
_HIGHEST = np.uint64(0x8080808080808080)
_THREES = np.uint64(0x0303030303030303)
_NONE, _ONE = np.uint64(0), np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@uncounted
def _has_name(source: Bytes, at: Number, name: Bytes) -> bool:
    for index in range(len(name)):  # noqa: SIM110
        if source[at + index] != name[index]:
            return False
    return True


@uncounted
def _note_property(
    source: Bytes, item: Number, separator: Number, end: Number, table: Int64s, row: Number
) -> None:
    """Take note of where a value stands, if anybody wants to know."""
    name_bytes = separator - item
    place: Number = -1
    if name_bytes == 4:
        if _has_name(source, item, _NAME_TAGS):
            place = TAGS
        elif _has_name(source, item, _NAME_KEYS):
            place = KEYS
    elif name_bytes == 5:
        if _has_name(source, item, _NAME_DELAY):
            place = DELAY
    elif name_bytes == 8:
        if _has_name(source, item, _NAME_UNIQUE_KEY):
            place = UNIQUE_KEY
    elif name_bytes == 20 and _has_name(source, item, _NAME_MULTI_DISPATCH):
        place = MULTI_DISPATCH
    if place >= 0:
        table[place, row] = separator + 1
        table[place + 1, row] = end - separator - 1


@uncounted
def _scan_text(source: Bytes, start: Number, end: Number, table: Int64s, row: Number) -> None:
    """Take note of the properties between `start` and `end`; of a name twice the last counts."""
    for place in (TAGS, KEYS, DELAY, UNIQUE_KEY, MULTI_DISPATCH):
        table[place, row] = start
        table[place + 1, row] = -1
    item = start
    separator: Number = -1
    for at in range(start, end):
        byte = source[np.uint64(at)]
        if byte == 2:
            if item < separator < at - 1:
                _note_property(source, item, separator, at, table, row)
            item = at + 1
            separator = -1
        elif byte == 1 and separator < 0:
            separator = at
    if item < separator < end - 1:
        _note_property(source, item, separator, end, table, row)


@inlined
def _last_word(source: Bytes, end: Number, size: Number) -> np.uint64:
    """Return the last `size` bytes, fewer than eight, before `end`: a record has more in front."""
    return word(source, end - 8) >> np.uint64(8 * (8 - size))


@inlined
def _separators(value: np.uint64) -> np.uint64:
    """Return a word with the highest bit of each byte set that is 0, 1 or 2."""
    return ~(((value | _HIGHEST) - _THREES) | value) & _HIGHEST


@uncounted
def _learn(
    source: Bytes, start: Number, size: Number, words: Words, masks: Words, first: Number
) -> bool:
    """
    Keep a text, and a mask of all its bytes but those of values, from word `first` on.

    False if there is a separator inside of a value, or a zero: others cannot be compared with it.
    """
    in_value = False
    value, mask = _NONE, _NONE
    for index in range(size):
        byte = np.uint64(source[start + index])
        shift = np.uint64(8 * (index & 7))
        if byte == np.uint64(2):
            in_value = False
        elif byte < np.uint64(2) and (in_value or byte == _NONE):
            return False
        value |= byte << shift
        if not in_value:
            mask |= np.uint64(255) << shift
        if byte == np.uint64(1):
            in_value = True
        if index & 7 == 7 or index == size - 1:
            words[first + (index >> 3)] = value
            masks[first + (index >> 3)] = mask
            value, mask = _NONE, _NONE
    return True


@inlined
def is_known(
    source: Bytes, start: Number, size: Number, words: Words, masks: Words, shapes: Int64s
) -> bool:
    """
    Tell whether a text has the names of the one that was kept of its size, at the same places.

    Nothing but values may differ, and these may hold no separators: eight bytes are compared in
    one step, where looking for separators takes one step a byte.
    """
    shape = size % SHAPES
    if shapes[shape, 0] != size:
        return False
    different = _NONE
    at, place = start, np.uint64(shape * SHAPE_WORDS_MAX)  # without a sign: it needs no look
    end = start + size
    while at + 8 <= end:
        value = word(source, at)
        mask = masks[place]
        different |= (value ^ words[place]) & mask | _separators(value) & ~mask
        at += 8
        place += _ONE
    if at < end:
        value = _last_word(source, end, end - at)
        mask = masks[place]
        past = _ALL << np.uint64(8 * (end - at))
        different |= (value ^ words[place]) & mask | _separators(value | past) & ~mask
    return bool(different == _NONE)


@inlined
def take_places(start: Number, size: Number, shapes: Int64s, table: Int64s, row: Number) -> None:
    """Take note of the properties of a text that is known."""
    shape = size % SHAPES
    for index in range(0, SHAPE_PLACES - 1, 2):
        table[TAGS + index, row] = shapes[shape, index + 1] + start
        table[TAGS + index + 1, row] = shapes[shape, index + 2]


@uncounted
def learn_places(
    source: Bytes, table: Int64s, row: Number, words: Words, masks: Words, shapes: Int64s
) -> None:
    """
    Take note of the properties of a row by looking at every byte, and keep the text.

    Texts of one producer look alike but for some values. `words` and `masks` keep the last one of
    a size, `shapes` says of each how long it is, -1 for none, and where its values stand.
    """
    start, size = np.int64(table[TEXT, row]), np.int64(table[TEXT_BYTES, row])
    _scan_text(source, start, start + size, table, row)
    if size <= 8 * SHAPE_WORDS_MAX:
        shape = size % SHAPES
        is_model = _learn(source, start, size, words, masks, shape * SHAPE_WORDS_MAX)
        shapes[shape, 0] = size if is_model else -1
        for index in range(0, SHAPE_PLACES - 1, 2):
            shapes[shape, index + 1] = table[TAGS + index, row] - start
            shapes[shape, index + 2] = table[TAGS + index + 1, row]
