"""The topics of a broker: those it makes at its start, and those it makes when somebody sends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.settings import Settings
from logstore.compat.rocketmq.topics import names
from logstore.segments.rocketmq.messages.system_flags import MULTI_TAGS
from logstore.segments.rocketmq.queues.batch_consume_queue import BatchConsumeQueue
from logstore.segments.rocketmq.tables.topics import (
    PERM_INHERIT,
    PERM_READ,
    PERM_WRITE,
    TopicConfig,
    TopicTable,
)

if TYPE_CHECKING:
    from logstore.compat.rocketmq.found_queues import FindQueues
    from logstore.compat.rocketmq.found_routes import Cluster
    from logstore.segments.rocketmq.queues.consume_queues import AnyQueue
    from logstore.segments.rocketmq.store import RocketMQStore

_log = logging.getLogger(__name__)

READ_WRITE = PERM_READ | PERM_WRITE
_SCHEDULE_QUEUE_COUNT = 18
_UNIT_FLAG, _UNIT_SUB_FLAG = 1, 2


def unit_sys_flag(topic: str, *, is_unit_mode: bool) -> int:
    """Return the system flag of a topic that a client of a unit makes (TopicSysFlag)."""
    if not is_unit_mode:
        return 0
    return _UNIT_SUB_FLAG if topic.startswith(names.RETRY_PREFIX) else _UNIT_FLAG


@attrs.frozen
class SendRoute:
    """What sending needs to know of a topic that is nothing special."""

    queue_count: int
    sys_flag: int
    #: a batch stays one message in its queues
    keeps_batches: bool


class BrokerTopics:
    """
    Finds, makes and changes topics.

    `on_change` is told of every topic that is new or other, `on_remove` of every one that has gone.

    Source: ``TopicConfigManager``.
    """

    def __init__(self, table: TopicTable, settings: Settings) -> None:
        self.table = table
        self._settings = settings
        self.on_change: Callable[[TopicConfig], None] | None = None
        self.on_remove: Callable[[str], None] | None = None
        #: told that the broker's own permission is another one
        self.on_rights: Callable[[], None] | None = None
        #: told of a topic that is not there yet, before it is
        self.before_new: Callable[[TopicConfig], None] | None = None
        #: asks a name server for a topic's queues, those of other brokers among them
        self.find_queues: FindQueues | None = None
        #: tells where topics are on all brokers, and reaches those; None before the start
        self.cluster: Cluster | None = None
        #: beside the well-known ones, those named after broker and cluster
        self.system_topics: set[str] = set(names.SYSTEM_TOPICS)
        #: static topics: what is sent to them is looked at first
        self.mapped: Collection[str] = ()
        #: topics that were found fit to be sent to without another look
        self.routes: dict[str, SendRoute] = {}

    def get(self, topic: str) -> TopicConfig | None:
        """Return a topic, which every light queue is by itself; None if there is none."""
        return _topic(topic, 1) if self._is_light(topic) else self.table.get(topic)

    def _is_light(self, topic: str) -> bool:
        """Tell whether it is a light queue, of which nothing is kept (LmqTopicConfigManager)."""
        return self._settings.has_light_queues and topic.startswith(names.LMQ_PREFIX)

    def is_system(self, topic: str) -> bool:
        """Tell whether a topic is the broker's own."""
        return topic in self.system_topics or topic.startswith(names.SYSTEM_PREFIX)

    def begin(self, store: RocketMQStore) -> None:
        """Make what every broker has, and say of which queues of the store nobody can read."""
        self.before_new = store.prepare_topic
        self._add_system_topics()
        unlisted: dict[str, list[AnyQueue]] = {}
        for queue in store.consume_queues:
            is_known = queue.topic in self.table.topics or queue.topic.startswith(names.LMQ_PREFIX)
            if not is_known and queue.max_queue_offset > queue.min_queue_offset:
                unlisted.setdefault(queue.topic, []).append(queue)
        for topic, queues in sorted(unlisted.items()):
            self._tell_of_unlisted(topic, queues)

    def _tell_of_unlisted(self, topic: str, queues: Sequence[AnyQueue]) -> None:
        """Say how to get at them; the topic may have been deleted, so it is not made here."""
        count = max(queue.queue_id for queue in queues) + 1
        command = f"mqadmin updateTopic -t {topic} -r {count} -w {count}"
        if isinstance(queues[0], BatchConsumeQueue):
            command += " -a +queue.type=BatchCQ"
        _log.warning(
            "%s: has no topic %s, of which %d queues hold messages; to have them read, make it "
            "again: %s", self.table.path, topic, len(queues), command,
        )  # fmt: skip

    def _add_system_topics(self) -> None:
        """Make what every broker has at its start; a topic that stands as it is stays as it is."""
        if not self.table.topics:
            self.table.begin()
        for config in self._system_topics():
            self.system_topics.add(config.topic_name)
            known = self.table.get(config.topic_name)
            if known != config:
                self.table.put_system(config)

    def _system_topics(self) -> list[TopicConfig]:
        settings = self._settings
        cluster, broker = settings.cluster_name, settings.broker_name
        named = [
            _topic(names.SELF_TEST_TOPIC, 1),
            _topic(names.BENCHMARK_TOPIC, 1024),
            _topic(cluster, 16, PERM_INHERIT | (READ_WRITE if settings.has_cluster_topic else 0)),
            _topic(broker, 1, PERM_INHERIT | (READ_WRITE if settings.has_broker_topic else 0)),
            _topic(names.OFFSET_MOVED_TOPIC, 1),
            _topic(names.SCHEDULE_TOPIC, _SCHEDULE_QUEUE_COUNT),
            _topic(f"{cluster}_REPLY_TOPIC", 1),
            _topic(names.revive_topic(cluster), settings.revive_queue_count),
            _topic(f"rmq_sys_SYNC_BROKER_MEMBER_{broker}", 1, PERM_INHERIT),
            _topic(names.HALF_TOPIC, 1),
            _topic(names.OP_HALF_TOPIC, 1),
            _topic(names.ROCKSDB_HALF_TOPIC, 1),
            _topic(names.ROCKSDB_OP_HALF_TOPIC, 1),
        ]
        if settings.auto_creates_topics:
            count = settings.default_topic_queue_count
            named.append(_topic(names.AUTO_CREATE_TOPIC, count, PERM_INHERIT | READ_WRITE))
        if settings.has_trace_topic:
            named.append(_topic(settings.trace_topic, 1))
        if settings.has_timer_wheel:
            named.append(_topic(names.TIMER_TOPIC, 1))
        return named

    def create_for_sender(
        self, topic: str, default_topic: str, queue_count: int, sys_flag: int
    ) -> TopicConfig | None:
        """
        Make the topic that somebody sends to as the default topic says, if that may be inherited.

        Source: ``createTopicInSendMessageMethod``.
        """
        default = self.table.get(default_topic)
        if default is None:
            _log.warning("%s is not made: the default topic %s is missing", topic, default_topic)
            return None
        if default_topic == names.AUTO_CREATE_TOPIC and not self._settings.auto_creates_topics:
            default = attrs.evolve(default, perm=READ_WRITE)
            self.table.put_system(default)
        if not default.perm & PERM_INHERIT:
            _log.warning("%s is not made: %s cannot be inherited", topic, default_topic)
            return None
        count = max(0, min(queue_count, default.write_queue_count))
        config = TopicConfig(
            topic,
            count,
            count,
            default.perm & ~PERM_INHERIT,
            default.topic_filter_type,
            sys_flag,
        )
        self.put(config)
        return config

    def ensure(
        self,
        topic: str,
        queue_count: int,
        perm: int = READ_WRITE,
        *,
        is_order: bool | None = None,
        sys_flag: int = 0,
    ) -> TopicConfig:
        """
        Return a topic that the broker needs (retry, dead letters, half messages); make it if new.

        With `is_order` a topic that is there is made to say so, too. Source:
        ``createTopicInSendMessageBackMethod``.
        """
        known = self.table.get(topic)
        if known is None:
            known = TopicConfig(
                topic,
                queue_count,
                queue_count,
                perm,
                topic_sys_flag=sys_flag,
                is_order=bool(is_order),
            )
            self.put(known)
        elif is_order is not None and known.is_order != is_order:
            known = attrs.evolve(known, is_order=is_order)
            self.put(known)
        return known

    def learn_route(self, config: TopicConfig) -> None:
        """Remember that a topic can be sent to as it is, if that is so."""
        attributes = config.attributes
        is_plain = attributes.get("cleanup.policy") != "COMPACTION"
        is_plain = is_plain and config.topic_name not in self.mapped
        if is_plain and self._settings.permission & PERM_WRITE:
            queue_count = max(config.read_queue_count, config.write_queue_count)
            sys_flag = MULTI_TAGS if config.topic_filter_type == "MULTI_TAG" else 0
            route = SendRoute(queue_count, sys_flag, attributes.get("queue.type") == "BatchCQ")
            if self.routes.get(config.topic_name) != route:  # whoever knows it knows it by itself
                self.routes[config.topic_name] = route

    def put(self, config: TopicConfig) -> None:
        """
        Add or change a topic, on the disk too, and tell whoever wants to know.

        Raises:
            OSError: the disk refused, and nothing has changed: what is sent to a topic that a
                crash takes would be lost with it.

        """
        if self._is_light(config.topic_name):
            return
        known = self.table.get(config.topic_name)
        if known is None and self.before_new is not None:
            self.before_new(config)
        self.table.put(config)
        self._persist(config.topic_name, known)
        _log.info("topic %s: %s", config.topic_name, config)
        if self.on_change is not None:
            self.on_change(config)

    def rights_changed(self) -> None:
        """Tell that all topics are to be used otherwise, as the broker's own permission says."""
        self.table.advance_version()  # or name servers would take it for what they know
        if self.on_rights is not None:
            self.on_rights()

    def remove(self, topic: str) -> bool:
        """Forget a topic; tell whether it was there. Raises OSError; it is still there then."""
        removed = self.table.remove(topic)
        if removed is not None:
            self._persist(topic, removed)
            if self.on_remove is not None:
                self.on_remove(topic)
        return removed is not None

    def _persist(self, topic: str, known: TopicConfig | None) -> None:
        """Write what has changed of a topic, or take it back."""
        self.routes.pop(topic, None)
        try:
            self.table.persist()
        except OSError:
            self.table.restore(topic, known)
            raise


def _topic(name: str, queue_count: int, perm: int = READ_WRITE) -> TopicConfig:
    return TopicConfig(name, queue_count, queue_count, perm)
