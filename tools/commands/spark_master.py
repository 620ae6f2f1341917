"""Where a command's work runs: in this process, or in the workers of Spark."""

from __future__ import annotations

import importlib.util
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: value of --master that does without Spark
HERE = "none"


class SparkMissingError(LogStoreError):
    """Spark is asked for and not installed."""


@contextmanager
def spark_at(master: str | None, command: str) -> Generator[SparkSession | None]:
    """
    Start a quiet session at `master` for the time of the block; None where that is "none" or None.

    Raises:
        SparkMissingError: pyspark is not installed; `command` is what needs it.
        JavaMissingError: there is no Java for it.

    """
    if master is None or master == HERE:
        yield None
        return
    if importlib.util.find_spec("pyspark") is None:
        raise SparkMissingError(
            f"{command} --master {master} needs pyspark: pip install 'logstore-segments[spark]'"
        )
    from logstore.compat.spark.session import quiet_session

    with quiet_session(master) as spark:
        yield spark
