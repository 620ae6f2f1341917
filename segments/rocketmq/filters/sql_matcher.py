"""
SQL92 filters over messages as they are stored, without reading what the expression does not name.

What a condition says of a property depends on its value alone, and values come again: the latest
answers are kept. Most messages need not be asked, for they lack a property or a value without which
the expression is not TRUE: many are looked through for those bytes at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import attrs

from logstore.segments.rocketmq.filters.record_properties import properties_place
from logstore.segments.rocketmq.filters.sql_expressions import (
    Conjunction,
    Equality,
    Expression,
    Inclusion,
    Negation,
    Negative,
    Order,
    Property,
    TextMatch,
    Truth,
)
from logstore.segments.rocketmq.filters.sql_needles import Needles, needles_of
from logstore.segments.rocketmq.filters.sql_parser import compile_sql
from logstore.segments.rocketmq.filters.sql_values import SqlEvaluationError
from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.properties import (
    PROPERTY_SEPARATOR,
    find_property,
    property_needle,
)

__all__ = ["SqlMatcher", "matcher_of", "matches_sql"]

_KEPT_MAX = 100
#: so many answers of a condition are kept, to values that are no longer
_ANSWERS_MAX, _KEPT_BYTES_MAX = 1024, 200
#: in longer messages it costs less to go to the properties than to look through all
_LOOKED_THROUGH_BYTES = 4096


def matches_sql(expression: Expression, properties: Mapping[str, str]) -> bool:
    """Tell whether these properties make `expression` TRUE; one that fails does not match."""
    try:
        return expression.evaluate(properties) is True
    except SqlEvaluationError:
        return False


@lru_cache(maxsize=_KEPT_MAX)
def matcher_of(expression: str) -> SqlMatcher:
    """
    Return what asks an expression about messages; the last hundred are kept.

    Raises:
        SqlSyntaxError: it is none.

    """
    return SqlMatcher(compile_sql(expression))


class SqlMatcher:
    """Asks one expression about the properties of messages."""

    __slots__ = ("_clue", "expression", "matches")

    def __init__(self, expression: Expression) -> None:
        self.expression = expression
        #: tells whether the text of a message's properties makes the expression TRUE
        self.matches, self._clue = _condition_of(expression)

    def matching_messages(
        self, data: bytes, starts: Sequence[int], ends: Sequence[int]
    ) -> Iterator[int]:
        """Yield the indexes of the stored messages that match; see ``MessageFilter``."""
        base, matches, clue = starts[0], self.matches, self._clue
        indexes: Iterable[int] = range(len(starts))
        if clue is not None and len(data) <= _LOOKED_THROUGH_BYTES * len(starts):
            indexes = clue.candidates(data, starts, ends)
        for index in indexes:
            try:
                start, end = properties_place(data, starts[index] - base, ends[index] - base)
            except CorruptMessageError:
                continue
            if matches(data[start:end]):
                yield index


@attrs.frozen
class _Clue:
    """
    What stands in every message that matches: one of `needles`.

    Each begins a value of one property, behind `name_bytes`, if there is an `answer` to it.
    """

    needles: Needles
    name_bytes: int
    answer: Callable[[bytes], bool] | None

    def candidates(self, data: bytes, starts: Sequence[int], ends: Sequence[int]) -> Iterable[int]:
        """Return the indexes of the messages that must be asked, in order."""
        found = [self._holding(data, needle, starts, ends) for needle in self.needles]
        return found[0] if len(found) == 1 else sorted({index for one in found for index in one})

    def _holding(
        self, data: bytes, needle: bytes, starts: Sequence[int], ends: Sequence[int]
    ) -> Iterator[int]:
        base, name_bytes, answer = starts[0], self.name_bytes, self.answer
        at = data.find(needle)
        while at >= 0:
            index = bisect_right(starts, at + base) - 1
            end = ends[index] - base
            holds = at + len(needle) <= end  # or it stands between two messages
            if holds and answer is not None:
                # A message ends with its properties, the last one perhaps without a separator.
                value_at = at + name_bytes
                value_end = data.find(PROPERTY_SEPARATOR, value_at, end)
                holds = answer(data[value_at : end if value_end < 0 else value_end])
            if holds:
                yield index
            at = data.find(needle, end if holds else at + len(needle))


def _condition_of(expression: Expression) -> tuple[Callable[[bytes], bool], _Clue | None]:
    """Return what tells whether an expression is TRUE of properties, and what to look for."""
    match expression:
        case Conjunction(operands=operands, is_any=False):  # TRUE if all of them are
            parts = [_condition_of(operand) for operand in operands]
            conditions = [condition for condition, _ in parts]
            clues = [clue for _, clue in parts if clue is not None]

            def are_true(text: bytes) -> bool:
                for condition in conditions:  # noqa: SIM110  # `all` takes twice as long
                    if not condition(text):
                        return False
                return True

            return are_true, min(clues, key=_rank, default=None)
        case _:
            pass
    names = tuple(dict.fromkeys(_names_of(expression)))
    name_needles = [property_needle(name) for name in names]
    needles = needles_of(expression)

    def answer(*values: bytes | None) -> bool:
        found = zip(names, values, strict=True)
        properties = {name: value.decode("utf-8", "replace") for name, value in found if value}
        return matches_sql(expression, properties)

    kept_answer = lru_cache(maxsize=_ANSWERS_MAX)(answer)
    if len(names) != 1:
        clue = _Clue(needles, 0, None) if needles else None
        return lambda text: answer(*(find_property(text, one) for one in name_needles)), clue
    (name_needle,) = name_needles

    def answer_one(value: bytes | None) -> bool:
        is_long = value is not None and len(value) > _KEPT_BYTES_MAX
        return answer(value) if is_long else kept_answer(value)

    clue = _Clue(needles, len(name_needle), answer_one) if needles else None
    return lambda text: answer_one(find_property(text, name_needle)), clue


def _rank(clue: _Clue) -> tuple[int, int]:
    """Return what is lowest for the clue that fewest messages have, as far as one can tell."""
    return len(clue.needles), -min(map(len, clue.needles))


def _names_of(expression: Expression) -> Iterator[str]:
    """Yield the names of the properties in an expression."""
    match expression:
        case Property():
            yield expression.name
        case Negative() | Negation() | Truth() | Inclusion() | TextMatch():
            yield from _names_of(expression.operand)
        case Conjunction():
            for operand in expression.operands:
                yield from _names_of(operand)
        case Equality() | Order():
            yield from _names_of(expression.left)
            yield from _names_of(expression.right)
        case _:
            return
