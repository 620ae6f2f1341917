"""
Messages as JSON, as Kafka's generated ``JsonConverter`` classes and Jackson write them.

Fields stand in the order of the schema; those that the version does not have are left out, and so
are tagged ones with their default. Ids are URL-safe base64, bytes plain base64.
"""

from __future__ import annotations

import base64
import re
import uuid
from typing import TypeAlias, cast

from logstore.segments.kafka.internal_topics.schema import Message, fields_of
from logstore.segments.kafka.kafka_uuid import uuid_to_text
from logstore.tools.inspection.java_text import java_text

Node: TypeAlias = "dict[str, Node] | list[Node] | str | int | None"

_ESCAPED = re.compile(r'[\x00-\x1f"\\]')
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def message_node(message: Message, version: int) -> dict[str, Node]:
    """Return the members of a message in `version`."""
    members: dict[str, Node] = {}
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if version not in field.held:
            continue
        if field.held.tag is not None and value == field.make_default():
            continue
        members[field.java_name] = _node(value, version)
    return members


def _node(value: object, version: int) -> Node:
    if isinstance(value, Message):
        return message_node(value, version)
    if isinstance(value, tuple):
        return [_node(element, version) for element in cast(tuple[object, ...], value)]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, uuid.UUID):
        return uuid_to_text(value.bytes)
    if isinstance(value, str):
        return java_text(value.encode(errors="surrogateescape"))
    assert value is None or isinstance(value, int), f"{value!r} has no JSON form"
    return value


def json_text(node: Node) -> str:
    """Return the text of a node, without blanks, as Jackson's ``toString`` gives it."""
    if node is None:
        return "null"
    if isinstance(node, int):
        return str(node)
    if isinstance(node, str):
        return f'"{_ESCAPED.sub(_escaped, node)}"'
    if isinstance(node, list):
        return f"[{','.join(map(json_text, node))}]"
    return (
        f"{{{','.join(f'{json_text(name)}:{json_text(value)}' for name, value in node.items())}}}"
    )


def _escaped(found: re.Match[str]) -> str:
    letter = found[0]
    return _SHORT.get(letter) or f"\\u{ord(letter):04X}"
