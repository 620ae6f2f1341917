"""Java programs of tests and benchmarks, compiled once per content of their sources."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from logstore.tools.dev.file_lock import held
from logstore.tools.dev.maven import PeerToolError, PeerUnavailable

# Half of what it costs by itself: it compiles a few files and ends.
_JVM = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")


def compiled(what: str, sources: Sequence[Path], class_path: str, cache: Path) -> Path:
    """
    Return the directory of the classes of these sources, below `cache`.

    `what` is whose jars `class_path` has. Several processes may ask at once: one compiles.

    Raises :class:`PeerUnavailable` without a compiler, :class:`PeerToolError` with what it said.
    """
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    directory = cache / "classes" / digest.hexdigest()[:16]
    if directory.exists():
        return directory
    if shutil.which("javac") is None:
        raise PeerUnavailable(f"{what}: no `javac` on the PATH; install a JDK, 17 or up")
    with held(cache / "classes.lock"):
        if not directory.exists():
            _compile(what, sources, class_path, directory)
    return directory


def _compile(what: str, sources: Sequence[Path], class_path: str, directory: Path) -> None:
    fresh = directory.with_name(f"{directory.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)  # of one that was ended while it was at it
    fresh.mkdir(parents=True)
    command = ["javac", *_JVM, "-nowarn", "-Xlint:none", "-d", str(fresh), "-cp", class_path]
    done = subprocess.run(
        [*command, *map(str, sources)], text=True, capture_output=True, check=False
    )
    if done.returncode:
        shutil.rmtree(fresh)
        raise PeerToolError(f"javac with {what} ended badly:\n{done.stderr}")
    fresh.rename(directory)
