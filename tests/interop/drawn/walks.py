"""
Whether both brokers walk through names that they have made up in the same order.

Java deals things out in the order of its tables of hashes or of the names, and so does ours; each
has the order of the names that it has made up itself. Where two names stand in the same order at
both, the answers can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.interop.drawn.pair import Pair

#: of the tables of up to twelve keys
_SLOTS = 16
_MASK, _MASK_64, _FIBONACCI = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF, 0x9E37_79B9_7F4A_7C15
#: of tables that remember what was (up to two keys, up to five)
_TIMELINE_BITS = (1, 2)


def are_members_alike(known: Iterable[Any], fresh: Any) -> bool:
    """Tell whether a member stands before and behind the same others at both."""
    return all(_is_alike(_of_member, one, fresh) for one in known)


def are_topics_alike(one: Any, other: Any) -> bool:
    """Tell whether one topic's id is before the other's at both, or behind it at both."""
    return _is_alike(_of_topic, one, other)


def _is_alike(places_of: Callable[[Any], list[Any]], one: Any, other: Any) -> bool:
    if not isinstance(one, Pair) and not isinstance(other, Pair):
        return True
    sides = []
    for side in (0, 1):
        first, second = (it[side] if isinstance(it, Pair) else it for it in (one, other))
        pairs = zip(places_of(first), places_of(second), strict=True)
        sides.append([(mine > its) - (mine < its) for mine, its in pairs])
    return sides[0] == sides[1] and sides[0][0] != 0


def _of_member(member_id: str) -> list[Any]:
    hashed = 0
    for character in member_id:
        hashed = (31 * hashed + ord(character)) & _MASK
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    spread = signed * _FIBONACCI & _MASK_64
    return [_slot(hashed), member_id, *(spread >> (64 - bits) for bits in _TIMELINE_BITS)]


def _of_topic(topic_id: bytes) -> list[int]:
    halves = [int.from_bytes(topic_id[at : at + 8], "big", signed=True) for at in (0, 8)]
    mixed = (halves[0] ^ halves[1]) & _MASK_64
    return [_slot((mixed >> 32) ^ (mixed & _MASK)), halves[0]]


def _slot(hashed: int) -> int:
    hashed &= _MASK
    return (hashed ^ (hashed >> 16)) & (_SLOTS - 1)
