"""
Clears mappings of what is of no use any more (TopicQueueMappingCleanService).

That is the oldest stretch of a logic queue once all its messages are gone, and all that is known of
a logic queue that has moved on twice since. Both happen at the hours in which files go
(``deleteWhen``). Java asks a name server who leads now; here one broker after the other is asked.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.rocketmq.static_topics.broker_calls import CallError
from logstore.compat.rocketmq.steps import begin
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.segments.rocketmq.tables.java_json import JsonError, ObjectKey, parse_json
from logstore.segments.rocketmq.tables.json_fields import JsonTypeError, as_int, as_object
from logstore.segments.rocketmq.tables.queue_mappings import TopicQueueMappingDetail

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.waiting import Later
    from logstore.segments.rocketmq.tables.queue_mappings import Items, LogicQueueMappingItem

_log = logging.getLogger(__name__)
#: after so many brokers nobody is asked any more who leads
_HOPS_MAX = 16


class MappingCleaning:
    """Looks at all mappings of one broker, one round at a time."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._round: Later[bool] | None = None

    def run(self) -> None:
        """Begin a round, where it is the hour for it and none is under way."""
        is_under_way = self._round is not None and not self._round.done
        if is_under_way or not self._broker.store.cleaning.is_hour:
            return
        self._round = begin(self._clean())

    async def _clean(self) -> bool:
        for topic in tuple(self._broker.static_topics.details):
            for clean in (self._drop_emptied, self._drop_outdated):
                detail = self._broker.static_topics.details.get(topic)
                if detail is None:
                    break
                try:
                    await clean(detail)
                except (CallError, JsonError, JsonTypeError, OSError) as error:
                    _log.warning("static topic %s is not cleaned: %s", topic, error)
        return True

    async def _drop_emptied(self, detail: TopicQueueMappingDetail) -> None:
        """Forget the oldest stretches that have no messages left."""
        led = {
            queue_id: items
            for queue_id, items in detail.hosted_queues.items()
            if len(items) > 1 and detail.leads(queue_id)
        }
        names = dict.fromkeys(items[0].broker_name for items in led.values())
        stats = {name: await self._stats_of(detail, name) for name in names}
        kept: dict[int, Items] = {
            queue_id: items[1:]
            for queue_id, items in led.items()
            if _is_emptied(stats[items[0].broker_name], detail.topic, items[0])
        }
        if kept:
            self._replace(detail, {**detail.hosted_queues, **kept})

    async def _drop_outdated(self, detail: TopicQueueMappingDetail) -> None:
        """Forget logic queues that have moved on from where they went from here."""
        gone: list[int] = []
        known = {detail.broker_name: detail}
        for queue_id, items in detail.hosted_queues.items():
            if not items or detail.leads(queue_id):
                continue
            leader = await self._leader_of(queue_id, detail, known)
            if leader is not None and leader != items[-1].broker_name:
                gone.append(queue_id)
        if gone:
            hosted = detail.hosted_queues.items()
            self._replace(detail, {key: items for key, items in hosted if key not in gone})

    async def _leader_of(
        self,
        queue_id: int,
        detail: TopicQueueMappingDetail,
        known: dict[str, TopicQueueMappingDetail],
    ) -> str | None:
        """Return who has a logic queue now, None if brokers do not agree."""
        name = detail.hosted_queues[queue_id][-1].broker_name
        for _ in range(_HOPS_MAX):
            if name not in known:
                known[name] = await self._detail_of(detail.topic, name)
            found = known[name]
            if (found.broker_name, found.epoch) != (name, detail.epoch):
                return None
            if found.total_queue_count != detail.total_queue_count:
                return None
            items = found.hosted_queues.get(queue_id)
            if not items:
                return None
            if found.leads(queue_id):
                return name
            name = items[-1].broker_name
        return None

    def _replace(self, detail: TopicQueueMappingDetail, hosted: dict[int, Items]) -> None:
        """Set what is left, unless somebody has changed the topic meanwhile."""
        statics = self._broker.static_topics
        if statics.details.get(detail.topic) is detail:
            statics.replace(attrs.evolve(detail, hosted_queues=hosted))

    async def _stats_of(self, detail: TopicQueueMappingDetail, name: str) -> dict[Any, Any]:
        if name == detail.broker_name:
            return self._own_stats(detail)
        answer = await self._broker.static_topics.calls.ask(
            name,
            RequestCode.GET_TOPIC_STATS_INFO,
            {"topic": detail.topic, "bname": name, "lo": "false"},
        )
        return as_object(as_object(parse_json(bytes(answer.body).decode())).get("offsetTable"))

    def _own_stats(self, detail: TopicQueueMappingDetail) -> dict[Any, Any]:
        store, topic = self._broker.store, detail.topic
        queue_ids = {items[0].queue_id for items in detail.hosted_queues.values() if items}
        return {
            _key(topic, detail.broker_name, queue_id): {
                "maxOffset": store.max_queue_offset(topic, queue_id),
                "minOffset": store.min_queue_offset(topic, queue_id),
            }
            for queue_id in queue_ids
        }

    async def _detail_of(self, topic: str, name: str) -> TopicQueueMappingDetail:
        answer = await self._broker.static_topics.calls.ask(
            name, RequestCode.GET_TOPIC_CONFIG, {"topic": topic, "bname": name, "lo": "true"}
        )
        content = as_object(parse_json(bytes(answer.body).decode()))
        return TopicQueueMappingDetail.from_json(as_object(content.get("mappingDetail")))


def _key(topic: str, broker_name: str, queue_id: int) -> ObjectKey:
    return ObjectKey.of({"brokerName": broker_name, "queueId": queue_id, "topic": topic})


def _is_emptied(stats: dict[Any, Any], topic: str, item: LogicQueueMappingItem) -> bool:
    """Tell whether a queue has had messages and has none any more, or never had any."""
    row = as_object(stats.get(_key(topic, item.broker_name, item.queue_id)))
    if not row:
        return False
    low, high = as_int(row.get("minOffset", 0)), as_int(row.get("maxOffset", 0))
    return high in (low, 0)
