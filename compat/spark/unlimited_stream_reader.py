"""
``spark.readStream`` before Spark 4.2: every micro-batch goes to the end of what is there.

These releases do not say from where a source is to go on, nor within which limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.store_follower import StoreFollower, StreamOffset, not_behind

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from logstore.compat.spark.options import ReadOptions


class UnlimitedStreamReader(StoreFollower):
    """
    Follows a store for a Spark that only asks how far it goes.

    Raises:
        OptionError: the options limit a micro-batch.

    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        trigger = options.trigger
        for name, count in (
            ("maxOffsetsPerTrigger", trigger.offset_count_max),
            ("minOffsetsPerTrigger", trigger.offset_count_min),
        ):
            if count:
                raise OptionError(name, count, "is not kept before Spark 4.2, which says limits")
        self._reached: StreamOffset = {}

    def initialOffset(self) -> StreamOffset:  # noqa: N802 - Spark's name
        """Return where a new query starts; one with a checkpoint goes on there."""
        self._reached = super().initialOffset()
        return self._reached

    def latestOffset(self) -> StreamOffset:  # type: ignore[override]  # noqa: N802 - as it was
        """Return where the store ends now; never less than before."""
        latest = self.end_offset()
        not_behind(self._reached, latest)
        self._reached = latest
        return latest
