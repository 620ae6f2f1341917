"""What may be different between two answers: each excuse says where and why."""

from __future__ import annotations

import re
from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn.pair import of_side
from tests.interop.drawn_rocketmq.plain import is_accident
from tests.interop.drawn_rocketmq.request import COMMITS, SHORT, Request
from tests.interop.drawn_rocketmq.side import SILENT

SYSTEM_ERROR = 1
NOTHING = {"remark": "", "fields": {}}
ROUTES = frozenset((Code.GET_ROUTEINFO_BY_TOPIC, Code.GET_BROKER_CLUSTER_INFO))
PULLS = frozenset((Code.PULL_MESSAGE, Code.LITE_PULL_MESSAGE))
#: both mean that nothing was ever put there
#: members that are left out
MEMBERS: dict[int, tuple[str, ...]] = {
    # A group that has committed nothing waits since the year 1970 in Java; and Java writes the
    # times once more, for people.
    Code.QUERY_CONSUME_TIME_SPAN: (
        "delayTime", "minTimeStampStr", "maxTimeStampStr", "consumeTimeStampStr"
    ),
    # That of any broker, of those that are there.
    Code.GET_SYSTEM_TOPIC_LIST_FROM_NS: ("brokerAddr",),
    # Keys that Java makes for messages are longer. And of pulls it keeps subscriptions of its own.
    Code.QUERY_CONSUME_QUEUE: ("physicOffset", "physicSize", "subVersion"),
}  # fmt: skip
REFUSED_SETTINGS = ("maxMessageSize=", "messageDelayLevel ", "fileReservedTime=")
#: the revive queue of what is popped in order, in a handle
_ORDERED = " 999 "
EMPTY = {"NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE"}
#: what Java's own library objects to, where a request is not whole
_STUMBLES = re.compile(
    r"java\.lang\.(NullPointerException|ArrayIndexOutOfBoundsException|IndexOutOfBoundsException"
    r"|NegativeArraySizeException|ClassCastException)|com\.alibaba\.fastjson"
)
#: ... where a number is none, or none of that size
_NO_NUMBER = re.compile(r'java\.lang\.NumberFormatException: For input string: "(?P<text>.*?)"')
_NO_OFFSET = 'Cannot invoke "java.lang.Long.longValue()"'
_NO_KEY = 'Cannot invoke "Object.hashCode()" because "key" is null'
#: ... where less than nothing is wanted
_LESS = re.compile(r"java\.lang\.IllegalArgumentException: Illegal Capacity: (?P<text>-[0-9]+)")
#: how ours begins where a field is missing or is no number
_NAMED = re.compile("the custom field <(?P<name>[^>]*)> is (?P<flaw>null|no number)")
_NUMBER = re.compile("[+-]?[0-9]+")
#: From this version on clients are told of acting masters.
VERSION_5 = 413
#: Lists that Java makes of tables of hashes: their order says nothing.
SHUFFLED = frozenset(
    ("topicList", "groupList", "lockOKMQSet", "connectionSet", "consumerIdList", "queueTimeSpanSet",
     "messageQueueAssignments", "consumeStatsList", "brokerDatas", "queueDatas", "filterList")
)  # fmt: skip


def excused(request: Request, ours: Any, real: Any) -> list[str]:
    """Return what is different between plain answers and has no excuse, a line each."""
    if isinstance(ours, str) or isinstance(real, str):
        if real == SILENT and is_forgotten(request):
            return []
        return [] if ours == real else [f"{_short(ours)} instead of {_short(real)}"]
    if real["code"] == ours["code"] and is_accident(real["remark"]):
        # What Java says of an exception names a class and a line of it.
        ours, real = ours | NOTHING, real | NOTHING
    if request.serializer:
        # Ours answers in the form of the request, a real one always in that of its own setting.
        # In this one a text of no length is none.
        ours = ours | {"serializer": real["serializer"]}
        real = real | {"fields": {name: one for name, one in real["fields"].items() if one}}
    if is_stumbled_over(request, ours, real):
        return []
    if request.code in PULLS and {ours["remark"], real["remark"]} == EMPTY:
        # A real broker has the files of a queue as soon as somebody asks for its end.
        ours = ours | {"remark": real["remark"]}
    if request.code == Code.SET_COMMITLOG_READ_MODE and request.serializer:
        # A field of no length is none, and so there are none at all.
        ours, real = ours | NOTHING, real | NOTHING
    if request.code == Code.QUERY_CONSUME_QUEUE and is_not_there(ours) and is_not_there(real):
        return []  # as with pulls: the queue or the place in it
    if request.code == Code.UPDATE_BROKER_CONFIG and ours["remark"].startswith(REFUSED_SETTINGS):
        return []  # Java passes over a value that it cannot read, and says nothing
    names = MEMBERS.get(request.code, ())
    if request.code in ROUTES and request.version < VERSION_5:
        names = ("enableActingMaster",)
    for name in names:
        ours, real = without(ours, name), without(real, name)
    if request.code == Code.CHANGE_MESSAGE_INVISIBLETIME and _ORDERED in str(request.fields):
        # What is popped in order is put off from now on: it is told how long that is after the pop.
        ours, real = without(ours, "invisibleTime"), without(real, "invisibleTime")
    if request.code == Code.QUERY_TOPIC_CONSUME_BY_WHO:
        real = _without_former(ours, real)
    if request.code == Code.GET_BROKER_CONSUME_STATS:
        ours, real = _topics_sorted(ours), _topics_sorted(real)
    if request.code == Code.GET_ALL_DELAY_OFFSET:
        ours, real = _levels_begun(ours), _levels_begun(real)
    return differences(ours, real, "")


