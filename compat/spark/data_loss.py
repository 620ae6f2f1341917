"""Whether the records that a query names are there: what Spark's ``failOnDataLoss`` is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.compat.spark.option_values import OptionError
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.spark.options import ReadOptions
    from logstore.partition import PartitionLog, Store

Places = Mapping[tuple[str, int], int]


class DataLossError(LogStoreError):
    """Records that a query has not seen yet are there no more."""


def check_kept(store: Store, places: Places) -> None:
    """
    Check that all records from these offsets on are still there, for a stream that goes on.

    Raises:
        DataLossError: some are not, or their partition is gone.

    """
    topics = store.topics()
    for (topic, index), place in places.items():
        partition = topics.get(topic, {}).get(index)
        if partition is None:
            raise DataLossError(
                f"{topic}-{index}: is there no more; set failOnDataLoss=false to go on without it"
            )
        if place < partition.start_offset:
            raise DataLossError(
                f"{topic}-{index}: records {place} to {partition.start_offset - 1} were removed "
                "before they were read; set failOnDataLoss=false to go on without them"
            )


def check_bounds(store: Store, options: ReadOptions) -> None:
    """
    Check that the offsets and times of single partitions mean something in this store.

    Raises:
        OptionError: a partition is named that is not read, or a start lies behind its end.
        DataLossError: `failOnDataLoss` is true, and records in the bounds are not there.

    """
    wanted: dict[tuple[str, int], PartitionLog] = {
        (topic, index): partition
        for topic, partitions in store.topics().items()
        for index, partition in partitions.items()
        if options.wants(topic, index)
    }
    options.start.check_named("starting", wanted)
    options.end.check_named("ending", wanted)
    for (topic, index), place in options.start.offsets.items():
        partition = wanted[topic, index]
        if place > partition.end_offset:
            told = f"lies behind the end of {topic}-{index}, {partition.end_offset}"
            raise OptionError("startingOffsets", place, told)
        if options.fails_on_loss and 0 <= place < partition.start_offset:
            raise DataLossError(_lost(topic, index, place, partition.start_offset))
    for (topic, index), place in options.end.offsets.items():
        end_offset = wanted[topic, index].end_offset
        if options.fails_on_loss and place > end_offset:
            raise DataLossError(_lost(topic, index, end_offset, place))


def _lost(topic: str, index: int, first: int, end: int) -> str:
    return (
        f"{topic}-{index}: records {first} to {end - 1} are not there; without "
        "failOnDataLoss=true those that are there are read"
    )
