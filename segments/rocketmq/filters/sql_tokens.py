"""The words of a SQL92 filter expression, as RocketMQ's lexer takes them apart."""

from __future__ import annotations

import re

import attrs

from logstore.errors import LogStoreError

__all__ = ["SqlSyntaxError", "Token", "TokenKind", "TokenReader"]

#: "keyword", "symbol", "integer", "float", "string", "name" or "end"
TokenKind = str

_KEYWORDS = frozenset(
    (
        "NOT",
        "AND",
        "OR",
        "BETWEEN",
        "IN",
        "TRUE",
        "FALSE",
        "NULL",
        "IS",
        "CONTAINS",
        "STARTSWITH",
        "ENDSWITH",
    )
)
_SPACE = re.compile(
    # A line comment needs its line end: without one ``--`` is two minus signs.
    r"(?:[ \t\n\r\f]|--[^\n\r]*(?:\r\n|\n|\r)|/\*[^*]*\*(?:\*|[^*/][^*]*\*)*/)*"
)
_TOKEN = re.compile(
    r"""
      (?P<float>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)? | \.[0-9]+(?:[eE][+-]?[0-9]+)?
               | [0-9]+[eE][+-]?[0-9]+)
    | (?P<integer>0|[1-9][0-9]*[lL]?)
    | (?P<string>'(?:''|[^'])*')
    | (?P<name>[a-zA-Z_$][a-zA-Z0-9_$]*)
    | (?P<symbol><>|>=|<=|[=<>(),+-])
    """,
    re.VERBOSE,
)


class SqlSyntaxError(LogStoreError):
    """A filter expression is none: what is wrong, and where in it."""

    def __init__(self, expression: str, position: int, reason: str) -> None:
        shown = expression if len(expression) <= 200 else f"{expression[:200]}..."
        super().__init__(f"filter expression {shown!r}: position {position}: {reason}")
        self.position = position
        self.reason = reason


@attrs.frozen
class Token:
    """One word; `text` is as it is written, keywords in capitals."""

    kind: TokenKind
    text: str
    position: int


class TokenReader:
    """
    Takes an expression apart, one token ahead at most.

    What stands behind the end of the grammar is never looked at, and may be anything: Java's
    parser does not ask for the end of the text.
    """

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self._end = 0
        self._ahead: Token | None = None

    @property
    def token(self) -> Token:
        """
        The next token, not yet taken.

        Raises:
            SqlSyntaxError: no token starts there.

        """
        if self._ahead is None:
            self._ahead = self._read()
        return self._ahead

    def take(self) -> Token:
        """Take the next token."""
        token = self.token
        self._ahead = None
        return token

    def take_if(self, *texts: str) -> Token | None:
        """Take the next token if it is one of these keywords or symbols."""
        token = self.token
        if token.kind in ("keyword", "symbol") and token.text in texts:
            return self.take()
        return None

    def expect(self, *texts: str) -> Token:
        """Take one of these keywords or symbols; raises SqlSyntaxError at anything else."""
        found = self.take_if(*texts)
        if found is None:
            raise self.error(f"{' or '.join(texts)} expected, not {self.token.text!r}")
        return found

    def error(self, reason: str) -> SqlSyntaxError:
        """Return an error about the next token."""
        position = self._end if self._ahead is None else self._ahead.position
        return SqlSyntaxError(self.expression, position, reason)

    def _read(self) -> Token:
        space = _SPACE.match(self.expression, self._end)
        start = self._end if space is None else space.end()
        if start == len(self.expression):
            return Token("end", "the end", start)
        found = _TOKEN.match(self.expression, start)
        if found is None:
            raise SqlSyntaxError(
                self.expression, start, f"no word starts with {self.expression[start]!r}"
            )
        self._end = found.end()
        kind, text = str(found.lastgroup), found.group()
        if kind == "name" and text.upper() in _KEYWORDS:
            return Token("keyword", text.upper(), start)
        return Token(kind, text, start)
