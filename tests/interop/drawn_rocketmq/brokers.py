"""Brokers register in all forms, also by a name server that forgets what they do not name."""

from __future__ import annotations

from typing import Any

from logstore.compat.rocketmq.name_server.registration import (
    Registration,
    crc_of,
    write_registration,
)
from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.topics import TopicConfig
from tests.interop.drawn_rocketmq.names import LINE, broker
from tests.interop.drawn_rocketmq.world import World

FORGETS = "deleteTopicWithBrokerRegistration"
NAMES = ("n0", "n1", "n2", "n3")


def mapping(world: World, topic: str, broker_name: str) -> dict[str, Any]:
    """Draw what a broker registers of a static topic."""
    return {
        "bname": broker_name, "currIdMap": {"0": 0}, "dirty": False, "epoch": world.pick(1, 2),
        "scope": "__global__", "topic": topic, "totalQueues": world.pick(1, 2),
    }  # fmt: skip


def register(world: World) -> None:
    """Bring a broker with its topics."""
    names = [f"{world.prefix}-{name}" for name in NAMES if world.likely(0.45)]
    table = {
        name: TopicConfig(
            name, world.pick(1, 2), world.pick(1, 2), world.pick(6, 6, 4, 2),
            attributes=world.pick({}, {}, {"message.type": "FIFO"}),
        )
        for name in names
    }  # fmt: skip
    fields = broker(world)
    static = [name for name in names if world.likely(0.15)]
    mappings = {name: mapping(world, name, fields["brokerName"]) for name in static}
    version = DataVersion(5, world.pick(1, 2), world.pick(0, 0, 0, 1))
    is_compressed = world.likely(0.4)
    body = write_registration(
        Registration(table, version, mappings=mappings), is_compressed=is_compressed
    )
    fields |= {
        "haServerAddr": "10.0.0.9:10912", "compressed": str(is_compressed).lower(),
        "bodyCrc32": crc_of(body), "enableActingMaster": world.pick(None, "false", "true"),
        "__ZONE_NAME": world.pick(None, None, "z1", "z2"),
    }  # fmt: skip
    line = f"names-broker{world.chance.randrange(2)}"
    release = world.pick(513, 513, 400)
    world.ask(Code.REGISTER_BROKER, fields, body, line=line, is_plain=True, version=release)


def forget(world: World) -> None:
    """Have the name server forget topics that are not registered any more, or keep them."""
    value = world.pick("true", "true", "false")
    world.forgets = value == "true"
    line = f"{FORGETS}={value}".encode()
    world.ask(Code.UPDATE_NAMESRV_CONFIG, {}, line, line=LINE, is_plain=True)


def keep(world: World) -> None:
    """Leave the name server as it is by itself."""
    world.forgets = False
    line = f"{FORGETS}=false".encode()
    world.ask(Code.UPDATE_NAMESRV_CONFIG, {}, line, line=LINE, is_plain=True)


def route(world: World) -> None:
    """Ask where a topic is."""
    fields = {
        "topic": f"{world.prefix}-{world.pick(*NAMES)}",
        "acceptStandardJsonOnly": world.pick(None, "true"),
        "__ZONE_MODE": world.pick(None, None, "true"), "__ZONE_NAME": world.pick(None, "z1", "z2"),
    }  # fmt: skip
    world.ask(Code.GET_ROUTEINFO_BY_TOPIC, fields, line=LINE, is_plain=True)
