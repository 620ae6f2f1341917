"""
Nulls where the protocol allows none are refused before a handler sees them.

The message library reads a null array or string (length -1) wherever it comes; Kafka reads it only
into fields whose schema has ``nullableVersions``, and closes the connection over any other.
"""

from __future__ import annotations

from functools import cache
from typing import Any


def find_null(message: Any, version: int) -> str | None:
    """Return the name of a field that is null and must not be, or None where all is well."""
    for name, is_nullable, is_struct, is_array in _fields(message.__class__, version):
        value = getattr(message, name)
        if value is None:
            if not is_nullable:
                return name
        elif is_struct:
            entries = value if is_array else (value,)
            for entry in entries:
                found = find_null(entry, version)
                if found is not None:
                    return f"{name}.{found}"
        elif is_array and None in value:
            return f"{name}[{value.index(None)}]"
    return None


@cache
def _fields(kind: Any, version: int) -> list[tuple[str, bool, bool, bool]]:
    """Return (name, may be null, holds structs, is an array) of what is on the wire."""
    return [
        (
            field.name,
            # The library reads the uuid of zeros as None.
            field.type_str == "uuid" or bool(field.nullable_for_version_q(version)),
            bool(field.is_struct() or field.is_struct_array()),
            bool(field.is_struct_array() or (field.is_array() and field.type_str != "[]uuid")),
        )
        for field in kind._struct.untagged_fields(version)
    ]
