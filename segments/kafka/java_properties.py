r"""
Java's properties text: ``meta.properties`` and ``server.properties`` are written in it.

``key=value``, ``key: value`` or ``key value`` a line; ``#`` and ``!`` start comment lines; a line
that ends in an odd number of backslashes goes on in the next one, whose leading white space does
not count; ``\t \n \r \f \uXXXX`` are characters, a backslash before any other character vanishes.
The last of several equal keys counts. Files are ISO-8859-1 where Java reads bytes.

Source: ``java.util.Properties``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from logstore.errors import LogStoreError

_NEWLINE = re.compile(r"\r\n|\r|\n")
_BLANK = " \t\f"
_KEY_END = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.|$)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = str.maketrans(
    {
        "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f",
        "=": "\\=", ":": "\\:", "#": "\\#", "!": "\\!",
    }
)  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class PropertiesError(LogStoreError, ValueError):
    r"""A ``\u`` in properties text is not followed by four hexadecimal digits."""


def parse_properties(text: str) -> dict[str, str]:
    """Return the values by key, in the order of the text. Raises PropertiesError."""
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        key_match = _KEY_END.match(line)
        assert key_match is not None, "a pattern that matches nothing too always matches"
        key_end = key_match.end()
        separator = _SEPARATOR.match(line, key_end)
        assert separator is not None, "a pattern that matches nothing too always matches"
        found[_unescaped(line[:key_end])] = _unescaped(line[separator.end() :])
    return found


def format_properties(properties: Mapping[str, str], *, wall_ms: int, comment: str = "") -> str:
    """Return the text that Java writes: the comment, the date in UTC, then a line a property."""
    lines = [f"#{comment}", f"#{_java_date(wall_ms)}"]
    lines += [f"{_escaped_key(key)}={_escaped_value(value)}" for key, value in properties.items()]
    return "".join(f"{line}\n" for line in lines)


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines with continuations joined, without comments, blank lines and indentation."""
    pending: str | None = None
    for natural in _NEWLINE.split(text):
        line = natural.lstrip(_BLANK)
        if pending is None:
            if not line or line[0] in "#!":
                continue
        else:
            line = pending + line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending = line[:-1]
        else:
            pending = None
            if line:
                yield line
    if pending:
        yield pending


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        if escape == "u":
            raise PropertiesError(f"malformed \\u in {text!r}")
        return _ESCAPED.get(escape, escape)

    return _ESCAPE.sub(character, text) if "\\" in text else text


def _escaped_key(key: str) -> str:
    return key.translate(_WRITTEN).replace(" ", "\\ ")


def _escaped_value(value: str) -> str:
    escaped = value.translate(_WRITTEN)
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _java_date(wall_ms: int) -> str:
    """Return ``Sat Nov 21 03:40:42 UTC 2026``: no locale, no time zone of the machine."""
    moment = _EPOCH + timedelta(milliseconds=wall_ms)
    day, month = _DAYS[moment.weekday()], _MONTHS[moment.month - 1]
    return f"{day} {month} {moment:%d %H:%M:%S} UTC {moment.year}"
