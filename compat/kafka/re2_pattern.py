"""
Patterns as RE2 reads them, by which clients choose topics and transactions.

A pattern is read as RE2/J does, with its errors in its order: ``\\d``, ``\\s`` and ``\\w`` are
ASCII, ``$`` is the very end, groups keep nothing. What RE2 does not know (looking around,
references back, possessive repetition) is refused. Scripts (``\\p{Greek}``) are not known here;
categories (``\\p{Lu}``) are. ``re2_machine`` tells what fits.

Source: ``com.google.re2j.Parser``.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache

import attrs

from logstore.compat.kafka.re2_classes import (
    PERL_CLASSES,
    POSIX_CLASSES,
    Ranges,
    category,
    complement,
)
from logstore.compat.kafka.re2_folding import (
    letters_besides,
    letters_besides_category,
    same_letters,
)
from logstore.compat.kafka.re2_machine import (
    Machine,
    Node,
    Place,
    characters,
    in_order,
    one_of,
    repeated,
)

_REPEAT_MAX = 1000
_REPEAT = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}", re.ASCII)
_NAMED = re.compile(r"\(\?P?<")
_NAME = re.compile(r"[A-Za-z0-9_]+")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_HEX = re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]+)\}")
_FLAGS = re.compile(r"\(\?([imsU]*)(-[imsU]+)?([:)])")
_CONTROLS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_PLACES = {"A": "begin", "b": "b", "B": "B", "z": "end"}
_LEAST_AND_MOST = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_ANY: Ranges = ((0, sys.maxunicode),)


class PatternError(Exception):
    """It is no pattern; the text is what RE2/J says of it."""


@attrs.define
class _Open:
    """What stands between a parenthesis, or the begin, and where the reader is."""

    #: the flags in front of it
    flags: frozenset[str]
    finished: list[Node] = attrs.field(factory=list[Node])
    #: of the alternative that is being read
    items: list[Node] = attrs.field(factory=list[Node])

    def node(self) -> Node:
        return one_of([*self.finished, in_order(self.items)])


@lru_cache(maxsize=64)
def compiled(pattern: str) -> Machine:
    """
    Return what tells what fits as RE2 would.

    Raises:
        PatternError: it is no pattern.

    """
    return Machine(_Parser(pattern).parsed())


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._flags: frozenset[str] = frozenset()
        self._open = [_Open(self._flags)]
        self._names: set[str] = set()

    def parsed(self) -> Node:
        """Return what has been read; raises PatternError."""
        was_repeat = False
        while self._at < len(self._text):
            was_repeat = self._step(was_repeat)
        if len(self._open) > 1:
            raise PatternError("missing closing )")
        return self._open[0].node()

    def _step(self, was_repeat: bool) -> bool:
        """Read one thing; return whether it repeats what stands before it."""
        char = self._text[self._at]
        if char in "*+?":
            self._at += 1
            self._repeat(_LEAST_AND_MOST[char], was_repeat)
            return True
        if char == "{":
            self._brace(was_repeat)
            return True  # even one that repeats nothing, behind which RE2/J takes no repetition
        if char == "(":
            self._parenthesis()
        elif char == "|":
            self._at += 1
            self._open[-1].finished.append(in_order(self._open[-1].items))
            self._open[-1].items.clear()
        elif char == ")":
            self._close()
        elif char == "[":
            self._put_class(self._class())
        elif char == "\\":
            self._backslash()
        else:
            self._at += 1
            self._plain(char)
        return False

    def _brace(self, was_repeat: bool) -> None:
        found = _REPEAT.match(self._text, self._at)
        self._at += 1 if found is None else len(found[0])
        if found is None:
            self._literal(ord("{"))
        else:
            self._repeat(_counted(found), was_repeat)

    def _plain(self, char: str) -> None:
        is_multi = "m" in self._flags
        if char == "^":
            self._put(Place("line begin" if is_multi else "begin"))
        elif char == "$":
            self._put(Place("line end" if is_multi else "end"))
        elif char == ".":
            self._put_class(_ANY if "s" in self._flags else complement(((10, 10),)))
        else:
            self._literal(ord(char))

    def _put(self, item: Node) -> None:
        self._open[-1].items.append(item)

    def _literal(self, rune: int) -> None:
        same = same_letters(rune) if "i" in self._flags else (rune,)
        self._put_class(tuple((one, one) for one in same))

    def _put_class(self, ranges: Ranges) -> None:
        self._put(characters(ranges))

    def _folded(self, ranges: Ranges, *, is_negative: bool = False) -> Ranges:
        """Return a class with letters that are the same, or what is not in that one."""
        if "i" in self._flags:
            ranges = (*ranges, *letters_besides(ranges))
        return complement(ranges) if is_negative else ranges

    def _repeat(self, how: tuple[int, int | None], was_repeat: bool) -> None:
        is_lazy = self._text.startswith("?", self._at)
        self._at += is_lazy
        if was_repeat:
            raise PatternError("invalid nested repetition operator")
        items = self._open[-1].items
        if not items:
            raise PatternError("missing argument to repetition operator")
        items[-1] = repeated(items[-1], *how)  # lazy or not: the whole must match

    # groups

    def _parenthesis(self) -> None:
        if not self._text.startswith("(?", self._at):
            self._at += 1
            self._open.append(_Open(self._flags))
            return
        if named := _NAMED.match(self._text, self._at):
            self._named(named.end())
            return
        found = _FLAGS.match(self._text, self._at)
        if found is None:
            raise PatternError("invalid or unsupported Perl syntax")
        self._at = found.end()
        if found[3] == ":":
            self._open.append(_Open(self._flags))
        self._flags = (self._flags | set(found[1])) - set(found[2] or "")

    def _named(self, start: int) -> None:
        end = self._text.find(">", start)
        name = self._text[start : max(end, start)]
        if end < 0 or not _NAME.fullmatch(name):
            raise PatternError("invalid named capture")
        if name in self._names:
            raise PatternError("duplicate capture group name")
        self._names.add(name)
        self._at = end + 1
        self._open.append(_Open(self._flags))

    def _close(self) -> None:
        if len(self._open) == 1:
            raise PatternError("regexp/syntax: internal error")
        self._at += 1
        closed = self._open.pop()
        self._flags = closed.flags
        self._put(closed.node())

    # what stands for a character or several

    def _backslash(self) -> None:
        kind = self._text[self._at + 1 : self._at + 2]
        if kind in _PLACES:
            self._at += 2
            self._put(Place(_PLACES[kind]))
        elif kind == "Q":
            end = self._text.find("\\E", self._at)
            quoted = self._text[self._at + 2 : end if end >= 0 else None]
            self._at += 4 + len(quoted)
            for char in quoted:
                self._literal(ord(char))
        elif (ranges := self._escaped_class()) is not None:
            self._put_class(ranges)
        else:
            self._literal(self._escaped())

    def _escaped_class(self) -> Ranges | None:
        """Read a class that begins with a backslash; return None, having read nothing, else."""
        kind = self._text[self._at + 1 : self._at + 2]
        if self._text[self._at : self._at + 1] != "\\":
            return None
        if kind and kind.lower() in PERL_CLASSES:
            self._at += 2
            return self._folded(PERL_CLASSES[kind.lower()], is_negative=kind.isupper())
        if kind not in {"p", "P"}:
            return None
        name = self._text[self._at + 2 : self._at + 3]
        end = self._at + 3
        if name == "{":
            end = self._text.find("}", end) + 1
            name = self._text[self._at + 3 : end - 1] if end else ""
        plain_name = name.removeprefix("^")
        ranges = category(plain_name) if name else None
        if ranges is None:
            raise PatternError("invalid character class range")
        self._at = end
        if "i" in self._flags:
            ranges = (*ranges, *letters_besides_category(plain_name, ranges))
        return complement(ranges) if (kind == "P") != name.startswith("^") else ranges

    def _escaped(self) -> int:
        """Read one character behind a backslash."""
        start = self._at + 1
        if start >= len(self._text):
            raise PatternError("trailing backslash at end of expression")
        char = self._text[start]
        self._at = start + 1
        if char in _CONTROLS:
            return _CONTROLS[char]
        if not (char.isascii() and char.isalnum()):
            return ord(char)
        if octal := _OCTAL.match(self._text, start):
            self._at = octal.end()
            return int(octal[0], 8)
        found = _HEX.match(self._text, start)
        if found is not None and (rune := int(found[1] or found[2], 16)) <= 0x10FFFF:
            self._at = found.end()
            return rune
        raise PatternError("invalid escape sequence")

    def _class(self) -> Ranges:
        """Read a class in brackets."""
        self._at += 1
        is_negative = self._text.startswith("^", self._at)
        self._at += is_negative
        ranges: list[tuple[int, int]] = []
        is_first = True
        while is_first or not self._text.startswith("]", self._at):
            is_first = False
            ranges += self._part_of_class()
        self._at += 1
        return complement(tuple(ranges)) if is_negative else tuple(ranges)

    def _part_of_class(self) -> Ranges:
        end = self._text.find(":]", self._at) if self._text.startswith("[:", self._at) else -1
        if end >= 0:
            name = self._text[self._at + 2 : end]
            named = POSIX_CLASSES.get(name.removeprefix("^"))
            if named is None:
                raise PatternError("invalid character class range")
            self._at = end + 2
            return self._folded(named, is_negative=name.startswith("^"))
        escaped = self._escaped_class()
        if escaped is not None:
            return escaped
        first = last = self._class_character()
        if self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
            self._at += 1
            last = self._class_character()
            if last < first:
                raise PatternError("invalid character class range")
        return self._folded(((first, last),))

    def _class_character(self) -> int:
        if self._at >= len(self._text):
            raise PatternError("missing closing ]")
        if self._text[self._at] == "\\":
            return self._escaped()
        self._at += 1
        return ord(self._text[self._at - 1])


def _counted(found: re.Match[str]) -> tuple[int, int | None]:
    first, comma, last = found.groups()
    numbers = [int(one) for one in (first, last) if one is not None]
    if max(numbers) > _REPEAT_MAX or numbers != sorted(numbers):
        raise PatternError("invalid repeat count")
    return numbers[0], None if comma and last is None else numbers[-1]
