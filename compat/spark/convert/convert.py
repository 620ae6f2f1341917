"""One conversion from beginning to end: resumed if it was begun, nothing to do if it is done."""

from __future__ import annotations

import os
from typing import Any

import attrs

from logstore.compat.spark.convert.damage import DROP, FAILFAST, damage_count
from logstore.compat.spark.convert.job import Progress, Runner
from logstore.compat.spark.convert.options import ConvertOptions, shown_wish
from logstore.compat.spark.convert.preserve.restore_rocketmq import kept_for, restore_rocketmq
from logstore.compat.spark.convert.to_files import FILE_LAYOUTS, convert_to_files
from logstore.compat.spark.convert.to_kafka import convert_to_kafka
from logstore.compat.spark.convert.to_rocketmq import convert_to_rocketmq
from logstore.compat.spark.convert.work_folder import (
    FILES_REPORT_NAME,
    REPORT_NAME,
    TargetError,
    WorkFolder,
)
from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.stores import absolute_location, directories_of, layout_of
from logstore.errors import ForeignDirectoryError


def finished_report(options: ConvertOptions) -> dict[str, Any] | None:
    """
    Return the report of a target that stands already, None if there is something to do.

    Raises:
        TargetError: something else stands there, or the target lies in the source.
        OptionError: what is wished cannot be preserved.
        ForeignDirectoryError: the source is no store, or of the target's own layout.

    """
    folder = WorkFolder(options.target)
    _check_mode(options)
    _check_preservable(options)
    report = folder.finished_report()
    if report is None:
        folder.check_target()
        _check_apart(options)
        _check_source(options)
        return None
    wishes = _absolute(options).wishes()
    differing = [name for name, wish in wishes.items() if report.get(name) != wish]
    if differing:
        name = differing[0]
        was, wish = (shown_wish(name, one) for one in (report.get(name), wishes[name]))
        raise TargetError(
            f"{options.target}: was made with {was}, not with {wish}; name another target"
        )
    folder.remove()
    return report


def convert(
    runner: Runner, options: ConvertOptions, progress: Progress | None = None
) -> dict[str, Any]:
    """
    Make the target; return the report that stands in it.

    Raises:
        TargetError: something else stands there, or another conversion into it is running.
        OptionError: a topic is not in the source.
        ForeignDirectoryError: the source is no store, or of the target's own layout.
        UnfitMessageError, UnfitRecordError: a record cannot be a message of the target.
        CorruptEntryError: the source is damaged; it names file and position.
        DiskFullError: there is no room for the target.

    """
    report = finished_report(options)
    if report is not None:
        return report
    options = _absolute(options)
    folder = WorkFolder(options.target)
    with folder.locked(), folder.told_when_full():
        if options.layout in FILE_LAYOUTS:
            made, name = convert_to_files(runner, options, progress), FILES_REPORT_NAME
        elif options.layout == "kafka":
            made, name = convert_to_kafka(runner, options, progress), REPORT_NAME
        elif (kept := kept_for(options)) is not None:
            made, name = restore_rocketmq(runner, options, kept, progress), REPORT_NAME
        else:
            made, name = convert_to_rocketmq(runner, options, progress), REPORT_NAME
        report = options.wishes() | made
        if options.mode != FAILFAST and folder.beside.is_dir():
            report["damaged"] = damage_count(folder.beside)
        folder.finish(report, name)
    return report


def _absolute(options: ConvertOptions) -> ConvertOptions:
    """Return the options as they mean the same in every worker's directory."""
    return attrs.evolve(options, source=absolute_location(options.source))


def _check_mode(options: ConvertOptions) -> None:
    modes = (FAILFAST, DROP, *(("permissive",) if options.layout in FILE_LAYOUTS else ()))
    if options.mode not in modes:
        raise OptionError("mode", options.mode, f"must be one of: {', '.join(modes)}")


def _check_preservable(options: ConvertOptions) -> None:
    if not options.preserve:
        return
    if options.mode != FAILFAST:
        raise OptionError("mode", options.mode, "loses records; do without, or --preserve")
    if options.layout in FILE_LAYOUTS:
        raise OptionError("preserve", options.layout, "is for stores: there is no way back")
    for name, value in (
        ("from", options.starting_timestamp_ms),
        ("until", options.ending_timestamp_ms),
    ):
        if value is not None:
            raise OptionError(
                name, value, "leaves parts of batches out; do without it, or without --preserve"
            )


def _check_apart(options: ConvertOptions) -> None:
    target = os.path.abspath(options.target)
    for source in map(os.path.abspath, directories_of(options.source)):
        if os.path.commonpath([source, target]) in (source, target):
            raise TargetError(f"{target}: source and target must not lie in one another")


def _check_source(options: ConvertOptions) -> None:
    layout = layout_of(options.source)
    if options.layout == layout:
        raise ForeignDirectoryError(f"{options.source}: is a {layout} store already")
