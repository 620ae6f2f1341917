"""How far groups have consumed: ``config/consumerOffset.json`` (signatures)."""

from __future__ import annotations


class ConsumerOffsetTable:
    """
    Queue offsets by topic, group and queue (``ConsumerOffsetManager``); a :class:`JsonTable`.

    Keys are ``topic@group``. `offsets` are committed ones, `pull_offsets` (5.x) where a group
    pulled last, `reset_offsets` what a reset left to be told to the clients (never in the file).
    """

    def commit(self, group: str, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """Set the offset and return the one before, None if there was none."""
        raise NotImplementedError

    def commit_pull(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        """Note where a group pulled last."""
        raise NotImplementedError

    def query(self, group: str, topic: str, queue_id: int) -> int:
        """Return the committed offset (or the one of a pending reset), -1 if there is none."""
        raise NotImplementedError

    def query_pull(self, group: str, topic: str, queue_id: int) -> int:
        """Return where the group pulled last, or the committed offset, or -1."""
        raise NotImplementedError

    def of_group(self, group: str, topic: str) -> dict[int, int] | None:
        """Return committed offsets by queue, None if there are none."""
        raise NotImplementedError

    def topics_of(self, group: str) -> set[str]:
        """Return the topics in which a group committed (``whichTopicByConsumer``)."""
        raise NotImplementedError

    def groups_of(self, topic: str) -> set[str]:
        """Return the groups that committed in a topic (``whichGroupByTopic``)."""
        raise NotImplementedError

    def remove_group(self, group: str) -> bool:
        """Forget a group's offsets; tell whether there were any."""
        raise NotImplementedError

    def remove_topic(self, topic: str) -> bool:
        """Forget a topic's offsets; tell whether there were any."""
        raise NotImplementedError

    def clone(self, source_group: str, target_group: str, topic: str) -> None:
        """Give a group the offsets of another."""
        raise NotImplementedError

    def assign_reset(self, topic: str, group: str, queue_id: int, queue_offset: int) -> None:
        """Reset on the server: commit, and answer queries with it until it is taken."""
        raise NotImplementedError

    def has_reset(self, topic: str, group: str, queue_id: int) -> bool:
        """Tell whether a reset is pending."""
        raise NotImplementedError

    def take_reset(self, topic: str, group: str, queue_id: int) -> int | None:
        """Return and forget a pending reset (``queryThenEraseResetOffset``)."""
        raise NotImplementedError
