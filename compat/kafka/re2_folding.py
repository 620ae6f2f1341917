"""
Letters that RE2/J takes for the same under ``(?i)``: those of either case, and some besides.

Source: ``com.google.re2j.Unicode.simpleFold``, ``CharClass.appendFoldedRange``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache

from logstore.compat.kafka.re2_classes import Ranges

#: those that are more than two, and those without an other that seem to have one
_ORBITS = (
    "Kk\u212a", "Ss\u017f", "\u00b5\u039c\u03bc", "\u00c5\u00e5\u212b", "\u00df\u1e9e", "\u0130",
    "\u0131", "\u01c4\u01c5\u01c6", "\u01c7\u01c8\u01c9", "\u01ca\u01cb\u01cc",
    "\u01f1\u01f2\u01f3", "\u0345\u0399\u03b9\u1fbe", "\u0392\u03b2\u03d0", "\u0395\u03b5\u03f5",
    "\u0398\u03b8\u03d1\u03f4", "\u039a\u03ba\u03f0", "\u03a0\u03c0\u03d6", "\u03a1\u03c1\u03f1",
    "\u03a3\u03c2\u03c3", "\u03a6\u03c6\u03d5", "\u03a9\u03c9\u2126", "\u1e60\u1e61\u1e9b",
)  # fmt: skip
_FOLDED_CATEGORIES = frozenset(("Lu", "Lt", "Mn"))
#: of whose letters only those are folded that stand above
_HALF_FOLDED = "Ll"
_FIRST, _LAST = 0x41, 0x1E943
#: what is above stands in classes for itself
_LAST_IN_CLASSES = 0x1044F


def same_letters(rune: int) -> frozenset[int]:
    """Return a letter and all that it is the same as."""
    return _orbits().get(rune, frozenset((rune,)))


def letters_besides(ranges: Ranges) -> Iterator[tuple[int, int]]:
    """Yield what letters of a class are the same as."""
    orbits, letters = _orbits(), _letters_in_classes()
    for first, last in ranges:
        for rune in letters[bisect_left(letters, first) : bisect_right(letters, last)]:
            yield from ((one, one) for one in orbits[rune])


def letters_besides_category(name: str, ranges: Ranges) -> Iterator[tuple[int, int]]:
    """Yield what letters of a category are the same as: RE2/J's tables know that of few of them."""
    if name in _FOLDED_CATEGORIES:
        yield from letters_besides(ranges)
    elif name == _HALF_FOLDED:
        for orbit in _ORBITS:
            yield from ((ord(one), ord(one)) for one in orbit if len(orbit) > 1)


@cache
def _orbits() -> dict[int, frozenset[int]]:
    """Return all letters that are the same as others, and which."""
    found = {ord(one): frozenset(map(ord, orbit)) for orbit in _ORBITS for one in orbit}
    for rune in range(_FIRST, _LAST + 1):
        other = _other_case(rune)
        if rune not in found and other not in found and other != rune:
            found[rune] = found[other] = frozenset((rune, other))
    return {rune: orbit for rune, orbit in found.items() if len(orbit) > 1}


@cache
def _letters_in_classes() -> list[int]:
    return sorted(rune for rune in _orbits() if rune <= _LAST_IN_CLASSES)


def _other_case(rune: int) -> int:
    """Return a letter of the other case, the letter itself where that is not one."""
    letter = chr(rune)
    for other in (letter.lower(), letter.upper(), letter.title()):
        if len(other) == 1 and other != letter:
            return ord(other)
    return rune
