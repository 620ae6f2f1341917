"""What may be different between two answers: each excuse says where and why."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq.plain import is_accident
from tests.interop.drawn_rocketmq.request import PULLS, Request
from tests.interop.drawn_rocketmq.side import SILENT
from tests.interop.drawn_rocketmq.stumbles import SYSTEM_ERROR, is_forgotten, is_stumbled_over

NOTHING = {"remark": "", "fields": {}}
NO_REMARK = {"remark": ""}
#: members that are left out
MEMBERS: dict[int, tuple[str, ...]] = {
    # A group that has committed nothing waits since the year 1970 in Java. The texts are those of
    # times, and each broker has its own.
    Code.QUERY_CONSUME_TIME_SPAN: (
        "delayTime", "minTimeStampStr", "maxTimeStampStr", "consumeTimeStampStr"
    ),
    # That of any broker, of those that are there.
    Code.GET_SYSTEM_TOPIC_LIST_FROM_NS: ("brokerAddr",),
    # Looking for messages makes a light queue in Java.
    Code.GET_PARENT_TOPIC_INFO: ("lmqNum", "liteTopicCount"),
    # Keys that Java makes for messages are longer. And of pulls it keeps subscriptions of its own.
    Code.QUERY_CONSUME_QUEUE: ("physicOffset", "physicSize", "subVersion"),
}  # fmt: skip
REFUSED_SETTINGS = ("maxMessageSize=", "messageDelayLevel ", "fileReservedTime=")
#: the revive queue of what is popped in order, in a handle
_ORDERED = " 999 "
#: who reads half messages
_CHECKS = "CID_RMQ_SYS_TRANS"
_IN_SETS = re.compile(r"\.clusterAddrTable\.|\.groupTopicMap\.")
NO_ADDRESS = "cannot find addr for broker "
#: both mean that nothing was ever put there
EMPTY = {"NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE"}
#: Lists that Java makes of tables of hashes: their order says nothing.
SHUFFLED = frozenset(
    ("topicList", "groupList", "lockOKMQSet", "connectionSet", "consumerIdList", "queueTimeSpanSet",
     "messageQueueAssignments", "consumeStatsList", "brokerDatas", "queueDatas", "filterList",
     "groups", "subscriber", "liteTopicSet")
)  # fmt: skip


def excused(request: Request, ours: Any, real: Any) -> list[str]:
    """Return what is different between plain answers and has no excuse, a line each."""
    if isinstance(ours, str) or isinstance(real, str):
        if ours == real or (real == SILENT and is_forgotten(request)):
            return []
        if _is_looked_at(request, ours, real):
            return []
        return [f"{_short(ours)} instead of {_short(real)}"]
    if real["code"] == ours["code"] and is_accident(real["remark"]):
        # What Java says of an exception names a class and a line of it.
        ours, real = ours | NOTHING, real | NOTHING
    ours, real = (_without_place(request, one, side) for side, one in enumerate((ours, real)))
    if request.serializer:
        # Ours answers in the form of the request, a real one always in that of its own setting.
        # In this one a text of no length is none.
        ours = ours | {"serializer": real["serializer"]}
        real = real | {"fields": {name: one for name, one in real["fields"].items() if one}}
    if is_stumbled_over(request, ours, real) or _is_told_otherwise(request, ours, real):
        return []
    names = MEMBERS.get(request.code, ())
    if request.code == Code.CHANGE_MESSAGE_INVISIBLETIME and _ORDERED in str(request.fields):
        # What is popped in order is put off from now on: it is told how long that is after the pop.
        names = ("invisibleTime",)
    for name in names:
        ours, real = without(ours, name), without(real, name)
    if adjust := ADJUSTED.get(request.code):
        ours, real = adjust(ours, real)
    return differences(ours, real, "")


def _without_place(request: Request, answer: Any, side: int) -> Any:
    """Return an answer without the place that was asked for, where it is another in each log."""
    place = (request.fields or {}).get("offset")
    if not isinstance(place, Pair):
        return answer
    return answer | {"remark": answer["remark"].replace(str(place[side]), "PLACE")}


def _is_looked_at(request: Request, *told: Any) -> bool:
    """
    Tell whether a pull waits on one side, and on the other is answered that nothing matches.

    Each looks every five seconds at who waits, and then does not ask what a pull filters by.
    """
    remarks = [one if isinstance(one, str) else one["remark"] for one in told]
    return request.code in PULLS and sorted(remarks) == ["NO_MATCHED_MESSAGE", SILENT]


def _is_told_otherwise(request: Request, ours: Any, real: Any) -> bool:
    """Tell whether both say the same in other words, or ours says what Java does not."""
    remarks = {ours["remark"], real["remark"]}
    if request.code in PULLS and remarks == EMPTY:
        # A real broker has the files of a queue as soon as somebody asks for its end; and one of
        # batches begins nowhere then.
        ours, real = (without(one, "minOffset") | NO_REMARK for one in (ours, real))
        return not differences(ours, real, "")
    if real["remark"].startswith(NO_ADDRESS):
        return True  # of a logic queue's broker: a real one looks every five seconds where that is
    if request.code == Code.SET_COMMITLOG_READ_MODE and request.serializer:
        # A field of no length is none, and so there are none at all.
        return bool(ours["code"] == real["code"] == SYSTEM_ERROR)
    if request.code == Code.QUERY_CONSUME_QUEUE:
        return is_not_there(ours) and is_not_there(real)  # as with pulls: the queue or the place
    if request.code == Code.CHECK_CLIENT_CONFIG and not real["remark"]:
        return bool(ours["code"] == real["code"])  # of no expression Java cannot say what is wrong
    # Java passes over a value that it cannot read, and says nothing.
    told = str(ours["remark"])
    return request.code == Code.UPDATE_BROKER_CONFIG and told.startswith(REFUSED_SETTINGS)


def is_not_there(answer: Any) -> bool:
    """Tell whether an answer says that there is no such thing."""
    return bool(answer["remark"].endswith("is not exist!"))


def _with_levels_begun(ours: Any, real: Any) -> tuple[Any, Any]:
    return _levels_begun(ours), _levels_begun(real)


def _levels_begun(answer: Any) -> Any:
    """Return offsets of delay levels without those of which nothing was delivered."""
    if not isinstance(answer["body"], dict):
        return answer
    table = {level: one for level, one in answer["body"]["offsetTable"].items() if one}
    return answer | {"body": answer["body"] | {"offsetTable": table}}


def _without_former(ours: Any, real: Any) -> tuple[Any, Any]:
    """Return the groups of a topic without those that had it once: Java goes on naming them."""
    if not isinstance(ours["body"], dict) or not isinstance(real["body"], dict):
        return ours, real
    here, there = (set(one["body"]["groupList"] or ()) for one in (ours, real))
    return ours, real | {"body": real["body"] | {"groupList": sorted(here & there)}}


def _with_pulls_of_both(ours: Any, real: Any) -> tuple[Any, Any]:
    """
    Return all offsets with those of pulls by topic and group alone, where both have them.

    Pulls that wait are looked at by each one's clock. And of a topic that is deleted Java forgets
    where groups have pulled only if they have committed there.
    """
    if not isinstance(ours["body"], dict) or not isinstance(real["body"], dict):
        return ours, real
    ours, real = without_checks(ours), without_checks(real)
    common = sorted(set(ours["body"]["pullOffsetTable"]) & set(real["body"]["pullOffsetTable"]))
    changed = [one | {"body": one["body"] | {"pullOffsetTable": common}} for one in (ours, real)]
    return changed[0], changed[1]


def without_checks(value: Any) -> Any:
    """
    Return a value without how far half messages have been looked at.

    A real broker looks at them once more while it ends.
    """
    if isinstance(value, list):
        return [without_checks(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: without_checks(one) for key, one in value.items() if not key.endswith(_CHECKS)}


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
        name = path.rpartition(".")[2]
        if name in SHUFFLED or _IN_SETS.search(path) or path.startswith(".body.data."):
            ours, real = sorted(ours, key=_name), sorted(real, key=_name)
        if ours != real and sorted(map(repr, ours)) == sorted(map(repr, real)):
            return [f"{path}: in another order: {_short(ours)} instead of {_short(real)}"]
        return [
            line
            for number, (mine, other) in enumerate(zip(ours, real, strict=True))
            for line in differences(mine, other, f"{path}[{number}]")
        ]
    return [] if ours == real else [f"{path}: {_short(ours)} instead of {_short(real)}"]


def _with_topics_sorted(ours: Any, real: Any) -> tuple[Any, Any]:
    return _topics_sorted(ours), _topics_sorted(real)


def _topics_sorted(answer: Any) -> Any:
    """Return the stats of all groups with the topics of each in some order."""
    if not isinstance(answer["body"], dict):
        return answer
    groups = [
        {name: sorted(topics, key=repr) for name, topics in group.items()}
        for group in answer["body"]["consumeStatsList"]
    ]
    return answer | {"body": answer["body"] | {"consumeStatsList": groups}}


#: answers that are changed before they are compared, each for the reason that its function tells
ADJUSTED: dict[int, Callable[[Any, Any], tuple[Any, Any]]] = {
    Code.QUERY_TOPIC_CONSUME_BY_WHO: _without_former,
    Code.GET_BROKER_CONSUME_STATS: _with_topics_sorted,
    Code.GET_ALL_DELAY_OFFSET: _with_levels_begun,
    Code.GET_ALL_CONSUMER_OFFSET: _with_pulls_of_both,
}


def _name(value: Any) -> str:
    """Return what tells an item of a list without order from others."""
    return repr(list(value)) if isinstance(value, dict) and len(value) == 1 else repr(value)


def _short(value: Any) -> str:
    return f"{value!r:.600}"
