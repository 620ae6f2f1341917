"""Classes of characters that RE2 has names for: those of Perl and POSIX, Unicode's categories."""

from __future__ import annotations

import sys
import unicodedata
from functools import cache

#: first and last characters
Ranges = tuple[tuple[int, int], ...]

_DIGITS: Ranges = ((0x30, 0x39),)
_UPPER: Ranges = ((0x41, 0x5A),)
_LOWER: Ranges = ((0x61, 0x7A),)
_WORD: Ranges = (*_DIGITS, *_UPPER, (0x5F, 0x5F), *_LOWER)
POSIX_CLASSES: dict[str, Ranges] = {
    "alnum": (*_DIGITS, *_UPPER, *_LOWER),
    "alpha": (*_UPPER, *_LOWER),
    "ascii": ((0, 0x7F),),
    "blank": ((9, 9), (0x20, 0x20)),
    "cntrl": ((0, 0x1F), (0x7F, 0x7F)),
    "digit": _DIGITS,
    "graph": ((0x21, 0x7E),),
    "lower": _LOWER,
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((9, 0xD), (0x20, 0x20)),
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": (*_DIGITS, (0x41, 0x46), (0x61, 0x66)),
}
PERL_CLASSES: dict[str, Ranges] = {
    "d": _DIGITS,
    "s": ((9, 0xA), (0xC, 0xD), (0x20, 0x20)),
    "w": _WORD,
}
_CATEGORIES = frozenset(
    ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Me", "Mc", "Nd", "Nl", "No", "Zs", "Zl", "Zp", "Cc", "Cf",
     "Co", "Cs", "Pd", "Ps", "Pe", "Pc", "Po", "Sm", "Sc", "Sk", "So", "Pi", "Pf", "P", "S", "C",
     "Z", "L", "M", "N")
)  # fmt: skip


def complement(ranges: Ranges) -> Ranges:
    """Return all other characters."""
    found: list[tuple[int, int]] = []
    begin = 0
    for first, last in sorted(ranges):
        if first > begin:
            found.append((begin, first - 1))
        begin = max(begin, last + 1)
    if begin <= sys.maxunicode:
        found.append((begin, sys.maxunicode))
    return tuple(found)


@cache
def category(name: str) -> Ranges | None:
    """Return the characters of a category, None if RE2 knows none of that name."""
    if name == "Any":
        return ((0, sys.maxunicode),)
    if name not in _CATEGORIES:
        return None
    found: list[tuple[int, int]] = []
    for rune in range(sys.maxunicode + 1):
        of_rune = unicodedata.category(chr(rune))
        if not of_rune.startswith(name) or of_rune == "Cn":  # which is in no category of RE2
            continue
        if found and found[-1][1] == rune - 1:
            found[-1] = (found[-1][0], rune)
        else:
            found.append((rune, rune))
    return tuple(found)
