"""Foreign clients that pip, npm and go bring, once per user, whichever test process asks first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from logstore.tools.dev.file_lock import held
from tests.interop.conftest import missing


def python_package(requirement: str, *options: str) -> Path:
    """Return a directory that, put on ``PYTHONPATH``, has what PyPI has under that name."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *options, requirement, "--target"]
    return _installed(requirement, pip)


def node_modules(requirement: str, *more: str) -> Path:
    """Return a ``node_modules`` directory that has what npm has under that name, and `more`."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        missing(f"{requirement} needs node and npm, and they are not on the PATH")
    npm = ["npm", "install", "--no-audit", "--no-fund", requirement, *more, "--prefix"]
    return _installed(requirement, npm) / "node_modules"


def go_program(source: Path, directory: Path, tests_of: str = "") -> Path:
    """
    Return the program that go makes of a directory with a ``go.mod``, compiled into another.

    With `tests_of` it is the tests of that package, which the ``go.mod`` names, as it ships them.
    """
    if shutil.which("go") is None:
        missing("no `go` on the PATH")
    binary = directory / source.name
    words = ["test", "-c"] if tests_of else ["build"]
    done = subprocess.run(
        ["go", *words, "-o", str(binary), tests_of or "."],
        cwd=source, env=os.environ | {"GOFLAGS": "-buildvcs=false -mod=mod"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode:
        missing(f"{source.name} cannot be built: {done.stderr[-1000:]}")
    return binary


def _installed(name: str, command: list[str]) -> Path:
    """Return what a command has put into the directory that is its last word, all or nothing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = cache / "logstore" / "peers" / name
    fresh = directory.with_name(f"{name}.new")
    with held(directory.with_name(f"{name}.lock")):
        if not directory.is_dir():
            shutil.rmtree(fresh, ignore_errors=True)  # of one that was ended while it was at it
            fresh.mkdir()
            done = subprocess.run(
                [*command, str(fresh)], capture_output=True, text=True, check=False
            )
            if done.returncode:
                missing(f"{command[0]} cannot install {name}: {done.stderr[-500:]}")
            fresh.rename(directory)
    return directory
