"""
SQL92 filter expressions: from text to something that can be evaluated.

The grammar, loosest binding first; keywords in any case, ``--`` and ``/* */`` comments::

    or          and {OR and}
    and         equality {AND equality}
    equality    comparison {= comparison | <> comparison | IS [NOT] NULL}
    comparison  unary {< unary | <= unary | > unary | >= unary
                      | [NOT] CONTAINS string | [NOT] STARTSWITH string | [NOT] ENDSWITH string
                      | [NOT] BETWEEN unary AND unary | [NOT] IN (string {, string})}
    unary       + unary | - unary | NOT unary | literal | name | ( or )

NOT binds tighter than ``>``: ``NOT a > 1`` is an error, ``NOT (a > 1)`` is meant. As in Java,
whatever stands behind a whole expression is not looked at. (``SelectorParser.jj``)
"""

from __future__ import annotations

import math
from functools import lru_cache

from logstore.segments.rocketmq.filters.sql_expressions import (
    BooleanConstant,
    Conjunction,
    Constant,
    Equality,
    Expression,
    Inclusion,
    Negation,
    Negative,
    Order,
    Ordering,
    Property,
    TextMatch,
    TextRelation,
    Truth,
)
from logstore.segments.rocketmq.filters.sql_tokens import TokenReader
from logstore.segments.rocketmq.filters.sql_values import Long, compare

__all__ = ["compile_sql"]

#: parentheses, signs and NOTs may be nested so deep
NESTING_MAX = 80
#: so many links may chains such as ``a = b = c`` have beyond their first, all together
LINKS_MAX = 100
_CACHED_MAX = 100
_INT_MAX = (1 << 31) - 1
_LONG_MAX = (1 << 63) - 1
_NULL = BooleanConstant(None)
_WORDS = {"TRUE": BooleanConstant(True), "FALSE": BooleanConstant(False), "NULL": _NULL}
_ORDERINGS = {ordering.value: ordering for ordering in Ordering}
_RELATIONS = {relation.value: relation for relation in TextRelation}


@lru_cache(maxsize=_CACHED_MAX)
def compile_sql(expression: str) -> Expression:
    """
    Return the compiled expression; the last hundred are kept.

    Raises:
        SqlSyntaxError: it is none, compares what cannot be compared, or is nested deeper than
            `NESTING_MAX`.

    """
    parser = _Parser(TokenReader(expression))
    return parser.condition(parser.any_of())


