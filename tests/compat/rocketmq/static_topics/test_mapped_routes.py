"""Routes of static topics, as a name server of release 5.5.0 wrote them of the same brokers."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.name_server.registration import (
    Registration,
    read_registration,
    write_registration,
)
from logstore.compat.rocketmq.name_server.route_bodies import route_body
from logstore.compat.rocketmq.name_server.routes import Route
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.queue_mappings import (
    LogicQueueMappingItem,
    TopicQueueMappingDetail,
)

IDS = {"broker-c": (0, 1, 10, 2, 3), "broker-d": (20, 7)}
OLD = (
    b'"topicQueueMappingByBroker":{"broker-d":{"bname":"broker-d","currIdMap":{20:20,7:7},'
    b'"dirty":false,"epoch":1,"scope":"__global__","topic":"rt","totalQueues":2},"broker-c":'
    b'{"bname":"broker-c","currIdMap":{0:0,1:1,2:2,3:3,10:10},"dirty":false,"epoch":1,'
    b'"scope":"__global__","topic":"rt","totalQueues":2}}}'
)
NEW = (
    b'"topicQueueMappingByBroker":{"broker-c":{"bname":"broker-c","currIdMap":{"0":0,"1":1,"2":2,'
    b'"3":3,"10":10},"dirty":false,"epoch":1,"scope":"__global__","topic":"rt","totalQueues":2},'
    b'"broker-d":{"bname":"broker-d","currIdMap":{"7":7,"20":20},"dirty":false,"epoch":1,'
    b'"scope":"__global__","topic":"rt","totalQueues":2}}}'
)


def infos() -> dict[str, object]:
    """Return what two brokers register."""
    return {
        name: TopicQueueMappingDetail(
            "rt", 2, name, 1,
            hosted_queues={
                number: (LogicQueueMappingItem(0, number, name),) for number in numbers
            },
        ).info_json()
        for name, numbers in IDS.items()
    }  # fmt: skip


@pytest.mark.parametrize(("version", "wanted"), [(0, OLD), (401, NEW), (513, NEW)])
@pytest.mark.parametrize("is_compressed", [None, False, True])
def test_mappings_in_routes(version: int, wanted: bytes, is_compressed: bool | None) -> None:
    """Bare numbers as hashed for old clients, sorted texts for new ones, however registered."""
    mappings: dict[str, object] = infos()
    if is_compressed is not None:
        for name, info in mappings.items():
            body = write_registration(
                Registration({}, DataVersion(1), mappings={"rt": info}), is_compressed=is_compressed
            )
            read = read_registration(body, is_compressed=is_compressed, version=513, now_ms=1)
            mappings[name] = read.mappings["rt"]
    body = route_body(Route([], [], {}, mappings), version, is_standard=False)
    assert body[body.index(b'"topicQueue') :] == wanted
