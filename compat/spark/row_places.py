"""Where rows go: topics that there may be, and partitions that they have."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.row_rules import RowRules

#: topic and partition
Place = tuple[str, int]


@attrs.frozen
class RowPlaces:
    """
    The topics of the store that is written to, and how many partitions each has.

    `topic` is where all rows go; None where each says so. New topics get `partition_count_new`.
    """

    topic: str | None
    partition_counts: Mapping[str, int]
    partition_count_new: int
    rules: RowRules
    _sound: set[str] = attrs.field(factory=set[str], init=False)

    def check_topic(self, topic: str | None) -> None:
        """
        Check where a row goes.

        Raises:
            OptionError: nowhere, or to a topic that cannot be.

        """
        if topic is None:
            raise OptionError("topic", None, "must be given where rows have no topic")
        if topic not in self._sound and topic not in self.partition_counts:
            self.rules.check_topic(topic)
        self._sound.add(topic)

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has, or will have."""
        return self.partition_counts.get(topic, self.partition_count_new)

    def check_partition(self, topic: str, index: int) -> None:
        """
        Check a partition that a row names.

        Raises:
            OptionError: its topic does not have it.

        """
        count = self.partition_count(topic)
        if not 0 <= index < count:
            raise OptionError("partition", index, f"{topic} has {count} partitions")
