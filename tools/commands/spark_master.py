"""Where a command's work runs: in this process, or in the workers of Spark."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from logstore.os_host import system_host
from logstore.segments.kafka.data_directory import named_directories
from logstore.segments.kafka.remote.fsspec_files import is_url
from logstore.tools.commands.extras import require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: value of --master that does without Spark
HERE = "none"
#: where all cores of this machine work
LOCAL = "local[*]"
#: what `st_blocks` counts
_BLOCK_BYTES = 512
#: what one core is through with before Spark has started; compressed it may be ten times as much
_SMALL_BYTES_MAX = 64 << 20
_FEW_FILES_MAX = 2000


def is_small(location: str) -> bool:
    """Tell whether what is there is converted sooner than Spark starts; never so of a URL."""
    if is_url(location):
        return False
    file_count = size_bytes = 0
    for directory in named_directories(system_host().fs, location):
        for folder, _, names in os.walk(directory):
            file_count += len(names)
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # a broker deletes meanwhile
                    # Files of RocketMQ are as long as they may get: what was written counts.
                    size_bytes += os.stat(os.path.join(folder, name)).st_blocks * _BLOCK_BYTES
            if file_count > _FEW_FILES_MAX or size_bytes > _SMALL_BYTES_MAX:
                return False
    return True


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
