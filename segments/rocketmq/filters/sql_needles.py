"""What bytes the properties of a message must hold to make an SQL92 filter TRUE."""

from __future__ import annotations

import re

from logstore.segments.rocketmq.filters.sql_expressions import (
    Conjunction,
    Constant,
    Equality,
    Expression,
    Inclusion,
    Order,
    Property,
    TextMatch,
)
from logstore.segments.rocketmq.messages.properties import property_needle

__all__ = ["Needles", "needles_of"]

#: U+FFFD stands for bytes that are no text, and surrogates have none
_NO_TEXT = re.compile("[\ufffd\ud800-\udfff]")
#: one of these at least
Needles = frozenset[bytes]
#: looking for more than so many costs more than they save
_NEEDLES_MAX = 4


def needles_of(expression: Expression) -> Needles | None:
    """
    Return bytes of which a message's properties hold one at least, if they make it TRUE.

    None where nothing of the kind is known. An expression that is NULL, FALSE or fails is not TRUE
    either, so that it does not matter what else it says.
    """
    match expression:
        case Conjunction(is_any=True):
            together: Needles = frozenset()
            for operand in expression.operands:
                found = needles_of(operand)
                if found is None:
                    return None
                together |= found
            return _few(together)
        case Conjunction():
            return _best([needles_of(operand) for operand in expression.operands])
        case Equality():
            return _of_equality(expression.left, expression.right)
        case Order():  # NULL if one of them is
            return _best([_of_name(expression.left), _of_name(expression.right)])
        case Inclusion(operand=Property(name), is_negated=False):
            values = frozenset(_of_value(name, element) for element in expression.elements)
            return _few(values) or _of_name(expression.operand)
        case Inclusion() | TextMatch():  # not TRUE without the property
            return _of_name(expression.operand)
        case _:
            return None


def _of_equality(left: Expression, right: Expression) -> Needles | None:
    """Return what makes a property equal to a constant; two that are NULL are equal."""
    if isinstance(left, Constant):
        left, right = right, left
    if not isinstance(left, Property) or not isinstance(right, Constant) or right.value is None:
        return None
    if isinstance(right.value, str):
        return frozenset((_of_value(left.name, right.value),))
    return _of_name(left)  # one number is written in many ways


def _of_name(operand: Expression) -> Needles | None:
    return frozenset((property_needle(operand.name),)) if isinstance(operand, Property) else None


def _of_value(name: str, value: str) -> bytes:
    """Return how a property with this value begins, as far as it is sure to be text."""
    known = _NO_TEXT.split(value, 1)[0]
    return property_needle(name) + known.encode()


def _few(needles: Needles) -> Needles | None:
    return needles if len(needles) <= _NEEDLES_MAX else None


def _best(known: list[Needles | None]) -> Needles | None:
    """Return the needles that fewest messages hold, as far as one can tell."""
    found = [needles for needles in known if needles]
    if not found:
        return None
    return min(found, key=lambda needles: (len(needles), -min(map(len, needles))))
