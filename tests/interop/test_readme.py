"""The README promises what runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.interop

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_example_of_a_test_passes(tmp_path: Path) -> None:
    """The first thing that a reader copies is a pytest file, and it is green."""
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    file = tmp_path / "test_example.py"
    file.write_text(example)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_commands_exist() -> None:
    """Every `logstore` and `./dev` command that the README names answers to --help."""
    text = README.read_text()
    commands = set(re.findall(r"logstore (serve|ls|dump|query|verify|convert|bench)\b", text))
    assert commands >= {"serve", "ls", "dump", "query"}
    for command in commands:
        shown = [sys.executable, "-m", "logstore.tools.cli", command, "--help"]
        done = subprocess.run(shown, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    named = set(re.findall(r"\./dev (\w+)", text))
    usage = subprocess.run(
        [str(README.parent / "dev"), "help"], capture_output=True, text=True, check=True
    ).stdout
    assert {command for command in named if f"./dev {command}" not in usage} == set()
