"""
What a pattern is once it has been read, and a machine that tells what fits it.

The machine follows all ways through a pattern at once, so that a text takes as long as it is long,
whatever repeats in the pattern what repeats. Where it is after a text is a set of states; a set and
the next character lead to the next set, which is worked out once and then remembered.

A state is a node that is to be matched, how often a repeated one has been, and the state behind it.
States are made as they are reached: ``a{1000}`` is a thousand of them only for a text as long.

Source: ``com.google.re2j.Machine`` follows all ways, too; R. Cox, "Regular Expression Matching Can
Be Simple And Fast", remembers sets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import ClassVar

import attrs

from logstore.compat.kafka.re2_classes import Ranges, complement

#: The state behind everything: all has matched.
_DONE = 0
_SETS_MAX = 1024
_WORD = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


@attrs.frozen(eq=False)
class Characters:
    """One character of a class, whose ranges are in order and apart."""

    firsts: list[int]
    lasts: list[int]
    may_be_empty: ClassVar[bool] = False

    def has(self, char: str) -> bool:
        """Tell whether a character is one of them."""
        rune = ord(char)
        at = bisect_right(self.firsts, rune) - 1
        return at >= 0 and rune <= self.lasts[at]


@attrs.frozen(eq=False)
class Place:
    """A place between characters: ``b``, ``B``, begin or end of the text or of a line."""

    kind: str
    may_be_empty: ClassVar[bool] = False  # as it is so in some places only

    def is_between(self, before: str, after: str) -> bool:
        """Tell whether it is between two characters; none is an empty text."""
        match self.kind:
            case "begin":
                return not before
            case "end":
                return not after
            case "line begin":
                return before in {"", "\n"}
            case "line end":
                return after in {"", "\n"}
            case _:
                return ((before in _WORD) != (after in _WORD)) == (self.kind == "b")


@attrs.frozen(eq=False)
class Then:
    """One thing and then another."""

    first: Node
    then: Node
    may_be_empty: bool


@attrs.frozen(eq=False)
class Either:
    """One of several things."""

    options: tuple[Node, ...]
    may_be_empty: bool


@attrs.frozen(eq=False)
class Repeated:
    """A thing at least, and at most, so many times; without an end if that is None."""

    node: Node
    least: int
    most: int | None

    @property
    def may_be_empty(self) -> bool:
        """Tell whether an empty text fits, wherever it is."""
        return self.least == 0


@attrs.frozen(eq=False)
class Nothing:
    """What an empty text fits."""

    may_be_empty: ClassVar[bool] = True


Node = Characters | Place | Then | Either | Repeated | Nothing


def characters(ranges: Ranges) -> Characters:
    """Return a class; ranges may be in any order and overlap."""
    in_order_and_apart = complement(complement(ranges))
    return Characters(
        [first for first, _ in in_order_and_apart], [last for _, last in in_order_and_apart]
    )


def in_order(nodes: Iterable[Node]) -> Node:
    """Return one thing after the other."""
    found: Node | None = None
    for node in reversed(list(nodes)):
        if found is None:
            found = node
        else:
            found = Then(node, found, node.may_be_empty and found.may_be_empty)
    return Nothing() if found is None else found


def one_of(options: Iterable[Node]) -> Node:
    """Return one of several things."""
    several = tuple(options)
    if len(several) == 1:
        return several[0]
    return Either(several, any(option.may_be_empty for option in several))


def repeated(node: Node, least: int, most: int | None) -> Node:
    """
    Return a thing at least, and at most, so many times.

    What may be empty need not be there at all. ``(a{0,5}){0,7}`` is ``a{0,35}``, whose counts are
    fewer.
    """
    if node.may_be_empty:
        least = 0
        if isinstance(node, Repeated):
            both = None if node.most is None or most is None else node.most * most
            return Nothing() if 0 in {node.most, most} else Repeated(node.node, 0, both)
    return Repeated(node, least, most)


@attrs.define(eq=False)
class _Set:
    """Where the machine may be: states that nothing has been done for yet, and what was read."""

    states: frozenset[int]
    #: a character of the kind of the last one; none at the begin
    before: str
    following: dict[str, _Set] = attrs.field(factory=dict[str, "_Set"])
    #: that a text that ends here fits
    is_end: bool | None = None


class Machine:
    """Tells what fits a pattern as a whole."""

    def __init__(self, node: Node) -> None:
        #: node, how often it has been repeated, state behind; the first is never looked at
        self._states: list[tuple[Node, int, int]] = [(node, 0, _DONE)]
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._sets: dict[tuple[frozenset[int], str], _Set] = {}
        self._start = _Set(frozenset((self._state(node, 0, _DONE),)), "")

    def fits(self, text: str) -> bool:
        """Tell whether a text fits, in a time that grows with its length alone."""
        at = self._start
        for char in text:
            following = at.following.get(char)
            if following is None:
                following = self._read(at, char)
            if not following.states:
                return False
            at = following
        if at.is_end is None:
            at.is_end = _DONE in self._reached(at, "")
        return at.is_end

    def _read(self, at: _Set, char: str) -> _Set:
        """Return where a character leads."""
        states: set[int] = set()
        for state in self._reached(at, char):
            node, _, behind = self._states[state]
            if state != _DONE and isinstance(node, Characters) and node.has(char):
                states.add(behind)
        key = (frozenset(states), _kind_of(char))
        if len(self._sets) >= _SETS_MAX:  # rather once more than without end
            self._sets.clear()
            self._start.following.clear()
        found = self._sets.setdefault(key, _Set(*key))
        at.following[char] = found
        return found

    def _reached(self, at: _Set, after: str) -> set[int]:
        """Return the states from which only a character leads on, or none does."""
        seen = set(at.states)
        reached: set[int] = set()
        counts: dict[tuple[int, int], int] = {}
        waiting = sorted(seen, reverse=True)
        while waiting:
            state = waiting.pop()
            node, count, behind = self._states[state]
            if state == _DONE or isinstance(node, Characters):
                reached.add(state)
                continue
            if isinstance(node, Repeated) and count >= node.least:
                # Who has repeated it more often can do nothing that the others cannot.
                if counts.get((id(node), behind), count + 1) <= count:
                    continue
                counts[id(node), behind] = count
            following = self._following(node, count, behind, (at.before, after))
            waiting += [state for state in following if state not in seen]
            seen.update(following)
        return reached

    def _following(self, node: Node, count: int, behind: int, around: tuple[str, str]) -> list[int]:
        """Return where a state leads to without a character."""
        match node:
            case Then():
                return [self._state(node.first, 0, self._state(node.then, 0, behind))]
            case Either():
                return [self._state(option, 0, behind) for option in node.options]
            case Repeated():
                return self._repeated(node, count, behind)
            case Place():
                return [behind] if node.is_between(*around) else []
            case _:
                return [behind]

    def _repeated(self, node: Repeated, count: int, behind: int) -> list[int]:
        found = [behind] if count >= node.least else []
        if node.most is None:
            again = self._state(node, min(count + 1, node.least), behind)
            found.append(self._state(node.node, 0, again))
        elif count < node.most:
            found.append(self._state(node.node, 0, self._state(node, count + 1, behind)))
        return found

    def _state(self, node: Node, count: int, behind: int) -> int:
        key = (id(node), count, behind)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._states)
            self._states.append((node, count, behind))
        return number


def _kind_of(char: str) -> str:
    """Return one character for all that places do not tell apart."""
    return char if char == "\n" else "w" if char in _WORD else " "
