"""The static topics of a broker, and what it knows of their logic queues."""

from __future__ import annotations

import importlib
import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.rocketmq.static_topics.broker_calls import BrokerCalls
from logstore.compat.rocketmq.static_topics.mapping_checks import check_follows, check_items
from logstore.segments.rocketmq.tables.queue_mappings import (
    QueueMappingTable,
    TopicQueueMappingDetail,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.static_topics.mapping_cleaning import MappingCleaning

_log = logging.getLogger(__name__)

#: how often mappings are looked at for what is of no use any more
CLEAN_INTERVAL_MS = 5 * 60 * 1000


class StaticTopics:
    """
    Keeps and changes mappings (TopicQueueMappingManager).

    `details` are those of all static topics, by name.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        store = broker.store
        self.table = QueueMappingTable(
            broker.host, f"{store.directory}/config", store.options.release
        )
        self.table.load()
        self.details = self.table.details

    @cached_property
    def calls(self) -> BrokerCalls:
        """How other brokers are asked."""
        return BrokerCalls(self._broker)

    @cached_property
    def cleaning(self) -> MappingCleaning:
        """What clears mappings of what is of no use any more."""
        module = importlib.import_module("logstore.compat.rocketmq.static_topics.mapping_cleaning")
        found: MappingCleaning = module.MappingCleaning(self._broker)
        return found

    def infos(self, topics: Iterable[str]) -> dict[str, Any]:
        """Return what name servers are told of those of the topics that are static."""
        details = self.details
        return {topic: details[topic].info_json() for topic in topics if topic in details}

    def put(self, detail: TopicQueueMappingDetail, *, is_forced: bool = False) -> None:
        """
        Take in what is to be known of a topic from now on, on the disk too.

        Raises:
            MappingRefusedError: it contradicts itself, or what is known and not to be `forced`.
            OSError: the disk refused, and nothing has changed.

        """
        for items in detail.hosted_queues.values():
            check_items(items)
        old = self.details.get(detail.topic)
        if old is not None:
            if not is_forced:
                check_follows(old, detail)
            kept = {**old.hosted_queues, **detail.hosted_queues}
            detail = attrs.evolve(detail, hosted_queues=kept)
        self.replace(detail)

    def replace(self, detail: TopicQueueMappingDetail) -> None:
        """Set what is known of a topic. Raises OSError; nothing has changed then."""
        self._change(detail.topic, detail)

    def delete(self, topic: str) -> None:
        """Forget a topic. Raises OSError; it is still there then."""
        if topic in self.details:
            self._change(topic, None)

    def _change(self, topic: str, detail: TopicQueueMappingDetail | None) -> None:
        old = self.details.get(topic)
        self._set(topic, detail)
        self.table.advance_version()
        try:
            self.table.persist()
        except OSError:
            self._set(topic, old)
            raise
        self._broker.topics.routes.pop(topic, None)
        self._broker.choose_handlers()
        _log.info("static topic %s: %s", topic, detail)

    def _set(self, topic: str, detail: TopicQueueMappingDetail | None) -> None:
        if detail is None:
            self.details.pop(topic, None)
        else:
            self.details[topic] = detail

    def clean(self) -> None:
        """Look for what is of no use any more, where there is any static topic."""
        if self.details:
            self.cleaning.run()
