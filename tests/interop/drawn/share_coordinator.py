"""The share coordinator is told of states, as brokers do, and asked for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.interop.drawn.world import World

#: a real broker loads what it knows, and hears of topics, a little later
_SECONDS_MAX = 5.0
#: free to be delivered, acquired (which is never kept), done, given up, and what there is not
DELIVERY_STATES = (0, 0, 2, 2, 4, 4, 1, 3, 7, -1)


def initialize(world: World) -> None:
    """Begin the states of partitions."""
    ask(
        world,
        "InitializeShareGroupState",
        lambda: {
            "StateEpoch": world.pick(0, 0, 1, 2, -1),
            "StartOffset": world.pick(-1, 0, 0, 5, 10),
        },
    )


def read(world: World) -> None:
    """Read states whole, as who leads the partitions does."""
    ask(world, "ReadShareGroupState", lambda: {"LeaderEpoch": world.pick(0, 0, 0, 1, 2, -1)})


def summarize(world: World) -> None:
    """Ask where states begin."""
    ask(
        world,
        "ReadShareGroupStateSummary",
        lambda: {"LeaderEpoch": world.pick(0, 0, 0, 1, 2, -1)},
    )


def forget(world: World) -> None:
    """Delete states."""
    ask(world, "DeleteShareGroupState", dict)


def write(world: World) -> None:
    """Go on with states."""

    def fields() -> dict[str, Any]:
        batches = []
        for _ in range(world.pick(0, 1, 1, 2, 3)):
            first = world.chance.randrange(20)
            batches.append(
                {
                    "FirstOffset": first,
                    "LastOffset": first + world.pick(0, 0, 1, 2, 5, 9),
                    "DeliveryState": world.chance.choice(DELIVERY_STATES[:6])
                    if world.likely(0.95)
                    else world.chance.choice(DELIVERY_STATES),
                    "DeliveryCount": world.pick(1, 1, 1, 2, 5),
                }
            )
        return {
            "StateEpoch": world.pick(0, 0, 0, 1, 2, -1),
            "LeaderEpoch": world.pick(0, 0, 0, 1, 2, -1),
            "StartOffset": world.pick(-1, -1, 0, 3, 5, 12),
            "DeliveryCompleteCount": world.pick(-1, 0, 1, 5),
            "StateBatches": batches,
        }

    ask(world, "WriteShareGroupState", fields)


def ask(world: World, api: str, fields: Callable[[], dict[str, Any]]) -> None:
    """Put a question about partitions of a group, once their coordinator is there."""
    group = world.numbered("state") if world.likely(0.97) else ""
    items: dict[str, dict[str, Any]] = {}
    for _ in range(world.pick(1, 1, 2)):
        topic = world.topic()
        index = world.partition(topic)
        item = items.setdefault(topic.name, {"TopicId": topic.id, "Partitions": []})
        if all(one["Partition"] != index for one in item["Partitions"]):
            item["Partitions"].append({"Partition": index, **fields()})
    version = world.version(api)
    if version < 1:
        for item in items.values():
            for one in item["Partitions"]:
                one.pop("DeliveryCompleteCount", None)
    topics = list(items.values())
    await_coordinator(world, group, topics)
    world.ask(api, {"GroupId": group, "Topics": topics}, version)


def await_coordinator(world: World, group: str, topics: list[dict[str, Any]]) -> None:
    """Give the real broker time to load what it knows, and to know which topics are gone."""
    asked = [
        {"TopicId": item["TopicId"],
         "Partitions": [{"Partition": one["Partition"]} for one in item["Partitions"]]}
        for item in topics
    ]  # fmt: skip
    deadline = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < deadline:
        body = {"GroupId": group, "Topics": asked}
        answer = world.twin.exchange("ReadShareGroupStateSummary", 0, body)
        if not answer.is_told or _codes(answer.ours) == _codes(answer.real):
            return
        time.sleep(0.02)


def _codes(answer: Any) -> list[int]:
    return sorted(one["ErrorCode"] for item in answer["Results"] for one in item["Partitions"])
