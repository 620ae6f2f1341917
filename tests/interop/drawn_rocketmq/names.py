"""The name server: brokers, routes and its table of texts."""

from __future__ import annotations

import json
import zlib
from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn_rocketmq.world import World

LINE = "names"


def broker(world: World) -> dict[str, Any]:
    """Draw a broker that is none."""
    number = world.chance.randrange(3)
    name = world.pick(0, 0, 1)
    return {
        "brokerName": f"{world.prefix}-broker{name}",
        "brokerAddr": f"10.0.0.{number + 1}:10911",
        "clusterName": f"{world.prefix}-cluster{name}",
        "brokerId": world.pick(0, 0, 1, 2),
    }


def topic_table(world: World) -> dict[str, Any]:
    """Draw the topics that a broker brings."""
    return {
        f"{world.prefix}-n{number}": {
            "topicName": f"{world.prefix}-n{number}", "readQueueNums": world.pick(1, 2),
            "writeQueueNums": world.pick(1, 2, 4), "perm": world.pick(6, 6, 4, 2, 0),
            "topicFilterType": "SINGLE_TAG", "topicSysFlag": world.pick(0, 0, 1, 2, 3),
            "order": world.likely(0.2), "attributes": {},
        }
        for number in range(world.pick(0, 1, 2, 3))
    }  # fmt: skip


def register(world: World) -> None:
    """Bring a broker with its topics."""
    body: Any = {
        "filterServerList": [],
        "topicConfigSerializeWrapper": {
            "dataVersion": {"counter": world.pick(1, 2), "stateVersion": 0, "timestamp": 5},
            "topicConfigTable": topic_table(world), "topicQueueMappingDetailMap": {},
            "topicQueueMappingInfoMap": {},
        },
    }  # fmt: skip
    data = json.dumps(body).encode() if world.likely(0.9) else world.pick(b"", b"x", b"{}")
    crc = zlib.crc32(data) & 0x7FFFFFFF
    fields = broker(world) | {
        "haServerAddr": world.pick("10.0.0.9:10912", ""), "compressed": "false",
        "bodyCrc32": world.pick(crc, crc, 0, None, 5),
        "heartbeatTimeoutMillis": world.pick(None, None, 100_000),
        "enableActingMaster": world.pick(None, "false"), "zoneName": None,
    }  # fmt: skip
    if not data:
        fields["bodyCrc32"] = 0
    line = f"names-broker{world.chance.randrange(2)}"
    world.ask(Code.REGISTER_BROKER, fields, data, line=line, is_plain=True, version=513)


def leave(world: World) -> None:
    """
    Take all brokers of the session away, so that the next one does not find them.

    Each by its own cluster: the real one takes several at once and in any order, and a name goes
    from the cluster that is named with its last address.
    """
    for name in (0, 1):
        for number in range(3):
            fields = {
                "brokerName": f"{world.prefix}-broker{name}",
                "brokerAddr": f"10.0.0.{number + 1}:10911",
                "clusterName": f"{world.prefix}-cluster{name}",
            }  # fmt: skip
            for broker_id in (0, 1, 2):
                world.twin.exchange(
                    world.request(
                        Code.UNREGISTER_BROKER, fields | {"brokerId": broker_id}, is_plain=True
                    ),
                    LINE,
                )


def unregister(world: World) -> None:
    """Take a broker away."""
    world.ask(Code.UNREGISTER_BROKER, broker(world), line=LINE)


def route(world: World) -> None:
    """Ask where a topic is."""
    topic = world.pick(f"{world.prefix}-n0", f"{world.prefix}-n1", f"{world.prefix}-n2",
                       f"{world.prefix}-registered", "no-such", "", "TBW102")  # fmt: skip
    fields = {"topic": topic, "acceptStandardJsonOnly": world.pick(None, "true", "false")}
    world.ask(Code.GET_ROUTEINFO_BY_TOPIC, fields, line=LINE)


def lists(world: World) -> None:
    """Ask for lists of topics and brokers."""
    code = world.pick(
        Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
        Code.GET_BROKER_CLUSTER_INFO,
        Code.GET_SYSTEM_TOPIC_LIST_FROM_NS,
        Code.GET_UNIT_TOPIC_LIST,
        Code.GET_HAS_UNIT_SUB_TOPIC_LIST,
        Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
    )
    world.ask(code, world.pick(None, {}), line=LINE)


