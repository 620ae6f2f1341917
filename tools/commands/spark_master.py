"""Where a command's work runs: in this process, or in the workers of Spark."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from logstore.tools.commands.extras import require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: value of --master that does without Spark
HERE = "none"


@contextmanager
def spark_at(master: str | None, command: str) -> Generator[SparkSession | None]:
    """
    Start a quiet session at `master` for the time of the block; None where that is "none" or None.

    Raises:
        MissingExtraError: pyspark is not installed; `command` is what needs it.
        JavaMissingError: there is no Java for it.

    """
    if master is None or master == HERE:
        yield None
        return
    require(f"{command} --master {master}", ["pyspark"], "spark")
    from logstore.compat.spark.session import quiet_session

    with quiet_session(master) as spark:
        yield spark
