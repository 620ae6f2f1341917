"""
Routes as JSON, in the shapes that clients of different times can read.

Java's old writer put broker ids into maps as bare numbers, which is no JSON; old clients expect
that, new ones (4.9.4 and later, or who says so) get it in quotes. Fields of 5.x are told to
everybody, as 5.5.0 does: also those who have never heard of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.wire.bodies import json_body, number_table, object_body
from logstore.segments.rocketmq.tables.java_json import format_json
from logstore.segments.rocketmq.tables.java_maps import in_concurrent_map_order, in_number_order
from logstore.segments.rocketmq.tables.json_fields import as_object

if TYPE_CHECKING:
    from logstore.compat.rocketmq.name_server.routes import BrokerData, QueueData, Route

#: the first release that reads standard JSON only
STANDARD_JSON_VERSION = 401
#: with which Java makes its table of topics
_TABLE_CAPACITY = 1024
_QUEUES = "currIdMap"


def queue_fields(queue: QueueData) -> dict[str, Any]:
    """Return a topic's queues on one broker by Java's names."""
    return {
        "brokerName": queue.broker_name,
        "perm": queue.perm,
        "readQueueNums": queue.read_queue_count,
        "topicSysFlag": queue.topic_sys_flag,
        "writeQueueNums": queue.write_queue_count,
    }


def route_body(
    route: Route, client_version: int, *, is_standard: bool, order_config: str | None = None
) -> bytes:
    """Return a topic's route; `is_standard`: the client reads standard JSON only."""
    is_standard = is_standard or client_version >= STANDARD_JSON_VERSION
    body = object_body(
        brokerDatas=_joined(
            broker_body(broker, is_standard=is_standard) for broker in route.brokers
        ),
        filterServerTable=dict(route.filter_servers),
        orderTopicConf=order_config,
        queueDatas=[queue_fields(queue) for queue in route.queues],
        topicQueueMappingByBroker=_mapping_table(route.mappings, is_standard=is_standard)
        if route.mappings
        else None,
    )
    return _in_ascii(body) if is_standard else body


def _mapping_table(mappings: Mapping[str, object], *, is_standard: bool) -> bytes:
    """Return the mappings of a static topic by broker: sorted in standard JSON, else as hashed."""
    order = sorted(mappings) if is_standard else in_concurrent_map_order(mappings)
    return format_json({name: _with_queue_ids(mappings[name], is_standard) for name in order})


def _with_queue_ids(info: object, is_standard: bool) -> object:
    """Return a mapping with its queues in order; their ids are texts in standard JSON only."""
    fields: dict[str, Any] = as_object(info)
    queues = {int(number): queue for number, queue in as_object(fields.get(_QUEUES)).items()}
    ordered: dict[Any, Any] = in_number_order(queues)
    if is_standard:
        ordered = {str(number): queues[number] for number in sorted(queues)}
    return {name: ordered if name == _QUEUES else fields[name] for name in sorted(fields)}


def broker_body(broker: BrokerData, *, is_standard: bool) -> bytes:
    """Return one broker name with its addresses."""
    addresses = dict(sorted(broker.addresses.items()))
    return object_body(
        brokerAddrs=json_body({str(number): text for number, text in addresses.items()})
        if is_standard
        else number_table(addresses),
        brokerName=broker.broker_name,
        cluster=broker.cluster,
        enableActingMaster=broker.is_acting_master_enabled,
        zoneName=broker.zone_name,
    )


def cluster_body(brokers: Mapping[str, BrokerData], clusters: Mapping[str, set[str]]) -> bytes:
    """Return all brokers and clusters; broker ids are bare numbers, whoever asks."""
    entries = [
        json_body(name) + b":" + broker_body(broker, is_standard=False)
        for name, broker in brokers.items()
    ]
    return object_body(
        brokerAddrTable=b"{" + b",".join(entries) + b"}",
        clusterAddrTable={name: sorted(names) for name, names in clusters.items()},
    )


def topic_list_body(topics: Iterable[str], broker_address: str | None = None) -> bytes:
    """Return a list of topics, in the order of Java's table, and of the set they go into."""
    listed = in_concurrent_map_order(dict.fromkeys(topics), _TABLE_CAPACITY)
    return object_body(brokerAddr=broker_address, topicList=list(in_concurrent_map_order(listed)))


def _joined(pieces: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(pieces) + b"]"


def _in_ascii(body: bytes) -> bytes:
    """Escape all that is not ASCII, as the standard form has it (``BrowserCompatible``)."""
    if body.isascii():
        return body
    units = body.decode().encode("utf-16-be")
    codes = (units[i] << 8 | units[i + 1] for i in range(0, len(units), 2))
    return "".join(chr(code) if code < 0x80 else f"\\u{code:04x}" for code in codes).encode()
