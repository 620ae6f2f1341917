"""An answer without what each broker makes up: times, ids, addresses, rates, places in files."""

from __future__ import annotations

import re
import time
from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.segments.rocketmq.tables.java_json import JsonError, ObjectKey, parse_json
from tests.compat.rocketmq.broker_peer import decoded
from tests.compat.rocketmq.frames import Answer

#: Within so many milliseconds of the clock a number is a moment of this session.
NOW_MS = 4 * 86_400_000
#: Counted or measured by each broker for itself.
OF_EACH = frozenset(
    ("indexLastUpdatePhyoffset", "indexLastUpdateTimestamp", "version", "stateVersion", "counter",
     "reviveQid", "lastUpdateTimestamp", "heartbeatFingerprint", "masterCommitLogMaxOffset",
     "transactionId", "recallHandle")
)  # fmt: skip
#: Made by the broker where the client brings none.
MADE_PROPERTIES = frozenset(("UNIQ_KEY", "__transactionId__", "ORIGIN_MESSAGE_ID"))
#: Of each level that has ever been used; ours has them as soon as something was delivered.
OF_DELAYS = "scheduleMessageOffset_"
ID_LENGTHS = frozenset((32, 56))
MESSAGES = frozenset(
    (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE, RequestCode.QUERY_MESSAGE,
     RequestCode.VIEW_MESSAGE_BY_ID, RequestCode.POP_MESSAGE, RequestCode.PEEK_MESSAGE,
     RequestCode.POP_LITE_MESSAGE)
)  # fmt: skip
#: Of these only the names are the same: figures, and settings that say where things are.
NAMES_ALONE = frozenset((RequestCode.GET_BROKER_RUNTIME_INFO, RequestCode.VIEW_BROKER_STATS_DATA))
SETTINGS = frozenset((RequestCode.GET_BROKER_CONFIG, RequestCode.GET_NAMESRV_CONFIG))
#: Where each keeps what, and where it listens. What is about users a real broker tells as it stands
#: in its file, passwords too, and ours does not.
OF_PLACE = re.compile(
    "diskMaxUsedSpaceRatio|bitMapLengthConsumeQueueExt|namesrvAddr|rocketmqHome|storePath|[pP]ort$"
    "|configStorePath|kvConfigPath|^auth.*MetadataProvider$"
)
_ADDRESS = re.compile(r"/?127\.0\.0\.1:\d+")
_ID = re.compile(r"\b(?:[0-9A-F]{32}|[0-9A-F]{56})\b")
_DIGITS = re.compile(r"(?<![0-9A-Za-z])1[0-9]{12}(?![0-9A-Za-z])")
_RATE = re.compile("Tps$|Rt$|RT$|Rate$")
#: what a program in Java says of an exception that nobody expected
_ACCIDENT = re.compile(r"^(?:[a-z]\w*\.)+[\w$]+(?:Exception|Error)\b|^Cannot (?:invoke|read) ")


def plain(code: int, answer: Answer | str) -> Any:
    """Return what is to be the same in both answers to a request of this code."""
    if isinstance(answer, str):
        return answer
    return {
        "code": answer.code,
        "remark": masked(answer.remark or ""),
        "fields": masked(answer.fields or {}),
        "body": body_of(code, answer),
        "flag": answer.flag,
        "serializer": answer.serializer,
    }


def is_accident(remark: str) -> bool:
    """Tell whether a remark is the text of a Java exception and the line where it was thrown."""
    return _ACCIDENT.match(remark) is not None


def masked(value: Any, name: str = "") -> Any:
    """Return a value with what is made up put away."""
    if name in OF_EACH or _RATE.search(name):
        return "…"
    if isinstance(value, ObjectKey):
        return str(masked(value.fields()))
    if isinstance(value, dict):
        return {str(masked(key)): masked(one, str(key)) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [masked(one, name) for one in value]
    if isinstance(value, str):
        text = _ID.sub("ID", _ADDRESS.sub("ADDRESS", value))
        return _DIGITS.sub(lambda found: _moment(found[0]), text)
    if isinstance(value, int) and not isinstance(value, bool) and _is_now(value):
        return "NOW"
    return value


def _moment(digits: str) -> str:
    return "NOW" if _is_now(int(digits)) else digits


def _is_now(number: int) -> bool:
    return abs(number - time.time() * 1000) < NOW_MS


def body_of(code: int, answer: Answer) -> Any:
    """Return what a body says."""
    body = answer.body
    if not body:
        return None
    if code in MESSAGES:
        return messages(body)
    text = body.decode(errors="replace")
    if code in SETTINGS:
        return {
            key: masked(value)
            for key, _, value in (line.partition("=") for line in text.splitlines())
            if not OF_PLACE.search(key)
        }
    try:
        content = parse_json(text)
    except JsonError:
        return masked(text)
    if code in NAMES_ALONE:
        names = content.get("table", content)
        return sorted(
            re.sub("_/.*", "_PATH", name) for name in names if not name.startswith(OF_DELAYS)
        )
    return masked(content)


def messages(body: bytes) -> Any:
    """Return what messages say, of those that a broker has written."""
    try:
        found = decoded(body)
    except Exception as error:  # noqa: BLE001 - that it cannot be read is the difference
        return f"cannot be read: {error}"
    return [
        {
            "topic": one.topic,
            "queue": one.queue_id,
            "offset": one.queue_offset,
            "body": one.body,
            "flag": one.flag,
            "sys_flag": one.sys_flag,
            "reconsume_times": one.reconsume_times,
            "born": masked(one.born_timestamp_ms),
            "version": one.version,
            "properties": properties(one.properties_text),
        }
        for one in found
    ]


def properties(data: bytes) -> list[str]:
    """Return properties in the order in which they are stored."""
    found = []
    for item in data.decode(errors="replace").split("\x02"):
        name, _, value = item.partition("\x01")
        if name == "POP_CK":
            parts = value.split(" ")
            parts[3:4] = ["…"]
            value = " ".join(parts)
        shown = "…" if name in MADE_PROPERTIES and len(value) in ID_LENGTHS else masked(value)
        found.append(f"{name}={shown}")
    return found
