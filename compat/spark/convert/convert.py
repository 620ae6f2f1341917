"""One conversion from beginning to end: resumed if it was begun, nothing to do if it is done."""

from __future__ import annotations

import json
from typing import Any

from logstore.compat.spark.convert.job import Progress, Runner
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.convert.to_kafka import convert_to_kafka
from logstore.compat.spark.convert.to_rocketmq import convert_to_rocketmq
from logstore.compat.spark.convert.work_folder import REPORT_NAME, WorkFolder


def convert(
    runner: Runner, options: ConvertOptions, progress: Progress | None = None
) -> dict[str, Any]:
    """
    Make the target; return the report that stands in it.

    Raises:
        TargetError: something else stands there.
        OptionError: a topic is not in the source.
        ForeignDirectoryError: the source is no store, or of the target's own layout.
        UnfitMessageError, UnfitRecordError: a record cannot be a message of the target.
        CorruptEntryError: the source is damaged; it names file and position.

    """
    folder = WorkFolder(options.target)
    if folder.is_finished:
        report: dict[str, Any] = json.loads((folder.target / REPORT_NAME).read_bytes())
        return report
    folder.check_target()
    make = convert_to_kafka if options.layout == "kafka" else convert_to_rocketmq
    report = make(runner, options, progress)
    folder.finish(json.dumps(report, indent=2).encode())
    return report