def is_stumbled_over(request: Request, ours: Any, real: Any) -> bool:
    """Tell whether ours names the field that is wrong, or Java died of what is wrong."""
    if ours["code"] == SYSTEM_ERROR and (named := _NAMED.match(ours["remark"])):
        return is_field_wrong(request, **named.groupdict())  # Java goes on with null or 0
    if real["code"] != SYSTEM_ERROR:
        return False
    if request.code == Code.END_TRANSACTION and _NO_KEY in real["remark"]:
        return True  # what is decided about is no half message, and has no topic to be counted by
    if request.code == Code.QUERY_CORRECTION_OFFSET and _NO_OFFSET in real["remark"]:
        return True  # no group but the one that asks has committed in a queue
    if found := _NO_NUMBER.match(real["remark"]) or _LESS.match(real["remark"]):
        return found["text"] in {str(one) for one in of_side(request.fields or {}, 1).values()}
    return _STUMBLES.match(real["remark"]) is not None and not is_whole(request)


def is_field_wrong(request: Request, name: str, flaw: str) -> bool:
    """Tell whether a field is missing, or no number; in a binary header an empty one is none."""
    fields = {**(request.fields or {})}
    words = {letter: word for word, letter in SHORT.items()}
    value = str(fields.get(name, fields.get(words.get(name, ""), "")))
    if flaw == "null":
        return not value and (bool(request.serializer) or name not in fields)
    return not _NUMBER.fullmatch(value) or not -(2**31) <= int(value) < 2**31


def is_whole(request: Request) -> bool:
    """Tell whether nothing of a request was changed, and no text of it is empty or missing."""
    return not request.is_changed and not is_lacking([request.fields or {}, request.body])


def is_lacking(value: Any) -> bool:
    """Tell whether there is a text of no length anywhere in a value, or nothing in its place."""
    if isinstance(value, dict):
        return any(map(is_lacking, value.values()))
    if isinstance(value, list | tuple):
        return any(map(is_lacking, value))
    return value is None or value == ""


def is_forgotten(request: Request) -> bool:
    """
    Tell whether Java says nothing at all to a pull.

    One that is to commit and does not say what has it stumble where nobody is told of it.
    """
    fields = request.fields or {}
    return (
        request.code in PULLS
        and bool(int(fields.get("sysFlag", 0)) & COMMITS)
        and not _NUMBER.fullmatch(str(fields.get("commitOffset", "")))
    )


def is_not_there(answer: Any) -> bool:
    """Tell whether an answer says that there is no such thing."""
    return bool(answer["remark"].endswith("is not exist!"))


def _levels_begun(answer: Any) -> Any:
    """Return offsets of delay levels without those of which nothing was delivered."""
    if not isinstance(answer["body"], dict):
        return answer
    table = {level: one for level, one in answer["body"]["offsetTable"].items() if one}
    return answer | {"body": answer["body"] | {"offsetTable": table}}


def _without_former(ours: Any, real: Any) -> Any:
    """Return the groups of a topic without those that had it once: Java goes on naming them."""
    if not isinstance(ours["body"], dict) or not isinstance(real["body"], dict):
        return real
    here, there = (set(one["body"]["groupList"] or ()) for one in (ours, real))
    return real | {"body": real["body"] | {"groupList": sorted(here & there)}}


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
        if name in SHUFFLED or ".clusterAddrTable." in path or path.startswith(".body.data."):
            ours, real = sorted(ours, key=_name), sorted(real, key=_name)
        if ours != real and sorted(map(repr, ours)) == sorted(map(repr, real)):
            return [f"{path}: in another order: {_short(ours)} instead of {_short(real)}"]
        return [
            line
            for number, (mine, other) in enumerate(zip(ours, real, strict=True))
            for line in differences(mine, other, f"{path}[{number}]")
        ]
    return [] if ours == real else [f"{path}: {_short(ours)} instead of {_short(real)}"]


def _topics_sorted(answer: Any) -> Any:
    """Return the stats of all groups with the topics of each in some order."""
    if not isinstance(answer["body"], dict):
        return answer
    groups = [
        {name: sorted(topics, key=repr) for name, topics in group.items()}
        for group in answer["body"]["consumeStatsList"]
    ]
    return answer | {"body": answer["body"] | {"consumeStatsList": groups}}


def _name(value: Any) -> str:
    """Return what tells an item of a list without order from others."""
    return repr(list(value)) if isinstance(value, dict) and len(value) == 1 else repr(value)


def _short(value: Any) -> str:
    return f"{value!r:.600}"
