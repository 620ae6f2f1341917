"""
The parts of a compiled SQL92 filter, with Java's three-valued logic.

Each part is evaluated over the properties of one message and gives a value, None for NULL. Only
TRUE lets a message through (``org.apache.rocketmq.filter.expression``).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import ClassVar, Protocol

import attrs

from logstore.segments.rocketmq.filters.sql_values import Value, compare, double_of, equals

__all__ = [
    "BooleanConstant",
    "Conjunction",
    "Constant",
    "Equality",
    "Expression",
    "Inclusion",
    "Negation",
    "Negative",
    "Order",
    "Ordering",
    "Property",
    "TextMatch",
    "TextRelation",
    "Truth",
]


class Expression(Protocol):
    """A part of an expression."""

    #: whether it can give nothing but TRUE, FALSE and NULL (``BooleanExpression``)
    is_boolean: ClassVar[bool]

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        """
        Return the value over these properties.

        Raises:
            SqlEvaluationError: a string cannot be read as the number it is compared with.

        """
        ...


@attrs.frozen
class Constant:
    """A string or number as it is written."""

    is_boolean: ClassVar[bool] = False
    value: Value

    def evaluate(self, properties: Mapping[str, str]) -> Value:  # noqa: ARG002
        """Return the constant."""
        return self.value


@attrs.frozen
class BooleanConstant(Constant):
    """``TRUE``, ``FALSE`` or ``NULL``."""

    is_boolean: ClassVar[bool] = True


@attrs.frozen
class Property:
    """The value of a message's property, NULL without it."""

    is_boolean: ClassVar[bool] = False
    name: str

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        """Return the property."""
        return properties.get(self.name)


@attrs.frozen
class Negative:
    """``-x``: NULL of what is no number."""

    is_boolean: ClassVar[bool] = False
    operand: Expression

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        """Return the number with the other sign."""
        value = self.operand.evaluate(properties)
        if value is None or isinstance(value, (str, bool)):
            return None
        return -value


@attrs.frozen
class Truth:
    """A bare property where a condition is asked for: FALSE if it is there, for it is a string."""

    is_boolean: ClassVar[bool] = True
    operand: Property

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        """Return NULL or FALSE."""
        return None if self.operand.evaluate(properties) is None else False


@attrs.frozen
class Negation:
    """``NOT x``."""

    is_boolean: ClassVar[bool] = True
    operand: Expression

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        """Return the opposite, NULL of NULL."""
        value = self.operand.evaluate(properties)
        return None if value is None else not value


@attrs.frozen
class Conjunction:
    """
    ``a AND b AND ...``, or with `is_any` ``a OR b OR ...``.

    A chain of any length is one part, so that a long one needs no deep calls.
    """

    is_boolean: ClassVar[bool] = True
    operands: tuple[Expression, ...]
    is_any: bool

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        """Stop at the operand that decides; NULL if none does and one is NULL."""
        is_any, is_unknown = self.is_any, False
        for operand in self.operands:
            value = operand.evaluate(properties)
            if value is None:
                is_unknown = True
            elif value is is_any:
                return is_any
        return None if is_unknown else not is_any


@attrs.frozen
class Equality:
    """``a = b``, and ``a IS NULL`` as equality with NULL."""

    is_boolean: ClassVar[bool] = True
    left: Expression
    right: Expression

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        """Return NULL if only the left one is NULL, FALSE if only the right one is."""
        left = self.left.evaluate(properties)
        right = self.right.evaluate(properties)
        if left is None:
            return True if right is None else None
        return right is not None and equals(left, right)


class Ordering(enum.Enum):
    """The relations of order."""

    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="


@attrs.frozen
class Order:
    """``a < b`` and its like; two strings are compared as doubles."""

    is_boolean: ClassVar[bool] = True
    left: Expression
    ordering: Ordering
    right: Expression

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        """Return NULL if one of them is NULL; the right one is not asked if the left one is."""
        left = self.left.evaluate(properties)
        if left is None:
            return None
        right = self.right.evaluate(properties)
        if right is None:
            return None
        if isinstance(left, str) and isinstance(right, str):
            answer = compare(double_of(left), double_of(right))
        else:
            answer = compare(left, right)
        match self.ordering:
            case Ordering.BELOW:
                return answer < 0
            case Ordering.AT_MOST:
                return answer <= 0
            case Ordering.ABOVE:
                return answer > 0
            case Ordering.AT_LEAST:
                return answer >= 0


@attrs.frozen
class Inclusion:
    """``property [NOT] IN ('a', 'b')``."""

    is_boolean: ClassVar[bool] = True
    operand: Property
    elements: frozenset[str]
    is_negated: bool

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        """Return NULL without the property."""
        value = self.operand.evaluate(properties)
        return None if value is None else (value in self.elements) is not self.is_negated


class TextRelation(enum.Enum):
    """How a text may relate to another."""

    CONTAINS = "CONTAINS"
    STARTS_WITH = "STARTSWITH"
    ENDS_WITH = "ENDSWITH"


@attrs.frozen
class TextMatch:
    """
    ``x [NOT] CONTAINS 'text'`` and its like.

    FALSE, and negated FALSE too, for an empty text and for an x that is NULL or no string.
    """

    is_boolean: ClassVar[bool] = True
    operand: Expression
    relation: TextRelation
    search: str
    is_negated: bool

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        """Return TRUE or FALSE, never NULL."""
        if not self.search:
            return False
        value = self.operand.evaluate(properties)
        if not isinstance(value, str):
            return False
        match self.relation:
            case TextRelation.CONTAINS:
                found = self.search in value
            case TextRelation.STARTS_WITH:
                found = value.startswith(self.search)
            case TextRelation.ENDS_WITH:
                found = value.endswith(self.search)
        return found is not self.is_negated
