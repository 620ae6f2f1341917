"""
JSON as RocketMQ writes it: fastjson's, which is not always JSON.

A Java map whose keys are no texts is written with bare keys: ``{0:12,1:7}``, and where they are
objects ``{{"brokerName":"a","queueId":0,"topic":"t"}:{...}}``. Text for people has a tab a level,
no space behind ``:`` and ``,``; arrays of numbers stay on one line. The two releases differ in what
they escape, and 4.x keeps a map with bare keys on one line but for its closing brace.

Read are both, JSON proper, and what fastjson lets pass besides: single quotes, bare names as keys,
superfluous commas.

====================  =====================================================================
Java                  here
====================  =====================================================================
object, map           dict, in the order in which it is written
key that is no text   int, bool, or :class:`ObjectKey`
list, set             list
array of numbers      tuple (read as a list)
====================  =====================================================================

Sources: fastjson 1.2.69 (``MapSerializer``, ``SerializeWriter``), fastjson2 2.0.59.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from math import isinf
from typing import Any, cast

from logstore.errors import LogStoreError
from logstore.segments.rocketmq.settings.release import Release

DEPTH_MAX = 64
INT_DIGITS_MAX = 40

_SPACE = re.compile(r"[ \t\r\n\f\v\x08\ufeff]*")
_COMMAS = re.compile(r"[ \t\r\n\f\v\x08,]*")
_NUMBER = re.compile(
    rf"-?[0-9]{{1,{INT_DIGITS_MAX}}}(?:\.[0-9]{{1,400}})?(?:[eE][+-]?[0-9]{{1,4}})?"
)
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
#: a map of numbers by bare numbers, as tables of offsets hold them by the thousand
_NUMBERS = re.compile(
    r"\{(?>\s*-?[0-9]{1,19}:-?[0-9]{1,19}\s*,)*\s*-?[0-9]{1,19}:-?[0-9]{1,19}\s*\}"
)
_PAIR = re.compile(r"(-?[0-9]+):(-?[0-9]+)")
_PLAIN = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_LITERALS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
_ESCAPES = {
    "b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "v": "\v",
    '"': '"', "'": "'", "\\": "\\", "/": "/",
    **{str(digit): chr(digit) for digit in range(8)},
}  # fmt: skip
_HEX = {"u": re.compile(r"[0-9a-fA-F]{4}"), "x": re.compile(r"[0-9a-fA-F]{2}")}

_SHORT = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_OLD_SPECIALS = (*range(0x7F, 0xA0), 0x2028, 0x2029)
_ESCAPED = {
    Release.V5: {code: f"\\u{code:04x}" for code in range(32)} | _SHORT,
    Release.V4: {code: f"\\u{code:04X}" for code in (*range(32), *_OLD_SPECIALS)} | _SHORT,
}


class JsonError(LogStoreError, ValueError):
    """A text is not what fastjson reads."""


class ObjectKey(tuple[tuple[str, Any], ...]):
    """The key of a map whose keys are objects: the object's fields, as pairs of name and value."""

    __slots__ = ()

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> ObjectKey:
        """Return the key with these fields, sorted by name as Java writes them."""
        return cls(sorted(fields.items()))

    def fields(self) -> dict[str, Any]:
        """Return the fields by name."""
        return dict(self)


def parse_json(text: str) -> Any:
    """
    Return what `text` says: dicts, lists, texts, numbers, booleans, None.

    Bare numeric keys become int, ``true`` and ``false`` bool, objects :class:`ObjectKey`; quoted
    keys stay texts, whatever they look like.

    Raises:
        JsonError: the text is no JSON, or nested more than 64 deep.

    """
    try:
        return _parse_proper(text)
    except (ValueError, RecursionError):
        pass  # not JSON proper, or wrong: read it by fastjson's rules, and say where it goes wrong
    parser = _Parser(text)
    value = parser.value(0)
    parser.skip_space()
    if parser.position < len(text):
        raise parser.error("the end")
    return value


