"""``logstore``: the command line. Each command is imported when it is asked for."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
from typing import Any

import click

from logstore import __version__
from logstore.errors import LogStoreError
from logstore.tools.os_failure import os_failure

#: the thread in which the bridge loads its compiled loops, or compiles them
_COMPILING = "logstore-loops"
#: exit code after Ctrl-C, as shells have it: a script may tell it from a finding
_INTERRUPTED = 130
#: command -> module and attribute that has it; the order is that of the help page
COMMANDS = {
    "serve": "logstore.tools.commands.serve:serve",
    "fault": "logstore.tools.commands.fault:fault",
    "ls": "logstore.tools.commands.ls:ls",
    "dump": "logstore.tools.commands.dump:dump",
    "query": "logstore.tools.commands.query:query",
    "verify": "logstore.tools.commands.verify:verify",
    "stats": "logstore.tools.commands.stats:stats",
    "sql": "logstore.tools.commands.sql:sql",
    "reindex": "logstore.tools.commands.reindex:reindex",
    "salvage": "logstore.tools.commands.salvage:salvage",
    "compact": "logstore.tools.commands.compact:compact_command",
    "convert": "logstore.tools.commands.convert:convert",
    "bench": "logstore.tools.commands.bench:bench",
}
#: says by itself from when on garbage is collected
_COLLECTS_LATER = "serve"
#: shown in the help page without importing the command
SUMMARIES = {
    "serve": "Serve a data directory (or a temporary one) to Kafka or RocketMQ clients.",
    "fault": "Make a served broker fail: requests, files, time, leaders.",
    "ls": "List topics, partitions or queues, and files of a store.",
    "dump": "Print what stands in the files of a store.",
    "query": "Ask where an offset, a time, a key or an id is, and how indexes lead there.",
    "verify": "Check CRCs, offsets, and every index and snapshot against the log.",
    "stats": "Measure a store: records, bytes, rates, keys, codecs, spread over partitions.",
    "sql": "Ask stores in SQL: their records are rows.",
    "reindex": "Make indexes, snapshots and epochs anew from the logs.",
    "salvage": "Take all that can be read of a damaged store into a new one.",
    "compact": "Keep only the last record of each key in compacted topics.",
    "convert": "Make a store of the other layout, or Parquet or JSON files, as a Spark job.",
    "bench": "Measure brokers beside the real ones, and the files alone.",
}


class LazyGroup(click.Group):
    """A group whose commands are imported one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of :data:`COMMANDS`."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if cmd_name != _COLLECTS_LATER:
            gc.enable()
        assert isinstance(command, click.Command), f"{cmd_name} is a command"
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; Ctrl-C is one word on a line of its own, and an exit code of its own."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("\nAborted!", err=True)
            ctx.exit(_INTERRUPTED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from their summaries."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUMMARIES[name]) for name in self.list_commands(ctx)])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="logstore")
def cli() -> None:
    """
    Serve, look into, mend, convert and measure logs as Kafka and RocketMQ keep them on disk.

    \b
    Examples:
      logstore serve                          a broker on port 9092 with throw-away data
      logstore serve --data DIR --port 0      serve a Kafka data directory on a free port
      logstore serve --layout rocketmq        RocketMQ's name server and broker, port 9876
      logstore ls DIR                         what is in it
      logstore query DIR --topic t --partition 0 --offset 4711

    Shell completion: eval "$(_LOGSTORE_COMPLETE=bash_source logstore)"
    """


def main() -> None:
    """Run the command line; an expected failure is one line and exit code 1."""
    gc.disable()  # what is imported stays: looking through it takes a tenth of a broker's start
    try:
        _run()
    except SystemExit as left:
        if any(one.name == _COMPILING for one in threading.enumerate()):
            # All is closed by now, and what is left is not worth the wait.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(left.code if isinstance(left.code, int) else int(left.code is not None))
        raise


def _run() -> None:
    try:
        cli(prog_name="logstore")
    except LogStoreError as error:
        click.echo(f"logstore: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        click.echo(f"logstore: {os_failure(error)}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
