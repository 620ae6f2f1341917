"""The real brokers' jars, through Maven, once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from logstore.errors import LogStoreError
from logstore.tools.dev.file_lock import held


class PeerUnavailable(LogStoreError):  # noqa: N818 - a state of the world, and the tests skip on it
    """A real broker cannot be had here: no Java, no Maven, no artifacts, or it did not start."""


class PeerToolError(LogStoreError):
    """One of a real broker's own tools ended with an error."""


def class_path(what: str, pom: Path, options: Sequence[str], cache: Path) -> str:
    """
    Return the class path of a pom; Maven is asked only for a new pom, or while a jar is not there.

    `cache` is the directory where it is kept, beside the pom that it was asked for.

    Raises :class:`PeerUnavailable` where Maven is missing or cannot reach the artifacts.
    """
    saved = cache / "classpath.txt"
    if _is_good(saved, pom):
        return saved.read_text()
    if shutil.which("mvn") is None:
        raise PeerUnavailable(f"{what}: no `mvn` on the PATH; install Apache Maven")
    with held(cache / "classpath.lock"):  # several test processes may be at it
        if not _is_good(saved, pom):
            _ask(what, pom, options, saved)
    return saved.read_text()


def _is_good(saved: Path, pom: Path) -> bool:
    """Tell whether the class path of this very pom is known, and every jar of it on disk."""
    if not saved.exists() or not _pom_of(saved).exists():
        return False
    is_same = _pom_of(saved).read_bytes() == pom.read_bytes()
    return is_same and all(os.path.exists(jar) for jar in saved.read_text().split(":"))


def _pom_of(saved: Path) -> Path:
    return saved.with_name("pom.xml")


def _ask(what: str, pom: Path, options: Sequence[str], saved: Path) -> None:
    fresh = saved.with_name("classpath.new")
    print(f"fetching Apache {what} through Maven (once)", file=sys.stderr, flush=True)
    command = ["mvn", "-q", "-B", "-f", str(pom), *options, "dependency:build-classpath"]
    done = subprocess.run(
        [*command, f"-Dmdep.outputFile={fresh}"],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        raise PeerUnavailable(f"{what}: Maven failed:\n{done.stdout[-2000:].strip()}")
    _pom_of(saved).unlink(missing_ok=True)  # it never stands beside another one's class path
    os.replace(fresh, saved)
    shutil.copyfile(pom, _pom_of(saved))