def _parse_proper(text: str) -> Any:
    """
    Return what JSON proper says, in a tenth of the time that the rules of fastjson take.

    Raises:
        ValueError, RecursionError: it may be something else; the slow way knows.

    """
    text.encode()  # halves of characters, which fastjson joins with escaped ones
    value = json.loads(
        text, strict=False, parse_int=_int, parse_float=_float, parse_constant=_refused
    )
    level: list[Any] = [value]
    for _ in range(DEPTH_MAX + 1):
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below.extend(cast("dict[str, Any]", one).values())
            elif isinstance(one, list):
                below.extend(cast("list[object]", one))
        if not below:
            return value
        level = below
    raise ValueError("nested too deep")


def _int(digits: str) -> int:
    if len(digits) > INT_DIGITS_MAX:
        raise ValueError("too many digits")
    return int(digits)


def _float(digits: str) -> float:
    match = _NUMBER.fullmatch(digits)
    if match is None or isinf(value := float(digits)):
        raise ValueError("too large")
    return value


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


class _Parser:
    """Reads one text from front to back."""

    __slots__ = ("position", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def error(self, expected: str) -> JsonError:
        found = self.text[self.position : self.position + 20]
        return JsonError(f"character {self.position}: expected {expected}, found {found!r}")

    def skip_space(self) -> None:
        self._skip(_SPACE)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.position)
        assert match is not None, "the pattern matches nothing, too"
        self.position = match.end()

    def _next(self) -> str:
        self.skip_space()
        return self.text[self.position : self.position + 1]

    def _take(self, character: str) -> None:
        if self._next() != character:
            raise self.error(repr(character))
        self.position += 1

    def value(self, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise self.error(f"no more than {DEPTH_MAX} levels")
        first = self._next()
        if first == "{":
            return self._object(depth)
        if first == "[":
            return self._array(depth)
        if first in ('"', "'") and first:
            return self._string(first)
        return self._bare()

    def _bare(self) -> Any:
        """Read a number or one of the three names."""
        match = _NUMBER.match(self.text, self.position)
        if match is not None:
            digits = match.group()
            value = int(digits) if digits.lstrip("-").isdigit() else float(digits)
            if isinf(value):
                raise self.error("a number that is not too large")
            self.position = match.end()
            return value
        match = _NAME.match(self.text, self.position)
        if match is None or match.group() not in _LITERALS:
            raise self.error("a value")
        self.position = match.end()
        return _LITERALS[match.group()]

    def _array(self, depth: int) -> list[Any]:
        self._take("[")
        found: list[Any] = []
        self._skip(_COMMAS)
        while self._next() != "]":
            found.append(self.value(depth + 1))
            self._separator("]")
        self.position += 1
        return found

    def _object(self, depth: int) -> dict[Any, Any]:
        numbers = _NUMBERS.match(self.text, self.position)
        if numbers is not None:
            self.position = numbers.end()
            pairs: list[tuple[str, str]] = _PAIR.findall(numbers.group())
            return {int(key): int(value) for key, value in pairs}
        self._take("{")
        found: dict[Any, Any] = {}
        self._skip(_COMMAS)
        while self._next() != "}":
            key = self._key(depth)
            self._take(":")
            found[key] = self.value(depth + 1)
            self._separator("}")
        self.position += 1
        return found

    def _separator(self, end: str) -> None:
        """Pass over commas; without any, the end must be here."""
        if self._next() == ",":
            self._skip(_COMMAS)
        elif self._next() != end:
            raise self.error(f"',' or {end!r}")

    def _key(self, depth: int) -> Any:
        first = self._next()
        if first in ('"', "'") and first:
            return self._string(first)
        if first == "{":
            if depth >= DEPTH_MAX:
                raise self.error(f"no more than {DEPTH_MAX} levels")
            return _hashable(self._object(depth + 1))
        match = _NAME.match(self.text, self.position)
        if match is not None and match.group() not in _LITERALS:
            self.position = match.end()
            return match.group()
        return self._bare()

    def _string(self, quote: str) -> str:
        self.position += 1
        parts: list[str] = []
        plain = _PLAIN[quote]
        while True:
            start = self.position
            self._skip(plain)
            parts.append(self.text[start : self.position])
            ending = self.text[self.position : self.position + 1]
            if not ending:
                raise self.error(f"a closing {quote}")
            self.position += 1
            if ending == quote:
                return _joined_surrogates("".join(parts))
            parts.append(self._escaped())

    def _escaped(self) -> str:
        kind = self.text[self.position : self.position + 1]
        self.position += 1
        if kind in _ESCAPES:
            return _ESCAPES[kind]
        match = _HEX[kind].match(self.text, self.position) if kind in _HEX else None
        if match is None:
            self.position -= 1
            raise self.error("an escape")
        self.position = match.end()
        return chr(int(match.group(), 16))


def _hashable(value: Any) -> Any:
    """Return a value that can be (part of) a key."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return ObjectKey((name, _hashable(one)) for name, one in fields.items())
    if isinstance(value, list):
        return tuple(map(_hashable, cast("list[object]", value)))
    return value


def _joined_surrogates(text: str) -> str:
    """Join the halves of characters beyond 16 bits, which escapes hold apart."""
    if text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


# Writing.


def format_json(value: Any, release: Release = Release.V5, *, is_pretty: bool = False) -> bytes:
    """
    Return `value` as Java writes it: pretty into files, else into remoting bodies.

    Fields that are None are to be left out by the caller, as Java leaves them out. Half a
    character, which UTF-8 has no bytes for, becomes ``?``.
    """
    text = _Writer(release, is_pretty=is_pretty).text(value, 0)
    return text.encode("utf-8", "replace")


class _Writer:
    """Writes values of one release, pretty or not."""

    __slots__ = ("_escaped", "_is_old", "_is_pretty", "_scalars")

    def __init__(self, release: Release, *, is_pretty: bool) -> None:
        self._escaped = _ESCAPED[release]
        self._is_pretty = is_pretty
        self._is_old = release is Release.V4
        self._scalars: dict[type, Callable[[Any], str]] = {
            str: self._string,
            int: str,
            float: repr,
            bool: lambda value: "true" if value else "false",
            type(None): lambda _: "null",
        }

    def text(self, value: Any, depth: int) -> str:
        kind: type[Any] = value.__class__
        scalar = self._scalars.get(kind)
        if scalar is not None:
            return scalar(value)
        if issubclass(kind, Mapping):
            return self._map(value, depth)
        assert issubclass(kind, (list, tuple)), f"{value!r} is nothing that JSON has"
        return self._list(value, depth)

    def _string(self, value: str) -> str:
        return f'"{value.translate(self._escaped)}"'

    def _line(self, depth: int) -> str:
        return "\n" + "\t" * depth if self._is_pretty else ""

    def _list(self, items: Sequence[Any], depth: int) -> str:
        if not items:
            return "[]"
        is_inline = not self._is_pretty or isinstance(items, tuple)
        line, end = ("", "") if is_inline else (self._line(depth + 1), self._line(depth))
        parts = [self.text(item, depth + 1) for item in items]
        return f"[{line}{f',{line}'.join(parts)}{end}]"

    def _map(self, fields: Mapping[Any, Any], depth: int) -> str:
        if not fields:
            return "{}"
        line = self._line(depth + 1)
        parts: list[str] = []
        if {*map(type, fields), *map(type, fields.values())} == {int}:
            bare = "" if self._is_old else line
            pairs = f",{bare}".join([f"{key}:{value}" for key, value in fields.items()])
            return f"{{{bare}{pairs}{self._line(depth)}}}"
        for key, value in fields.items():
            text = str(value) if type(value) is int else self.text(value, depth + 1)
            if type(key) is str:
                parts.append(f'{line}"{key.translate(self._escaped)}":{text}')
            else:
                bare = "" if self._is_old else line
                parts.append(f"{bare}{self._key(key, depth + 1)}:{text}")
        return f"{{{','.join(parts)}{self._line(depth)}}}"

    def _key(self, key: Any, depth: int) -> str:
        return self._map(key.fields(), depth) if isinstance(key, ObjectKey) else self.text(key, 0)
