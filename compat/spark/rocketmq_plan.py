"""
From a RocketMQ store to work units: pieces of its commit log.

All topics stand in one log, so a unit is a range of bytes of one file with the bounds of the
queues that are wanted. Where a record starts the worker finds out: every record says its own
physical offset. No data is read to plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.compat.spark.log_end import end_damage
from logstore.compat.spark.offset_bounds import EARLIEST, LATEST, Bound
from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.options import FAILFAST, ReadOptions
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.rocketmq_unit import QueueBounds, RocketMQUnit
from logstore.segments.rocketmq.tables.consumer_offsets import LIGHT_QUEUE_PREFIX

if TYPE_CHECKING:
    from logstore.segments.rocketmq.queue import RocketMQQueue
    from logstore.segments.rocketmq.store import RocketMQStore

#: topics that hold what brokers keep for themselves; they are read when named
_SYSTEM = ("RMQ_SYS_", "rmq_sys_", "SCHEDULE_TOPIC_XXXX", "%LMQ%", "__")
#: topics that every broker makes at its start, and how many queues they get: of one with a
#: thousand, as a rule empty, nobody wants to hear
_MADE_AT_START = {"BenchmarkTest": 1024, "SELF_TEST_TOPIC": 1, "OFFSET_MOVED_EVENT": 1}
_REPLIES = "_REPLY_TOPIC"
Places = dict[tuple[str, int], int]


def plan_messages(store: RocketMQStore, options: ReadOptions, where: Where) -> list[RocketMQUnit]:
    """
    Return the units that hold all wanted messages, in the order of the commit log.

    Where damage ends the log of a store that was closed cleanly, a unit leads into it, to tell.

    Raises:
        OptionError: a topic that the options name is not there.
        CorruptEntryError: mode failfast, and there is such damage: what is behind it is unknown.

    """
    damage = end_damage(store)
    if damage is not None and options.mode == FAILFAST:
        raise damage
    queues = wanted_queues(store, options, where)
    bounds: dict[tuple[str, int], tuple[int, int]] = {}
    for key, queue in queues.items():
        start = max(_resolved(queue, options.start), where.offset_min, queue.start_offset)
        end = min(_resolved(queue, options.end), where.offset_max + 1, queue.end_offset)
        if start < end:
            bounds[key] = (start, end)
    if not bounds:
        return []
    shared = QueueBounds(bounds)
    log_end = store.commit_log.max_physical_offset
    unit_bytes = _unit_bytes(options, log_end - store.commit_log.min_physical_offset)
    units: list[RocketMQUnit] = []
    for file in store.commit_log.files():
        base, end = file.base_offset, min(file.next_offset, log_end)
        pieces = list(_pieces(file.path, base, end, unit_bytes))
        if damage is not None and file.path == damage.path:
            last = pieces.pop() if pieces else RocketMQUnit(file.path, base, 0, 0)
            pieces.append(attrs.evolve(last, end_position=last.end_position + 1))
        units += pieces
    if units:
        units[-1] = attrs.evolve(units[-1], is_last=True)
    return [unit.bounded(shared) for unit in units]


def wanted_queues(
    store: RocketMQStore, options: ReadOptions, where: Where
) -> dict[tuple[str, int], RocketMQQueue]:
    """Return the queues that are asked for, by topic and queue id."""
    topics = store.topics()
    options.choice.check(topics)
    _refuse_light(options)
    return {
        (topic, queue_id): queue
        for topic, queues in topics.items()
        if options.choice.is_by_name or not _is_internal(store, topic, queues)
        for queue_id, queue in queues.items()
        if options.wants(topic, queue_id) and where.wants(topic, queue_id)
    }


def _refuse_light(options: ReadOptions) -> None:
    """Refuse light queues: a scan of the log finds messages under the topics they were sent to."""
    choice = options.choice
    named = sorted(choice.topics or {topic for topic, _ in choice.assigned or ()})
    light = [topic for topic in named if topic.startswith(LIGHT_QUEUE_PREFIX)]
    if light:
        raise OptionError(
            choice.option,
            ",".join(light),
            "light queues lead to messages of other topics: name those, whose property "
            "INNER_MULTI_DISPATCH has the names of light queues",
        )


def _is_internal(store: RocketMQStore, topic: str, queues: Mapping[int, RocketMQQueue]) -> bool:
    """Tell whether a topic is the broker's own; some are only as long as nobody has used them."""
    if topic.startswith(_SYSTEM):
        return True
    config = store.topic_table.get(topic)
    if config is None:
        return False
    # Cluster and broker have topics of their names, and TBW102 is of this kind, too.
    is_made = config.is_inherited or config.read_queue_count == _MADE_AT_START.get(topic)
    if not is_made and topic.endswith(_REPLIES):
        cluster = store.topic_table.get(topic.removesuffix(_REPLIES))
        is_made = cluster is not None and cluster.is_inherited
    return is_made and not any(queue.end_offset for queue in queues.values())


def _unit_bytes(options: ReadOptions, log_bytes: int) -> int:
    """Return how much of a file a unit has: little enough for as many tasks as are wanted."""
    count_min = options.partition_count_min
    return (
        min(options.unit_bytes, max(1, log_bytes // count_min)) if count_min else options.unit_bytes
    )


def _pieces(path: str, base: int, end: int, unit_bytes: int) -> Iterator[RocketMQUnit]:
    for start in range(0, end - base, unit_bytes):
        yield RocketMQUnit(path, base, start, min(start + unit_bytes, end - base))


def queue_bounds(store: RocketMQStore, options: ReadOptions, bound: Bound) -> Places:
    """Return the queue offset that `bound` means in every wanted queue."""
    wanted = wanted_queues(store, options, Where())
    return {key: min(_resolved(queue, bound), queue.end_offset) for key, queue in wanted.items()}


def _resolved(queue: RocketMQQueue, bound: Bound) -> int:
    time_ms = bound.time_of(queue.topic, queue.index)
    if time_ms is not None:
        found = queue.offset_for_timestamp(time_ms)
        return (
            bound.unmatched(queue.topic, queue.index, queue.end_offset) if found is None else found
        )
    place = bound.offsets.get((queue.topic, queue.index), bound.everywhere)
    if place == EARLIEST:
        return queue.start_offset
    if place == LATEST:
        return queue.end_offset
    return place
