"""``logstore verify``: whether a directory's files tell one story, and why if not."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from logstore.passing_files import PassingFileSystem
from logstore.tools.commands.spark_master import spark_at
from logstore.tools.commands.store_settings import store_settings
from logstore.tools.inspection.json_line import json_line
from logstore.tools.inspection.late_progress import LateProgress
from logstore.tools.inspection.layout import ROCKETMQ, layout_of, stores_in
from logstore.tools.inspection.verification.directory_check import DirectoryCheck
from logstore.tools.inspection.verification.finding import Finding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("directory", metavar="DIR")
@click.option("--records", "has_records", is_flag=True,
              help="Decode every record too, not only check its batch's CRC.")  # fmt: skip
@store_settings
@click.option("--master", metavar="URL",
              help="Read the log in Spark's workers there, as in local[*]: for big stores.  "
              "[default: this process]")  # fmt: skip
@click.option("--json", "is_json", is_flag=True, help="Print one finding a line, as JSON.")
def verify(
    directory: str,
    has_records: bool,
    settings: dict[str, str],
    master: str | None,
    is_json: bool,
) -> None:
    """
    Check CRCs and offsets of a log, and every index, snapshot and checkpoint against it.

    DIR is an entry of log.dirs or several with commas between, one partition's directory, or a
    RocketMQ store, of which queues, index, checkpoint, tables and timers are held against the
    commit log. Says in plain words what is wrong, where, and what follows from it; also what is
    worth knowing and no damage, such as transactions that are still open and hold back the last
    stable offset. Reads only and takes no lock. Exits with 1 if something is damaged.

    \b
    Examples:
      logstore verify /var/lib/kafka
      logstore verify /disk1/kafka,/disk2/kafka
      logstore verify /var/lib/kafka/orders-0
      logstore verify /var/lib/rocketmq/store --set maxHashSlotNum=500 --set maxIndexNum=2000
      logstore verify /var/lib/rocketmq/store --master local[*]
      logstore verify --json /var/lib/kafka | jq -r 'select(.severity == "damage") | .file'
    """
    paths = stores_in(directory)
    is_rocketmq = layout_of(paths[0]) == ROCKETMQ
    is_damaged = False
    with spark_at(master, "verify") as spark:
        for path in paths:
            with LateProgress("verifying", 0) as progress:
                if is_rocketmq:
                    from logstore.tools.commands.verify_rocketmq import store_findings

                    findings = store_findings(path, settings, progress, spark)
                else:
                    beside = [one for one in paths if one != path]
                    findings = _kafka_findings(path, beside, progress, spark, has_records)
                is_damaged |= _say(path, findings, is_json=is_json, is_one=len(paths) == 1)
    if is_damaged:
        sys.exit(1)


def _say(path: str, findings: Iterable[Finding], *, is_json: bool, is_one: bool) -> bool:
    """Print findings and what they come to; tell whether there was damage."""
    damage_count = note_count = 0
    for finding in findings:
        damage_count += finding.is_damage
        note_count += not finding.is_damage
        if not is_json:
            click.echo(_line(finding))
            continue
        content = _content(finding)
        click.echo(json_line(content if is_one else {"directory": path, **content}))
    if not is_json:
        click.echo(_verdict(path, damage_count, note_count))
    return damage_count > 0


def _kafka_findings(
    path: str,
    beside: Sequence[str],
    progress: LateProgress,
    spark: SparkSession | None,
    has_records: bool,
) -> Iterator[Finding]:
    def tell(done: int, total: int) -> None:
        progress.total = total
        progress.move_to(done)

    check = DirectoryCheck(PassingFileSystem(), path, has_records=has_records, beside=beside)
    if spark is None:
        return check.findings(tell)
    from logstore.tools.inspection.verification.spark_scans import SparkScans

    return check.findings(tell, SparkScans(spark))


def _content(finding: Finding) -> dict[str, object]:
    content: dict[str, object] = {
        "severity": finding.severity.value,
        "kind": finding.kind,
        "file": finding.file,
        "position": finding.position,
        "offset": finding.offset,
        "reason": finding.text,
    }
    if finding.physical_offset is not None:
        content["physicalOffset"] = finding.physical_offset
    return content


def _line(finding: Finding) -> str:
    return str(finding) if finding.is_damage else f"note: {finding}"


def _verdict(path: str, damage_count: int, note_count: int) -> str:
    notes = f", {_counted(note_count, 'note')}" if note_count else ""
    if damage_count:
        return f"{path}: {_counted(damage_count, 'damage')} found{notes}"
    return f"{path}: no damage found{notes}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
