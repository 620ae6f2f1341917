"""Where Java stumbles over what is wrong with a request, and ours names it or goes on."""

from __future__ import annotations

import re
from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn.pair import of_side
from tests.interop.drawn_rocketmq.request import COMMITS, PULLS, SHORT, Request

SYSTEM_ERROR = 1
#: what Java's own library objects to, where a request is not whole
_STUMBLES = re.compile(
    r"java\.lang\.(NullPointerException|ArrayIndexOutOfBoundsException|IndexOutOfBoundsException"
    r"|NegativeArraySizeException|ClassCastException)|com\.alibaba\.fastjson"
)
#: ... where a number is none, or none of that size
_NO_NUMBER = re.compile(r'java\.lang\.NumberFormatException: For input string: "(?P<text>.*?)"')
_NO_OFFSET = 'Cannot invoke "java.lang.Long.longValue()"'
#: ... where batches are looked for by time before there is one
_NO_BATCH = 'MappedFile.getReadPosition()" because "mappedFile" is null'
BY_TIME = frozenset(
    (
        Code.SEARCH_OFFSET_BY_TIMESTAMP,
        Code.GET_EARLIEST_MSG_STORETIME,
        Code.QUERY_CONSUME_TIME_SPAN,
    )
)
_NO_KEY = 'Cannot invoke "Object.hashCode()" because "key" is null'
#: ... where less than nothing is wanted
_LESS = re.compile(r"java\.lang\.IllegalArgumentException: Illegal Capacity: (?P<text>-[0-9]+)")
#: how ours begins where a field is missing or is no number
_NAMED = re.compile("the custom field <(?P<name>[^>]*)> is (?P<flaw>null|no number)")
_NAMELESS = re.compile("the body does not say what to lock: '(topic|brokerName)'")
_NUMBER = re.compile("[+-]?[0-9]+")


def is_stumbled_over(request: Request, ours: Any, real: Any) -> bool:
    """Tell whether ours names the field that is wrong, or Java died of what is wrong."""
    if ours["code"] == SYSTEM_ERROR and (named := _NAMED.match(ours["remark"])):
        return is_field_wrong(request, **named.groupdict())  # Java goes on with null or 0
    if _NAMELESS.fullmatch(ours["remark"]):
        return not is_whole(request)
    if real["code"] != SYSTEM_ERROR:
        return False
    if request.code == Code.END_TRANSACTION and _NO_KEY in real["remark"]:
        return True  # what is decided about is no half message, and has no topic to be counted by
    if request.code == Code.QUERY_CORRECTION_OFFSET and _NO_OFFSET in real["remark"]:
        return True  # no group but the one that asks has committed in a queue
    if request.code in BY_TIME and _NO_BATCH in real["remark"]:
        return True  # nothing has come to this queue of batches yet
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
