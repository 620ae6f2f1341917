"""What was kept of records that became messages, found again for the way back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.batch_packing import Rests
from logstore.compat.spark.convert.kept_fields import KeptFields
from logstore.compat.spark.convert.offset_map import REST_PATTERN
from logstore.compat.spark.convert.restored_messages import bytes_of


def rests_kept_in(directory: str) -> KeptFields:
    """Return the rests of all partitions of a store."""
    return KeptFields(directory, REST_PATTERN, "targetOffset")


class KeptRests:
    """
    The rests of one partition of a RocketMQ store; one that was never converted has none.

    `kept` are those of the whole store, if somebody has them already.
    """

    def __init__(
        self, directory: str, topic: str, partition: int, kept: KeptFields | None = None
    ) -> None:
        self._kept = kept or rests_kept_in(directory)
        self._place = topic, partition

    def of(self, queue_offsets: NDArray[np.int64]) -> Rests | None:
        """Return those of the messages at these queue offsets, in order; None without any."""
        found = self._kept.table(*self._place, queue_offsets)
        if found is None:
            return None
        table, rows = found
        data, bounds = bytes_of(table.column("rest").combine_chunks())
        return Rests(data, bounds.astype(np.int64), rows)
