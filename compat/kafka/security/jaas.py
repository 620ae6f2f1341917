"""
The value of ``sasl.jaas.config``: one login module with its options.

::

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";

Words are letters, digits and ``. - _ $``; anything else stands in quotes, single or double, with
Java's escapes. Comments are C's and Java's. Source: ``JaasConfig``, ``java.io.StreamTokenizer``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from logstore.errors import LogStoreError

_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""
      (?P<space> \s+ | //[^\r\n]* | /\*.*?\*/ )
    | "(?P<double> (?: \\. | [^"\\\r\n] )*)"
    | '(?P<single> (?: \\. | [^'\\\r\n] )*)'
    | (?P<word> [A-Za-z0-9.\-_$\u00a0-\U0010ffff]+ )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(LogStoreError, ValueError):
    """A text is no JAAS configuration; what is wrong is said without any of its values."""


class LoginModule(NamedTuple):
    """The class, whether it must succeed, and its options."""

    name: str
    flag: str
    options: Mapping[str, str]


def parse_jaas(text: str) -> LoginModule:
    """
    Return the only login module of a configuration.

    Raises:
        JaasError: it is none, or has several.

    """
    tokens = _tokens(text)
    modules: list[LoginModule] = []
    while tokens:
        modules.append(_take_module(tokens))
    if len(modules) != 1:
        raise JaasError(f"has {len(modules)} login modules, and must have one")
    return modules[0]


class _Token(NamedTuple):
    """A word, quoted or not; or a sign, which is no word."""

    text: str
    is_word: bool


def _tokens(text: str) -> list[_Token]:
    """Return the tokens, the last one first."""
    found: list[_Token] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        assert kind is not None, "every alternative is named"
        if kind in ("double", "single"):
            found.append(_Token(_ESCAPE.sub(_unescaped, match[kind]), is_word=True))
        elif kind != "space":
            found.append(_Token(match[kind], is_word=kind == "word"))
    return found[::-1]


def _unescaped(match: re.Match[str]) -> str:
    text = match[1]
    return chr(int(text, 8)) if text.isdigit() and text < "8" else _ESCAPED.get(text, text)


def _take_module(tokens: list[_Token]) -> LoginModule:
    name = tokens.pop()
    if not name.is_word:
        raise JaasError(f"must begin with the class of a login module, not with {name.text!r}")
    if not tokens:
        raise JaasError("has no control flag behind the login module")
    flag = tokens.pop().text.lower()
    if flag not in _FLAGS:
        raise JaasError(f"must have one of {', '.join(_FLAGS)} behind the login module")
    options: dict[str, str] = {}
    while tokens:
        key = tokens.pop()
        if key.text == ";" and not key.is_word:
            return LoginModule(name.text, flag, options)
        if len(tokens) < 2 or tokens.pop() != _Token("=", is_word=False) or not tokens[-1].is_word:
            raise JaasError(f"has no value for the option {key.text if key.is_word else '?'}")
        options[key.text] = tokens.pop().text
    raise JaasError("must end with a semicolon")
