"""Subscription groups, and the clients that belong to them."""

from __future__ import annotations

from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn_rocketmq.pulls import EXPRESSIONS
from tests.interop.drawn_rocketmq.world import World

#: how a client answers a broker that asks it, by the code of the question
REPLIES = {
    int(Code.GET_CONSUMER_RUNNING_INFO): (
        b'{"properties":{"PROP_CONSUME_TYPE":"CONSUME_PASSIVELY"}}'
    ),
    int(Code.CONSUME_MESSAGE_DIRECTLY): (
        b'{"autoCommit":true,"consumeResult":"CR_SUCCESS","order":false,"spentTimeMills":3}'
    ),
    int(Code.GET_CONSUMER_STATUS_FROM_CLIENT): b'{"messageQueueTable":{}}',
}  # fmt: skip


def group_config(world: World) -> dict[str, Any]:
    """Draw a group's settings."""
    config: dict[str, Any] = {"groupName": world.group()}
    for name, values in (
        ("consumeEnable", (True, True, True, False)),
        ("consumeFromMinEnable", (True, False)),
        ("consumeBroadcastEnable", (True, False)),
        ("consumeMessageOrderly", (False, True)),
        ("retryQueueNums", (1, 1, 2, 0, -1)),
        ("retryMaxTimes", (16, 3, 0, -1)),
        ("brokerId", (0, 1)),
        ("whichBrokerWhenConsumeSlowly", (1, 0)),
        ("notifyConsumerIdsChangedEnable", (True, True, False)),
        ("groupSysFlag", (0, 1)),
        ("consumeTimeoutMinute", (15, 1)),
        ("groupRetryPolicy", ({"type": "CUSTOMIZED"}, {"type": "EXPONENTIAL"})),
        ("subscriptionDataSet", (None, [{"topic": "x", "expression": "*", "version": 1,
                                         "expressionType": "TAG"}])),
    ):  # fmt: skip
        if world.likely(0.3):
            config[name] = world.pick(*values)
    return config


def first_groups(world: World) -> None:
    """
    Make the groups of a session.

    Java makes them for whoever names one, in requests too that ours refuses for another reason.
    """
    for number in range(3):
        config = {"groupName": f"{world.prefix}-g{number}"}
        world.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, config, is_plain=True)


def update(world: World) -> None:
    """Make or change a group."""
    if world.likely(0.75):
        world.ask(
            Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, group_config(world), is_plain=True
        )
        return
    items = [group_config(world) for _ in range(world.pick(0, 1, 2))]
    body = {"groupConfigList": items}
    world.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, None, body, is_plain=True)


