"""Attributes of topics and groups: what each takes, and changes of them (AttributeUtil)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError


@attrs.frozen
class OneOf:
    """One of these words, in the order of Java's set."""

    words: tuple[str, ...]
    is_changeable: bool = True

    def flaw(self, value: str) -> str | None:
        """Return what is wrong with a value."""
        return None if value in self.words else f"value is not in set: [{', '.join(self.words)}]"


@attrs.frozen
class Number:
    """A number within bounds."""

    low: int
    high: int = 2**63 - 1
    is_changeable: bool = True

    def flaw(self, value: str) -> str | None:
        """Return what is wrong with a value."""
        digits = value[1:] if value[:1] in ("-", "+") else value
        if not (digits.isascii() and digits.isdigit()):
            return f'For input string: "{value}"'
        is_within = self.low <= int(value) <= self.high
        return None if is_within else f"value is not in range({self.low}, {self.high})"


@attrs.frozen
class Text:
    """Any text."""

    is_changeable: bool = True

    def flaw(self, value: str) -> str | None:
        """Return what is wrong with a value: nothing ever."""
        del value
        return None


@attrs.frozen
class Switch:
    """True or false, in any case."""

    is_changeable: bool = True

    def flaw(self, value: str) -> str | None:
        """Return what is wrong with a value."""
        return None if value.lower() in ("true", "false") else "boolean attribute format is wrong."


Rules: TypeAlias = Mapping[str, OneOf | Number | Text | Switch]


def changed_attributes(
    current: Mapping[str, str], changes: Mapping[str, str], rules: Rules, *, is_new: bool
) -> dict[str, str]:
    """
    Return attributes after changes, whose names have a sign: ``+name`` sets one, ``-name`` ends it.

    Raises:
        RefusedError: SYSTEM_ERROR; a name or a value is none, or may not change.

    """
    for signed_name in changes:
        _check_name(signed_name, current, is_new=is_new)
    attributes = dict(current)
    for signed_name, value in changes.items():
        name = signed_name[1:]
        is_set = signed_name.startswith("+")
        _check_value(name, value, rules, is_new=is_new, is_set=is_set)
        if is_set:
            attributes[name] = value
        else:
            attributes.pop(name, None)
    return attributes


def _check_name(signed_name: str, current: Mapping[str, str], *, is_new: bool) -> None:
    name = signed_name[1:]
    flaw = None
    if not name or "+" in name or "-" in name:
        flaw = "kv string format wrong."
    elif signed_name.startswith("+"):
        return
    elif is_new:
        flaw = f"only add attribute is supported while creating topic. key: {name}"
    elif not signed_name.startswith("-"):
        flaw = f"wrong format key: {name}"
    elif name not in current:
        flaw = f"attempt to delete a nonexistent key: {name}"
    if flaw is not None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, flaw)


def _check_value(name: str, value: str, rules: Rules, *, is_new: bool, is_set: bool) -> None:
    rule = rules.get(name)
    if rule is None:
        flaw: str | None = f"unsupported key: {name}"
    elif not is_new and not rule.is_changeable:
        flaw = f"attempt to update an unchangeable attribute. key: {name}"
    else:
        flaw = rule.flaw(value) if is_set else None
    if flaw is not None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, flaw)
