"""Answers as JSON, whatever names the files have."""

from __future__ import annotations

import json

import orjson


def json_line(content: object) -> str:
    """Return compact JSON; what is no UTF-8, as a path may be, comes in escaped half characters."""
    try:
        return orjson.dumps(content).decode()
    except TypeError:  # lone surrogates, in which such text is held
        return json.dumps(content, separators=(",", ":"))
