"""
Kafka's own schemas, read from its jar, encode and decode every message in every version.

They are the ones of the real broker that is asked beside ours, so that nothing of our decoders
stands between the two.
"""

from __future__ import annotations

import json
import re
import zipfile
from functools import cache
from typing import Any, NamedTuple

from logstore.tools.dev.kafka_peer import VERSION_4, fetch

_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_INTEGERS = ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64")
_SIMPLE = frozenset((*_INTEGERS, "string", "bytes", "records", "uuid"))
NOTHING = range(0)
ZERO_UUID = bytes(16)


def versions_of(text: str | None) -> range:
    """Read `3`, `1-4`, `2+` or `none` as Kafka writes them."""
    if text is None or text == "none":
        return NOTHING
    first, _, last = text.removesuffix("+").partition("-")
    if text.endswith("+"):
        return range(int(first), 32768)
    return range(int(first), int(last or first) + 1)


class Field(NamedTuple):
    """One field of a struct."""

    name: str
    #: a simple type's name, or that of a struct; of what is repeated the type of one
    type: str
    is_array: bool
    versions: range
    nullable: range
    tagged: range
    tag: int
    default: Any
    #: what a struct consists of, for a simple type nothing
    fields: tuple[Field, ...]
    #: where it is not the message's own
    flexible: range | None

    @property
    def is_struct(self) -> bool:
        """Tell whether it has fields itself."""
        return self.type not in _SIMPLE

    def initial(self, version: int) -> Any:
        """Return the value of a field that nobody has set."""
        if self.default == "null" and version in self.nullable:
            return None
        if self.is_array:
            return []
        if self.is_struct:
            return {one.name: one.initial(version) for one in self.fields}
        text = "" if self.default is None else str(self.default)
        if self.type == "string":
            return text
        if self.type in {"bytes", "records"}:
            return b""
        if self.type == "uuid":
            return ZERO_UUID
        if self.type == "bool":
            return text.lower() == "true"
        return float(text or 0) if self.type == "float64" else int(text or "0", 0)


class Schema(NamedTuple):
    """A request or response."""

    name: str
    key: int
    flexible: range
    fields: tuple[Field, ...]

    def is_flexible(self, version: int) -> bool:
        """Tell whether this version has tags and compact lengths."""
        return version in self.flexible


class Api(NamedTuple):
    """Both halves of an API."""

    key: int
    name: str
    request: Schema
    response: Schema


def _field(raw: dict[str, Any], common: dict[str, Any]) -> Field:
    kind = raw["type"]
    is_array = kind.startswith("[]")
    kind = kind.removeprefix("[]")
    below = raw.get("fields") or common.get(kind, {}).get("fields", [])
    flexible = raw.get("flexibleVersions")
    return Field(
        raw["name"],
        kind,
        is_array,
        versions_of(raw.get("versions") or raw.get("taggedVersions")),
        versions_of(raw.get("nullableVersions")),
        versions_of(raw.get("taggedVersions")),
        raw.get("tag", -1),
        raw.get("default"),
        () if kind in _SIMPLE else tuple(_field(one, common) for one in below),
        None if flexible is None else versions_of(flexible),
    )


def _schema(raw: dict[str, Any]) -> Schema:
    common = {one["name"]: one for one in raw.get("commonStructs", ())}
    fields = tuple(_field(one, common) for one in raw.get("fields", ()))
    return Schema(
        raw["name"], raw.get("apiKey", -1), versions_of(raw.get("flexibleVersions")), fields
    )


@cache
def messages() -> dict[str, Schema]:
    """Return every message of the release by its name, those on disk too."""
    found: dict[str, Schema] = {}
    for jar in fetch(VERSION_4).split(":"):
        if "/org/apache/kafka/" not in jar:
            continue
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                if entry.startswith("common/message/") and entry.endswith(".json"):
                    raw = json.loads(_COMMENT.sub("", archive.read(entry).decode()))
                    found[raw["name"]] = _schema(raw)
    return found


@cache
def apis() -> dict[str, Api]:
    """Return the APIs of the release by name."""
    known = messages()
    found = {}
    for name, request in known.items():
        if name.endswith("Request") and request.key >= 0:
            short = name.removesuffix("Request")
            found[short] = Api(request.key, short, request, known[f"{short}Response"])
    return found
