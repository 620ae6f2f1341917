"""Topics: made, changed, told of, deleted."""

from __future__ import annotations

from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn_rocketmq.world import World

ATTRIBUTES = (None, None, None, "", "+message.type=NORMAL", "+message.type=FIFO",
              "+message.type=DELAY", "+message.type=TRANSACTION", "+message.type=bad",
              "-message.type", "+x=y", "nonsense", "+message.type=NORMAL,+message.type=FIFO",
              "+cleanup.policy=DELETE", "+a", "-", "+message.type=MIXED,-message.type")  # fmt: skip


def new_name(world: World) -> str:
    """Draw the name of a topic that is to be made."""
    if world.likely(0.85):
        return f"{world.prefix}-{world.pick('a', 'b', 'c', 'd%x', 'e|f')}"
    return str(world.pick("", "bad name", "ä", "t" * 128, "t" * 127, "%RETRY%x", "TBW102",
                          "a.b", "%DLQ%x", "rmq_sys_x", f"{world.prefix}-long" + "g" * 100,
                          "SCHEDULE_TOPIC_XXXX", "/", world.topic()))  # fmt: skip


def first_topics(world: World) -> None:
    """Make what every session has."""
    for name, queues in (("a", 2), ("b", 1)):
        create(world, f"{world.prefix}-{name}", queues, is_plain=True)


def create(world: World, name: str, queues: int, **more: Any) -> None:
    """Make or change a topic."""
    fields = {
        "topic": name, "defaultTopic": "TBW102", "readQueueNums": queues,
        "writeQueueNums": queues, "perm": 6, "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0, "order": "false",
    }  # fmt: skip
    is_plain = more.pop("is_plain", False)
    told = world.ask(Code.UPDATE_AND_CREATE_TOPIC, fields | more, is_plain=is_plain, version=513)
    if told.is_success and name.startswith(world.prefix) and len(name) < 120:
        world.topics[name] = queues


def create_topic(world: World) -> None:
    """Make or change one, with anything odd."""
    queues = world.pick(1, 2, 2, 3, 4)
    more: dict[str, Any] = {
        "perm": world.pick(6, 6, 6, 6, 6, 6, 6, 4, 2, 7, 0, 1, 8, -1, 15),
        "topicFilterType": world.pick(*["SINGLE_TAG"] * 6, "MULTI_TAG", "x", None),
        "topicSysFlag": world.pick(0, 0, 0, None, 1, 2, 3, 8),
        "order": world.pick("false", "false", "true", "x"),
        "attributes": world.pick(*ATTRIBUTES),
        "force": world.pick(None, None, "true"),
    }
    if world.likely(0.1):
        more |= {"readQueueNums": world.pick(0, -1, 5, 1)}
    if world.likely(0.05):
        queues = world.pick(0, -1)
    create(world, new_name(world), queues, **more)


def create_topics(world: World) -> None:
    """Make several at once."""
    items: list[dict[str, Any]] = [
        {
            "topicName": new_name(world), "readQueueNums": world.pick(1, 2, 3),
            "writeQueueNums": world.pick(1, 2, 3), "perm": world.pick(6, 6, 6, 4, 2, 0),
            "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": world.likely(0.2),
            "attributes": world.pick({}, {}, {"+message.type": "FIFO"}, {"+x": "y"}),
        }
        for _ in range(world.pick(0, 1, 2, 3))
    ]  # fmt: skip
    items = list({one["topicName"]: one for one in items}.values())  # Java stumbles over two
    told = world.ask(
        Code.UPDATE_AND_CREATE_TOPIC_LIST, {}, {"topicConfigList": items}, is_plain=True
    )
    if told.is_success:
        for one in items:
            if one["topicName"].startswith(world.prefix):
                world.topics[one["topicName"]] = one["writeQueueNums"]
    else:
        # What stands before the one that is refused is made, and a real broker tells its name
        # server only when it registers the next time: this makes it.
        world.ask(Code.UPDATE_BROKER_CONFIG, None, b"brokerPermission=6", is_plain=True)


def delete(world: World) -> None:
    """Delete one."""
    name = f"{world.prefix}-{world.pick('c', 'd%x', 'e|f')}" if world.likely(0.7) else world.topic()
    if name in {"TBW102", "broker-a", "DefaultCluster", "SELF_TEST_TOPIC"} or name.startswith("%"):
        name = ""
    world.ask(Code.DELETE_TOPIC_IN_BROKER, {"topic": name})
    world.topics.pop(name, None)
    world.sent = [one for one in world.sent if one.topic != name]


def config(world: World) -> None:
    """Ask for the settings of one."""
    world.ask(Code.GET_TOPIC_CONFIG, {"topic": world.topic(), "lo": world.pick(None, "true")})


def all_configs(world: World) -> None:
    """Ask for the settings of all: pages of them follow the order of Java's tables."""
    world.ask(Code.GET_ALL_TOPIC_CONFIG, {})


def stats(world: World) -> None:
    """Ask how far the queues of one reach."""
    world.ask(Code.GET_TOPIC_STATS_INFO, {"topic": world.topic()})


def system_topics(world: World) -> None:
    """Ask for topics of the broker's own."""
    world.ask(Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, {})


def route(world: World) -> None:
    """Ask the name server where one is."""
    fields = {"topic": world.topic(), "acceptStandardJsonOnly": world.pick(None, "true", "false")}
    world.ask(Code.GET_ROUTEINFO_BY_TOPIC, fields, line="names")


def clean(world: World) -> None:
    """Have the broker look for what nobody needs."""
    world.ask(
        world.pick(Code.CLEAN_EXPIRED_CONSUMEQUEUE, Code.CLEAN_UNUSED_TOPIC,
                   Code.DELETE_EXPIRED_COMMITLOG), {}
    )  # fmt: skip
