"""``logstore dump``: what stands in files, batch by batch and entry by entry."""

from __future__ import annotations

import sys
from typing import TextIO

import click

from logstore.host import FileSystem
from logstore.os_host import system_host
from logstore.tools.inspection.facts import Fact, Problem
from logstore.tools.inspection.file_dump import dump_file
from logstore.tools.inspection.late_progress import LateProgress
from logstore.tools.inspection.log_dump import LogSelection
from logstore.tools.inspection.rendering import RENDERERS, Renderer

_OFFSET_MAX = 2**63 - 1


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
        return int(start or 0), int(end or _OFFSET_MAX)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no offset and no range FROM:TO", ctx=ctx, param=param
        ) from None


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@click.option("--records", "--print-data-log", "has_payload", is_flag=True,
              help="Print every record with key, value and headers.")  # fmt: skip
@click.option("--deep-iteration", "has_records", is_flag=True,
              help="Print every record without key and value.")  # fmt: skip
@click.option("--offsets", metavar="FROM:TO", callback=offset_range,
              help="Of a .log only the batches with offsets from FROM to below TO.")  # fmt: skip
@click.option("--format", "format_name", type=click.Choice(list(RENDERERS)), default="text",
              show_default=True,
              help="For people, as Kafka's DumpLogSegments prints it, or JSON lines.")  # fmt: skip
@click.option("--json", "is_json", is_flag=True, help="The same as --format json.")
def dump(
    paths: tuple[str, ...],
    has_payload: bool,
    has_records: bool,
    offsets: tuple[int, int] | None,
    format_name: str,
    is_json: bool,
) -> None:
    """
    Print what stands in the files of a Kafka data directory.

    Knows .log, .index, .timeindex, .txnindex, .snapshot, the checkpoints, leader-epoch-checkpoint,
    meta.properties and partition.metadata. Reads only, also beside a running broker. Says where
    bytes are wrong, goes on with the next file, and then exits with 1.

    \b
    Examples:
      logstore dump data/orders-0/*.log
      logstore dump --records --offsets 100:110 data/orders-0/00000000000000000000.log
      logstore dump --json data/orders-0/*.index | jq .position
      logstore dump --format kafka --print-data-log data/orders-0/*.log
    """
    start, end = offsets or (0, _OFFSET_MAX)
    selection = LogSelection(start, end, has_records or has_payload, has_payload)
    renderer = RENDERERS["json" if is_json else format_name]
    fs = system_host().fs
    out = sys.stdout
    sizes = [_size_bytes(fs, path) for path in paths]
    problem_count = 0
    with LateProgress("dumping", sum(sizes), is_wanted=not out.isatty()) as progress:
        done_bytes = 0
        for path, size_bytes in zip(paths, sizes, strict=True):
            problem_count += _dump_one(fs, path, selection, renderer, out, progress)
            done_bytes += size_bytes
            progress.move_to(done_bytes)
    out.flush()
    if problem_count:
        sys.exit(1)


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
    fs: FileSystem,
    path: str,
    selection: LogSelection,
    renderer: Renderer,
    out: TextIO,
    progress: LateProgress,
) -> int:
    """Print one file; return how many problems it has."""
    problem_count = 0
    before = progress.done
    try:
        for finding in dump_file(fs, path, selection):
            line = renderer(finding, path)
            if line is not None:
                _write(out, line)
            if isinstance(finding, Problem):
                problem_count += 1
                _complain(finding, out)
            elif finding.kind == "batch":
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
