"""
How far groups have consumed: ``config/consumerOffset.json``.

Source: ``ConsumerOffsetManager``, ``LmqConsumerOffsetManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from logstore.host import Host
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.java_maps import in_concurrent_map_order, in_hash_map_order
from logstore.segments.rocketmq.tables.json_fields import as_int, as_int32, as_object
from logstore.segments.rocketmq.tables.json_table import JsonTable

SEPARATOR = "@"
LIGHT_QUEUE_PREFIX = "%LMQ%"
NO_QUEUE_OFFSET = -1
_INITIAL_CAPACITY = 512
_GROUP_MAP_CAPACITY = 128
_TOPIC_SET_CAPACITY = 8

#: queue offsets by topic@group and queue id
OffsetsByKey = dict[str, dict[int, int]]


class ConsumerOffsetTable(JsonTable):
    """
    Queue offsets by topic, group and queue (``ConsumerOffsetManager``).

    Keys are ``topic@group``. `offsets` are committed ones, `pull_offsets` (5.x) where a group
    pulled last, `reset_offsets` what a reset left to be told to the clients (never in the file).
    `data_version` (5.x) goes on every `version_step` commits
    (``consumerOffsetUpdateVersionStep``).
    """

    file_name = "consumerOffset.json"

    def __init__(
        self,
        host: Host,
        directory: str,
        release: Release = Release.V5,
        *,
        version_step: int = 500,
        answers_resets: bool = True,
    ) -> None:
        super().__init__(host, directory, release)
        self.offsets: OffsetsByKey = {}
        self.pull_offsets: OffsetsByKey = {}
        self.reset_offsets: OffsetsByKey = {}
        self.data_version = DataVersion(host.clock.wall_ms())
        self.version_step = version_step
        #: whether queries are answered with a pending reset (``useServerSideResetOffset``)
        self.answers_resets = answers_resets
        #: told of every committed offset that is new or other: (group, topic, queue id, offset)
        self.on_commit: Callable[[str, str, int, int], None] | None = None
        self._commit_count = 0
        self._other_fields: dict[str, Any] = {}

    # one group in one topic

    def commit(self, group: str, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """Set the offset, forth or back, and return the one before, None if there was none."""
        queues = self.offsets.setdefault(f"{topic}{SEPARATOR}{group}", {})
        previous = queues.get(queue_id)
        queues[queue_id] = queue_offset
        self.is_dirty = True
        self._commit_count += 1
        if self._commit_count % self.version_step == 0:
            self.advance_version()
        if self.on_commit is not None and previous != queue_offset:
            self.on_commit(group, topic, queue_id, queue_offset)
        return previous

    def commit_pull(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        """Note where a group pulled last."""
        self.pull_offsets.setdefault(f"{topic}{SEPARATOR}{group}", {})[queue_id] = queue_offset
        self.is_dirty = True

    def query(self, group: str, topic: str, queue_id: int) -> int:
        """Return the committed offset (or the one of a pending reset), -1 if there is none."""
        key = f"{topic}{SEPARATOR}{group}"
        if self.answers_resets and key in self.reset_offsets:
            pending = self.reset_offsets[key].get(queue_id)
            if pending is not None:
                return pending
        queues = self.offsets.get(key)
        return NO_QUEUE_OFFSET if queues is None else queues.get(queue_id, NO_QUEUE_OFFSET)

    def query_pull(self, group: str, topic: str, queue_id: int) -> int:
        """Return where the group pulled last, or the committed offset, or -1."""
        queues = self.pull_offsets.get(f"{topic}{SEPARATOR}{group}")
        found = None if queues is None else queues.get(queue_id)
        return self.query(group, topic, queue_id) if found is None else found

    def clear_pull(self, group: str, topic: str) -> None:
        """Forget where the group pulled last in a topic."""
        if self.pull_offsets.pop(f"{topic}{SEPARATOR}{group}", None) is not None:
            self.is_dirty = True

    def of_group(self, group: str, topic: str) -> dict[int, int] | None:
        """Return a copy of the committed offsets by queue, None if there are none."""
        queues = self.offsets.get(f"{topic}{SEPARATOR}{group}")
        return None if queues is None else dict(queues)

    # topics and groups

    def topics_of(self, group: str) -> set[str]:
        """Return the topics in which a group committed (``whichTopicByConsumer``)."""
        return {topic for topic, name in _pairs(self.offsets) if name == group}

    def groups_of(self, topic: str) -> set[str]:
        """Return the groups that committed in a topic (``whichGroupByTopic``)."""
        return {group for name, group in _pairs(self.offsets) if name == topic}

    def min_offsets(self, topic: str) -> dict[int, int]:
        """Return the lowest committed offset of all groups in a topic, by queue."""
        found: dict[int, int] = {}
        for group in self.groups_of(topic):
            for queue_id, committed in self.offsets[f"{topic}{SEPARATOR}{group}"].items():
                found[queue_id] = min(committed, found.get(queue_id, committed))
        return found

    def remove_group(self, group: str) -> bool:
        """Forget a group's offsets; tell whether there were any committed ones."""
        return self._remove([key for key in self._keys() if key[1] == group])

    def remove_topic(self, topic: str) -> bool:
        """Forget a topic's offsets; tell whether there were any committed ones."""
        return self._remove([key for key in self._keys() if key[0] == topic])

    def forget(self, group: str, topic: str) -> bool:
        """Forget what a group has of a topic; tell whether it had committed anything."""
        return self._remove([(topic, group)])

    def _keys(self) -> set[tuple[str, str]]:
        """Return (topic, group) of all offsets, committed or not."""
        return {*_pairs(self.offsets), *_pairs(self.pull_offsets), *_pairs(self.reset_offsets)}

    def _remove(self, keys: list[tuple[str, str]]) -> bool:
        """Forget the offsets of (topic, group); tell whether there were any committed ones."""
        had_committed = False
        for topic, group in keys:
            key = f"{topic}{SEPARATOR}{group}"
            had_committed = self.offsets.pop(key, None) is not None or had_committed
            self.pull_offsets.pop(key, None)
            self.reset_offsets.pop(key, None)
            self.is_dirty = True
        return had_committed

    def clone(self, source_group: str, target_group: str, topic: str) -> None:
        """Give a group the offsets of another, in place of its own; nothing if it has none."""
        queues = self.offsets.get(f"{topic}{SEPARATOR}{source_group}")
        if queues is not None:
            self.offsets[f"{topic}{SEPARATOR}{target_group}"] = dict(queues)
            self.is_dirty = True

    # resets on the server

    def assign_reset(self, topic: str, group: str, queue_id: int, queue_offset: int) -> None:
        """Reset on the server: commit, and answer queries with it until it is taken."""
        if not topic or not group or queue_id < 0 or queue_offset < 0:
            return  # as Java, which logs it
        key = f"{topic}{SEPARATOR}{group}"
        self.reset_offsets.setdefault(key, {})[queue_id] = queue_offset
        self.offsets.setdefault(key, {})[queue_id] = queue_offset
        self.is_dirty = True

    def has_reset(self, topic: str, group: str, queue_id: int) -> bool:
        """Tell whether a reset is pending."""
        return queue_id in self.reset_offsets.get(f"{topic}{SEPARATOR}{group}", {})

    def take_reset(self, topic: str, group: str, queue_id: int) -> int | None:
        """Return and forget a pending reset (``queryThenEraseResetOffset``)."""
        return self.reset_offsets.get(f"{topic}{SEPARATOR}{group}", {}).pop(queue_id, None)

    # the file

    def load(self) -> bool:
        """
        Read the file as a broker does that starts; see :meth:`JsonTable.load`.

        Where groups have pulled stands in it, and Java does not read that: it begins anew.
        """
        is_there = super().load()
        self.pull_offsets.clear()
        return is_there

    def advance_version(self) -> None:
        """Say that something changed that others are to know."""
        self.data_version = self.data_version.next(self.host.clock.wall_ms())
        self.is_dirty = True

    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it."""
        fields: dict[str, Any] = {**self._other_fields, "offsetTable": _ordered(self.offsets)}
        if self.release is Release.V5:
            fields["dataVersion"] = self.data_version.to_json()
            fields["groupTopicMap"] = self._group_topic_map()
        if self.release is Release.V5 or self.pull_offsets:
            fields["pullOffsetTable"] = _ordered(self.pull_offsets)
        return dict(sorted(fields.items()))

    def _group_topic_map(self) -> dict[str, list[str]]:
        """Return what Java's getter of that name makes of the keys; nobody reads it."""
        topics: dict[str, list[str]] = {}
        for topic, group in _pairs(in_concurrent_map_order(self.offsets, _INITIAL_CAPACITY)):
            topics.setdefault(group, []).append(topic)
        return {
            group: in_hash_map_order(topics[group], _TOPIC_SET_CAPACITY)
            for group in in_hash_map_order(topics, _GROUP_MAP_CAPACITY)
        }

    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file, or leave it. Raises JsonTypeError."""
        others = dict(content)
        version = DataVersion.from_json(others.pop("dataVersion", None))
        others.pop("groupTopicMap", None)
        offsets = _read(others.pop("offsetTable", None))
        pull_offsets = _read(others.pop("pullOffsetTable", None))
        self.offsets, self.pull_offsets = offsets, pull_offsets
        self.data_version = version or self.data_version
        self._other_fields = {str(name): value for name, value in others.items()}


class LightConsumerOffsetTable(ConsumerOffsetTable):
    """
    Offsets of a broker with light message queues (``LmqConsumerOffsetManager``, ``enableLmq``).

    A group whose name starts with ``%LMQ%`` has one offset a topic, in `light_offsets`; all others
    are as ever, in the same file.
    """

    file_name = "lmqConsumerOffset.json"

    def __init__(
        self,
        host: Host,
        directory: str,
        release: Release = Release.V5,
        *,
        version_step: int = 500,
        answers_resets: bool = True,
    ) -> None:
        super().__init__(
            host, directory, release, version_step=version_step, answers_resets=answers_resets
        )
        self.light_offsets: dict[str, int] = {}

    def load(self) -> bool:
        """Read the file as a broker does that starts: Java counts this table's version anew."""
        version = self.data_version
        is_there = super().load()
        self.data_version = version
        return is_there

    def commit(self, group: str, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """Set the offset and return the one before, None if there was none."""
        if not group.startswith(LIGHT_QUEUE_PREFIX):
            return super().commit(group, topic, queue_id, queue_offset)
        key = f"{topic}{SEPARATOR}{group}"
        previous = self.light_offsets.get(key)
        self.light_offsets[key] = queue_offset
        self.is_dirty = True
        return previous

    def query(self, group: str, topic: str, queue_id: int) -> int:
        """Return the committed offset, -1 if there is none."""
        if not group.startswith(LIGHT_QUEUE_PREFIX):
            return super().query(group, topic, queue_id)
        return self.light_offsets.get(f"{topic}{SEPARATOR}{group}", NO_QUEUE_OFFSET)

    def of_group(self, group: str, topic: str) -> dict[int, int] | None:
        """Return committed offsets by queue; a light group has queue 0 only."""
        if not group.startswith(LIGHT_QUEUE_PREFIX):
            return super().of_group(group, topic)
        found = self.light_offsets.get(f"{topic}{SEPARATOR}{group}")
        return {} if found is None else {0: found}

    def assign_reset(self, topic: str, group: str, queue_id: int, queue_offset: int) -> None:
        """Reset on the server; a light group's offset only changes if there is one."""
        is_light = topic.startswith(LIGHT_QUEUE_PREFIX) and group.startswith(LIGHT_QUEUE_PREFIX)
        if not is_light or queue_id < 0 or queue_offset < 0:
            super().assign_reset(topic, group, queue_id, queue_offset)
            return
        key = f"{topic}{SEPARATOR}{group}"
        self.reset_offsets.setdefault(key, {})[queue_id] = queue_offset
        if key in self.light_offsets:
            self.light_offsets[key] = queue_offset
            self.is_dirty = True

    def remove_group(self, group: str) -> bool:
        """Forget a group's offsets; tell whether there were any committed ones."""
        if not group.startswith(LIGHT_QUEUE_PREFIX):
            return super().remove_group(group)
        removed = [key for key in self.light_offsets if key.split(SEPARATOR)[1:] == [group]]
        for key in removed:
            del self.light_offsets[key]
        self.is_dirty = self.is_dirty or bool(removed)
        return bool(removed)

    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it."""
        light = in_concurrent_map_order(self.light_offsets, _INITIAL_CAPACITY)
        return dict(sorted({**super().to_json(), "lmqOffsetTable": light}.items()))

    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file, or leave it. Raises JsonTypeError."""
        others = dict(content)
        table = as_object(others.pop("lmqOffsetTable", None))
        light = {str(key): as_int(found) for key, found in table.items()}
        super().take_json(others)
        self.light_offsets = light


def _pairs(offsets: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (topic, group) of each key that is made of just these."""
    split = (key.split(SEPARATOR) for key in offsets)
    return [(parts[0], parts[1]) for parts in split if len(parts) == 2]


def _ordered(offsets: OffsetsByKey) -> dict[str, dict[int, int]]:
    """Return the table in Java's order: queues ascend."""
    ordered = in_concurrent_map_order(offsets, _INITIAL_CAPACITY)
    return {key: dict(sorted(queues.items())) for key, queues in ordered.items()}


def _read(content: Any) -> OffsetsByKey:
    """Return the offsets of a file's table. Raises JsonTypeError."""
    return {
        str(key): {as_int32(queue): as_int(found) for queue, found in as_object(queues).items()}
        for key, queues in as_object(content).items()
    }
