"""Two answers to one request compared: all but ids, times, addresses and what a release adds."""

from __future__ import annotations

import re
from typing import Any

from logstore.segments.rocketmq.messages.message import Message
from tests.compat.rocketmq.broker_peer import decoded
from tests.compat.rocketmq.frames import Answer
from tests.compat.rocketmq.transcript import Exchange

PULL, QUERY, RUNTIME, CONFIG, ROUTE, CLUSTER, TOPICS = 11, 12, 28, 26, 105, 106, 206
TOPIC_STATS, CONSUME_STATS, SEARCH_BY_TIME = 202, 208, 29
#: places in files, times, counters of changes
MASKED_FIELDS = frozenset(
    {"msgId", "indexLastUpdatePhyoffset", "indexLastUpdateTimestamp", "version"}
)
#: what a broker adds to each message, or makes up if the client does not
MASKED_PROPERTIES = frozenset({"UNIQ_KEY", "__transactionId__", "CLUSTER", "MSG_REGION", "TRACE_ON",
                               "ORIGIN_MESSAGE_ID", "DELAY"})  # fmt: skip
#: 4.x keeps no WAIT=true, and the place of a half message in the committed one
OTHERWISE_IN_4 = frozenset({"WAIT", "REAL_TOPIC", "REAL_QID"})
#: settings that say where things are, which the recorded broker was told on its command line
UNSET_HERE = frozenset({"namesrvAddr", "rocketmqHome", "storePathCommitLog"})
#: fields that 5.x adds to answers of 4.x
ADDED_IN_5 = frozenset({
    "topicSysFlag", "groupSysFlag", "IS_SUPPORT_HEART_BEAT_V2", "IS_SUB_CHANGE", "transactionId",
})  # fmt: skip


def differences(exchange: Exchange, *, is_4: bool) -> list[str]:
    """Return in what the answers differ; `is_4`: the recorded servers were of release 4.9.8."""
    theirs, ours = exchange.theirs, exchange.ours
    if ours is None:
        return ["no answer"]
    found: list[str] = []
    pairs = [
        ("code", theirs.code, ours.code),
        ("remark", _remark(theirs), _remark(ours)),
        ("fields", _fields(exchange, theirs, is_4=is_4), _fields(exchange, ours, is_4=is_4)),
    ]
    if theirs.code == ours.code:
        pairs.append(("body", _body(exchange, theirs, is_4=is_4), _body(exchange, ours, is_4=is_4)))
    found += [f"{name}: {left!r} != {right!r}" for name, left, right in pairs if left != right]
    return found


def _remark(answer: Answer) -> str:
    """Return a remark without the page of the manual, which moved between releases."""
    return re.sub(r"https?://\S+", "URL", answer.remark or "")


def _fields(exchange: Exchange, answer: Answer, *, is_4: bool) -> dict[str, str]:
    fields = dict(answer.fields or {})
    masked = MASKED_FIELDS
    if "UNIQ_KEY" not in exchange.fields.get("i", exchange.fields.get("properties", "UNIQ_KEY")):
        masked |= {"transactionId"}  # the client leaves it to the broker to make a unique key
    if exchange.code == SEARCH_BY_TIME:
        masked |= {"offset"}  # it depends on when messages were stored
    if is_4:
        fields = {name: value for name, value in fields.items() if name not in ADDED_IN_5}
    return {name: "…" if name in masked else value for name, value in fields.items()}


def _body(exchange: Exchange, answer: Answer, *, is_4: bool) -> Any:
    code = exchange.code
    if code in (PULL, QUERY):
        hidden = MASKED_PROPERTIES | OTHERWISE_IN_4 if is_4 else MASKED_PROPERTIES
        return [_message(message, hidden) for message in decoded(answer.body)]
    if code in (ROUTE, CLUSTER):
        body = re.sub(rb"127\.0\.0\.1:\d+", b"ADDRESS", answer.body)
        if is_4:
            body = body.replace(b',"enableActingMaster":false', b"")
        return body
    if code in (RUNTIME, CONFIG, TOPICS):
        return _names(code, answer, is_4=is_4)
    if code in (TOPIC_STATS, CONSUME_STATS):
        body = re.sub(rb'(Tps"):[\d.E-]+', rb"\1:RATE", answer.body)
        body = re.sub(rb"\d{13}", b"TIME", body)
        return re.sub(rb',"topicPutTps":RATE|,"pullOffset":\d+', b"", body) if is_4 else body
    return answer.body


def _message(message: Message, hidden: frozenset[str]) -> tuple[object, ...]:
    properties = {name: value for name, value in message.properties.items() if name not in hidden}
    return (
        message.topic,
        message.queue_id,
        message.queue_offset,
        message.body,
        message.flag,
        message.sys_flag,
        message.reconsume_times,
        properties,
    )


def _names(code: int, answer: Answer, *, is_4: bool) -> object:
    """Return the names of settings, figures or topics; what 5.x has more is left out of 4.x."""
    if not answer.body or answer.code:
        return None
    if code == CONFIG:
        lines = answer.body.decode().splitlines()
        names = {line.partition("=")[0] for line in lines} - UNSET_HERE
    elif code == RUNTIME:
        names = {re.sub("_/.*", "_PATH", name) for name in answer.content["table"]}
    else:
        names = set(answer.content["topicList"])
    return None if is_4 else sorted(names)
