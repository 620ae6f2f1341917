"""The command line: what there is, how it is found, and how failures are told."""

from __future__ import annotations

import errno
import gc
import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from logstore import __version__
from logstore.compat.bridge import late_loops
from logstore.errors import LogStoreError
from logstore.tools import cli as cli_module
from logstore.tools.cli import COMMANDS, SUMMARIES, LazyGroup, cli
from logstore.tools.commands import ls as ls_module
from logstore.tools.commands.serve_process import settle
from tests.tools.command_line import CommandLine

SECONDS_MAX = 30


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``logstore`` as a process."""
    return subprocess.run(
        [sys.executable, "-m", "logstore.tools.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        env={**os.environ, **environment},
    )


def test_nobody_waits_for_a_compiler_to_leave() -> None:
    """A server that is told to stop while loops are being compiled stops, with its own status."""
    program = """
import sys, threading
from logstore.compat.bridge import late_loops
from logstore.tools import cli
late_loops.beside(threading.Event().wait)
sys.argv = ["logstore", "ls", "--no-such-option"]
cli.main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=SECONDS_MAX, check=False
    )
    assert done.returncode == click.UsageError.exit_code
    assert b"--no-such-option" in done.stderr
    assert cli_module._COMPILING == late_loops.THREAD_NAME  # pyright: ignore[reportPrivateUsage]


def command(name: str) -> click.Command:
    """Return a command of the group."""
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def test_help_lists_every_command(logstore: CommandLine) -> None:
    """With one sentence each, in the order of the table."""
    outcome = logstore("--help")
    assert outcome.exit_code == 0
    assert list(SUMMARIES) == list(COMMANDS)
    positions = [outcome.out.index(f"  {name} ") for name in COMMANDS]
    assert positions == sorted(positions)
    words = " ".join(outcome.out.split())
    assert [summary for summary in SUMMARIES.values() if summary not in words] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(logstore: CommandLine, name: str) -> None:
    """What it does, what it takes, and a line to copy."""
    for flag in ("--help", "-h"):
        outcome = logstore(name, flag)
        assert (outcome.exit_code, outcome.err) == (0, "")
        assert outcome.out.startswith(f"Usage: logstore {name}")
    assert f"logstore {name}" in outcome.out.partition("\n")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    """No option without a sentence."""
    options = [one for one in command(name).params if isinstance(one, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_help_costs_no_imports() -> None:
    """A command is imported when it is asked for, so that help and completion are quick."""
    code = (
        "import sys, logstore.tools.cli as c\n"
        "sys.argv = ['logstore', '--help']\n"
        "try: c.main()\n"
        "except SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith(('logstore.compat', 'logstore.segments', "
        "'kafka', 'asyncio', 'uvloop'))])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=True,
    )
    assert ended.stdout.splitlines()[-1] == "[]"


def test_the_version_is_that_of_the_distribution(logstore: CommandLine) -> None:
    """`-V` and `--version` say it."""
    for flag in ("-V", "--version"):
        outcome = logstore(flag)
        assert (outcome.exit_code, outcome.out) == (0, f"logstore, version {__version__}\n")
    assert importlib.metadata.version("logstore-segments") == __version__


@pytest.mark.parametrize(
    "arguments", [("frobnicate",), ("serve", "--frobnicate"), ("ls", "a", "b")]
)
def test_wrong_use_is_exit_code_2(logstore: CommandLine, arguments: tuple[str, ...]) -> None:
    """Nothing on stdout, and where to find help."""
    outcome = logstore(*arguments)
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert re.search(r"Try 'logstore[a-z ]* (--help|-h)' for help", outcome.err)
    assert "Error: " in outcome.err


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (LogStoreError("disk.log: position 7: bad"), "logstore: disk.log: position 7: bad"),
        (FileNotFoundError(2, "No such file", "x.log"), "logstore: x.log: No such file"),
        (OSError("something else"), "logstore: something else"),
        (
            PermissionError(errno.EACCES, "Permission denied", "x.log"),
            (
                "logstore: x.log: Permission denied; name what you may read and write, or run this "
                "as its owner"
            ),
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "x.log"),
            "logstore: x.log: No space left on device; make room on that disk",
        ),
        (
            OSError(errno.EROFS, "Read-only file system", "x.log"),
            "logstore: x.log: Read-only file system; name a place that can be written to",
        ),
    ],
)
def test_an_expected_failure_is_one_line(
    logstore: CommandLine, monkeypatch: pytest.MonkeyPatch, error: Exception, line: str
) -> None:
    """On stderr, with exit code 1 and no traceback."""

    def fail(**_: Any) -> None:
        raise error

    monkeypatch.setattr(cli_module, "cli", fail)
    outcome = logstore("serve")
    assert (outcome.exit_code, outcome.out, outcome.err) == (1, "", f"{line}\n")


def test_ctrl_c_is_one_word_and_exit_code_130(
    logstore: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As of any program that a shell runs; 1 would be a finding."""

    def stop(_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(ls_module, "layout_of", stop)
    outcome = logstore("ls", tmp_path)
    assert (outcome.exit_code, outcome.out, outcome.err) == (130, "", "\nAborted!\n")


def test_the_entry_point_is_installed() -> None:
    """`logstore` runs the same thing as `python -m logstore.tools.cli`."""
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name="logstore")
    assert entry.load() is cli_module.main


def test_shells_can_complete() -> None:
    """Commands, and options of commands."""
    script = run(_LOGSTORE_COMPLETE="bash_source")
    assert "_logstore_completion" in script.stdout
    found = run(_LOGSTORE_COMPLETE="bash_complete", COMP_WORDS="logstore se", COMP_CWORD="1")
    assert found.stdout.splitlines() == ["plain,serve"]
    found = run(
        _LOGSTORE_COMPLETE="bash_complete", COMP_WORDS="logstore serve --js", COMP_CWORD="2"
    )
    assert found.stdout.splitlines() == ["plain,--json"]


@pytest.fixture
def not_collecting() -> Iterator[None]:
    """The state of a process that has just begun to run the command line."""
    thresholds = gc.get_threshold()
    gc.disable()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    gc.enable()


@pytest.mark.usefixtures("not_collecting")
def test_garbage_is_collected_once_a_command_is_there() -> None:
    """One that serves takes longer to begin, and does it when it is ready."""
    group = LazyGroup("logstore")
    context = click.Context(group)
    assert group.get_command(context, "serve") is not None
    assert not gc.isenabled()
    settle()
    assert gc.isenabled()
    gc.disable()
    assert group.get_command(context, "ls") is not None
    assert gc.isenabled()
