"""``logstore dump``: what stands in files, batch by batch and entry by entry."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import click

from logstore.host import FileSystem
from logstore.os_host import system_host
from logstore.tools.commands.store_settings import store_settings
from logstore.tools.inspection.facts import Fact, Finding, Problem
from logstore.tools.inspection.file_dump import dump_file
from logstore.tools.inspection.kafka_dump import KafkaDump, KafkaDumpOptions
from logstore.tools.inspection.kafka_index_dump import INT_MAX, IndexChecks
from logstore.tools.inspection.late_progress import LateProgress
from logstore.tools.inspection.log_dump import LogSelection
from logstore.tools.inspection.record_decoders import (
    RecordDecoder,
    decode_group_record,
    decode_old_transaction_record,
    decode_share_record,
    decode_transaction_record,
)
from logstore.tools.inspection.rendering import RENDERERS, Renderer
from logstore.tools.inspection.rocketmq.file_dump import FileKind, dump_rocketmq_file, file_kind
from logstore.tools.inspection.rocketmq.log_dump import Selection
from logstore.tools.inspection.writer_release import ToolRelease, writer_release

FindingsOf = Callable[[str], Iterator[Finding]]

#: a damaged offset of Kafka may be below 0
_OFFSET_MIN, _OFFSET_END = -(2**63), 2**63
_KAFKA = "kafka"
_AUTO = "auto"


def offset_range(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    """Return (first offset, offset behind the last) of ``N``, ``FROM:TO``, ``FROM:`` or ``:TO``."""
    if value is None:
        return None
    start, colon, end = value.partition(":")
    try:
        if not colon:
            return int(start), int(start) + 1
        found = int(start or 0), int(end or _OFFSET_END)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no offset and no range FROM:TO", ctx=ctx, param=param
        ) from None
    if found[1] < found[0]:
        raise click.BadParameter(
            f"{value!r} ends before it begins; say FROM:TO", ctx=ctx, param=param
        )
    return found


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", metavar="FILE...", nargs=-1)
@click.option("--files", metavar="FILE,...",
              help="More files, with commas between, as Kafka's tool has it.")  # fmt: skip
@click.option("--records", "--print-data-log", "has_payload", is_flag=True,
              help="Print every record with key, value and names of headers; with --json their "
              "values, too.")  # fmt: skip
@click.option("--deep-iteration", "has_records", is_flag=True,
              help="Print every record without key and value.")  # fmt: skip
@click.option("--offsets-decoder", "decoder_name", flag_value="offsets",
              help="Print records as those of __consumer_offsets.")  # fmt: skip
@click.option("--transaction-log-decoder", "decoder_name", flag_value="transactions",
              help="Print records as those of __transaction_state.")  # fmt: skip
@click.option("--share-group-state-decoder", "decoder_name", flag_value="shares",
              help="Print records as those of __share_group_state.")  # fmt: skip
@click.option("--offsets", metavar="FROM:TO", callback=offset_range,
              help="Of a .log only the batches with offsets from FROM to below TO; of a commit "
              "log physical offsets, of a consume queue queue offsets.")  # fmt: skip
@click.option("--kind", "kind_name", type=click.Choice([kind.value for kind in FileKind]),
              help="What a RocketMQ file holds, if its folder does not tell.")  # fmt: skip
@store_settings
@click.option("--format", "format_name", type=click.Choice([*RENDERERS, _KAFKA]), default="text",
              show_default=True,
              help="For people, JSON lines, or as Kafka's DumpLogSegments prints it.")  # fmt: skip
@click.option("--json", "is_json", is_flag=True, help="The same as --format json.")
@click.option("--release", type=click.Choice([_AUTO, *(r.value for r in ToolRelease)]),
              default=_AUTO, show_default=True,
              help="With --format kafka: of which release; by itself that of the directory's "
              "broker.")  # fmt: skip
@click.option("--skip-record-metadata", "skips_metadata", is_flag=True,
              help="With --format kafka: of records only key and value.")  # fmt: skip
@click.option("--verify-index-only", "is_verify_only", is_flag=True,
              help="With --format kafka: check indexes, print no entries.")  # fmt: skip
@click.option("--index-sanity-check", "is_sanity_only", is_flag=True,
              help="With --format kafka: check indexes as a starting broker does.")  # fmt: skip
@click.option("--max-bytes", "bytes_max", type=click.IntRange(0), default=INT_MAX,
              help="With --format kafka: read so much of a log.")  # fmt: skip
@click.option("--max-message-size", "message_size_max", type=click.IntRange(0),
              default=5 * 1024 * 1024,
              help="With --format kafka: bytes looked at behind an index entry.")  # fmt: skip
def dump(
    paths: tuple[str, ...],
    files: str | None,
    has_payload: bool,
    has_records: bool,
    decoder_name: str | None,
    offsets: tuple[int, int] | None,
    kind_name: str | None,
    settings: dict[str, str],
    format_name: str,
    is_json: bool,
    release: str,
    **kafka: Any,
) -> None:
    """
    Print what stands in the files of a Kafka data directory or a RocketMQ store.

    Knows every kind of file in them: logs, queues, indexes, checkpoints, snapshots, tables, timers.
    Reads only, also beside a running broker. Says where bytes are wrong, goes on with the next
    file, and then exits with 1. With --format kafka stdout, stderr and exit status are those of
    Kafka's own tool.

    \b
    Examples:
      logstore dump data/orders-0/*.log
      logstore dump --records --offsets 100:110 data/orders-0/00000000000000000000.log
      logstore dump --json data/orders-0/*.index | jq .position
      logstore dump --format kafka --print-data-log data/orders-0/*.log
      logstore dump --offsets-decoder data/__consumer_offsets-7/*.log
      logstore dump --records store/commitlog/00000000000000000000
      logstore dump --kind index --set maxHashSlotNum=500 --set maxIndexNum=2000 copied-file
    """
    names = [*paths, *(files.split(",") if files else ())]
    if not names:
        raise click.UsageError("name at least one file")
    fs = system_host().fs
    tool = ToolRelease(release) if release != _AUTO else _release_of(fs, names[0])
    is_kafka = format_name == _KAFKA and not is_json
    decoder = _decoder(decoder_name, tool if is_kafka else ToolRelease.V4_3)
    start, end = offsets or (_OFFSET_MIN, _OFFSET_END)
    has_payload = has_payload or decoder is not None
    selection = LogSelection(start, end, has_records or has_payload, has_payload, decoder)
    if is_kafka:
        sys.exit(_dump_as_kafka(fs, names, _kafka_options(tool, selection, **kafka)))
    renderer = RENDERERS["json" if is_json else format_name]
    if _dump_all(fs, names, _findings_of(fs, selection, kind_name, settings), renderer):
        sys.exit(1)


def _kafka_options(
    tool: ToolRelease,
    selection: LogSelection,
    *,
    skips_metadata: bool,
    is_verify_only: bool,
    is_sanity_only: bool,
    bytes_max: int,
    message_size_max: int,
) -> KafkaDumpOptions:
    """Return what ``--format kafka`` is told besides."""
    checks = IndexChecks(is_verify_only, is_sanity_only, message_size_max)
    return KafkaDumpOptions(tool, selection, skips_metadata, bytes_max, checks)


def _findings_of(
    fs: FileSystem, selection: LogSelection, kind_name: str | None, settings: dict[str, str]
) -> FindingsOf:
    """Return what dumps a file of either layout."""
    kind = None if kind_name is None else FileKind(kind_name)
    stored = Selection(max(selection.start_offset, 0), selection.end_offset, selection.has_records)

    def findings(path: str) -> Iterator[Finding]:
        found = kind or file_kind(os.path.abspath(path))
        if found is None or not fs.exists(path) or fs.is_directory(path):
            return dump_file(fs, path, selection)
        return dump_rocketmq_file(fs, path, found, stored, settings)

    return findings


def _release_of(fs: FileSystem, path: str) -> ToolRelease:
    return writer_release(fs, os.path.dirname(os.path.abspath(path)))


def _decoder(name: str | None, release: ToolRelease) -> RecordDecoder | None:
    if name is None:
        return None
    if name == "transactions" and release is ToolRelease.V3_9:
        return decode_old_transaction_record
    return {
        "offsets": decode_group_record,
        "transactions": decode_transaction_record,
        "shares": decode_share_record,
    }[name]


def _dump_as_kafka(fs: FileSystem, names: list[str], options: KafkaDumpOptions) -> int:
    """Print what Kafka's tool prints; return its exit status."""
    out = sys.stdout

    def complain(line: str) -> None:
        out.flush()
        click.echo(line, err=True)

    total = sum(_size_bytes(fs, name) for name in names if name.endswith(".log"))
    with LateProgress("dumping", total, is_wanted=not out.isatty()) as progress:
        tool = KafkaDump(fs, options, lambda line: _write(out, line), complain, progress.advance)
        status = tool.run(names)
    out.flush()
    return status


def _dump_all(fs: FileSystem, names: list[str], findings: FindingsOf, renderer: Renderer) -> int:
    """Print the files; return how many problems they have."""
    out = sys.stdout
    sizes = [_size_bytes(fs, name) for name in names]
    problem_count, done_bytes = 0, 0
    with LateProgress("dumping", sum(sizes), is_wanted=not out.isatty()) as progress:
        for name, size_bytes in zip(names, sizes, strict=True):
            problem_count += _dump_one(name, findings(name), renderer, out, progress)
            done_bytes += size_bytes
            progress.move_to(done_bytes)
    out.flush()
    return problem_count


def _size_bytes(fs: FileSystem, path: str) -> int:
    """Return how much there is to dump; what cannot be read is said when its turn comes."""
    try:
        file = fs.open(path, writable=False)
    except OSError:
        return 0
    try:
        return file.size()
    finally:
        file.close()


def _dump_one(
    path: str,
    findings: Iterator[Finding],
    renderer: Renderer,
    out: TextIO,
    progress: LateProgress,
) -> int:
    """Print one file; return how many problems it has."""
    problem_count = 0
    before = progress.done
    try:
        for finding in findings:
            line = renderer(finding, path)
            if line is not None:
                _write(out, line)
            if isinstance(finding, Problem):
                problem_count += 1
                _complain(finding, out)
            elif finding.kind in ("batch", "message"):
                progress.move_to(before + _end_position(finding))
    except BrokenPipeError:
        raise  # nobody reads on: no fault of the file
    except OSError as error:
        problem_count += 1
        reason = f"{error.strerror or error}; name a file that you may read"
        problem = Problem(path, None, reason)
        if (line := renderer(problem, path)) is not None:
            _write(out, line)
        _complain(problem, out)
    return problem_count


def _write(out: TextIO, line: str) -> None:
    try:
        out.write(f"{line}\n")
    except UnicodeEncodeError:  # a path that is no text, or a terminal that knows few letters
        out.write(line.encode("ascii", "backslashreplace").decode() + "\n")


def _end_position(batch: Fact) -> int:
    position, size = batch.fields["position"], batch.fields["size"]
    assert isinstance(position, int), "batches have positions"
    assert isinstance(size, int), "batches have sizes"
    return position + size


def _complain(problem: Problem, out: TextIO) -> None:
    out.flush()  # so that the complaint stands behind what it is about
    click.echo(f"logstore: {problem}", err=True)
