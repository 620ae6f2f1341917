"""What may be different between two answers: each excuse says where and why."""

from __future__ import annotations

import re
from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn_rocketmq.plain import is_accident
from tests.interop.drawn_rocketmq.request import Request

SYSTEM_ERROR = 1
ROUTES = frozenset((Code.GET_ROUTEINFO_BY_TOPIC, Code.GET_BROKER_CLUSTER_INFO))
#: what Java's own library objects to
_STUMBLES = re.compile(
    r"java\.lang\.(NullPointerException|IllegalArgumentException: Illegal Capacity"
    r"|NumberFormatException|ArrayIndexOutOfBoundsException|IndexOutOfBoundsException"
    r"|NegativeArraySizeException|ClassCastException)|com\.alibaba\.fastjson"
)
#: From this version on clients are told of acting masters.
VERSION_5 = 413
#: Lists that Java makes of tables of hashes: their order says nothing.
SHUFFLED = frozenset(
    ("topicList", "groupList", "lockOKMQSet", "connectionSet", "consumerIdList", "queueTimeSpanSet",
     "messageQueueAssignments", "brokerDatas", "queueDatas", "filterList")
)  # fmt: skip


def excused(request: Request, ours: Any, real: Any) -> list[str]:
    """Return what is different between plain answers and has no excuse, a line each."""
    if isinstance(ours, str) or isinstance(real, str):
        return [] if ours == real else [f"{_short(ours)} instead of {_short(real)}"]
    if real["code"] == ours["code"] and is_accident(real["remark"]):
        # What Java says of an exception names a class and a line of it.
        ours, real = ours | {"remark": ""}, real | {"remark": ""}
    if request.serializer:
        # Ours answers in the form of the request, a real one always in that of its own setting.
        ours = ours | {"serializer": real["serializer"]}
    if ours["code"] == SYSTEM_ERROR and ours["remark"].startswith("the custom field <"):
        return []  # ours names the field that is wrong; Java goes on with null or 0
    if real["code"] == SYSTEM_ERROR and _STUMBLES.match(real["remark"]):
        return []  # Java did not look at a field, and its own library did
    if request.code in ROUTES and request.version < VERSION_5:
        real = without(real, "enableActingMaster")
        ours = without(ours, "enableActingMaster")
    return differences(ours, real, "")


def without(value: Any, name: str) -> Any:
    """Return a value that has no member of this name anywhere."""
    if isinstance(value, dict):
        return {key: without(one, name) for key, one in value.items() if key != name}
    return [without(one, name) for one in value] if isinstance(value, list) else value


def differences(ours: Any, real: Any, path: str) -> list[str]:
    """Return where two values differ, a line each."""
    if isinstance(ours, dict) and isinstance(real, dict):
        found = []
        for name in sorted(set(ours) | set(real)):
            mine, other = ours.get(name, "(nothing)"), real.get(name, "(nothing)")
            found += differences(mine, other, f"{path}.{name}")
        return found
    if isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        if path.rpartition(".")[2] in SHUFFLED:
            ours, real = sorted(ours, key=repr), sorted(real, key=repr)
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