def by_cluster(world: World) -> None:
    """Ask for the topics of a cluster."""
    cluster = world.pick(f"{world.prefix}-cluster0", f"{world.prefix}-cluster1", "none", "")
    world.ask(Code.GET_TOPICS_BY_CLUSTER, {"cluster": cluster}, line=LINE)


def member_group(world: World) -> None:
    """Ask for the brokers of one name."""
    drawn = broker(world)
    fields = {name: drawn[name] for name in ("clusterName", "brokerName")}
    world.ask(Code.GET_BROKER_MEMBER_GROUP, fields, line=LINE)


def beat(world: World) -> None:
    """Have a broker say that it is there."""
    line = f"names-broker{world.chance.randrange(2)}"
    world.ask(Code.BROKER_HEARTBEAT, broker(world), line=line)


def data_version(world: World) -> None:
    """Ask whether a broker's topics have changed."""
    body = {"counter": world.pick(1, 2, 3), "stateVersion": 0, "timestamp": 5}
    world.ask(Code.QUERY_DATA_VERSION, broker(world), body, line=LINE)


def wipe(world: World) -> None:
    """Take the right to be written to from a broker, or give it back."""
    code = world.pick(Code.WIPE_WRITE_PERM_OF_BROKER, Code.ADD_WRITE_PERM_OF_BROKER)
    name = world.pick(broker(world)["brokerName"], broker(world)["brokerName"], "none", "")
    world.ask(code, {"brokerName": name}, line=LINE)


def texts(world: World) -> None:
    """Put, get, list and delete texts."""
    code = world.pick(
        Code.PUT_KV_CONFIG,
        Code.PUT_KV_CONFIG,
        Code.GET_KV_CONFIG,
        Code.GET_KV_CONFIG,
        Code.DELETE_KV_CONFIG,
        Code.GET_KVLIST_BY_NAMESPACE,
    )
    fields = {"namespace": world.pick(f"{world.prefix}-space", "none", "", "ORDER_TOPIC_CONFIG")}
    if code != Code.GET_KVLIST_BY_NAMESPACE:
        fields["key"] = world.pick("a", "b", "", f"{world.prefix}-n0")
    if code == Code.PUT_KV_CONFIG:
        fields["value"] = world.pick("1", "", "broker-a:4", "ü", "x" * 1000)
    if not fields.get("value", "1"):
        # In a binary header it would be none: Java puts null in its place, ours refuses it.
        world.ask(code, fields, line=LINE, is_plain=True, serializer=0)
        return
    world.ask(code, fields, line=LINE)


def topics(world: World) -> None:
    """Register a topic without its broker, or delete one."""
    if world.likely(0.5):
        queues = [{"brokerName": broker(world)["brokerName"], "readQueueNums": 2,
                   "writeQueueNums": 2, "perm": 6, "topicSysFlag": 0}]  # fmt: skip
        body = {"queueDatas": queues, "brokerDatas": [], "filterServerTable": {}}
        topic = world.pick(f"{world.prefix}-registered", f"{world.prefix}-n0")
        world.ask(Code.REGISTER_TOPIC_IN_NAMESRV, {"topic": topic}, body, line=LINE)
        return
    fields = {
        "topic": world.pick(f"{world.prefix}-registered", f"{world.prefix}-n1", "none", ""),
        "clusterName": world.pick(None, f"{world.prefix}-cluster0", "none", ""),
    }  # fmt: skip
    world.ask(Code.DELETE_TOPIC_IN_NAMESRV, fields, line=LINE)


def settings(world: World) -> None:
    """Ask for and change the name server's settings."""
    if world.likely(0.4):
        world.ask(Code.GET_NAMESRV_CONFIG, world.pick(None, {}), line=LINE)
        return
    lines = world.pick("orderMessageEnable=false", "no-such=1", "", "x", "kvConfigPath=/x",
                       "orderMessageEnable=x", "serverWorkerThreads=8", "productEnvName=center",
                       "configBlackList=x", "rocketmqHome=/x")  # fmt: skip
    world.ask(Code.UPDATE_NAMESRV_CONFIG, world.pick(None, {}), lines.encode(), line=LINE)


def unknown(world: World) -> None:
    """Ask what it does not answer."""
    world.ask(world.pick(0, -1, 10, 11, 34, 999, 2**31 - 1), world.pick(None, {}), line=LINE)
