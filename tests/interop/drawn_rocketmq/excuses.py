"""What may be different between two answers: each excuse says where and why."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn_rocketmq.plain import is_accident
from tests.interop.drawn_rocketmq.request import Request


def excused(request: Request, ours: Any, real: Any) -> list[str]:
    """Return what is different between plain answers and has no excuse, a line each."""
    if isinstance(ours, str) or isinstance(real, str):
        return [] if ours == real else [f"{_short(ours)} instead of {_short(real)}"]
    if real["code"] == ours["code"] and is_accident(real["remark"]):
        # What Java says of an exception names a class and a line of it.
        ours, real = ours | {"remark": ""}, real | {"remark": ""}
    return differences(ours, real, "")


def differences(ours: Any, real: Any, path: str) -> list[str]:
    """Return where two values differ, a line each."""
    if isinstance(ours, dict) and isinstance(real, dict):
        found = []
        for name in sorted(set(ours) | set(real)):
            mine, other = ours.get(name, "(nothing)"), real.get(name, "(nothing)")
            found += differences(mine, other, f"{path}.{name}")
        return found
    if isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        if ours != real and sorted(map(repr, ours)) == sorted(map(repr, real)):
            return [f"{path}: in another order: {_short(ours)} instead of {_short(real)}"]
        return [
            line
            for number, (mine, other) in enumerate(zip(ours, real, strict=True))
            for line in differences(mine, other, f"{path}[{number}]")
        ]
    return [] if ours == real else [f"{path}: {_short(ours)} instead of {_short(real)}"]


def _short(value: Any) -> str:
    return f"{value!r:.600}"
