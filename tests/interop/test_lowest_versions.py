"""The lowest versions of what logstore depends on, as `pyproject.toml` allows them."""

from __future__ import annotations

import subprocess
import tomllib
import venv
from pathlib import Path

import pytest

from tests.interop.conftest import missing

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(3600)]

_ROOT = Path(__file__).resolve().parents[2]


def required() -> list[str]:
    """Return every requirement of the package, extras and all."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = {*project["dependencies"], *(one for extra in extras for one in extra)}
    return sorted(one for one in wanted if not one.startswith("logstore-segments["))


def test_the_fast_tests_pass(tmp_path: Path) -> None:
    """Whoever has pinned the oldest of everything is served as well."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv/bin/python")
    uv = [python, "-m", "uv", "pip", "install", "--python", python]
    for install in (
        [python, "-m", "pip", "install", "-q", "uv"],
        [*uv, "--no-deps", "-e", str(_ROOT)],  # pytest finds its plugin by that
        [*uv, "--resolution", "lowest-direct", *required()],
    ):
        done = subprocess.run(install, text=True, capture_output=True, check=False)
        if done.returncode:
            missing(f"the lowest versions: {done.stderr[-300:]}")
    assert "numpy==2.0.0" in done.stderr.replace(" + ", "")
    # Matplotlib 3.8 takes names of pyparsing that a later one warns of.
    warn = ("matplotlib._fontconfig_pattern", "matplotlib._mathtext")
    quiet = [part for name in warn for part in ("-W", f"ignore::DeprecationWarning:{name}")]
    run = [python, "-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider"]
    some = [*run, *quiet, "-m", "not interop and not slow", "tests"]
    done = subprocess.run(some, cwd=_ROOT, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
