"""SyncLiteSubscription: a consumer says which lite topics it reads; all brokers are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from logstore.compat.rocketmq.lite.lite_rules import bind_topic, subscription_quota
from logstore.compat.rocketmq.proxy.checks import group_of, lite_topic_of, topic_of
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError, status, status_of
from logstore.compat.rocketmq.proxy.lite_consumers import check_bound
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.steps import Step
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller

_ADD, _ACTIONS = 0, ("PARTIAL_ADD", "PARTIAL_REMOVE", "COMPLETE_ADD", "COMPLETE_REMOVE")
_KINDS = {"policy": "POLICY", "offset": "OFFSET", "tail_n": "TAIL_N", "timestamp": "TIMESTAMP"}
#: the last, the first, the end
_POLICY_COUNT = 3
#: so many more than its quota a client may say at once
_QUOTA_BUFFER = 300


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    del caller
    topic, group = topic_of(request.topic), group_of(request.group)
    if not 0 <= request.action < len(_ACTIONS):
        raise ProxyError(Code.INTERNAL_SERVER_ERROR, "unknown LiteSubscriptionAction: UNRECOGNIZED")
    lite_topics = list(dict.fromkeys(request.lite_topic_set))
    if request.action == _ADD:
        for lite_topic in lite_topics:
            lite_topic_of(lite_topic, client.proxy.settings.lite_topic_bytes_max)
    option = _offset_option(request)
    _check(client, topic, group, len(lite_topics))
    entry: dict[str, Any] = {
        "action": _ACTIONS[request.action],
        "clientId": client.client_id,
        "group": group,
        "topic": topic,
        "liteTopicSet": lite_topics,
        "version": request.version,
    }
    if option is not None:
        entry["offsetOption"] = option
    body = orjson.dumps({"subscriptionSet": [entry]})
    route = await client.proxy.routes.of(topic)
    told = status(Code.OK)
    for name in route.readable_brokers():
        link = await client.link_of(name)
        answer = await Step(link.ask(RequestCode.LITE_SUBSCRIPTION_CTL, {}, body))
        if answer.code != ResponseCode.SUCCESS:
            told = status_of(answer.code, answer.remark)
    return MESSAGES["SyncLiteSubscriptionResponse"](status=told)


def _offset_option(request: Any) -> dict[str, Any] | None:
    """Return where to begin to read what is added, if a client says so. Raises ProxyError."""
    if request.action != _ADD or not request.HasField("offset_option"):
        return None
    option = request.offset_option
    kind = option.WhichOneof("offset_type")
    if kind is None:
        text = "Unknown OffsetOption type: OFFSETTYPE_NOT_SET"
        raise ProxyError(Code.INTERNAL_SERVER_ERROR, text)
    if kind == "policy" and not 0 <= option.policy < _POLICY_COUNT:
        text = "Unknown OffsetOption.Policy value: UNRECOGNIZED"
        raise ProxyError(Code.INTERNAL_SERVER_ERROR, text)
    return {"type": _KINDS[kind], "value": getattr(option, kind)}


def _check(client: ProxyClient, topic: str, group: str, count: int) -> None:
    """Raise ProxyError where the group reads lite topics of another topic, or not so many."""
    found = client.proxy.broker.groups.find(group)
    if found is None:
        raise ProxyError(Code.ILLEGAL_CONSUMER_GROUP, f"group not found: {group}")
    check_bound(group, bind_topic(found), topic)
    quota = subscription_quota(found)
    if count > quota + _QUOTA_BUFFER:
        text = f"lite subscription quota exceeded: {quota}"
        raise ProxyError(Code.LITE_SUBSCRIPTION_QUOTA_EXCEEDED, text)
