"""The broker's settings and figures, and requests about the broker itself."""

from __future__ import annotations

from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn_rocketmq.world import World

LINES = (
    "maxMessageSize=4194304", "no-such=1", "defaultQueryMaxNum=32", "", "=", "x",
    "brokerPermission=6", "regionId=DefaultRegion", "brokerName=broker-a", "traceOn=true",
    "fileReservedTime=72", "listenPort=1", "#maxMessageSize=1",
    "flushDelayOffsetInterval=10000", "brokerConfigPath=/x", "configBlackList=a",
    "messageDelayLevel=1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
    "defaultTopicQueueNums=8", "accessMessageInMemoryMaxRatio=40", "waitTimeMillsInSendQueue=200",
)  # fmt: skip
#: Ours refuses these, and all that is asked for with them; Java passes over them alone.
UNREADABLE = ("maxMessageSize=x", "fileReservedTime=")


def update(world: World) -> None:
    """Change settings to what they are, or to what cannot be."""
    count = world.pick(0, 1, 1, 2, 3)
    lines = [world.pick(*LINES) for _ in range(count)]
    if world.likely(0.1):
        lines = [world.pick(*UNREADABLE)]
    world.ask(Code.UPDATE_BROKER_CONFIG, world.pick(None, {}), "\n".join(lines).encode())


def get(world: World) -> None:
    """Ask for all settings."""
    world.ask(Code.GET_BROKER_CONFIG, world.pick(None, {}))


def runtime_info(world: World) -> None:
    """Ask for figures."""
    world.ask(Code.GET_BROKER_RUNTIME_INFO, world.pick(None, {}))


def stats_data(world: World) -> None:
    """Ask for a figure, which is there as soon as something was counted."""
    name = world.pick("NO_SUCH", "", "SNDBCK_PUT_NUMS", "TOPIC_PUT_NUMS", "TOPIC_PUT_NUMS",
                      "TOPIC_PUT_SIZE", "GROUP_GET_NUMS", "GROUP_GET_SIZE", "BROKER_PUT_NUMS",
                      "BROKER_GET_NUMS", "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC",
                      "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC", "BROKER_CK_NUMS", "GROUP_CK_NUMS",
                      "BROKER_ACK_NUMS", "GROUP_ACK_NUMS", "CONSUMER_REGISTER_TIME",
                      "PRODUCER_REGISTER_TIME")  # fmt: skip
    key = world.pick(world.topic(), f"{world.topic()}@{world.group()}", "DefaultCluster", "x")
    world.ask(Code.VIEW_BROKER_STATS_DATA, {"statsName": name, "statsKey": key})


def cold_data(world: World) -> None:
    """Set, remove and ask for limits of reading cold data."""
    code = world.pick(Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
                      Code.GET_COLD_DATA_FLOW_CTR_INFO)  # fmt: skip
    body: Any = b""
    if code == Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG:
        body = world.pick(b"", b"x", f"{world.prefix}-g0=1000".encode(), b"=", b"a=b")
    elif code == Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG:
        body = world.pick(b"", f"{world.prefix}-g0".encode(), b"nobody")
    world.ask(code, world.pick(None, {}), body)


def odds(world: World) -> None:
    """Ask about replication, engines and modes."""
    code, fields = world.pick(
        (Code.GET_BROKER_HA_STATUS, {}), (Code.RESET_MASTER_FLUSH_OFFSET, {"masterFlushOffset": 0}),
        (Code.RESET_MASTER_FLUSH_OFFSET, {}), (Code.GET_BROKER_EPOCH_CACHE, {}),
        (Code.SET_COMMITLOG_READ_MODE, {"READ_AHEAD_MODE": world.pick("0", "5", "x", "")}),
        (Code.SWITCH_TIMER_ENGINE, {"ENGINE_TYPE": "x"}),
        (Code.SWITCH_TIMER_ENGINE, None), (Code.POP_ROLLBACK, {}),
    )  # fmt: skip
    world.ask(code, world.pick(fields, fields, None))


def unknown(world: World) -> None:
    """Ask what nobody answers."""
    code = world.pick(0, -1, 1, 13, 22, 27, 47, 50, 53, 209, 301, 999, 32767, 2**31 - 1, -5,
                      215_000, 100, 105, 318)  # fmt: skip
    world.ask(code, world.pick(None, {}, {"topic": "x"}), world.pick(b"", b"x"))
