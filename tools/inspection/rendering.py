"""
How findings are written: for people, or as JSON lines.

Both have the facts of Kafka's ``DumpLogSegments`` under its names and in its order. The text for
people shows times as ISO-8601 and quotes keys and values; the tool's own text is made by
:mod:`logstore.tools.inspection.kafka_dump`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import orjson

from logstore.tools.inspection.facts import (
    Decoded,
    Finding,
    MaybeOffset,
    Names,
    Payload,
    Problem,
    Timestamp,
    Value,
)
from logstore.tools.inspection.json_line import json_line
from logstore.tools.inspection.times import iso_time

Renderer = Callable[[Finding, str], str | None]
_JAVA_BOOLEANS = {True: "true", False: "false"}


def render_text(finding: Finding, path: str) -> str | None:
    """Return a line for people; problems are said elsewhere, on stderr."""
    del path
    if isinstance(finding, Problem):
        return None
    fields = finding.fields
    if finding.kind == "file":
        start = fields.get("startingOffset")
        suffix = "" if start is None else f"\nLog starting offset: {start}"
        return f"Dumping {fields['file']}{suffix}"
    if finding.kind == "empty":
        return f"{fields['file']} is empty."
    if finding.kind == "end":
        return f"Found {fields['invalidBytes']} invalid bytes at the end of {fields['name']}"
    pairs = [_text_pair(name, value) for name, value in fields.items()]
    return ("| " if finding.kind == "record" else "") + " ".join(pairs)


def _text_pair(name: str, value: Value) -> str:
    if isinstance(value, bool):
        return f"{name}: {_JAVA_BOOLEANS[value]}"
    if isinstance(value, Timestamp):
        return f"{value.type or name}: {'none' if value.ms == -1 else iso_time(value.ms)}"
    if isinstance(value, MaybeOffset):
        return f"{name}: {'none' if value.number is None else value.number}"
    if isinstance(value, Names):
        return f"{name}: [{', '.join(quoted(_raw(header)) for header, _ in value.headers)}]"
    if isinstance(value, Payload):
        return f"{name}: {quoted(value.data)}"
    if isinstance(value, Decoded):
        return f"{name}: {'null' if value.text is None else value.text}"
    return f"{name}: {value}"


def quoted(data: bytes | None, characters_max: int | None = None) -> str:
    """Return bytes as people can read them: a quoted text, 0x and hex digits, or null."""
    if data is None:
        return "null"
    text = _text_of(data)
    if text is None:
        shown, rest = f"0x{data.hex()}", len(data)
    else:
        shown, rest = orjson.dumps(text).decode(), len(text)
    if characters_max is not None and len(shown) > characters_max:
        return f"{shown[:characters_max]}... ({rest} {'bytes' if text is None else 'characters'})"
    return shown


def render_json(finding: Finding, path: str) -> str:
    """Return one JSON object; what is no text comes in base64, under ``<name>Base64``."""
    if isinstance(finding, Problem):
        problem = {"position": finding.position, "reason": finding.reason}
        return json_line({"kind": "problem", "file": finding.path, **problem})
    line: dict[str, Any] = {"kind": finding.kind, "file": path}
    for name, value in finding.fields.items():
        if isinstance(value, Timestamp):
            line[name] = None if value.ms == -1 else value.ms
            if value.type is not None:
                line["timestampType"] = value.type
        elif isinstance(value, MaybeOffset):
            line[name] = value.number
        elif isinstance(value, Names):
            line["headers"] = json_headers(value.headers)
        elif isinstance(value, Payload):
            line.update(json_bytes(name, value.data))
        elif isinstance(value, Decoded):
            line[name] = _decoded_node(value.text)
        else:
            line[name] = value
    return json_line(line)


def _decoded_node(text: str | None) -> Any:
    """Return the JSON that a decoder has made; what it could not read is a text."""
    if text is None or not text.startswith("{"):
        return text
    return orjson.loads(text)


def json_headers(headers: tuple[tuple[str, bytes | None], ...]) -> list[dict[str, str | None]]:
    """Return headers in order, as names repeat."""
    return [
        {**json_bytes("name", _raw(header)), **json_bytes("value", data)}
        for header, data in headers
    ]


def json_bytes(name: str, data: bytes | None) -> dict[str, str | None]:
    """Return bytes as text under `name`, or in base64 under a name that says so."""
    if data is None:
        return {name: None}
    text = _text_of(data)
    if text is None:
        return {f"{name}Base64": base64.b64encode(data).decode()}
    return {name: text}


def header_name(name: str) -> str:
    """Return the name of a header as people can read it: as it is, or 0x and hex digits."""
    return name if _text_of(_raw(name)) is not None else quoted(_raw(name))


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _text_of(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


RENDERERS: dict[str, Renderer] = {
    "text": render_text,
    "json": render_json,
}
