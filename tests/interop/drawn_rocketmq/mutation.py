"""A request that was right gets one thing wrong: nearly valid is what finds the checks."""

from __future__ import annotations

import json
import random
from typing import Any

import attrs

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn_rocketmq.request import ONEWAY, Request

EDGES = ("", "x", "0", "-1", "1", "2147483648", "-9223372036854775808", "9223372036854775808",
         "1.5", " 1", "+1", "true", "TRUE", "null", "1_0", "ü")  # fmt: skip
BODIES = (b"", b"x", b"{}", b"[]", b"null", b'{"a":', b"\xff\xfe", b"[1,2]", b'"text"', b"5")
LANGUAGES = ("CPP", "GO", "PYTHON", "RUST", "NOBODYS", "OTHER", 0, 7)
#: What would have a broker wait long, or fill the disk.
LEFT_ALONE = frozenset(
    ("readQueueNums", "writeQueueNums", "d", "defaultTopicQueueNums", "suspendTimeoutMillis",
     "pollTime", "sysFlag", "f", "t", "bornTime", "subVersion", "e", "queueId")
)  # fmt: skip
#: Cut in two, a line of settings is another setting, or one that cannot be read: ours refuses that,
#: with all that stands beside it, and Java passes over it alone.
WHOLE = frozenset((Code.UPDATE_BROKER_CONFIG, Code.UPDATE_NAMESRV_CONFIG))


def mutated(request: Request, chance: random.Random, *, is_only_asked: bool) -> Request:
    """
    Return the request with one thing changed.

    The fields of what changes something stay: Java takes many that are missing for null, and goes
    on until it stumbles, so that nothing after it would be the same.
    """
    kinds = ["header"]
    names = [name for name in request.fields or () if name not in LEFT_ALONE]
    if names and is_only_asked:
        kinds += ["field"] * 4 + ["missing"] * 3
    if request.body and request.code not in WHOLE:
        kinds += ["body"] * 3
    kind = chance.choice(kinds)
    if kind == "field":
        return _with(request, chance.choice(names), chance.choice(EDGES))
    if kind == "missing":
        return _with(request, chance.choice(names), None)
    if kind == "body":
        return attrs.evolve(request, body=_body(request.body, chance))
    return _header(request, chance)


def _with(request: Request, name: str, value: Any) -> Request:
    fields = dict(request.fields or {})
    del fields[name]
    if value is not None:
        fields[name] = value
    return attrs.evolve(request, fields=fields)


def _body(body: Any, chance: random.Random) -> Any:
    if not isinstance(body, dict) or chance.random() < 0.3:
        if isinstance(body, bytes) and chance.random() < 0.5:
            return body[: chance.randrange(len(body))]
        return chance.choice(BODIES)
    fresh = json.loads(json.dumps(body)) if _is_json(body) else dict(body)
    place = fresh
    while True:
        name = chance.choice(list(place))
        value = place[name]
        if isinstance(value, list) and value and isinstance(value[0], dict):
            value = value[0]
        if not isinstance(value, dict) or not value or chance.random() < 0.4:
            break
        place = value
    if chance.random() < 0.5:
        del place[name]
    else:
        place[name] = chance.choice((None, "", "x", -1, 0, [], {}, True, "1"))
    return fresh


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


def _header(request: Request, chance: random.Random) -> Request:
    kind = chance.randrange(6)
    if kind == 0:
        return attrs.evolve(request, language=chance.choice(LANGUAGES))
    if kind == 1:
        return attrs.evolve(request, version=chance.choice((-1, 1, 32767, 500)))
    if kind == 2:
        return attrs.evolve(request, opaque=chance.choice((0, -1, 2**31 - 1, -(2**31))))
    if kind == 3:
        return attrs.evolve(request, flag=chance.choice((4, ONEWAY, -2 & 0x7FFFFFFC, 64)))
    if kind == 4:
        return attrs.evolve(request, fields=None)
    fields = {**(request.fields or {}), chance.choice(("bname", "nsd", "ns", "oway", "x")): "x"}
    return attrs.evolve(request, fields=fields)
