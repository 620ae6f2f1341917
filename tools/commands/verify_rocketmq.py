"""``logstore verify`` of a RocketMQ store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logstore.os_host import system_host
from logstore.tools.inspection.late_progress import LateProgress
from logstore.tools.inspection.rocketmq.verification.store_check import StoreCheck
from logstore.tools.inspection.verification.finding import Finding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def store_findings(
    directory: str, settings: dict[str, str], progress: LateProgress, spark: SparkSession | None
) -> Iterator[Finding]:
    """Yield what is wrong with a store, or worth knowing."""

    def tell(done: int, total: int) -> None:
        progress.total = total
        progress.move_to(done)

    check = StoreCheck(system_host().fs, directory, settings)
    if spark is None:
        return check.findings(tell)
    from logstore.tools.inspection.rocketmq.verification.spark_walks import SparkWalks

    return check.findings(tell, SparkWalks(spark))