def delete(world: World) -> None:
    """
    Delete a group, and ask for it.

    A real broker makes it anew in the same request, ours as soon as somebody asks for it.
    """
    name = world.group()
    fields = {"groupName": name, "cleanOffset": world.pick(None, "true", "false")}
    world.ask(Code.DELETE_SUBSCRIPTIONGROUP, fields, is_plain=True)
    world.ask(Code.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": name}, is_plain=True)


def config(world: World) -> None:
    """Ask for a group's settings."""
    world.ask(Code.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": world.group()})


def all_configs(world: World) -> None:
    """Ask for the settings of all."""
    world.ask(Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, {})


def forbid(world: World) -> None:
    """Forbid a group to read a topic, allow it, or ask."""
    fields = {
        "group": world.group(), "topic": world.topic(),
        "readable": world.pick(None, "true", "false"),
    }  # fmt: skip
    world.ask(Code.UPDATE_AND_GET_GROUP_FORBIDDEN, fields)


def client(world: World) -> str:
    """Draw a client's name; it speaks on a line of its own."""
    return str(world.pick("client-a", "client-b"))


def subscription(world: World) -> dict[str, Any]:
    """Draw to what a consumer subscribes."""
    kind, expression = world.pick(*EXPRESSIONS)
    return {
        "topic": world.pick(world.topic(), world.topic(), world.retry_topic()),
        "subString": "*" if expression is None else expression, "subVersion": world.pick(1, 2, 5),
        "expressionType": kind or "TAG", "classFilterMode": False, "tagsSet": [], "codeSet": [],
    }  # fmt: skip


def consumer(world: World) -> dict[str, Any]:
    """Draw a consumer as it says itself."""
    return {
        "groupName": world.group(),
        "consumeType": world.pick("CONSUME_PASSIVELY", "CONSUME_PASSIVELY", "CONSUME_ACTIVELY",
                                  "CONSUME_POP"),
        "messageModel": world.pick("CLUSTERING", "CLUSTERING", "CLUSTERING", "BROADCASTING"),
        "consumeFromWhere": world.pick("CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET",
                                       "CONSUME_FROM_TIMESTAMP"),
        "subscriptionDataSet": each_once(
            [subscription(world) for _ in range(world.pick(0, 1, 1, 2))], "topic"
        ),
        "unitMode": world.likely(0.15),
    }  # fmt: skip


def each_once(items: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return no two that are called the same: of those it is a matter of chance which counts."""
    return list({one[name]: one for one in items}.values())


def heartbeat(world: World) -> None:
    """Say who is there."""
    name = client(world)
    body = {
        "clientID": f"{world.prefix}-{name}",
        "producerDataSet": [{"groupName": f"{world.prefix}-p"}] if world.likely(0.5) else [],
        "consumerDataSet": each_once(
            [consumer(world) for _ in range(world.pick(0, 1, 1, 1, 2))], "groupName"
        ),
        "heartbeatFingerprint": world.pick(0, 0, 0, 7, 8),
        "withoutSub": world.pick(False, False, False, True),
    }  # fmt: skip
    world.ask(Code.HEART_BEAT, world.pick(None, {}), body, line=name, version=513, is_plain=True)


def unregister(world: World) -> None:
    """Say who goes."""
    name = client(world)
    fields = {
        "clientID": f"{world.prefix}-{name}",
        "producerGroup": world.pick(None, f"{world.prefix}-p"),
        "consumerGroup": world.pick(None, world.group()),
    }  # fmt: skip
    world.ask(Code.UNREGISTER_CLIENT, fields, line=name)


def check_client(world: World) -> None:
    """Ask whether a subscription can be served."""
    body = {
        "clientId": client(world), "group": world.group(), "subscriptionData": subscription(world),
        "namespace": world.pick(None, "x"),
    }  # fmt: skip
    world.ask(Code.CHECK_CLIENT_CONFIG, None, body)


def connections(world: World) -> None:
    """Ask who is connected."""
    code = world.pick(Code.GET_CONSUMER_CONNECTION_LIST, Code.GET_PRODUCER_CONNECTION_LIST,
                      Code.GET_CONSUMER_LIST_BY_GROUP, Code.GET_ALL_PRODUCER_INFO)  # fmt: skip
    if code == Code.GET_ALL_PRODUCER_INFO:
        world.ask(code, {})
    elif code == Code.GET_PRODUCER_CONNECTION_LIST:
        group = world.pick(f"{world.prefix}-p", f"{world.prefix}-p", world.group())
        world.ask(code, {"producerGroup": group})
    else:
        world.ask(code, {"consumerGroup": world.group()})


def ask_clients(world: World) -> None:
    """Have the broker ask a client."""
    name = world.pick(f"{world.prefix}-{client(world)}", "nobody", None, "")
    message = world.message()
    code = world.pick(Code.GET_CONSUMER_RUNNING_INFO, Code.CONSUME_MESSAGE_DIRECTLY,
                      Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS)  # fmt: skip
    if code == Code.GET_CONSUMER_RUNNING_INFO:
        fields = {"consumerGroup": world.group(), "clientId": name, "jstackEnable": "false"}
    elif code == Code.CONSUME_MESSAGE_DIRECTLY:
        fields = {
            "consumerGroup": world.group(), "clientId": name, "brokerName": "broker-a",
            "msgId": message.message_id if message is not None else "x",
            "topic": world.pick(None, world.topic()),
        }  # fmt: skip
    else:
        # One of no length is none in a binary header: ours names it, and Java asks all the same.
        fields = {"topic": world.topic() or "x", "group": world.group(), "clientAddr": name}
    world.ask(code, fields)


def lock(world: World) -> None:
    """Lock queues, or let them go."""
    code = world.pick(Code.LOCK_BATCH_MQ, Code.LOCK_BATCH_MQ, Code.UNLOCK_BATCH_MQ)
    queues = []
    for _ in range(world.pick(0, 1, 2, 3)):
        topic = world.topic()
        queues.append({"brokerName": world.pick("broker-a", "broker-a", "x"), "topic": topic,
                       "queueId": world.queue(topic)})  # fmt: skip
    body = {
        "consumerGroup": world.group(), "clientId": client(world), "mqSet": queues,
        "onlyThisBroker": world.pick(False, True),
    }  # fmt: skip
    world.ask(code, world.pick(None, {}), body)


def request_mode(world: World) -> None:
    """Have a group pull or pop."""
    if world.likely(0.3):
        world.ask(Code.GET_ALL_MESSAGE_REQUEST_MODE, {})
        return
    body = {
        "topic": world.topic(), "consumerGroup": world.group(), "mode": world.pick("PULL", "POP"),
        "popShareQueueNum": world.pick(0, 1, -1, 2),
    }  # fmt: skip
    world.ask(Code.SET_MESSAGE_REQUEST_MODE, None, body, is_plain=True)  # Java keeps any nonsense


def assignment(world: World) -> None:
    """Ask which queues a client is to read."""
    body = {
        "topic": world.topic(), "consumerGroup": world.group(),
        "clientId": f"{world.prefix}-{client(world)}",
        "strategyName": world.pick("AVG", "AVG", "AVG_BY_CIRCLE", "x"),
        "messageModel": world.pick("CLUSTERING", "CLUSTERING", "BROADCASTING"),
    }  # fmt: skip
    world.ask(Code.QUERY_ASSIGNMENT, None, body, is_plain=True)


def hang_up(world: World) -> None:
    """Have a client go without a word."""
    world.twin.hang_up(client(world))
