"""
``ssl.principal.mapping.rules``: what of the name in a certificate is the user's name.

::

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L,RULE:^CN=(.*?),.*$/$1@example/,DEFAULT

The first rule that fits counts; ``L`` and ``U`` change the case, and ``DEFAULT`` takes the name as
it is. Patterns are Java's, and are read by the rules of Python, which differ in little.
Source: ``SslPrincipalMapper``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from logstore.errors import LogStoreError

DEFAULT = "DEFAULT"
_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(?:,\s*|$)")
_PARSER = re.compile(_RULE)
_GROUP = re.compile(r"\$(\d+)|\\(.)")


class MappingError(LogStoreError, ValueError):
    """Rules cannot be read, or none fits."""


class Rule(NamedTuple):
    """One rule; without a pattern it takes every name as it is."""

    pattern: re.Pattern[str] | None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """Return the user's name; None if the rule does not fit."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        found = self.pattern.sub(self._filled, name)
        return found.lower() if self.case == "L" else found.upper() if self.case == "U" else found

    def _filled(self, match: re.Match[str]) -> str:
        """Return the replacement with its groups; one that there is not stays as it is written."""
        count = match.re.groups

        def group(found: re.Match[str]) -> str:
            digits = found[1]
            if digits is None:
                return found[2]
            if not count:
                raise MappingError(f"a replacement has ${digits}, and its pattern no groups")
            number = int(digits)
            rest = ""
            while number > count and number >= 10:
                number, rest = number // 10, f"{number % 10}{rest}"
            if number > count:
                return found[0]
            return f"{match[number] or ''}{rest}"

        return _GROUP.sub(group, self.replacement)


def parse_rules(text: str) -> list[Rule]:
    """
    Return the rules of a setting.

    Raises:
        MappingError: one of them is none.

    """
    rules: list[Rule] = []
    for split in _SPLITTER.finditer(text.strip()):
        rule = split[1]
        match = _PARSER.match(rule)
        if match is None or match.end() != len(rule):
            raise MappingError(f"must be DEFAULT or RULE:pattern/replacement/[LU]; {rule!r} is not")
        if match[1] is not None:
            rules.append(Rule(None))
        elif match[2] is not None:
            try:
                rules.append(Rule(re.compile(match[2]), match[3], match[4]))
            except re.error as error:
                raise MappingError(f"has a pattern that is none, {match[2]!r}: {error}") from None
    return rules


def mapped(rules: list[Rule], name: str) -> str:
    """
    Return the user's name in the name of a certificate.

    Raises:
        MappingError: no rule fits.

    """
    for rule in rules:
        found = rule.apply(name)
        if found is not None:
            return found
    raise MappingError(f"no rule of ssl.principal.mapping.rules fits {name}")
