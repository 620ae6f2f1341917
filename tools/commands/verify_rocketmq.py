"""``logstore verify`` of a RocketMQ store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logstore.os_host import system_host
from logstore.tools.inspection.late_progress import LateProgress
from logstore.tools.inspection.rocketmq.verification.store_check import StoreCheck
from logstore.tools.inspection.verification.finding import Finding, Severity
from logstore.tools.inspection.verification.second_look import lasting_findings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from logstore.tools.inspection.rocketmq.verification.walked_log import Walks


def store_findings(
    directory: str, settings: dict[str, str], progress: LateProgress, spark: SparkSession | None
) -> Iterator[Finding]:
    """Yield what is wrong with a store, or worth knowing."""

    def tell(done: int, total: int) -> None:
        progress.total = total
        progress.move_to(done)

    def look(check: StoreCheck) -> Iterator[Finding]:
        return check.findings(tell, None if spark is None else _walks(spark))

    def look_closely() -> list[Finding] | None:
        try:
            return list(look(StoreCheck(system_host().fs, directory, settings)))
        except FileNotFoundError:  # the broker has removed a file that was too old
            return None

    check = StoreCheck(system_host().fs, directory, settings)
    if check.store.process is None:
        return look(check)
    found = lasting_findings(look_closely(), look_closely)
    if found is None:
        text = "is not checked: files go while they are read"
        found = [Finding("unsettled", ".", text, severity=Severity.NOTE)]
    return iter(found)


def _walks(spark: SparkSession) -> Walks:
    from logstore.tools.inspection.rocketmq.verification.spark_walks import SparkWalks

    return SparkWalks(spark)