class _Parser:
    """Recursive descent; a method a rule."""

    def __init__(self, reader: TokenReader) -> None:
        self.reader = reader
        self.depth = 0
        self.links = 0

    def condition(self, part: Expression) -> Expression:
        """Return what can be TRUE or FALSE, or refuse (``asBooleanExpression``)."""
        if part.is_boolean:
            return part
        if isinstance(part, Property):
            return Truth(part)
        raise self.reader.error("what stands before cannot be true or false")

    def any_of(self) -> Expression:
        """Parse a chain of OR."""
        first = self.all_of()
        if self.reader.take_if("OR") is None:
            return first
        parts = [self.condition(first), self.condition(self.all_of())]
        while self.reader.take_if("OR"):
            parts.append(self.condition(self.all_of()))
        return Conjunction(tuple(parts), is_any=True)

    def all_of(self) -> Expression:
        """Parse a chain of AND."""
        first = self.equality()
        if self.reader.take_if("AND") is None:
            return first
        parts = [self.condition(first), self.condition(self.equality())]
        while self.reader.take_if("AND"):
            parts.append(self.condition(self.equality()))
        return Conjunction(tuple(parts), is_any=False)

    def equality(self) -> Expression:
        """Parse =, <> and IS NULL."""
        left = self.comparison()
        reader = self.reader
        links = 0
        while found := reader.take_if("=", "<>", "IS"):
            links = self._link(links)
            if found.text == "IS":
                is_negated = reader.take_if("NOT") is not None
                reader.expect("NULL")
                equal: Expression = Equality(left, _NULL)
            else:
                is_negated = found.text == "<>"
                equal = self._equal(left, self.comparison())
            left = Negation(equal) if is_negated else equal
        return left

    def _equal(self, left: Expression, right: Expression) -> Expression:
        for part in (left, right):
            if isinstance(part, Constant) and part.value is None:
                raise self.reader.error("NULL cannot be compared; say IS NULL")
        is_mixed = isinstance(right, Constant) and not right.is_boolean
        if is_mixed and isinstance(left, BooleanConstant):
            raise self.reader.error(f"{left.value} cannot be compared with a string or a number")
        return Equality(left, right)

    def comparison(self) -> Expression:
        """Parse the relations of order, BETWEEN, IN and the relations of texts."""
        left = self.unary()
        reader = self.reader
        links = 0
        while True:
            if found := reader.take_if("<", "<=", ">", ">="):
                left = self._order(left, _ORDERINGS[found.text], self.unary())
            else:
                is_negated = reader.take_if("NOT") is not None
                if found := reader.take_if("CONTAINS", "STARTSWITH", "ENDSWITH"):
                    left = TextMatch(left, _RELATIONS[found.text], self._string(), is_negated)
                elif reader.take_if("BETWEEN"):
                    left = self._between(left, is_negated)
                elif reader.take_if("IN"):
                    left = self._inclusion(left, is_negated)
                elif is_negated:
                    raise reader.error("CONTAINS, STARTSWITH, ENDSWITH, BETWEEN or IN expected")
                else:
                    return left
            links = self._link(links)

    def _order(self, left: Expression, ordering: Ordering, right: Expression) -> Expression:
        for part in (left, right):
            is_number = isinstance(part, Constant) and type(part.value) in (int, Long, float)
            if part.is_boolean or (isinstance(part, Constant) and not is_number):
                raise self.reader.error(f"only numbers and properties go beside {ordering.value}")
        return Order(left, ordering, right)

    def _between(self, value: Expression, is_negated: bool) -> Expression:
        low = self.unary()
        self.reader.expect("AND")
        high = self.unary()
        if is_negated:
            below = self._order(value, Ordering.BELOW, low)
            return Conjunction((below, self._order(value, Ordering.ABOVE, high)), is_any=True)
        at_least = self._order(value, Ordering.AT_LEAST, low)
        at_most = self._order(value, Ordering.AT_MOST, high)
        if isinstance(low, Constant) and isinstance(high, Constant):
            # Both are numbers: anything else was refused just now.
            assert low.value is not None
            assert high.value is not None
            if compare(high.value, low.value) < 0:
                raise self.reader.error(f"BETWEEN {low.value} AND {high.value} is upside down")
        return Conjunction((at_least, at_most), is_any=False)

    def _inclusion(self, left: Expression, is_negated: bool) -> Expression:
        self.reader.expect("(")
        elements = {self._string()}
        while self.reader.take_if(","):
            elements.add(self._string())
        self.reader.expect(")")
        if not isinstance(left, Property):
            raise self.reader.error("only a property can be IN a list")
        return Inclusion(left, frozenset(elements), is_negated)

    def unary(self) -> Expression:
        """Parse signs and NOT, literals, names and what is in parentheses."""
        self._nest()
        try:
            reader = self.reader
            found = reader.take_if("+", "-", "NOT", "(")
            if found is None:
                return self._primary()
            if found.text == "(":
                inner = self.any_of()
                reader.expect(")")
                return inner
            operand = self.unary()
            if found.text == "NOT":
                return Negation(self.condition(operand))
            return Negative(operand) if found.text == "-" else operand
        finally:
            self.depth -= 1

    def _primary(self) -> Expression:
        reader = self.reader
        token = reader.token
        match token.kind:
            case "string":
                return Constant(self._string())
            case "integer":
                return Constant(self._integer(token.text.rstrip("lL")))
            case "float":
                return Constant(self._float(token.text))
            case "name":
                return Property(reader.take().text)
            case "keyword" if token.text in _WORDS:
                return _WORDS[reader.take().text]
            case _:
                raise reader.error(f"a value expected, not {token.text!r}")

    def _integer(self, text: str) -> int:
        value = int(text) if len(text) < 20 else _LONG_MAX + 1
        if value > _LONG_MAX:
            raise self.reader.error(f"{text} is above {_LONG_MAX}")
        self.reader.take()
        return value if value <= _INT_MAX else Long(value)

    def _float(self, text: str) -> float:
        value = float(text)
        # Java asks for at least the least positive double: not even zero may be written so.
        if math.isinf(value) or value == 0:
            raise self.reader.error(f"{text} is no double above zero")
        self.reader.take()
        return value

    def _string(self) -> str:
        if self.reader.token.kind != "string":
            raise self.reader.error(f"a string expected, not {self.reader.token.text!r}")
        return self.reader.take().text[1:-1].replace("''", "'")

    def _nest(self) -> None:
        self.depth += 1
        if self.depth > NESTING_MAX:
            raise self.reader.error(f"nested deeper than {NESTING_MAX}")

    def _link(self, links: int) -> int:
        """Count one more link of a chain that has `links`; return how many it has then."""
        self.links += links > 0
        if self.links > LINKS_MAX:
            raise self.reader.error(f"more than {LINKS_MAX} comparisons in chains")
        return links + 1
